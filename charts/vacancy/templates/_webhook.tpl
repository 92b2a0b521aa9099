{{/* Parts of both webhook configurations. */}}

{{- define "vacancy.webhookMetadata" -}}
labels:
  {{- include "vacancy.labels" . | nindent 2 }}
{{- $annotations := deepCopy .Values.webhook.annotations }}
{{- if eq .Values.tls.mode "cert-manager" }}
{{- $_ := set $annotations "cert-manager.io/inject-ca-from" (printf "%s/%s" .Release.Namespace (include "vacancy.fullname" .)) }}
{{- end }}
{{- with $annotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* Of (dict "root" $ "path" "/validate/warn"). The caBundle is there only if nobody else writes it. */}}
{{- define "vacancy.clientConfig" -}}
{{- if .root.Values.webhook.url -}}
url: {{ .root.Values.webhook.url }}{{ .path }}
{{- else -}}
service:
  name: {{ include "vacancy.fullname" .root }}
  namespace: {{ .root.Release.Namespace }}
  port: 443
  path: {{ .path }}
{{- end }}
{{- if and (eq .root.Values.tls.mode "existing-secret") .root.Values.tls.caBundle }}
caBundle: {{ .root.Values.tls.caBundle | b64enc }}
{{- end }}
{{- end }}

{{/* Of (dict "root" $ "modes" (list …)). A label that is absent or means nothing stands for the default mode. */}}
{{- define "vacancy.namespaceSelector" -}}
{{- $others := list -}}
{{- range list "enforce" "warn" "audit" "off" -}}
{{- if not (has . $.modes) -}}
{{- $others = append $others . -}}
{{- end -}}
{{- end -}}
{{- $isDefault := has .root.Values.mode .modes -}}
matchExpressions:
  - key: gpu-vacancy.dev/mode
    operator: {{ ternary "NotIn" "In" $isDefault }}
    values: {{ ternary $others .modes $isDefault | toJson }}
  - key: kubernetes.io/metadata.name
    operator: NotIn
    values: {{ concat (list "kube-system" "kube-node-lease" "kube-public" .root.Release.Namespace) .root.Values.webhook.excludedNamespaces | uniq | toJson }}
{{- end }}
