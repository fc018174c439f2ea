"""Copies the start cache from a ready pod of the deployment: a program that runs beside the import of vLLM.

In the pod's own process, its thread and the one that imports vLLM would take the interpreter's lock from each other at
each of thousands of reads and writes: on an H200 the import took 8.4 to 10.3 s instead of 7.1.

Input: one `Sibling` as JSON. Output: one `Result` as JSON.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from enum import StrEnum
from http.client import HTTPConnection, HTTPException, HTTPResponse
from pathlib import Path
from urllib.parse import urlsplit

from dragoman_contract.http import START_CACHE_PATH, START_CACHE_SIGNATURE
from dragoman_service.start_cache.archive import (
    MAX_MANIFEST_BYTES,
    RejectedError,
    is_signed,
    read_manifest,
    signature,
    unpack,
)

PROGRAM = "dragoman_service.start_cache.taking"

CONNECT_S = 1.0
BUSY_PAUSE_S = 0.25
"""Time between two requests to siblings that serve other pods."""
BUSY, ABSENT = 503, 404

REQUEST, ARCHIVE = "dragoman start cache: request", "dragoman start cache: archive"
"""What signatures are for."""

TAKEN_MARKS = "start-cache"
"""Directory of the cache with an empty file for each key that is there."""


class Outcome(StrEnum):
    """How an exchange ended."""

    OFF = "off"
    """No sibling is configured."""
    PRESENT = "present"
    """The pod's own cache has it."""
    TAKEN = "taken"
    NO_SIBLING = "no_sibling"
    """No pod is ready."""
    MISMATCH = "mismatch"
    """The sibling has another model, version, GPU or setting, or nothing to share."""
    REJECTED = "rejected"
    """Wrong signature, hash, path or size."""
    TIMED_OUT = "timed_out"
    FAILED = "failed"


@dataclass(frozen=True)
class Result:
    """How an exchange ended, in seconds, files and bytes, with a sentence for the log."""

    outcome: Outcome
    detail: str = ""
    seconds: float = 0.0
    files: int = 0
    total_bytes: int = 0


@dataclass(frozen=True)
class Sibling:
    """Where a start cache is taken from, and where its files go.

    Args:
        url: Of the deployment's Service, ``http://HOST:PORT``.
        secret: Of the deployment; both requests and archives are signed with it.
        root: Directory of this pod's vLLM cache.
        key: Of the start cache that fits this pod, 64 hex digits.
        limit_s: Maximum time to take it, in seconds.
    """

    url: str
    secret: str
    root: str
    key: str
    limit_s: float


def take_in_process(sibling: Sibling) -> Result:
    """Take the cache in another process, and wait for it.

    Raises:
        OSError: The process cannot be started.
        subprocess.TimeoutExpired: It exceeds its limit by more than a connection may take.
    """
    # The secret goes through a pipe: other users of the machine can read arguments.
    process = subprocess.run(
        [sys.executable, "-m", PROGRAM],
        input=json.dumps(asdict(sibling)),
        capture_output=True,
        text=True,
        timeout=sibling.limit_s + 2 * CONNECT_S,
    )
    if process.returncode != 0:
        last = process.stderr.strip().rpartition("\n")[2]
        return Result(Outcome.FAILED, f"its process ended with {process.returncode}: {last:.300}")
    document = json.loads(process.stdout)
    return Result(**(document | {"outcome": Outcome(document["outcome"])}))


def main() -> None:
    """Read a `Sibling`, take its start cache, and write the `Result`."""
    sys.stdout.write(json.dumps(asdict(take(Sibling(**json.load(sys.stdin))))))


def take(sibling: Sibling) -> Result:
    """Take the cache; raises nothing."""
    try:
        return _take(sibling, time.monotonic() + sibling.limit_s)
    except RejectedError as error:
        return Result(Outcome.REJECTED, str(error))
    except TimeoutError:
        return Result(Outcome.TIMED_OUT, f"it took over {sibling.limit_s:g} s")
    except (ConnectionError, socket.gaierror) as error:
        return Result(Outcome.NO_SIBLING, str(error))
    except Exception as error:
        return Result(Outcome.FAILED, f"{type(error).__name__}: {error}")


def _take(sibling: Sibling, end_s: float) -> Result:
    if _mark(sibling).exists():
        return Result(Outcome.PRESENT)
    target = urlsplit(sibling.url)
    while True:
        connection = HTTPConnection(target.hostname or "", target.port or 80, timeout=CONNECT_S)
        try:
            connection.connect()
            token = signature(sibling.secret, REQUEST, sibling.key.encode())
            headers = {"Authorization": f"Bearer {token}"}
            with _closed_at(connection.sock, end_s):
                connection.request("GET", START_CACHE_PATH + sibling.key, headers=headers)
                response = connection.getresponse()
                if response.status == 200:
                    return _receive(response, sibling)
        except HTTPException as error:
            raise ConnectionError(f"no answer: {error!r}") from error
        finally:
            connection.close()
        if response.status == ABSENT:
            return Result(Outcome.MISMATCH, "the sibling has no cache for this pod")
        if response.status != BUSY:
            return Result(Outcome.FAILED, f"the sibling answered {response.status}")
        time.sleep(min(BUSY_PAUSE_S, _left_s(end_s)))


def _receive(response: HTTPResponse, sibling: Sibling) -> Result:
    line = response.readline(MAX_MANIFEST_BYTES + 1)
    if len(line) > MAX_MANIFEST_BYTES or not line.endswith(b"\n"):
        raise RejectedError("its manifest is too long, or has no end")
    if not is_signed(response.getheader(START_CACHE_SIGNATURE, ""), sibling.secret, ARCHIVE, line):
        raise RejectedError("its signature is not the deployment's")
    entries = read_manifest(line, sibling.key)
    unpack(entries, response.read, Path(sibling.root))
    mark = _mark(sibling)
    mark.parent.mkdir(parents=True, exist_ok=True)
    mark.touch()
    return Result(Outcome.TAKEN, "", 0.0, len(entries), sum(entry.size for entry in entries))


def _mark(sibling: Sibling) -> Path:
    return Path(sibling.root) / TAKEN_MARKS / sibling.key


@contextmanager
def _closed_at(sock: socket.socket, end_s: float) -> Iterator[None]:
    """Close a connection at `end_s`: a timeout of the socket begins anew with each byte.

    Raises:
        TimeoutError: It was closed.
    """
    sock.settimeout(None)

    def close() -> None:
        with suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(_left_s(end_s), close)
    timer.daemon = True
    timer.start()
    try:
        yield
    except Exception as error:
        if time.monotonic() >= end_s:
            raise TimeoutError from error
        raise
    finally:
        timer.cancel()


def _left_s(end_s: float) -> float:
    left_s = end_s - time.monotonic()
    if left_s <= 0:
        raise TimeoutError
    return left_s


if __name__ == "__main__":
    main()
