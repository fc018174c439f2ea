"""The sibling's start cache as the next pod gets it: held here, so that one GPU is free for the pod that starts.

Pods must have equal paths for their caches, as they have in containers, because compiled graphs have paths in them.
On one machine, only one pod at a time can have that path. The archive is the ready pod's own, requested as it
requested one itself.
"""

from __future__ import annotations

import threading
import urllib.request
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SIGNATURE = "X-Dragoman-Signature"
TIMEOUT_S = 60.0


@dataclass(frozen=True)
class Archive:
    """A ready pod's answer."""

    body: bytes
    signature: str


class Relay:
    """Answers pods' requests for a start cache with `archive`, while that is set; with 404 otherwise."""

    def __init__(self) -> None:
        self.archive: Archive | None = None
        self._requested: tuple[str, str] | None = None
        relay = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                relay._answer(self)

            def log_message(self, *_: object) -> None:
                """Logs nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def read_from(self, pod_url: str) -> Archive | None:
        """The archive of the ready pod that was the last to request one; None if it has none.

        Raises:
            OSError: It does not answer.
        """
        if self._requested is None:
            return None
        path, authorization = self._requested
        request = urllib.request.Request(pod_url + path, headers={"Authorization": authorization})
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
                return Archive(answer.read(), answer.headers[SIGNATURE])
        except urllib.error.HTTPError:
            return None

    def close(self) -> None:
        """Serve no more."""
        self._server.shutdown()
        self._server.server_close()

    def _answer(self, handler: BaseHTTPRequestHandler) -> None:
        self._requested = (handler.path, handler.headers.get("Authorization", ""))
        archive = self.archive
        if archive is None:
            handler.send_error(404)
            return
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(archive.body)))
        handler.send_header(SIGNATURE, archive.signature)
        handler.end_headers()
        handler.wfile.write(archive.body)
