"""W3C trace context: every request that is passed on carries one. https://www.w3.org/TR/trace-context/"""

from __future__ import annotations

import re
from random import Random

FORM = re.compile(rb"00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")


_NOT_ZERO = 1 << 64 | 1
"""Neither the trace's id nor the span's may be all zeros."""


def traceparent(given: bytes | None, chance: Random) -> bytes:
    """The header to pass on.

    Args:
        given: What came; kept where it is valid, for the router makes no span of its own.
        chance: Where a new one comes from.
    """
    if given is not None and FORM.fullmatch(given):
        return given
    ids = (chance.getrandbits(192) | _NOT_ZERO).to_bytes(24, "big").hex()
    return f"00-{ids[:32]}-{ids[32:]}-00".encode()
