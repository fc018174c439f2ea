"""How requests for translations are read: pairs and size by the router, options as well by the pod."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from dragoman_protocols.bodies import read_json
from dragoman_protocols.messages import Request
from dragoman_protocols.offer import Offer
from dragoman_protocols.site import Site


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


def peek_of(need: Need) -> Peek:
    """Of one pair, whose texts are charged for once."""
    texts = need.texts
    return Peek((need,), len(texts[0]) if len(texts) == 1 else sum(map(len, texts)))


Shape = TypeVar("Shape")
Parsed = TypeVar("Parsed")
Whole = TypeVar("Whole")
Found = TypeVar("Found", covariant=True)


class Reading(Generic[Found]):
    """How the requests of an endpoint are read; each step raises `CallerError`.

    Router and pod find the same pairs and size in a request: both run `find`.

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
        """What the pod has to do."""
        whole = self._parse_all(request)
        return self._call(whole, self._find(whole, site.offer), site)


def json_of(shape: type[Shape]) -> Callable[[Request], Shape]:
    """Parses JSON bodies into a type."""
    decoder = msgspec.json.Decoder(shape)
    return lambda request: read_json(request.body, decoder)
