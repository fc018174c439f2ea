{{- define "dragoman.router.fullname" -}}
{{- printf "%s-router" (include "dragoman.fullname" .) -}}
{{- end -}}

{{- define "dragoman.router.selectorLabels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: router
{{- end -}}

{{- define "dragoman.router.labels" -}}
{{ include "dragoman.router.selectorLabels" . }}
app.kubernetes.io/part-of: dragoman
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{/* What a router reads in every namespace it serves; tests/chart/test_router.py gives each its reason. */}}
{{- define "dragoman.router.rules" -}}
- apiGroups: [dragoman.io]
  resources: [translationdeployments]
  verbs: [list, watch]
- apiGroups: [discovery.k8s.io]
  resources: [endpointslices]
  verbs: [list, watch]
{{- end -}}
