"""The meter's numbers, and what becomes of other files once one has failed."""

import hashlib
import io
import os
import socket
import threading
from pathlib import Path

import pytest

from dragoman_operator.controller.downloads import MAX_CHARS
from dragoman_service.download.checksums import Checksum
from dragoman_service.download.errors import NoSpaceError
from dragoman_service.download.transfer import Meter, Progress, RemoteFile, download, own_partial
from dragoman_service.fetch.startup import describe


def test_the_rate_is_that_of_the_last_ten_seconds() -> None:
    now = [0.0]
    meter = Meter(lambda: now[0])
    meter.total_bytes = 1000
    meter.resume(100)
    assert describe(meter.read()) == "downloading the model: 10% of 0.00 GB, 0 MB/s"
    for now[0] in (5.0, 10.0, 15.0):
        meter.receive(100)
        progress = meter.read()
    assert progress.bytes_per_s == 20
    assert progress.ratio == 0.4
    meter.total_bytes = 0
    assert meter.read().ratio is None


def test_a_store_that_sends_nothing_is_reported_while_something_is_requested() -> None:
    now = [0.0]
    meter = Meter(lambda: now[0])
    now[0] = 60.0
    assert meter.read().silent_s == 0
    with meter.requesting():
        now[0] = 69.0
        assert describe(meter.read()) == "downloading the model"
        now[0] = 72.0
        assert describe(meter.read()) == (
            "downloading the model; nothing received for 12 s: check the store and the network"
        )
        meter.receive(0)
        assert describe(meter.read()) == "downloading the model"
    now[0] = 99.0
    assert meter.read().silent_s == 0


def test_the_sentence_fits_into_what_the_operator_shows() -> None:
    assert len(describe(Progress(10**12, 10**12, 9.9e9, silent_s=99_999.0))) <= MAX_CHARS


def test_the_first_failure_is_reported_and_ends_the_others(tmp_path: Path) -> None:
    begun, failed, ended = threading.Event(), threading.Event(), threading.Event()

    def receive(file: RemoteFile, output: io.RawIOBase, offset: int) -> None:
        if file.name == "bad":
            assert begun.wait(10)
            raise ValueError("refused")
        begun.set()
        try:
            while True:
                output.write(b"x")
                failed.wait(0.001)
        finally:
            ended.set()

    files = [(RemoteFile(name, 10**6), tmp_path / name) for name in ("long", "bad")]
    with pytest.raises(ValueError, match="refused"):
        download(files, receive, Meter())
    assert ended.wait(10)
    assert (tmp_path / "long.part").exists()
    assert not (tmp_path / "long").exists()


def test_a_partial_file_that_is_too_long_is_not_continued(tmp_path: Path) -> None:
    (tmp_path / "file.part").write_bytes(b"too long")
    offsets = []

    def receive(file: RemoteFile, output: io.RawIOBase, offset: int) -> None:
        offsets.append(offset)
        output.write(b"abc")

    file = RemoteFile("file", 3, Checksum("sha256", hashlib.sha256(b"abc").hexdigest()))
    download([(file, tmp_path / "file")], receive, Meter())
    assert offsets == [0]
    assert (tmp_path / "file").read_bytes() == b"abc"


@pytest.mark.parametrize(("module", "name", "value"), [(socket, "gethostname", "other"), (os, "getpid", 1)])
def test_a_process_does_not_continue_the_own_partial_file_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: object, name: str, value: object
) -> None:
    offsets = []

    def receive(_: RemoteFile, output: io.RawIOBase, offset: int) -> None:
        offsets.append(offset)
        output.write(b"abc"[offset:])

    def attempt() -> None:
        download([(RemoteFile("file", 3), tmp_path / "file")], receive, Meter(), partial=own_partial())

    others = tmp_path / f"file{own_partial()}"
    others.write_bytes(b"a")
    with monkeypatch.context() as changed:
        changed.setattr(module, name, lambda: value)
        attempt()
    assert others.read_bytes() == b"a"
    (tmp_path / "file").unlink()
    attempt()
    assert offsets == [0, 1]


def test_nothing_is_received_where_it_does_not_fit(tmp_path: Path) -> None:
    def receive(file: RemoteFile, output: io.RawIOBase, offset: int) -> None:
        raise AssertionError

    with pytest.raises(NoSpaceError, match=r"1000000000\.00 GB are missing"):
        download([(RemoteFile("file", 10**18), tmp_path / "file")], receive, Meter())
