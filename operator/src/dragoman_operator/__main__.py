"""`dragoman operator`: flags, logging, and kopf."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
from datetime import UTC, datetime

import kopf

from dragoman_contract.kubernetes import FIELD_MANAGER
from dragoman_kube.client import connect
from dragoman_kube.config import configuration, service_account
from dragoman_kube.errors import ClusterError
from dragoman_operator.controller import handlers
from dragoman_operator.controller.runtime import Runtime
from dragoman_operator.errors import OperatorError
from dragoman_operator.metrics import Metrics
from dragoman_operator.settings import Settings, unknown_variables
from dragoman_system.command_line import CommandLineError, read_command_line

log = logging.getLogger(__name__)

_QUIET = ("kopf.objects", "kubernetes", "aiohttp", "asyncio")
"""Loggers with a message per request or event; kopf logs each call of a handler."""


def main(argv: list[str]) -> int:
    """Run the operator until SIGTERM or SIGINT; 0, or 1 or 2 with the reason on standard error."""
    try:
        settings = read_command_line(Settings, argv)
        if unknown := unknown_variables(os.environ):
            raise CommandLineError(f"unknown environment: {', '.join(unknown)}")
    except CommandLineError as error:
        sys.stderr.write(f"dragoman operator: {error}\n")
        return 2
    set_up_logging(settings.log_format, settings.log_level)
    try:
        asyncio.run(operate(settings))
    except (OperatorError, ClusterError, OSError) as error:
        log.error("%s", error)
        return 1
    except Exception:
        log.exception("unexpected failure")
        return 1
    return 0


async def operate(settings: Settings) -> None:
    """Run until SIGTERM or SIGINT, which kopf handles.

    Raises:
        ClusterError: There is no cluster to connect to, or its credentials cannot be read.
        OSError: A port is not available.
        Exception: kopf or a background task failed; the process has to be restarted.
    """
    loaded = await configuration()
    async with connect(loaded, timeout_s=settings.request_timeout_s, field_manager=FIELD_MANAGER) as kube:
        runtime = Runtime(settings, kube, Metrics(), service_account(loaded))
        try:
            await runtime.serve()
            await kopf.operator(
                registry=handlers.registry(runtime.changed, runtime.start, runtime.stop),
                settings=handlers.settings(),
                clusterwide=not settings.namespaces,
                namespaces=runtime.namespaces,
                stop_flag=runtime.stopping,
            )
        except Exception as error:
            raise runtime.failure or error from None
        finally:
            await runtime.stop()
        if runtime.failure:
            raise runtime.failure
    log.info("stopped")


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


def set_up_logging(form: str, level: str) -> None:
    """Log to standard error.

    `form` is ``text`` or ``json``; `level` is in lower case.
    """
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter() if form == "json" else TextFormatter())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    if level != "debug":
        for name in _QUIET:
            logging.getLogger(name).setLevel("WARNING")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
