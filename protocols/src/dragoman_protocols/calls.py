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


class Need(NamedTuple):
    """A source and the targets that one deployment has to serve.

    Args:
        source: BCP-47 tag in its canonical form; None where it has to be detected.
        targets: The same for the translations.
        texts: To detect the source by.
    """

    source: str | None
    targets: tuple[str, ...]
    texts: tuple[str, ...] = ()

    @property
    def characters(self) -> int:
        """Code points of the texts."""
        return sum(map(len, self.texts))


class Peek(NamedTuple):
    """What a router has to know of a translation request.

    Args:
        needs: What the deployment has to serve; empty: any deployment can answer.
        characters: What the request is charged for.
        sample: The beginning of a file, to detect its language by.
    """

    needs: tuple[Need, ...]
    characters: int
    model: str | None = None
    glossary_ids: tuple[str, ...] = ()
    sample: str = ""


NOTHING = Peek((), 0)
"""Of a request that needs no pair and is charged for nothing."""


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
        needs: What a deployment has to serve for it: what `Endpoint.peek` must find.
        events: Set where the one request's translation is to be streamed.
        glossary_ids: Glossaries whose terms the pod adds to the requests.
    """

    requests: tuple[TranslationRequest, ...]
    characters: int
    render: Callable[[Results], Answer]
    needs: tuple[Need, ...]
    events: Events | None = None
    glossary_ids: tuple[str, ...] = ()
    model: str | None = None

    def peek(self) -> Peek:
        """What a router must find in the same request."""
        return Peek(self.needs, self.characters, self.model, self.glossary_ids)


@dataclass(frozen=True, slots=True)
class TranslateFile:
    """A call for the translation of a file; see `Translate` for `needs` and `glossary_ids`.

    Args:
        name: Of the file; its ending names its kind.
        request: The options; without texts, which the pod reads in the file.
        render: Makes the answer of the `Document`; in the background that of the upload, else that of the result.
        sample: The beginning of the file, to detect its language by.
    """

    name: str
    content: bytes
    request: TranslationRequest
    needs: tuple[Need, ...]
    render: Callable[[Document], Answer]
    sample: str = ""
    glossary_ids: tuple[str, ...] = ()

    def peek(self) -> Peek:
        """What a router must find in the same request; the pod counts the characters."""
        return Peek(self.needs, 0, glossary_ids=self.glossary_ids, sample=self.sample)


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
