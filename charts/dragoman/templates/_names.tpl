{{/* Name of every object of the operator: the release's, with the chart's unless that is in it. */}}
{{- define "dragoman.fullname" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 53 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 53 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "dragoman.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default (include "dragoman.fullname" .) -}}
{{- else -}}
{{- required "serviceAccount.name is needed where serviceAccount.create is false" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "dragoman.selectorLabels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: operator
{{- end -}}

{{- define "dragoman.labels" -}}
{{ include "dragoman.selectorLabels" . }}
app.kubernetes.io/part-of: dragoman
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* policyTypes of the NetworkPolicies; empty: there are none. The former name `enabled`, where it is set, is for both. */}}
{{- define "dragoman.policyTypes" -}}
{{- with .Values.networkPolicy -}}
{{- $types := list -}}
{{- if dig "enabled" .ingress . -}}{{- $types = append $types "Ingress" -}}{{- end -}}
{{- if dig "enabled" .restrictEgress . -}}{{- $types = append $types "Egress" -}}{{- end -}}
{{- join ", " $types -}}
{{- end -}}
{{- end -}}

{{/* Reference of an image: (list repository tag-or-empty default-tag digest-or-empty). */}}
{{- define "dragoman.image" -}}
{{- printf "%s:%s" (index . 0) (index . 1 | default (index . 2)) -}}
{{- with index . 3 -}}@{{ . }}{{- end -}}
{{- end -}}

{{/* Image of the engine pods of one device: (list . "cpu"). */}}
{{- define "dragoman.engineImage" -}}
{{- $device := index . 1 -}}
{{- with index . 0 -}}
{{- $image := index .Values.engineImages $device -}}
{{- include "dragoman.image" (list $image.repository $image.tag (printf "%s-%s" .Chart.AppVersion $device) $image.digest) -}}
{{- end -}}
{{- end -}}
