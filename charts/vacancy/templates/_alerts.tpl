{{/* The groups of files/alerts.yaml, with thresholds and links filled in, and overrides by alert applied. */}}
{{- define "vacancy.alerts" -}}
{{- $own := .Values.prometheusRule }}
{{- $text := .Files.Get "files/alerts.yaml" | replace "${maxAge}" (.Values.maxAge | toString) }}
{{- range $name, $value := $own.thresholds }}
{{- $text = $text | replace (printf "${%s}" $name) ($value | toString) }}
{{- end }}
{{- range $group := get ($text | fromYaml) "groups" }}
{{- $rules := list }}
{{- range $rule := $group.rules }}
{{- $override := get $own.overrides $rule.alert | default dict }}
{{- if ne (get $override "enabled" | toString) "false" }}
{{- with get $override "for" }}{{ $_ := set $rule "for" . }}{{ end }}
{{- with get $override "severity" }}{{ $_ := set $rule.labels "severity" . }}{{ end }}
{{- $_ := set $rule.annotations "runbook_url" (printf "%s#%s" $own.runbookUrl ($rule.alert | lower)) }}
{{- $rules = append $rules $rule }}
{{- end }}
{{- end }}
{{- $_ := set $group "rules" $rules }}
{{ list $group | toYaml }}
{{- end }}
{{- end }}
