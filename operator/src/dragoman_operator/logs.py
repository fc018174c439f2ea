"""Log formats: text, or one JSON object per line."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime

_QUIET = ("kopf.objects", "kubernetes", "aiohttp", "asyncio")
"""Loggers with a message per request or event; kopf logs each call of a handler."""


class JsonFormatter(logging.Formatter):
    """One JSON object a line: time, level, logger, message, and the key of the object it is about."""

    def format(self, record: logging.LogRecord) -> str:
        """The line for one record."""
        entry = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if key := getattr(record, "key", None):
            entry["key"] = key
        if record.exc_info:
            entry["error"] = self.formatException(record.exc_info)
        return json.dumps(entry)


class TextFormatter(logging.Formatter):
    """``14:03:21 INFO  default/demo: message``."""

    def format(self, record: logging.LogRecord) -> str:
        """The line for one record."""
        key = getattr(record, "key", None)
        time = datetime.fromtimestamp(record.created, UTC).strftime("%H:%M:%S")
        line = f"{time} {record.levelname:<7} {f'{key}: ' if key else ''}{record.getMessage()}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


def set_up(form: str, level: str) -> None:
    """Log to standard error.

    `form` is ``text`` or ``json``; `level` is in lower case.
    """
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter() if form == "json" else TextFormatter())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    if level != "debug":
        for name in _QUIET:
            logging.getLogger(name).setLevel("WARNING")
