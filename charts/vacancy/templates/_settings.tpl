{{/* The settings of `vacancy serve`, as environment variables. */}}

{{/* auto, unless a right that is switched off leaves one source only: what can't be read isn't asked for. */}}
{{- define "vacancy.source" -}}
{{- if ne .Values.source "auto" -}}
{{ .Values.source }}
{{- else if not .Values.rights.witness -}}
pool-status
{{- else if not .Values.rights.poolStatus -}}
witness
{{- else -}}
auto
{{- end -}}
{{- end }}

{{/* Whoever is refused and not woken may wait for a quarter of an hour: then these two are warned. */}}
{{- define "vacancy.ownerPolicy" -}}
{{- $policy := deepCopy .Values.ownerPolicy -}}
{{- if not .Values.wake.enabled -}}
{{- $policy = merge $policy (dict "ReplicaSet" "warn" "StatefulSet" "warn") -}}
{{- end -}}
{{- $entries := list -}}
{{- range $owner, $mode := $policy -}}
{{- $entries = append $entries (printf "%s=%s" $owner $mode) -}}
{{- end -}}
{{- join "," $entries -}}
{{- end }}

{{/* A line for each namespace. */}}
{{- define "vacancy.optionsTextFor" -}}
{{- $lines := list -}}
{{- range $namespace, $text := .Values.optionsTextFor -}}
{{- $lines = append $lines (printf "%s=%s" $namespace $text) -}}
{{- end -}}
{{- join "\n" $lines -}}
{{- end }}

{{/* What can't be read isn't asked for. */}}
{{- define "vacancy.withheld" -}}
{{- $names := list -}}
{{- range $right, $name := dict "claims" "claims" "nodes" "nodes" "taintRules" "taint-rules" -}}
{{- if not (index $.Values.rights $right) -}}
{{- $names = append $names $name -}}
{{- end -}}
{{- end -}}
{{- join "," $names -}}
{{- end }}

{{- define "vacancy.settings" -}}
{{- $settings := dict
  "ALLOW_QUEUE_LABEL" .Values.allowQueueLabel
  "AUTOSCALED" (join "," .Values.autoscaled)
  "DYNAMIC" (join "," .Values.dynamic)
  "HIDE_NAMES" .Values.hideNames
  "LISTEN" .Values.listen
  "LOG_FORMAT" .Values.logFormat
  "LOG_LEVEL" .Values.logLevel
  "MAX_AGE" .Values.maxAge
  "MODE" .Values.mode
  "NEVER_FITS" .Values.neverFits
  "OPTIONS_TEXT" .Values.optionsText
  "OPTIONS_TEXT_FOR" (include "vacancy.optionsTextFor" .)
  "OWNER_POLICY" (include "vacancy.ownerPolicy" .)
  "PAGE_URL" .Values.pageUrl
  "QUOTA_WORDS_FOR" (join "," .Values.quotaWordsFor)
  "REFRESH_SECONDS" .Values.refreshSeconds
  "SCHEDULERS" (join "," .Values.schedulers)
  "SOURCE" (include "vacancy.source" .)
  "WAKE" .Values.wake.enabled
  "WARN_ONLY_FOR" (join "," .Values.warnOnlyFor)
  "WEB_LISTEN" .Values.webListen
  "WITHHELD" (include "vacancy.withheld" .)
-}}
{{- if eq .Values.tls.mode "self-managed" -}}
{{- $_ := set $settings "TLS_SECRET" (printf "%s/%s" .Release.Namespace (include "vacancy.tlsSecret" .)) -}}
{{- $_ := set $settings "WEBHOOKS" (include "vacancy.webhooks" .) -}}
{{- else -}}
{{- $_ := set $settings "TLS_DIR" "/tls" -}}
{{- end -}}
{{- range $name, $value := $settings }}
- name: VACANCY_{{ $name }}
  {{- /* An empty value would be a field that the API server drops, and others can't apply without a conflict. */}}
  {{- with $value | toString }}
  value: {{ . | quote }}
  {{- end }}
{{- end }}
{{- end }}
