"""What requests are for: translations, the translation of a file, detection; and how they are read.

A router reads pairs and size, a pod the options as well. `chat.py` has the call for a chat.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import msgspec

from dragoman_contract.routing import ROUTER_HEADER
from dragoman_protocols.bodies import read_json
from dragoman_protocols.detection import Detection
from dragoman_protocols.documents import Document
from dragoman_protocols.errors import CallerError, RequestError
from dragoman_protocols.messages import Answer, Request
from dragoman_protocols.offer import Offer
from dragoman_protocols.served import Need, model_not_found, refusal
from dragoman_protocols.site import Site
from dragoman_protocols.translation import Delta, TranslationRequest, TranslationResult

ROUTER = ROUTER_HEADER.lower().encode()

EQUAL = "Source and target language are equal."
"""DeepL's error for a file in the target language."""

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
        deliver: Makes the answer that is the translated file itself, which is not kept then; not in the background.
        refused_source: The translation fails if the file is detected to be in this language; None: in none.
    """

    name: str
    content: bytes
    request: TranslationRequest
    render: Callable[[Document], Answer]
    glossary_ids: tuple[str, ...] = ()
    deliver: Callable[[Document, bytes], Answer] | None = None
    refused_source: str | None = None


class Detect(NamedTuple):
    """A call for the languages of texts.

    Args:
        render: Makes the answer of what is found for each.
    """

    texts: tuple[str, ...]
    render: Callable[[Sequence[Detection]], Answer]


class Peek(NamedTuple):
    """What a router has to know of a translation request.

    Args:
        needs: What the deployment has to serve; empty: any deployment can answer.
        characters: What the request is charged for.
        model: Name of the deployment, where the request has one.
        glossary_ids: Glossaries that the request names.
        sample: The beginning of a file, to detect its language by.
    """

    needs: tuple[Need, ...]
    characters: int
    model: str | None = None
    glossary_ids: tuple[str, ...] = ()
    sample: str = ""


NOTHING = Peek((), 0)
"""Of a request that needs no pair and is charged for nothing."""


def peek_of(need: Need, model: str | None = None, glossary_ids: tuple[str, ...] = ()) -> Peek:
    """Of one pair, whose texts are charged for once."""
    texts = need.texts
    characters = len(texts[0]) if len(texts) == 1 else sum(map(len, texts))
    return Peek((need,), characters, model, glossary_ids)


Shape = TypeVar("Shape")
Parsed = TypeVar("Parsed")
Whole = TypeVar("Whole")
Found = TypeVar("Found", covariant=True)


class Reading(Generic[Found]):
    """How the requests of an endpoint are read; each step raises `CallerError`.

    Router and pod find the same pairs and size in a request, and the same errors: both run `find`, then `served`.

    Args:
        parse: Parses what `find` takes and ignores all else: a router must not refuse options of a newer pod.
        find: The pairs and the size of a parsed request.
        call: What the pod has to do: of the request parsed with its options, and of what `find` found.
        parse_all: Parses the options as well, into a subtype of what `parse` returns; None: `parse` does.
    """

    def __init__(
        self,
        parse: Callable[[Request], Parsed],
        find: Callable[[Parsed, Offer], Peek],
        call: Callable[[Whole, Peek, Site], Found],
        parse_all: Callable[[Request], Whole] | None = None,
    ) -> None:
        self._parse, self._find, self._call = parse, find, call
        self._parse_all: Callable[[Request], Any] = parse if parse_all is None else parse_all

    def peek(self, request: Request, offer: Offer) -> Peek:
        """The pairs and the size of a request."""
        return self._find(self._parse(request), offer)

    def read(self, request: Request, site: Site) -> Found:
        """What the pod has to do; of several errors the one that a router finds first."""
        try:
            whole = self._parse_all(request)
            found = self._find(whole, site.offer)
            _check(found, request, site)
            return self._call(whole, found, site)
        except CallerError:
            _check(self.peek(request, site.offer), request, site)
            raise


def _check(found: Peek, request: Request, site: Site) -> None:
    """Refuse a model that is not there, and languages that are not served."""
    # A router has chosen the deployment, which may have another name there.
    if found.model is not None and found.model not in site.models and request.header(ROUTER) is None:
        raise model_not_found(found.model, site.models)
    error = refusal(found.needs, site.offer)
    if error is not None:
        raise error


def json_of(shape: type[Shape]) -> Callable[[Request], Shape]:
    """Parses JSON bodies into a type."""
    decoder = msgspec.json.Decoder(shape)
    return lambda request: read_json(request.body, decoder)
