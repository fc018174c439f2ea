"""What is known of one request while it is answered: it is counted, traced, and told apart in the engine."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from dragoman_protocols.errors import DeadlineExceededError, DefectError, RequestError
from dragoman_protocols.languages import Pair
from dragoman_service.core.admission import AdmissionSlot
from dragoman_service.core.stages import Origin, Priority
from dragoman_service.http.metrics import DISCONNECTED, Metrics
from dragoman_service.http.tracing import RequestSpan, Tracing

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Accounting:
    """Opens an account for each request.

    Args:
        metrics: Counts.
        tracing: Traces.
        priority: Of its segments in the engine; None is none.
    """

    metrics: Metrics
    tracing: Tracing
    priority: Priority | None = None

    @contextmanager
    def request(self, dialect: str, headers: Mapping[str, str]) -> Iterator[Account]:
        """The account of a request, until it has been answered.

        Args:
            dialect: The API that it comes by, as far as that is known before its body is.
            headers: Its own, by names in lower case.
        """
        with self.tracing.request(headers) as span:
            yield Account(self.metrics, span, self.priority, dialect)

    def defect(self) -> RequestError:
        """Log and count the exception that is being handled, which the pod does not foresee; what its caller gets."""
        self.metrics.defects.inc()
        log.exception("unexpected exception")
        return DefectError("a defect; the pod's log has more")


class Account:
    """One request's.

    Args:
        metrics: Counts.
        span: Traces.
        priority: Of its segments.
        dialect: The API that it comes by.
    """

    pair: Pair | None = None
    """What it asks for, once that is known."""

    def __init__(self, metrics: Metrics, span: RequestSpan, priority: Priority | None, dialect: str) -> None:
        self._metrics = metrics
        self._span = span
        self._priority = priority
        self._dialect = dialect
        self._texts = 0
        self._place: AdmissionSlot | None = None
        self._began_s = time.monotonic()

    @property
    def origin(self) -> Origin:
        """What the core passes on to the engine and to its observer."""
        added = None if self._place is None else self._place.add
        return Origin(self._dialect, self._priority, self._span.headers, added)

    def received(self, dialect: str) -> None:
        """All of it is here, which tells the API that it comes by; its time runs from now on."""
        self._dialect = dialect
        self._began_s = time.monotonic()

    def admitted(self, place: AdmissionSlot, texts: int) -> None:
        """It has been taken on."""
        self._place, self._texts = place, texts
        self._span.admitted(texts, place.tokens)

    def translated(self) -> None:
        """It was answered with what it asked for."""
        if self._place is not None:
            self._place.served()
        latency_s = time.monotonic() - self._began_s
        self._metrics.translated(self.pair, self._texts, latency_s, self._dialect)
        self._ended("ok")

    def refused(self, error: RequestError) -> RequestError:
        """It is answered with an error, which is returned as its caller gets it."""
        if self._place is not None and isinstance(error, DeadlineExceededError):
            error = self._place.late(error)
        self._metrics.refused(self.pair, error, self._dialect)
        self._ended(error.code)
        return error

    def left(self) -> None:
        """Its client did not wait for the answer."""
        self._metrics.left(self.pair, self._dialect)
        self._ended(DISCONNECTED)

    def _ended(self, outcome: str) -> None:
        languages = (
            {} if self.pair is None else {"source": self.pair.source.tag, "target": self.pair.target.tag}
        )
        self._span.ended(outcome, dialect=self._dialect, **languages)
