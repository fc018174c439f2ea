"""Translated files are kept until they are fetched, for a while and up to a size."""

from __future__ import annotations

import pytest

from dragoman_protocols.errors import UnknownDocumentError
from dragoman_service.http.files import KEPT_S, Files
from dragoman_service.http.lifecycle import Unfetched


def test_a_file_is_kept_for_its_time_and_may_be_fetched_again() -> None:
    now_s = 0.0
    unfetched = Unfetched(lambda: now_s)
    files = Files(unfetched, clock=lambda: now_s)
    files.put("key", "a.txt", b"abc")
    assert len(unfetched) == 1
    now_s = KEPT_S - 0.1
    assert [files.find("key").content for _ in range(2)] == [b"abc"] * 2
    assert len(unfetched) == 0
    now_s = KEPT_S
    with pytest.raises(UnknownDocumentError):
        files.find("key")


def test_files_beyond_the_maximum_are_dropped() -> None:
    files = Files(Unfetched(), max_bytes=10)
    for key in "abc":
        files.put(key, f"{key}.txt", b"1234")
    assert files.take("a") is None
    assert files.take("b") == b"1234"
    assert files.take("b") is None
    files.put("d", "d.txt", b"x" * 11)
    assert files.take("d") is None
    assert files.take("c") == b"1234"
