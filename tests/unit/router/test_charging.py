"""The characters that a replica's answer is charged for."""

from types import SimpleNamespace
from typing import Any

import pytest

from dragoman_contract.routing import CHARACTERS_HEADER
from dragoman_router.http.app import charged

PEEK: Any = SimpleNamespace(characters=7)


@pytest.mark.parametrize(
    ("status", "value", "characters"),
    [
        (200, b"12", 12),
        (200, b"-12", -12),
        (500, b"12", 0),
        (200, b"", 7),
        (200, b"1.5", 7),
        (200, b"--1", 7),
        pytest.param(200, b"9" * 5000, 7, id="5,000 digits"),
        (200, "١٢".encode(), 7),
    ],
)
def test_an_answer_is_charged_by_its_header_or_by_the_request(
    status: int, value: bytes, characters: int
) -> None:
    reply: Any = SimpleNamespace(status=status, headers=[(CHARACTERS_HEADER.lower().encode(), value)])
    assert charged(reply, PEEK) == characters
