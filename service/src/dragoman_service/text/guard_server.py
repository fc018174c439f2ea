"""The guards as a process of their own: questions come on standard input, findings go to standard output.

Frames in both directions: four bytes of length, big-endian, then a pickled list. Of questions, `(number, source,
output, expectation)`; of answers, `(number, findings)`, where an exception in the place of findings is a guard's own
fault. It ends with its input, and so with the process that started it.
"""

from __future__ import annotations

import gc
import pickle
import signal
import sys
import time
from collections.abc import Iterator
from typing import Any, BinaryIO

from dragoman_protocols.detection import detect
from dragoman_service.text.guards import Expectation, check

LENGTH_BYTES = 4

SLICE_S = 0.002
"""Answers found within so long are sent together: each sending wakes the other process up."""

Question = tuple[int, str, str, Expectation]
Found = tuple[int, Any]


def frame(content: list[Any]) -> bytes:
    """A list as it is sent."""
    packed = pickle.dumps(content, pickle.HIGHEST_PROTOCOL)
    return len(packed).to_bytes(LENGTH_BYTES, "big") + packed


def serve(asked: BinaryIO, answered: BinaryIO) -> None:
    """Answer questions until there are no more.

    Args:
        asked: Frames of questions.
        answered: Takes frames of answers.
    """
    while head := asked.read(LENGTH_BYTES):
        for found in _slices(pickle.loads(asked.read(int.from_bytes(head, "big")))):
            answered.write(frame(found))
            answered.flush()


def _slices(questions: list[Question]) -> Iterator[list[Found]]:
    found: list[Found] = []
    end_s = time.perf_counter() + SLICE_S
    for number, source, output, expected in questions:
        found.append((number, _checked(source, output, expected)))
        if time.perf_counter() > end_s:
            yield found
            found = []
            end_s = time.perf_counter() + SLICE_S
    if found:
        yield found


def _checked(source: str, output: str, expected: Expectation) -> Any:
    try:
        return check(source, output, expected)
    except Exception as error:
        return error


def main() -> None:
    """Serve on the standard streams."""
    # Ctrl-C goes to all processes of a terminal; this one ends after the one that needs it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    detect("What is loaded on first use is loaded now.")
    gc.collect()
    gc.freeze()
    serve(sys.stdin.buffer, sys.stdout.buffer)


if __name__ == "__main__":
    main()
