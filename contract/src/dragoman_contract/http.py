"""Ports and paths at which the parts find each other."""

ENGINE_PORT = 8000
"""Container port of an engine pod, and the port of its Service."""
ENGINE_PORT_NAME = "http"

ROUTER_PORT = 8080
"""Where clients reach a router."""
ROUTER_ADMIN_PORT = 9091
"""A router's probes, metrics and load: for the cluster, not for clients."""
ROUTER_ADMIN_PORT_NAME = "admin"

OPERATOR_HEALTH_PORT = 8081
OPERATOR_METRICS_PORT = 9090

WRITE_TIMEOUT_S = 30.0
"""Default of routers and pods: a client that takes no byte of its answer for so long is disconnected.

Set as TCP_USER_TIMEOUT (RFC 5482; tcp(7)) on the listening socket, from which accepted ones inherit it: only the
kernel sees the progress of what it has buffered.
"""

LIVE_PATH = "/livez"
READY_PATH = "/readyz"
STARTUP_PATH = "/startupz"
METRICS_PATH = "/metrics"
TRANSLATE_PATH = "/translate"
