"""Ports and paths at which the parts find each other."""

ENGINE_PORT = 8000
"""Container port of an engine pod, and the port of its Service."""
ENGINE_PORT_NAME = "http"

OPERATOR_HEALTH_PORT = 8081
OPERATOR_METRICS_PORT = 9090

LIVE_PATH = "/livez"
READY_PATH = "/readyz"
STARTUP_PATH = "/startupz"
METRICS_PATH = "/metrics"
TRANSLATE_PATH = "/translate"
