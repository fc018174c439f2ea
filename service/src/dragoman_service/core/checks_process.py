"""The guard process: reads questions from standard input and writes findings to standard output.

Frames in both directions: four bytes of length, big-endian, then a pickled list. Of questions, `(number, source,
output, expectation)`; of answers, `(number, findings)`, where an exception instead of findings is a defect of a
guard. It ends with its input, and so with the process that started it.
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
"""Findings made within this time are sent together: each write wakes the other process up."""

Question = tuple[int, str, str, Expectation]
Found = tuple[int, Any]


def frame(content: list[Any]) -> bytes:
    """A list as it is sent."""
    packed = pickle.dumps(content, pickle.HIGHEST_PROTOCOL)
    return len(packed).to_bytes(LENGTH_BYTES, "big") + packed


def serve(questions: BinaryIO, answers: BinaryIO) -> None:
    """Answer questions until the input ends.

    Args:
        questions: Frames of questions.
        answers: Receives frames of answers.
    """
    while head := questions.read(LENGTH_BYTES):
        for found in _slices(pickle.loads(questions.read(int.from_bytes(head, "big")))):
            answers.write(frame(found))
            answers.flush()


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
    # Ctrl-C goes to all processes of a terminal; this one ends after its parent.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    detect("Load the detection model before the first question.")
    gc.collect()
    gc.freeze()
    serve(sys.stdin.buffer, sys.stdout.buffer)


if __name__ == "__main__":
    main()
