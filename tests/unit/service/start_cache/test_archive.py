"""The archive of a start cache: what a pod packs, and all that it refuses."""

import hashlib
import io
import json
import os
from pathlib import Path

import pytest

from dragoman_service.start_cache import archive
from dragoman_service.start_cache.archive import (
    Entry,
    RejectedError,
    cached_files,
    contents,
    entries_of,
    is_safe,
    is_signed,
    manifest_of,
    read_manifest,
    signature,
    unpack,
)

KEY, SECRET = "a" * 64, "s" * 40
DIGEST = hashlib.sha256(b"kernel").hexdigest()


def make_cache(root: Path) -> tuple[Entry, ...]:
    for path, content in (("inductor/ab/k.py", b"kernel"), ("startup_plan/p.json", b"{}"), ("triton/e", b"")):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(content)
    return entries_of(root, [path for path, _ in cached_files(root)])


def files_below(root: Path) -> list[str]:
    return sorted(file.relative_to(root).as_posix() for file in root.rglob("*") if file.is_file())


def test_a_cache_arrives_as_it_was(tmp_path: Path) -> None:
    entries = make_cache(tmp_path / "from")
    stream = io.BytesIO(b"".join(contents(tmp_path / "from", entries)))
    unpack(read_manifest(manifest_of(KEY, entries), KEY), stream.read, tmp_path / "to")
    assert files_below(tmp_path / "to") == ["inductor/ab/k.py", "startup_plan/p.json", "triton/e"]
    assert (tmp_path / "to/inductor/ab/k.py").read_bytes() == b"kernel"


def test_files_that_the_cache_has_are_replaced_and_others_stay(tmp_path: Path) -> None:
    entries = make_cache(tmp_path / "from")
    (tmp_path / "to/inductor/ab").mkdir(parents=True)
    (tmp_path / "to/inductor/ab/k.py").write_bytes(b"older")
    (tmp_path / "to/inductor/ab/own.py").write_bytes(b"own")
    unpack(entries, io.BytesIO(b"".join(contents(tmp_path / "from", entries))).read, tmp_path / "to")
    assert (tmp_path / "to/inductor/ab/k.py").read_bytes() == b"kernel"
    assert (tmp_path / "to/inductor/ab/own.py").read_bytes() == b"own"


def test_only_finished_regular_files_of_shared_directories_are_packed(tmp_path: Path) -> None:
    make_cache(tmp_path)
    (tmp_path / "config").mkdir()
    for path in (
        "config/secret",
        "inductor/x.lock",
        "inductor/p.json.tmp.12",
        "triton/tmp.pid_1",
        "triton/a b",
    ):
        (tmp_path / path).write_bytes(b"x")
    (tmp_path / "triton/link").symlink_to("/etc/passwd")
    (tmp_path / "triton/directory").symlink_to("/etc")
    os.mkfifo(tmp_path / "triton/pipe")
    assert [path for path, _ in cached_files(tmp_path)] == [
        "inductor/ab/k.py",
        "startup_plan/p.json",
        "triton/e",
    ]


@pytest.mark.parametrize(
    "path",
    [
        "../x",
        "/etc/passwd",
        "inductor",
        "inductor/",
        "inductor//x",
        "inductor/../../x",
        "inductor/./x",
        "inductor/..",
        "config/x",
        ".incoming-1/x",
        "start-cache/x",
        "inductor/a\\b",
        "inductor/a\0b",
        "inductor/a\n",
        "inductor/ä",
        "inductor/" + "a" * 256,
        "inductor" + "/a" * 40,
        "",
    ],
)
def test_a_path_outside_of_the_shared_directories_is_rejected(path: str) -> None:
    assert not is_safe(path)
    with pytest.raises(RejectedError, match="not allowed"):
        read_manifest(manifest_of(KEY, (Entry(path, 6, DIGEST),)), KEY)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"", "cannot be read"),
        (b"[1]\n", "cannot be read"),
        (b'{"key": 1}\n', "cannot be read"),
        (b'{"key": "k", "files": [["a", 1]]}\n', "cannot be read"),
        (b"\xff\n", "cannot be read"),
        (json.dumps({"key": "b" * 64, "files": []}).encode(), "another model"),
        (json.dumps({"key": KEY, "files": [[1, 6, DIGEST]]}).encode(), "not allowed"),
        (json.dumps({"key": KEY, "files": [["triton/x", -1, DIGEST]]}).encode(), "not valid"),
        (json.dumps({"key": KEY, "files": [["triton/x", True, DIGEST]]}).encode(), "not valid"),
        (json.dumps({"key": KEY, "files": [["triton/x", 1.5, DIGEST]]}).encode(), "not valid"),
        (json.dumps({"key": KEY, "files": [["triton/x", 6, "abc"]]}).encode(), "not valid"),
        (json.dumps({"key": KEY, "files": [["triton/x", 6, None]]}).encode(), "not valid"),
        (json.dumps({"key": KEY, "files": [["triton/x", 6, DIGEST]] * 2}).encode(), "twice"),
        (json.dumps({"key": KEY, "files": [["triton/x", 1 << 31, DIGEST]]}).encode(), "over 1024 MiB"),
    ],
)
def test_a_wrong_manifest_is_rejected(line: bytes, message: str) -> None:
    with pytest.raises(RejectedError, match=message):
        read_manifest(line, KEY)


def test_too_many_files_are_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MAX_FILES", 2)
    entries = tuple(Entry(f"triton/{at}", 1, DIGEST) for at in range(3))
    with pytest.raises(RejectedError, match="over 2 files"):
        read_manifest(manifest_of(KEY, entries), KEY)


@pytest.mark.parametrize("content", [b"", b"kerne", b"kernEl"])
def test_nothing_is_written_of_contents_that_are_cut_or_changed(tmp_path: Path, content: bytes) -> None:
    entries = (Entry("triton/first", 6, DIGEST), Entry("triton/second", 6, DIGEST))
    with pytest.raises(RejectedError, match=r"too early|not what the manifest says"):
        unpack(entries, io.BytesIO(b"kernel" + content).read, tmp_path)
    assert files_below(tmp_path) == []


def test_a_file_where_a_directory_is_required_writes_nothing(tmp_path: Path) -> None:
    entries = (Entry("triton/a", 6, DIGEST), Entry("triton/a/b", 6, DIGEST))
    with pytest.raises(OSError, match="triton/a"):
        unpack(entries, io.BytesIO(b"kernelkernel").read, tmp_path)
    assert files_below(tmp_path) == []


def test_what_has_no_space_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(RejectedError, match="no space"):
        unpack((Entry("triton/a", 1 << 60, DIGEST),), io.BytesIO().read, tmp_path)


def test_a_link_in_the_cache_leads_no_file_out_of_it(tmp_path: Path) -> None:
    (tmp_path / "outside").write_bytes(b"mine")
    (tmp_path / "cache/triton").mkdir(parents=True)
    (tmp_path / "cache/triton/x").symlink_to(tmp_path / "outside")
    unpack((Entry("triton/x", 6, DIGEST),), io.BytesIO(b"kernel").read, tmp_path / "cache")
    assert (tmp_path / "outside").read_bytes() == b"mine"
    assert not (tmp_path / "cache/triton/x").is_symlink()


def test_a_signature_holds_for_one_secret_one_purpose_and_one_content() -> None:
    made = signature(SECRET, "purpose", b"content")
    assert is_signed(made, SECRET, "purpose", b"content")
    for given, secret, purpose, content in (
        (made, "t" * 40, "purpose", b"content"),
        (made, SECRET, "other", b"content"),
        (made, SECRET, "purpose", b"content "),
        ("", SECRET, "purpose", b"content"),
        ("é", SECRET, "purpose", b"content"),
    ):
        assert not is_signed(given, secret, purpose, content)
