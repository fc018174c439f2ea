"""Names of Dragoman's objects in Kubernetes."""

GROUP = "dragoman.io"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"
KIND = "TranslationDeployment"
PLURAL = "translationdeployments"

FIELD_MANAGER = "dragoman"
"""Server-side apply's owner of every field the operator writes."""

LABEL_DEPLOYMENT = f"{GROUP}/deployment"
"""On every child and every engine pod: the name of its TranslationDeployment."""

LABEL_NAME = "app.kubernetes.io/name"
LABEL_COMPONENT = "app.kubernetes.io/component"
LABEL_PART_OF = "app.kubernetes.io/part-of"

ENGINE_COMPONENT = "engine"
OPERATOR_COMPONENT = "operator"
ROUTER_COMPONENT = "router"
PART_OF = "dragoman"

LOCAL_ADDRESS = f"{GROUP}/local-address"
"""Annotation on a Service of the devcluster: its loopback address on this machine."""
