{{/*
Name of every object of the operator: the release's, with the chart's unless that is in it. Names of Services are RFC 1035
labels: they have no dots, start with a letter (until Kubernetes 1.33), and the longest suffix, -router-admin, fits into
63 characters. A name that is changed for this ends in a hash, so that two of them differ.
*/}}
{{- define "dragoman.fullname" -}}
{{- $chart := .Values.nameOverride | default .Chart.Name -}}
{{- $release := ternary .Release.Name (printf "%s-%s" .Release.Name $chart) (contains $chart .Release.Name) -}}
{{- $wanted := .Values.fullnameOverride | default $release -}}
{{- $name := $wanted | replace "." "-" -}}
{{- if regexMatch "^[0-9]" $name -}}{{- $name = printf "r%s" $name -}}{{- end -}}
{{- if or (ne $name $wanted) (gt (len $name) 50) -}}
{{- printf "%s-%s" ($name | trunc 41 | trimSuffix "-") (sha256sum $wanted | trunc 8) -}}
{{- else -}}
{{- $name -}}
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

{{/* Reference of an image: (list . repository tag-or-empty default-tag digest-or-empty). */}}
{{- define "dragoman.image" -}}
{{- with (index . 0).Values.global.imageRegistry -}}{{- trimSuffix "/" . -}}/{{- end -}}
{{- printf "%s:%s" (index . 1) (index . 2 | default (index . 3)) -}}
{{- with index . 4 -}}@{{ . }}{{- end -}}
{{- end -}}

{{/* Image of the engine pods of one device: (list . "cpu"). */}}
{{- define "dragoman.engineImage" -}}
{{- $device := index . 1 -}}
{{- with index . 0 -}}
{{- $image := index .Values.engineImages $device -}}
{{- include "dragoman.image" (list . $image.repository $image.tag (printf "%s-%s" .Chart.AppVersion $device) $image.digest) -}}
{{- end -}}
{{- end -}}

{{/* Names of the Secrets for all images, as JSON: other charts' values of the same name have names or objects. */}}
{{- define "dragoman.globalPullSecrets" -}}
{{- $names := list -}}
{{- range .Values.global.imagePullSecrets -}}
{{- if kindIs "string" . -}}{{- $names = append $names . -}}{{- else -}}{{- $names = append $names .name -}}{{- end -}}
{{- end -}}
{{- toJson (uniq $names) -}}
{{- end -}}

{{/* imagePullSecrets of the chart's own pods. */}}
{{- define "dragoman.imagePullSecrets" -}}
{{- $secrets := list -}}
{{- range include "dragoman.globalPullSecrets" . | fromJsonArray -}}{{- $secrets = append $secrets (dict "name" .) -}}{{- end -}}
{{- with concat $secrets (.Values.imagePullSecrets | default list) | uniq -}}{{- toYaml . -}}{{- end -}}
{{- end -}}

{{/* Security context of a pod; users and groups that the values leave out are the platform's. */}}
{{- define "dragoman.podSecurityContext" -}}
{{- $restricted := dict "runAsNonRoot" true "seccompProfile" (dict "type" "RuntimeDefault") -}}
{{- merge (deepCopy (.Values.podSecurityContext | default dict)) $restricted | toYaml -}}
{{- end -}}

{{/*
Variables of a container: (list . OWN EXTRA). EXTRA replace others of the same name. A kubelet expands $(NAME) in them:
that is right in EXTRA, so only what else comes from values has its dollar signs doubled.
*/}}
{{- define "dragoman.env" -}}
{{- $own := index . 1 -}}
{{- $extra := index . 2 | default list -}}
{{- with (index . 0).Values -}}
{{- if .caBundle.configMap -}}
{{- $own = append $own (dict "name" "SSL_CERT_FILE" "value" "/etc/dragoman/ca/ca.crt") -}}
{{- end -}}
{{- with .proxy -}}
{{- range $name, $value := dict "HTTP_PROXY" .http "HTTPS_PROXY" .https -}}
{{- with $value -}}{{- $own = append $own (dict "name" $name "value" (replace "$" "$$" .)) -}}{{- end -}}
{{- end -}}
{{- if or .http .https -}}
{{- $cluster := list "localhost" "127.0.0.1" ".svc" ".cluster.local" "$(KUBERNETES_SERVICE_HOST)" -}}
{{- $own = append $own (dict "name" "NO_PROXY" "value" (join "," (concat (.noProxy | default list) $cluster))) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $replaced := list -}}
{{- range $extra -}}{{- $replaced = append $replaced .name -}}{{- end -}}
{{- $all := list -}}
{{- range $own -}}{{- if not (has .name $replaced) -}}{{- $all = append $all . -}}{{- end -}}{{- end -}}
{{- with concat $all $extra -}}{{- toYaml . -}}{{- end -}}
{{- end -}}

{{/* topologySpreadConstraints of a component: (list . COMPONENT REPLICAS CONSTRAINTS-OF-THE-VALUES). */}}
{{- define "dragoman.topologySpread" -}}
{{- if index . 3 -}}
{{- toYaml (index . 3) -}}
{{- else if gt (int (index . 2)) 1 -}}
- maxSkew: 1
  topologyKey: kubernetes.io/hostname
  whenUnsatisfiable: ScheduleAnyway
  labelSelector:
    matchLabels:
      {{- include "dragoman.selectorLabels" (list (index . 0) (index . 1)) | nindent 6 }}
{{- end -}}
{{- end -}}
