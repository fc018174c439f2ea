"""Server-sent events.

Source: https://html.spec.whatwg.org/multipage/server-sent-events.html
"""

from __future__ import annotations

import json

EVENT_STREAM = "text/event-stream"

LINE_ENDS = str.maketrans({"\x85": "\\u0085", "\u2028": "\\u2028", "\u2029": "\\u2029"})
"""Not line ends of the protocol, but of Python's `str.splitlines`, by which many clients read."""


def event(data: object, name: str | None = None) -> bytes:
    """One event.

    Args:
        data: What it carries, written as JSON on one line.
        name: Its type; None is what clients call `message`.
    """
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":")).translate(LINE_ENDS)
    named = f"event: {name}\n" if name else ""
    return f"{named}data: {text}\n\n".encode()
