"""Taking a start cache from a sibling that is right, wrong, slow or away; a start goes on in each case."""

import socket
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from dragoman_service.start_cache import exchange, taking
from dragoman_service.start_cache.archive import contents, manifest_of, signature
from dragoman_service.start_cache.exchange import Archive, StartCache
from dragoman_service.start_cache.taking import ARCHIVE, REQUEST, Outcome, Result, take

KEY, SECRET = "a" * 64, "s" * 40
FILE = "torch_compile_cache/f0/rank_0_0/graph.py"


class Sibling:
    """Answers each request with what `answer` writes."""

    def __init__(self) -> None:
        sibling = self
        self.requests: list[str] = []
        self.answer: Callable[[BaseHTTPRequestHandler], None] = lambda handler: handler.send_error(404)

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                sibling.requests.append(self.path)
                sibling.answer(self)

            def log_message(self, *_: object) -> None:
                """Logs nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def sibling() -> Iterator[Sibling]:
    made = Sibling()
    yield made
    made.close()


@pytest.fixture
def packed(tmp_path: Path) -> tuple[Archive, bytes]:
    """The archive of a ready pod, and its bytes."""
    root = tmp_path / "sibling"
    (root / FILE).parent.mkdir(parents=True)
    (root / FILE).write_text("compiled = True\n")
    ready = StartCache("http://127.0.0.1:1", SECRET, root, lambda: KEY)
    ready.take()
    archive = ready.archive()
    assert archive is not None
    return archive, archive.manifest + b"".join(contents(root, archive.entries))


def answers(body: bytes, signed: str, length: int | None = None) -> Callable[[BaseHTTPRequestHandler], None]:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(body) if length is None else length))
        handler.send_header("X-Dragoman-Signature", signed)
        handler.end_headers()
        handler.wfile.write(body)

    return answer


def starting(sibling: Sibling, root: Path, key: str | None = KEY) -> StartCache:
    return StartCache(sibling.url, SECRET, root, lambda: key)


def taken_here(sibling: Sibling, root: Path) -> Result:
    """Taken in this process, where limits can be replaced."""
    return take(taking.Sibling(sibling.url, SECRET, str(root), KEY, 8.0))


def test_a_pod_takes_what_a_sibling_has_once(
    sibling: Sibling, packed: tuple[Archive, bytes], tmp_path: Path
) -> None:
    archive, body = packed
    sibling.answer = answers(body, archive.signature)
    result = starting(sibling, tmp_path / "own").take()
    assert (result.outcome, result.files, result.total_bytes) == (Outcome.TAKEN, 1, 16)
    assert (tmp_path / "own" / FILE).read_text() == "compiled = True\n"
    again = starting(sibling, tmp_path / "own").take()
    assert again.outcome is Outcome.PRESENT
    assert sibling.requests == [f"/start-cache/{KEY}"]


@pytest.mark.parametrize("secret", ["", "t" * 40])
def test_an_archive_of_another_secret_is_rejected(
    sibling: Sibling, packed: tuple[Archive, bytes], tmp_path: Path, secret: str
) -> None:
    archive, body = packed
    sibling.answer = answers(body, signature(secret, ARCHIVE, archive.manifest))
    assert starting(sibling, tmp_path / "own").take().outcome is Outcome.REJECTED
    assert not (tmp_path / "own" / FILE).exists()


def test_an_archive_of_another_key_is_rejected_though_it_is_signed(
    sibling: Sibling, packed: tuple[Archive, bytes], tmp_path: Path
) -> None:
    archive, _ = packed
    manifest = manifest_of("b" * 64, archive.entries)
    sibling.answer = answers(manifest, signature(SECRET, ARCHIVE, manifest))
    result = starting(sibling, tmp_path / "own").take()
    assert result.outcome is Outcome.REJECTED
    assert "another model" in result.detail


def test_contents_that_are_changed_or_cut_are_rejected(
    sibling: Sibling, packed: tuple[Archive, bytes], tmp_path: Path
) -> None:
    archive, body = packed
    for wrong in (body[:-2] + b"!\n", body[:-1]):
        sibling.answer = answers(wrong, archive.signature)
        assert starting(sibling, tmp_path / "own").take().outcome is Outcome.REJECTED
    sibling.answer = answers(body[:-5], archive.signature, len(body))
    assert starting(sibling, tmp_path / "own").take().outcome is Outcome.REJECTED
    assert not (tmp_path / "own" / FILE).exists()


def test_an_endless_manifest_is_rejected(
    sibling: Sibling, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(taking, "MAX_MANIFEST_BYTES", 1000)
    sibling.answer = answers(b"x" * 5000, "")
    result = taken_here(sibling, tmp_path / "own")
    assert (result.outcome, "too long" in result.detail) == (Outcome.REJECTED, True)


def test_a_sibling_that_sends_byte_by_byte_costs_the_deadline_at_most(
    sibling: Sibling, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exchange, "LIMIT_S", 0.3)
    ended = threading.Event()

    def drip(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.end_headers()
        try:
            while not ended.wait(0.02):
                handler.wfile.write(b"x")
        except OSError:
            return

    sibling.answer = drip
    result = starting(sibling, tmp_path / "own").take()
    ended.set()
    assert result.outcome is Outcome.TIMED_OUT
    assert result.seconds < 3


def test_a_sibling_that_is_busy_is_asked_again(
    sibling: Sibling, packed: tuple[Archive, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(taking, "BUSY_PAUSE_S", 0.01)
    archive, body = packed

    def answer(handler: BaseHTTPRequestHandler) -> None:
        if len(sibling.requests) < 3:
            handler.send_error(503)
        else:
            answers(body, archive.signature)(handler)

    sibling.answer = answer
    assert taken_here(sibling, tmp_path / "own").outcome is Outcome.TAKEN


def test_without_a_sibling_a_start_goes_on_at_once(sibling: Sibling, tmp_path: Path) -> None:
    assert starting(sibling, tmp_path / "own").take().outcome is Outcome.MISMATCH
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        cache = StartCache(f"http://127.0.0.1:{closed.getsockname()[1]}", SECRET, tmp_path, lambda: KEY)
        assert cache.take().outcome is Outcome.NO_SIBLING
    cache.wait()


def test_what_goes_wrong_in_the_pod_itself_ends_no_start(sibling: Sibling, tmp_path: Path) -> None:
    def fails() -> str:
        raise RuntimeError("NVML")

    failed = StartCache(sibling.url, SECRET, tmp_path, fails)
    assert failed.take().outcome is Outcome.FAILED
    failed.wait()
    assert starting(sibling, tmp_path, None).take().outcome is Outcome.OFF
    assert sibling.requests == []


def test_a_pod_serves_its_key_to_those_that_have_the_secret(tmp_path: Path) -> None:
    ready = StartCache("http://127.0.0.1:1", SECRET, tmp_path, lambda: KEY)
    token = signature(SECRET, REQUEST, KEY.encode())
    assert not ready.may_have(KEY, token)
    ready.take()
    assert ready.may_have(KEY, token)
    assert not ready.may_have("b" * 64, signature(SECRET, REQUEST, b"b" * 64))
    assert not ready.may_have(KEY, signature("t" * 40, REQUEST, KEY.encode()))
    assert not ready.may_have(KEY, signature(SECRET, ARCHIVE, KEY.encode()))
    assert ready.archive() is None


def test_what_is_served_follows_the_cache(tmp_path: Path) -> None:
    ready = StartCache("http://127.0.0.1:1", SECRET, tmp_path, lambda: KEY)
    ready.take()
    (tmp_path / "triton").mkdir()
    (tmp_path / "triton/a").write_bytes(b"1")
    first = ready.archive()
    assert first is not None
    assert ready.archive() is first
    (tmp_path / "triton/a").write_bytes(b"22")
    second = ready.archive()
    assert second is not None
    assert second.signature != first.signature


def test_a_process_that_fails_ends_no_start(
    sibling: Sibling, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(taking, "PROGRAM", "dragoman_service.no_such_program")
    cache = starting(sibling, tmp_path)
    result = cache.take()
    assert (result.outcome, "no_such_program" in result.detail) == (Outcome.FAILED, True)
    cache.wait()
