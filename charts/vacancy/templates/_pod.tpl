{{/* What the pods that answer and the pods of the hooks have in common. */}}

{{/* Fields of a pod's spec: whence the image, where to, with which privileges. */}}
{{- define "vacancy.podPlace" -}}
securityContext:
  {{- toYaml .Values.podSecurityContext | nindent 2 }}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* Fields of the container. */}}
{{- define "vacancy.containerForm" -}}
image: {{ include "vacancy.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
resources:
  {{- toYaml .Values.resources | nindent 2 }}
securityContext:
  {{- toYaml .Values.securityContext | nindent 2 }}
{{- end }}

{{/* Labels and spec of a pod that runs one command about the webhook configurations; of (dict "root" $ "command" "selftest"). */}}
{{- define "vacancy.commandLabels" -}}
{{- include "vacancy.labels" .root }}
app.kubernetes.io/component: {{ .command }}
{{- end }}

{{- define "vacancy.commandSpec" -}}
serviceAccountName: {{ include "vacancy.fullname" .root }}-{{ .command }}
automountServiceAccountToken: true
enableServiceLinks: false
restartPolicy: Never
{{- include "vacancy.podPlace" .root | nindent 0 }}
containers:
  - name: {{ .command }}
    {{- include "vacancy.containerForm" .root | nindent 4 }}
    args: [{{ .command }}]
    env:
      - name: VACANCY_WEBHOOKS
        value: {{ include "vacancy.webhooks" .root }}
{{- end }}

{{/* Annotations of a hook that leaves nothing behind; of (dict "hook" "test" "weight" 0). */}}
{{- define "vacancy.hook" -}}
helm.sh/hook: {{ .hook }}
helm.sh/hook-weight: {{ .weight | quote }}
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end }}

{{/* The account of such a command with these rights alone; of (dict "root" $ "command" … "hook" … "rules" (list …)). */}}
{{- define "vacancy.commandAccount" -}}
{{- $name := printf "%s-%s" (include "vacancy.fullname" .root) .command -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ $name }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "vacancy.commandLabels" . | nindent 4 }}
  annotations:
    {{- include "vacancy.hook" (dict "hook" .hook "weight" -3) | nindent 4 }}
automountServiceAccountToken: false
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: {{ $name }}
  labels:
    {{- include "vacancy.commandLabels" . | nindent 4 }}
  annotations:
    {{- include "vacancy.hook" (dict "hook" .hook "weight" -2) | nindent 4 }}
rules:
  {{- toYaml .rules | nindent 2 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: {{ $name }}
  labels:
    {{- include "vacancy.commandLabels" . | nindent 4 }}
  annotations:
    {{- include "vacancy.hook" (dict "hook" .hook "weight" -1) | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: {{ $name }}
subjects:
  - kind: ServiceAccount
    name: {{ $name }}
    namespace: {{ .root.Release.Namespace }}
{{- end }}
