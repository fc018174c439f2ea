"""The metrics that a router exports.

No label holds a text, a key or any other value that a client chooses, except for bounded pairs.
"""

from __future__ import annotations

from dragoman_contract.metrics import Section

_router = Section("Routers")

REQUESTS = _router.counter(
    "dragoman_router_requests_total",
    "Requests that a replica (engine pod) answered.",
    "deployment",
    "api",
    "status",
)
REQUEST_DURATION_SECONDS = _router.histogram(
    "dragoman_router_request_duration_seconds",
    "Time from the head of a request to the last byte of its response.",
    "deployment",
)
ERRORS = _router.counter(
    "dragoman_router_errors_total",
    "Errors that the router itself returned. `deployment`: the TranslationDeployment for the request (the "
    "first by name if several fit), or empty if none was found.",
    "deployment",
    "code",
    "status",
)
INTERNAL_ERRORS = _router.counter(
    "dragoman_router_internal_errors_total", "Requests that ended in an unexpected exception."
)
FAILED_ATTEMPTS = _router.counter(
    "dragoman_router_failed_attempts_total",
    "Failed attempts to send a request to a replica. Most are retried at another replica.",
    "deployment",
    "failure",
)
CHARACTERS = _router.counter(
    "dragoman_router_characters_total",
    "Translated [characters](#characters).",
    "deployment",
    "source",
    "target",
    "key",
)
REQUESTS_QUEUED = _router.gauge("dragoman_router_requests_queued", "Requests in the queue.", "deployment")
QUEUE_DURATION_SECONDS = _router.histogram(
    "dragoman_router_queue_duration_seconds", "Time in the queue.", "deployment"
)
REQUESTS_IN_FLIGHT = _router.gauge(
    "dragoman_router_requests_in_flight",
    "Requests that were sent to a replica and are unfinished.",
    "deployment",
)
AVAILABLE_REPLICAS = _router.gauge(
    "dragoman_router_available_replicas", "Replicas that can receive requests.", "deployment"
)
EJECTED_REPLICAS = _router.gauge(
    "dragoman_router_ejected_replicas", "Replicas that receive no requests because they failed.", "deployment"
)
REQUESTS_ACTIVE = _router.gauge(
    "dragoman_router_requests_active", "Requests in the router, from their head to the end of their response."
)
CONNECTIONS = _router.gauge("dragoman_router_connections", "Client connections.")
BODY_BYTES = _router.gauge("dragoman_router_body_bytes", "Memory used by the bodies of active requests.")
CLIENT_DISCONNECTS = _router.counter(
    "dragoman_router_client_disconnects_total", "Clients that disconnected before the end of their response."
)
WRITE_TIMEOUTS = _router.counter(
    "dragoman_router_write_timeouts_total",
    "Clients that were disconnected because they did not read their response.",
)
WATCH_ERRORS = _router.counter(
    "dragoman_router_watch_errors_total",
    "Failed watches of the API server. `kind`: kind of the watched objects.",
    "kind",
)
AUDIT_LINES_DROPPED = _router.counter(
    "dragoman_router_audit_lines_dropped_total", "Lines of the audit log that were not written."
)
CONFIG_LAST_RELOAD_SUCCESSFUL = _router.gauge(
    "dragoman_router_config_last_reload_successful",
    "0 while a file is invalid and its previous content is used, else 1. `file`: `keys` (API keys), "
    "`certificates` (TLS), `static` (flag [`--static`](flags-router.md)).",
    "file",
)
DRAINING = _router.gauge("dragoman_router_draining", "1 while the router shuts down.")

_state = Section("Shared state of routers")

STATE_UP = _state.gauge("dragoman_router_state_up", "1 while the Redis or Valkey server answers.")
STATE_ERRORS = _state.counter(
    "dragoman_router_state_errors_total", "Failed operations, by kind of operation.", "operation"
)
STATE_SECONDS = _state.histogram("dragoman_router_state_seconds", "Duration of an operation.")
STATE_PENDING_SECONDS = _state.gauge(
    "dragoman_router_state_pending_seconds",
    "Age of the oldest usage (characters and requests of a key or token) that the router has counted, but not "
    "yet written to the server. 0 if there is none.",
)
