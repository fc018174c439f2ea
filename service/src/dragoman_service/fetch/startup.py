"""The progress of a download, where an engine pod has that of its start."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from dragoman_contract.http import STARTUP_PATH
from dragoman_service.download.transfer import Progress
from dragoman_service.engine.protocol import Phase


@contextmanager
def served(host: str, port: int, read: Callable[[], Progress]) -> Iterator[int]:
    """Answer `STARTUP_PATH` within the context, in threads; the port.

    Raises:
        OSError: The address is not available.
    """
    began = time.monotonic()

    class Handler(BaseHTTPRequestHandler):
        timeout = 5

        def do_GET(self) -> None:
            """503 with the phase, as an engine pod answers until its model is loaded."""
            if self.path != STARTUP_PATH:
                self.send_error(404)
                return
            body = json.dumps(state(read(), time.monotonic() - began)).encode()
            self.send_response(503)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Logs nothing."""

    server = ThreadingHTTPServer((host, port), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, name="progress", daemon=True).start()
    try:
        yield server.server_address[1]
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


def describe(progress: Progress) -> str:
    """The progress for people."""
    if progress.waiting:
        return "another pod downloads the model into the same volume"
    if progress.ratio is None:
        return "downloading the model"
    return (
        f"downloading the model: {progress.ratio:.0%} of {progress.total_bytes / 1e9:.2f} GB, "
        f"{progress.bytes_per_s / 1e6:.0f} MB/s"
    )
