"""A file that is translated as a job: its state, its progress, what it is charged for, until when it is kept.

The type knows neither HTTP nor an API. Each API has its own words for the states, its own form of the id, and its own
way to show who may have a document.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import PurePath
from typing import Protocol
from uuid import UUID

from dragoman_protocols.errors import RequestError
from dragoman_protocols.files import translated_ending


class State(StrEnum):
    """The state of a document; it ends in one of the last three."""

    QUEUED = "queued"
    """Accepted; the file is not parsed yet."""
    TRANSLATING = "translating"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"
    """By its client."""


@dataclass(eq=False)
class Document:
    """One document.

    Args:
        id: Hard to guess; it begins with the tag of the replica that has the document.
        api: Name of the API that it was uploaded by: the others do not find it.
        name: File name of the translation.
        target_lang: BCP-47 tag.
        source_lang: BCP-47 tag, as given or as detected; None: not known yet, or detected text by text.
        secret: Required to access it, where the API has such a secret.
        characters: Characters of its texts; None until the file is parsed.
        share: Share of its segments that are translated, 0 to 1.
        started_s: Start of the translation, in monotonic seconds.
        findings: Number of warnings about the translation by code.
        error: Why it failed.
        expires_s: Time at which it is deleted, in seconds since the epoch; None until it has ended.
        charged: Characters that responses have charged for so far.
    """

    id: UUID
    api: str
    name: str
    target_lang: str
    source_lang: str | None = None
    secret: str = ""
    state: State = State.QUEUED
    characters: int | None = None
    share: float = 0.0
    started_s: float = 0.0
    findings: Mapping[str, int] = field(default_factory=dict)
    error: RequestError | None = None
    expires_s: float | None = None
    charged: int = 0

    @property
    def ended(self) -> bool:
        """Whether its state does not change any more, except that a finished document can be deleted."""
        return self.state not in (State.QUEUED, State.TRANSLATING)

    def advance(self, share: float) -> None:
        """Set the share of segments that are translated."""
        self.share = share

    def seconds_remaining(self, now_s: float) -> int | None:
        """Estimated from the progress; None while there is none, and after the end.

        Args:
            now_s: Monotonic seconds.
        """
        if self.state is not State.TRANSLATING or not self.share:
            return None
        return math.ceil((now_s - self.started_s) * (1 - self.share) / self.share)

    def charge(self) -> int:
        """Characters to charge for with this response, negative for a refund; counted as charged from now on.

        The whole document is charged once it is parsed. A failure refunds it; of a document that its client
        cancelled, the translated share stays charged.
        """
        due = self.characters or 0
        if self.state is State.FAILED:
            due = 0
        elif self.state is State.CANCELLED:
            due = round(due * self.share)
        change, self.charged = due - self.charged, due
        return change


NOT_FOUND = "Document not found: there is none of this id, or it was kept for too long"

KEPT_S = 30 * 60
"""From the end of the translation, as LibreTranslate keeps files."""

DELIVERED_KEPT_S = 5 * 60
"""From a delivery: what was sent may be lost on its way, behind the router or in the client."""


class Documents(Protocol):
    """The documents of a pod."""

    def find(self, api: str, document_id: str) -> Document:
        """A document.

        Args:
            api: Name of the API that it was uploaded by.
            document_id: A UUID, with or without dashes.

        Raises:
            UnknownDocumentError: There is none of this id, or no longer.
        """
        ...

    def result(self, document: Document) -> bytes:
        """The translated file.

        Raises:
            DocumentNotDoneError: The document is not done.
        """
        ...

    def delivered(self, document: Document, kept_s: float = DELIVERED_KEPT_S) -> None:
        """A client received the result: it is kept for at most `kept_s` more, and dropped first if memory is short."""
        ...

    def cancel(self, document: Document) -> None:
        """End the translation, or delete the result; nothing where the document failed or was cancelled before."""
        ...


def result_name(name: str) -> str:
    """The name of a file's translation, which can have another ending."""
    path = PurePath(name)
    return f"{path.stem}{translated_ending(path.suffix.lower())}"
