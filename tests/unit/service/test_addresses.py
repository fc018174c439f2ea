"""URLs in answers begin as the client's own did."""

import pytest

from dragoman_protocols.libretranslate.files import base_url
from dragoman_protocols.messages import Request

OWN = "http://router.example:8080/"


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, OWN),
        ({"x-forwarded-proto": "https"}, "https://router.example:8080/"),
        ({"x-forwarded-proto": "HTTPS, http"}, "https://router.example:8080/"),
        ({"x-forwarded-host": "mt.example"}, "http://mt.example/"),
        ({"x-forwarded-host": "[fd00::8]:443", "x-forwarded-proto": "https"}, "https://[fd00::8]:443/"),
        ({"x-forwarded-host": "mt.example", "x-forwarded-prefix": "/mt/v1/"}, "http://mt.example/mt/v1/"),
        (
            {
                "x-forwarded-host": "evil/?q=",
                "x-forwarded-proto": "javascript",
                "x-forwarded-prefix": "//evil",
            },
            OWN,
        ),
        ({"x-forwarded-host": "user@evil", "x-forwarded-prefix": "/a b"}, OWN),
    ],
)
def test_the_address_that_the_client_used(headers: dict[str, str], expected: str) -> None:
    named = {"host": "router.example:8080", **headers}
    sent = [(name.encode(), value.encode()) for name, value in named.items()]
    assert base_url(Request("POST", "/translate_file", b"", sent)) == expected
