{{- /* At most 52 characters: the StatefulSet's controller adds 11 to it in a label. */}}
{{- define "logring.name" -}}
{{- $name := ternary .Release.Name (printf "%s-logring" .Release.Name) (contains "logring" .Release.Name) }}
{{- .Values.nameOverride | default $name | trunc 52 | trimSuffix "-" }}
{{- end }}

{{- define "logring.selectorLabels" -}}
app.kubernetes.io/name: logring
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- /* Helm itself adds app.kubernetes.io/managed-by. */}}
{{- define "logring.labels" -}}
{{ include "logring.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "logring.keysSecret" -}}
{{- if eq (empty .Values.keys.existingSecret) (empty .Values.keys.api) }}
{{- fail "set one of keys.existingSecret (a Secret with the key api-keys) and keys.api" }}
{{- end }}
{{- if and .Values.keys.existingSecret .Values.keys.cluster }}
{{- fail "keys.cluster: put it into keys.existingSecret, as cluster-keys" }}
{{- end }}
{{- .Values.keys.existingSecret | default (printf "%s-keys" (include "logring.name" .)) }}
{{- end }}

{{- define "logring.podCount" -}}
{{- mul .Values.zones .Values.members }}
{{- end }}

{{- define "logring.serviceAccount" -}}
{{- .Values.serviceAccount.name | default (ternary (include "logring.name" .) "default" .Values.serviceAccount.create) }}
{{- end }}

{{- define "logring.scheme" -}}
{{- ternary "HTTP" "HTTPS" (empty .Values.tls.existingSecret) }}
{{- end }}
