{{- define "dragoman.router.fullname" -}}
{{- printf "%s-router" (include "dragoman.fullname" .) -}}
{{- end -}}

{{- define "dragoman.router.image" -}}
{{- with .Values.router.image -}}
{{- include "dragoman.image" (list $ .repository .tag $.Chart.AppVersion .digest) -}}
{{- end -}}
{{- end -}}

{{/* "true" where clients outside of the cluster reach the router. */}}
{{- define "dragoman.router.exposed" -}}
{{- with .Values.router -}}
{{- if or (ne .service.type "ClusterIP") .ingress.enabled .httpRoute.enabled -}}true{{- end -}}
{{- end -}}
{{- end -}}

{{/* "true" where an upgrade finds the router exposed already. */}}
{{- define "dragoman.router.wasExposed" -}}
{{- $name := include "dragoman.router.fullname" . -}}
{{- $service := lookup "v1" "Service" .Release.Namespace $name | default dict -}}
{{- if ne (dig "spec" "type" "ClusterIP" $service) "ClusterIP" -}}true{{- end -}}
{{- range $version, $kind := dict "networking.k8s.io/v1" "Ingress" "gateway.networking.k8s.io/v1" "HTTPRoute" -}}
{{- if $.Capabilities.APIVersions.Has (printf "%s/%s" $version $kind) -}}
{{- if lookup $version $kind $.Release.Namespace $name -}}true{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/*
Secret with the API keys: the one that is named; else, where the router is exposed and accepts no tokens, one of this
release. An upgrade does not begin to require keys, for existing clients have none; it does not expose a router without
keys either.
*/}}
{{- define "dragoman.router.keysSecret" -}}
{{- $own := printf "%s-keys" (include "dragoman.router.fullname" .) -}}
{{- if .Values.router.keysSecret -}}
{{- .Values.router.keysSecret -}}
{{- else if and (include "dragoman.router.exposed" .) (not .Values.router.allowAnonymous) -}}
{{- if or (not (or .Release.IsUpgrade .Values.router.oidc.issuer)) (lookup "v1" "Secret" .Release.Namespace $own) -}}
{{- $own -}}
{{- else if not (or .Values.router.oidc.issuer (include "dragoman.router.wasExposed" .)) -}}
{{- fail "this upgrade exposes the router outside the cluster without API keys: set router.keysSecret, router.oidc, or router.allowAnonymous=true" -}}
{{- end -}}
{{- end -}}
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
