{{/* Names and labels. */}}

{{/* Room is left for "-workloads" and the hash of a pod's name. */}}
{{- define "vacancy.fullname" -}}
{{- $made := ternary .Release.Name (printf "%s-vacancy" .Release.Name) (contains "vacancy" .Release.Name) -}}
{{- .Values.fullnameOverride | default $made | replace "." "-" | trunc 50 | trimSuffix "-" -}}
{{- end }}

{{- define "vacancy.labels" -}}
{{- include "vacancy.labelsWith" (dict "root" . "labels" dict) }}
{{- end }}

{{/* Labels of every object and some more; of (dict "root" $ "labels" {…}). */}}
{{- define "vacancy.labelsWith" -}}
{{- with merge (deepCopy .labels) .root.Values.commonLabels }}
{{- toYaml . }}
{{ end -}}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
app.kubernetes.io/name: vacancy
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
{{- end }}

{{/* The pods that answer, and not those of the hooks. */}}
{{- define "vacancy.selector" -}}
app.kubernetes.io/name: vacancy
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: server
{{- end }}

{{- define "vacancy.image" -}}
{{- $repository := printf "%s%s" (ternary "" (printf "%s/" .Values.image.registry) (empty .Values.image.registry)) .Values.image.repository -}}
{{- if .Values.image.digest -}}
{{ $repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ $repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end }}

{{/* The webhook configurations that send to us. */}}
{{- define "vacancy.webhooks" -}}
{{- $name := include "vacancy.fullname" . -}}
{{- $name -}}{{- if .Values.workloads.enabled -}},{{ $name }}-workloads{{- end -}}
{{- end }}

{{/* The Secret of the serving pair. cert-manager leaves its own behind, so no other mode may want that name. */}}
{{- define "vacancy.tlsSecret" -}}
{{- if eq .Values.tls.mode "existing-secret" -}}
{{ .Values.tls.existingSecret }}
{{- else -}}
{{ include "vacancy.fullname" . }}-{{ ternary "cert" "tls" (eq .Values.tls.mode "cert-manager") }}
{{- end -}}
{{- end }}
