"""An HTTP server in a thread, whose responses a handler decides."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest


class Handler(BaseHTTPRequestHandler):
    """Writes no log; `self.server` has the attributes that `serving` was given."""

    server: Any

    def body(self) -> bytes:
        """The body of the request."""
        return self.rfile.read(int(self.headers["content-length"]))

    def respond(self, status: int, document: Any = b"") -> None:
        """Send bytes, or anything else as JSON."""
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(document if isinstance(document, bytes) else json.dumps(document).encode())

    def log_message(self, *_: Any) -> None:
        """Write nothing."""


@contextmanager
def serving(handler: type[Handler], **state: Any) -> Iterator[Any]:
    """Run a server on loopback; it has a `url`, and the state as attributes."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        running: Any = server
        running.url = f"http://127.0.0.1:{server.server_port}"
        for name, value in state.items():
            setattr(running, name, value)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield running
        server.shutdown()
        thread.join()


class _Collector(Handler):
    def do_POST(self) -> None:
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

        batch = ExportTraceServiceRequest.FromString(self.body())
        for resource in batch.resource_spans:
            for scope in resource.scope_spans:
                self.server.spans.extend(scope.spans)
        self.respond(200 if self.path == "/v1/traces" else 404)


@pytest.fixture
def collector() -> Iterator[Any]:
    """A collector of OpenTelemetry, with the `spans` that it received."""
    with serving(_Collector, spans=[]) as server:
        yield server
