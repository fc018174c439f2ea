"""What a program that answers requests has: its offer, its limits, and the use of the caller's key."""

from __future__ import annotations

from dataclasses import dataclass

from dragoman_protocols.errors import InvalidFieldError
from dragoman_protocols.fleet import ObservedFleet
from dragoman_protocols.offer import Offer


@dataclass(frozen=True, slots=True)
class Limits:
    """What one request may have; `max_texts` None: no limit of this program's own."""

    max_texts: int | None
    max_body_bytes: int

    def check_texts(self, texts: int, most: int | None = None) -> None:
        """Keep to the maximum number of texts, and to the API's own.

        Raises:
            InvalidFieldError: There are more.
        """
        limit = self.max_texts
        if most is not None and (limit is None or most < limit):
            limit = most
        if limit is not None and texts > limit:
            raise InvalidFieldError(f"{texts} texts in one request; send at most {limit}")


@dataclass(frozen=True, slots=True)
class Usage:
    """Characters that a key has used, and its limit; None: there is none."""

    characters: int
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class Site:
    """What the program that answers has to offer: a pod its own model, a router all deployments.

    Args:
        ready: Whether translations are possible now.
        usage: Of the caller's key, or the pod's own count.
        page: Whether the web page is served.
        sees_fleet: Whether the caller may see the fleet view.
        fleet: For the fleet view, where it is requested; None: there is none.
    """

    offer: Offer
    models: tuple[str, ...]
    limits: Limits
    keys_required: bool = False
    ready: bool = True
    usage: Usage = Usage(0)
    page: bool = True
    sees_fleet: bool = False
    fleet: ObservedFleet | None = None
