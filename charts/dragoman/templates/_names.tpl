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

{{/* Labels by which the pods of a component are selected: (list . COMPONENT). */}}
{{- define "dragoman.selectorLabels" -}}
{{- $component := index . 1 -}}
{{- with index . 0 -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/component: {{ $component }}
{{- end -}}
{{- end -}}

{{/*
Labels of an object or pod of a component: (list . COMPONENT) or (list . COMPONENT MORE). The chart's own take precedence,
because selectors, the operator and the CLI use them; then MORE, then commonLabels. They are merged: no key may appear twice.
*/}}
{{- define "dragoman.labels" -}}
{{- $labels := include "dragoman.selectorLabels" . | fromYaml -}}
{{- $more := first (slice . 2) | default dict -}}
{{- with index . 0 -}}
{{- $_ := set $labels "app.kubernetes.io/part-of" "dragoman" -}}
{{- $_ := set $labels "app.kubernetes.io/managed-by" .Release.Service -}}
{{- $_ := set $labels "app.kubernetes.io/version" .Chart.AppVersion -}}
{{- $_ := set $labels "helm.sh/chart" (printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_") -}}
{{- merge $labels $more (.Values.commonLabels | default dict) | toYaml -}}
{{- end -}}
{{- end -}}

{{/* policyTypes of the NetworkPolicies; empty: there are none. */}}
{{- define "dragoman.policyTypes" -}}
{{- with .Values.networkPolicy -}}
{{- $types := list -}}
{{- if .ingress -}}{{- $types = append $types "Ingress" -}}{{- end -}}
{{- if .restrictEgress -}}{{- $types = append $types "Egress" -}}{{- end -}}
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
