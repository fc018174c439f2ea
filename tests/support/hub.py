"""A hub on loopback with the requests of Hugging Face that huggingface_hub makes: metadata, ranges, LFS, tokens."""

import hashlib
import json
import threading
from collections import Counter
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self

COMMIT = "0123456789abcdef0123456789abcdef01234567"
PIECE = 1 << 16


def git_id(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


class Hub:
    """Serves one model, `org/open`; `org/gated` and `org/private` are refused, others do not exist.

    Args:
        files: The model's files; those over 1,000 bytes are in LFS.

    Attributes:
        token: Required, if it is set.
        xet: Whether it offers files in LFS by Xet, too.
        xet_tokens: Requests for access to Xet, which it does not have.
        sizes: Bytes that it lists of a file, where they are not those of its content.
        wrong: Names of files whose content is not the one of their checksum.
        stops_at: Bytes of a large file after which the connection stands still until `released` is set.
        sent: Bytes of content sent, by file.
        offsets: First byte of each request for content of a large file.
    """

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self.files = dict(files)
        self.token, self.gone = "", False
        self.xet, self.xet_tokens = False, 0
        self.sizes: dict[str, int] = {}
        self.wrong: set[str] = set()
        self.stops_at: int | None = None
        self.stopped, self.released = threading.Event(), threading.Event()
        self.sent: Counter[str] = Counter()
        self.offsets: list[int] = []
        hub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_HEAD(self) -> None:
                hub.answer(self)

            def do_GET(self) -> None:
                hub.answer(self)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.released.set()
        if not self.gone:
            self._close()

    def leave(self) -> None:
        """Refuse connections from now on, and cut those that stand still."""
        self.gone = True
        self._close()
        self.released.set()

    def _close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def is_lfs(self, name: str) -> bool:
        return len(self.files[name]) > 1000

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        path = request.path.partition("?")[0]
        if self.token and request.headers.get("Authorization") != f"Bearer {self.token}":
            _send(request, 401, {"X-Error-Message": "Invalid credentials in Authorization header"})
        elif "org/gated" in path:
            _send(request, 403, {"X-Error-Code": "GatedRepo", "X-Error-Message": "Access is restricted"})
        elif "org/open" not in path:
            _send(request, 401, {"X-Error-Code": "RepoNotFound", "X-Error-Message": "Repository Not Found"})
        elif path.startswith("/api/models/org/open/xet-read-token/"):
            self.xet_tokens += 1
            _send(request, 404, {})
        elif path.startswith("/api/models/org/open/tree/"):
            _send(request, 200, {}, json.dumps([self._entry(name) for name in self.files]).encode())
        elif path in (
            "/api/models/org/open",
            *(f"/api/models/org/open/revision/{each}" for each in ("main", COMMIT)),
        ):
            _send(request, 200, {}, json.dumps(self._info()).encode())
        elif path.startswith("/org/open/resolve/") and path.split("/", 5)[-1] in self.files:
            self._content(request, path.split("/", 5)[-1])
        else:
            _send(request, 404, {"X-Error-Code": "RevisionNotFound"})

    def _info(self) -> dict[str, object]:
        siblings = []
        for name, content in self.files.items():
            size = self.sizes.get(name, len(content))
            lfs = {"size": size, "sha256": hashlib.sha256(content).hexdigest(), "pointerSize": 134}
            entry = {"rfilename": name, "size": size, "blobId": git_id(content)}
            siblings.append({**entry, **({"lfs": lfs} if self.is_lfs(name) else {})})
        return {"id": "org/open", "modelId": "org/open", "sha": COMMIT, "siblings": siblings}

    def _entry(self, name: str) -> dict[str, object]:
        content = self.files[name]
        size = self.sizes.get(name, len(content))
        digest = hashlib.sha256(content).hexdigest()
        lfs: dict[str, object] = {"lfs": {"oid": digest, "size": size, "pointerSize": 134}}
        if self.xet:
            lfs["xetHash"] = digest
        entry = {"type": "file", "path": name, "size": size, "oid": git_id(content)}
        return {**entry, **(lfs if self.is_lfs(name) else {})}

    def _content(self, request: BaseHTTPRequestHandler, name: str) -> None:
        content = self.files[name]
        lfs = self.is_lfs(name)
        etag = hashlib.sha256(content).hexdigest() if lfs else git_id(content)
        headers = {"X-Repo-Commit": COMMIT, "ETag": f'"{etag}"', "Accept-Ranges": "bytes"}
        if lfs:
            headers |= {"X-Linked-Etag": f'"{etag}"', "X-Linked-Size": str(len(content))}
            if self.xet:
                route = f"{self.url}/api/models/org/open/xet-read-token/{COMMIT}"
                headers |= {"X-Xet-Hash": etag, "X-Xet-Refresh-Route": route}
        if name in self.wrong:
            content = bytes(len(content))
        offset = int((request.headers.get("Range") or "bytes=0-")[6:].split("-")[0])
        if "Range" in request.headers:
            headers["Content-Range"] = f"bytes {offset}-{len(content) - 1}/{len(content)}"
        if request.command == "HEAD":
            _send(request, 200, headers | {"Content-Length": str(len(content))})
            return
        if lfs:
            self.offsets.append(offset)
        headers["Content-Length"] = str(len(content) - offset)
        _head(request, 206 if "Range" in request.headers else 200, headers)
        try:
            for at in range(offset, len(content), PIECE):
                if lfs and self.stops_at is not None and at >= self.stops_at:
                    self.stopped.set()
                    self.released.wait(60)
                if self.gone:
                    request.close_connection = True
                    return
                piece = content[at : at + PIECE]
                request.wfile.write(piece)
                self.sent[name] += len(piece)
        except OSError:
            request.close_connection = True


def _head(request: BaseHTTPRequestHandler, status: int, headers: Mapping[str, str]) -> None:
    request.send_response(status)
    for name, value in headers.items():
        request.send_header(name, value)
    request.end_headers()


def _send(
    request: BaseHTTPRequestHandler, status: int, headers: Mapping[str, str], body: bytes = b""
) -> None:
    _head(request, status, {"Content-Length": str(len(body)), **headers})
    if request.command == "GET":
        request.wfile.write(body)
