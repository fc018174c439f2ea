"""An error that a client can repeat does not fill the log."""

import logging

from dragoman_system.command_line import TRACEBACK_EVERY_S, SparseTracebacks


def record(*, traceback: bool) -> logging.LogRecord:
    info = (ValueError, ValueError("x"), None) if traceback else None
    return logging.LogRecord("name", logging.ERROR, __file__, 1, "an error", (), info)


def test_of_many_tracebacks_one_passes_with_the_number_of_the_others() -> None:
    now_s = 100.0
    sparse = SparseTracebacks(lambda: now_s)
    assert [sparse.filter(record(traceback=True)) for _ in range(1000)] == [True] + [False] * 999
    assert sparse.filter(record(traceback=False))
    now_s += TRACEBACK_EVERY_S
    later = record(traceback=True)
    assert sparse.filter(later)
    assert "999 like it" in later.getMessage()
    now_s += TRACEBACK_EVERY_S
    last = record(traceback=True)
    assert sparse.filter(last)
    assert last.getMessage() == "an error"
