"""The lock of a model's folder, also on volumes without locks."""

import errno
import fcntl
import os
from pathlib import Path

import pytest

from dragoman_service.download.cache import LOCK, exclusive
from dragoman_service.download.transfer import Meter


def refuse(monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    def flock(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(fcntl, "flock", flock)


def test_the_lock_is_held(tmp_path: Path) -> None:
    with exclusive(tmp_path, Meter()) as locked:
        assert locked


@pytest.mark.timeout(10)
@pytest.mark.parametrize("code", [errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP])
def test_without_locks_no_process_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    # Of a killed process, in the format of filelock's soft locks.
    (tmp_path / LOCK).write_text("1\nkilled-pod\n")
    refuse(monkeypatch, code)
    meter = Meter()
    with exclusive(tmp_path, meter) as first, exclusive(tmp_path, meter) as second:
        assert (first, second, meter.waiting) == (False, False, False)


def test_other_errors_of_a_volume_are_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refuse(monkeypatch, errno.EIO)
    with pytest.raises(OSError, match="Input/output error"), exclusive(tmp_path, Meter()):
        pass
