"""Ports and paths of operator, routers and engine pods."""

ENGINE_PORT = 8000
"""Container port of an engine pod, and the port of its Service."""
ENGINE_PORT_NAME = "http"

ROUTER_PORT = 8080
"""Port of a router for clients."""
ROUTER_ADMIN_PORT = 9091
"""Port of a router's probes, metrics and load reports, for the cluster only."""
ROUTER_ADMIN_PORT_NAME = "admin"

OPERATOR_HEALTH_PORT = 8081
OPERATOR_METRICS_PORT = 9090

MAX_TEXTS = 1024
"""Default of pods: texts in one request. Routers report it to clients: a TranslationDeployment has no field for it."""

LIVE_PATH = "/livez"
READY_PATH = "/readyz"
STARTUP_PATH = "/startupz"
METRICS_PATH = "/metrics"
START_CACHE_PATH = "/start-cache/"
"""Of engine pods, followed by a key: what a starting pod of the same deployment takes from a ready one."""
START_CACHE_SIGNATURE = "X-Dragoman-Signature"
"""Of its manifest."""
TRANSLATE_PATH = "/translate"
