"""W3C trace context: every request that is passed on carries one. https://www.w3.org/TR/trace-context/"""

from __future__ import annotations

import re
from random import Random

FORM = re.compile(rb"00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")


def traceparent(given: bytes | None, chance: Random) -> tuple[bytes, str]:
    """The header to pass on, and its trace id.

    Args:
        given: What came; kept where it is valid, for the router makes no span of its own.
        chance: Where a new one comes from.
    """
    if given is not None and FORM.fullmatch(given):
        return given, given[3:35].decode()
    trace = f"{chance.getrandbits(128) | 1:032x}"
    return f"00-{trace}-{chance.getrandbits(64) | 1:016x}-00".encode(), trace
