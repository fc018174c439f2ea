"""What a request is for: translations, the translation of a file, detection, or a chat."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from dragoman_protocols.chat import Chat
from dragoman_protocols.detection import Detection
from dragoman_protocols.documents import Document
from dragoman_protocols.errors import RequestError
from dragoman_protocols.messages import Answer
from dragoman_protocols.translation import Delta, TranslationRequest, TranslationResult

Results = Sequence[Sequence[TranslationResult]]
"""For each `TranslationRequest` of a call, its texts' results."""


class Events(Protocol):
    """Writes a streamed translation."""

    def delta(self, delta: Delta) -> bytes:
        """The events for a piece of a translation."""
        ...

    def end(self) -> bytes:
        """The events after the last piece."""
        ...

    def failed(self, error: RequestError) -> bytes:
        """The last event of a translation that cannot be finished."""
        ...


@dataclass(frozen=True, slots=True)
class Translate:
    """A call for translations.

    Args:
        requests: One, or one for each target language, done side by side; none where nothing is to be translated.
        characters: What it is charged for: code points of all texts, once for each target.
        render: Makes the answer of the results; linear in their length.
        events: Set where the one request's translation is to be streamed.
        glossary_ids: Glossaries whose terms the pod adds to the requests.
    """

    requests: tuple[TranslationRequest, ...]
    characters: int
    render: Callable[[Results], Answer]
    events: Events | None = None
    glossary_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TranslateFile:
    """A call for the translation of a file; see `Translate` for `glossary_ids`.

    Args:
        name: Of the file; its ending names its kind.
        request: The options; without texts, which the pod reads in the file.
        render: Makes the answer of the `Document`; in the background that of the upload, else that of the result.
    """

    name: str
    content: bytes
    request: TranslationRequest
    render: Callable[[Document], Answer]
    glossary_ids: tuple[str, ...] = ()


class Detect(NamedTuple):
    """A call for the languages of texts.

    Args:
        render: Makes the answer of what is found for each.
        among: Tags that come into question; empty: all.
    """

    texts: tuple[str, ...]
    render: Callable[[Sequence[Detection]], Answer]
    among: tuple[str, ...] = ()


Call = Translate | TranslateFile | Detect | Chat
