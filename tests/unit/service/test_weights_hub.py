"""Downloads from a hub of our own on loopback; in a process each, since huggingface_hub reads its
environment once."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

pytest.importorskip("huggingface_hub", reason="comes with vLLM")
pytestmark = pytest.mark.slow

SHA = "0123456789abcdef0123456789abcdef01234567"
FILES = {"config.json": b"{}", "model.safetensors": b"x" * 3_000_000, "pytorch_model.bin": b"y" * 3_000_000}
INFO_PATHS = tuple(
    f"/api/models/org/open{revision}" for revision in ("", "/revision/main", f"/revision/{SHA}")
)


class Hub(BaseHTTPRequestHandler):
    """Knows org/open, and of org/pickled its list of files; org/gated and org/private refuse."""

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        if "org/gated" in self.path:
            self.answer(403, b"", {"X-Error-Code": "GatedRepo", "X-Error-Message": "Access is restricted"})
        elif "org/private" in self.path:
            self.answer(401, b"", {"X-Error-Code": "RepoNotFound", "X-Error-Message": "Repository Not Found"})
        elif self.path.partition("?")[0] in INFO_PATHS:
            self.answer(200, self.info("org/open", FILES))
        elif self.path.startswith("/api/models/org/pickled"):
            self.answer(200, self.info("org/pickled", {"config.json": b"{}", "pytorch_model.bin": b"y"}))
        elif f"/org/open/resolve/{SHA}/" in self.path:
            name = self.path.rpartition("/")[2]
            self.answer(200, FILES[name], {"X-Repo-Commit": SHA, "ETag": f'"{name}-etag"'})
        elif self.path.startswith(f"/api/models/org/open/tree/{SHA}"):
            entries = [
                {"type": "file", "path": name, "size": len(content), "oid": f"{name}-etag"}
                for name, content in FILES.items()
            ]
            self.answer(200, json.dumps(entries).encode())
        else:
            self.answer(404, b"", {"X-Error-Code": "RevisionNotFound"})

    @staticmethod
    def info(model: str, files: dict[str, bytes]) -> bytes:
        siblings = [{"rfilename": name, "size": len(content)} for name, content in files.items()]
        return json.dumps({"id": model, "modelId": model, "sha": SHA, "siblings": siblings}).encode()

    def answer(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def hub() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


FETCH = """
import sys
from dragoman_service.engine.vllm import weights
from dragoman_service.engine.vllm.start_report import failure
from dragoman_service.engine.vllm.failures import reason
weights.POLL_S = 0.001
shares = []
try:
    print(weights.fetch(sys.argv[1], None, False, shares.append))
except Exception as error:
    print(reason(failure(error), sys.argv[1]))
else:
    assert shares[0] is None and all(0 <= share <= 1 for share in shares[1:]), shares
"""


def fetch(model: str, endpoint: str, cache: Path) -> str:
    environment = os.environ | {
        "HF_ENDPOINT": endpoint,
        "HF_HOME": str(cache),
        "HF_HUB_DISABLE_XET": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
    }
    environment.pop("HF_HUB_OFFLINE", None)
    command = [sys.executable, "-c", FETCH, model]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_model_is_fetched_without_other_formats_and_found_again_offline(hub: str, tmp_path: Path) -> None:
    directory = Path(fetch("org/open", hub, tmp_path))
    assert sorted(file.name for file in directory.iterdir()) == ["config.json", "model.safetensors"]
    assert (directory / "model.safetensors").stat().st_size == 3_000_000
    assert Path(fetch("org/open", "http://127.0.0.1:9", tmp_path)) == directory


@pytest.mark.parametrize(
    ("model", "sentence"),
    [
        ("org/gated", "gated on Hugging Face: accept its terms there, and set tokenSecretRef"),
        ("org/pickled", "pickled weights (pytorch_model.bin) may run code: convert them, or set"),
        ("org/private", "refuses access to org/private (401): set tokenSecretRef"),
    ],
)
def test_a_refusal_has_a_sentence_with_what_to_do(
    hub: str, tmp_path: Path, model: str, sentence: str
) -> None:
    assert sentence in fetch(model, hub, tmp_path)


def test_an_unreachable_hub_and_an_empty_cache(tmp_path: Path) -> None:
    assert "Hugging Face cannot be reached" in fetch("org/open", "http://127.0.0.1:9", tmp_path)
