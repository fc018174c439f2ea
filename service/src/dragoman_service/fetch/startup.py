"""Serves the progress of a download at the paths where an engine pod serves that of its start."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4

from dragoman_contract import http
from dragoman_service.download.transfer import Progress
from dragoman_service.engine.protocol import Phase
from dragoman_system.listening import bound_socket

SILENT_S = 10.0
"""Shorter pauses are usual. The operator reads this every 10 s, and promises a reason within 30."""


@contextmanager
def served(host: str, port: int, read: Callable[[], Progress]) -> Iterator[int]:
    """Answer `STARTUP_PATH` and `METRICS_PATH` within the context, in threads; the port.

    Raises:
        OSError: The address is not available.
    """
    began = time.monotonic()

    class Handler(BaseHTTPRequestHandler):
        timeout = 5

        def do_GET(self) -> None:
            """The phase, as an engine pod answers until its model is loaded: with 503, and among its metrics."""
            elapsed_s = time.monotonic() - began
            match self.path:
                case http.STARTUP_PATH:
                    status, kind, body = (
                        503,
                        "application/json",
                        json.dumps(state(read(), elapsed_s)).encode(),
                    )
                case http.METRICS_PATH:
                    status, kind, body = 200, CONTENT_TYPE_PLAIN_0_0_4, metrics(elapsed_s).encode()
                case _:
                    self.send_error(404)
                    return
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Logs nothing."""

    server = ThreadingHTTPServer((host, port), Handler, bind_and_activate=False)
    server.socket.close()
    server.socket = bound_socket(host, port)
    server.server_activate()
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, name="progress", daemon=True).start()
    try:
        yield server.socket.getsockname()[1]
    finally:
        server.shutdown()
        server.server_close()


def state(progress: Progress, elapsed_s: float) -> dict[str, object]:
    """The answer: that of an engine pod, with the numbers of the download."""
    return {
        "phase": Phase.DOWNLOADING,
        "progress": progress.ratio,
        "elapsed_s": round(elapsed_s, 1),
        "in_flight": 0,
        "reason": describe(progress),
        "total_bytes": progress.total_bytes,
        "bytes_per_s": round(progress.bytes_per_s),
    }


def metrics(elapsed_s: float) -> str:
    """The metrics of an engine pod's start, for the alert on slow starts."""
    return (
        f'# TYPE dragoman_phase gauge\ndragoman_phase{{phase="{Phase.DOWNLOADING}"}} 1\n'
        f"# TYPE dragoman_start_seconds gauge\ndragoman_start_seconds {elapsed_s:.1f}\n"
    )


def describe(progress: Progress) -> str:
    """The progress as a sentence."""
    if progress.waiting:
        return "another pod downloads the model into the same volume"
    sentence = "downloading the model"
    if progress.ratio is not None:
        total_gb, rate_mb = progress.total_bytes / 1e9, progress.bytes_per_s / 1e6
        sentence += f": {progress.ratio:.0%} of {total_gb:.2f} GB, {rate_mb:.0f} MB/s"
    if progress.silent_s >= SILENT_S:
        sentence += f"; nothing received for {progress.silent_s:.0f} s: check the store and the network"
    return sentence
