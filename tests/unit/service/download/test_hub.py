"""What the cache keeps of a model whose hub fails meanwhile, and what is taken from it without a hub."""

import errno
import fcntl
import os
import shutil
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
from tests.support import hub as support

from dragoman_service.download import hub
from dragoman_service.download.cache import RECORD
from dragoman_service.download.transfer import Meter

constants = pytest.importorskip("huggingface_hub.constants", reason="comes with vLLM")
file_download = pytest.importorskip("huggingface_hub.file_download", reason="comes with vLLM")

FILES = {"config.json": b"{}", "model.safetensors": b"1" * 2000, "tokenizer.json": b"[1]"}
NEWER = "f" * 40


class FailingHub(support.Hub):
    """Has no content of some files, as a hub whose storage fails."""

    failing: frozenset[str] = frozenset()

    def _content(self, request: BaseHTTPRequestHandler, name: str) -> None:
        if name in self.failing:
            support._send(request, 501, {})
        else:
            super()._content(request, name)


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[FailingHub]:
    with FailingHub(FILES) as running:
        monkeypatch.setattr(constants, "ENDPOINT", running.url)
        monkeypatch.setattr(
            constants, "HUGGINGFACE_CO_URL_TEMPLATE", running.url + "/{repo_id}/resolve/{revision}/{filename}"
        )
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
        monkeypatch.setattr(constants, "DOWNLOAD_CHUNK_SIZE", constants.DOWNLOAD_CHUNK_SIZE)
        monkeypatch.setattr(file_download, "WeakFileLock", file_download.WeakFileLock)
        yield running


def fetch(revision: str | None = None, meter: Meter | None = None) -> Path:
    return hub.fetch("org/open", revision, False, meter or Meter())


def leave(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)


def update(served: FailingHub, monkeypatch: pytest.MonkeyPatch) -> None:
    """A newer commit, of which the hub has no tokenizer."""
    monkeypatch.setattr(support, "COMMIT", NEWER)
    served.files["model.safetensors"] = b"2" * 2000
    served.failing = frozenset({"tokenizer.json"})
    served.files["tokenizer.json"] = b"[2]"


@pytest.mark.parametrize("revision", [None, "main", support.COMMIT])
def test_a_partial_model_is_not_taken_without_its_hub(
    served: FailingHub, monkeypatch: pytest.MonkeyPatch, revision: str | None
) -> None:
    served.failing = frozenset({"tokenizer.json"})
    for _ in range(2):
        with pytest.raises(Exception, match="locate the file on the Hub"):
            fetch(revision)
    leave(monkeypatch)
    with pytest.raises(Exception, match="offline mode"):
        fetch(revision)


@pytest.mark.parametrize("revision", [None, "main"])
def test_an_update_that_fails_leaves_the_complete_version(
    served: FailingHub, monkeypatch: pytest.MonkeyPatch, revision: str | None
) -> None:
    complete = fetch(revision)
    update(served, monkeypatch)
    with pytest.raises(Exception, match="locate the file on the Hub"):
        fetch(revision)
    leave(monkeypatch)
    assert fetch(revision) == complete


def test_an_update_is_taken_once_it_is_complete(served: FailingHub, monkeypatch: pytest.MonkeyPatch) -> None:
    fetch()
    update(served, monkeypatch)
    served.failing = frozenset()
    assert fetch().name == NEWER
    leave(monkeypatch)
    assert fetch().name == NEWER


@pytest.mark.usefixtures("served")
def test_a_model_that_lost_a_file_is_not_taken_without_its_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    (fetch() / "tokenizer.json").unlink()
    leave(monkeypatch)
    with pytest.raises(Exception, match="offline mode"):
        fetch()


@pytest.mark.usefixtures("served")
def test_a_partial_commit_of_another_program_does_not_replace_the_complete_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    complete = fetch()
    folder = tmp_path / "models--org--open"
    newer = folder / "snapshots" / NEWER
    shutil.copytree(complete, newer)
    (newer / "tokenizer.json").unlink()
    (folder / "refs" / "main").write_text(NEWER)
    leave(monkeypatch)
    assert fetch() == complete


@pytest.mark.usefixtures("served")
def test_a_cache_that_another_program_filled_is_taken_without_the_hub(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    complete = fetch()
    (tmp_path / "models--org--open" / RECORD).unlink()
    leave(monkeypatch)
    assert fetch() == complete


def test_files_with_the_same_content_are_downloaded_once(served: FailingHub) -> None:
    served.files |= {"tokenizer.json": b"3" * 3000, "assistant/tokenizer.json": b"3" * 3000}
    meter = Meter()
    directory = fetch(meter=meter)
    for name in ("tokenizer.json", "assistant/tokenizer.json"):
        assert (directory / name).read_bytes() == b"3" * 3000
    assert served.sent["tokenizer.json"] + served.sent["assistant/tokenizer.json"] == 3000
    progress = meter.read()
    assert progress.done_bytes == progress.total_bytes == 2 + 2000 + 3000


@pytest.mark.timeout(20)
@pytest.mark.parametrize("code", [errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP])
def test_without_locks_a_killed_pod_blocks_no_other(
    served: FailingHub, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, code: int
) -> None:
    def flock(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    locks = tmp_path / ".locks" / "models--org--open"
    locks.mkdir(parents=True)
    # Of huggingface_hub in the killed pod.
    (locks / f"{support.git_id(FILES['tokenizer.json'])}.lock").write_text("1\nkilled-pod\n")
    monkeypatch.setattr(fcntl, "flock", flock)
    assert sorted(file.name for file in fetch().iterdir()) == sorted(served.files)
