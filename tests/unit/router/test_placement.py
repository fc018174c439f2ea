"""Which deployments may answer a request that needs several pairs."""

from __future__ import annotations

from random import Random

import pytest

from dragoman_contract.languages import Languages
from dragoman_protocols.api import Need, Peek
from dragoman_protocols.errors import UnsupportedPairError
from dragoman_router.fleet.fleet import Fleet
from dragoman_router.fleet.queue import QueueLimits
from dragoman_router.http.placement import Catalogue, Placement, place
from dragoman_router.request import Request
from dragoman_router.routing.deployments import Deployment

SERVED: dict[str, dict[str, tuple[str, ...]]] = {
    "n/west": {"en": ("de", "it"), "fr": ("de",)},
    "n/east": {"en": ("de",), "pl": ("de",)},
    "n/south": {"es": ("it",)},
}


def detect(text: str, among: tuple[str, ...]) -> str:
    """A text names its language."""
    return text if text in among else "und"


async def placed(*needs: Need) -> Placement:
    fleet = Fleet(QueueLimits(), Random(1))
    for key, pairs in SERVED.items():
        languages = tuple(Languages(source=source, targets=targets) for source, targets in pairs.items())
        fleet.put(Deployment(key, languages))
    request = Request("POST", "/translate", b"", [])
    return await place(request, Peek(needs, 0), fleet, Catalogue(fleet), detect)


EN, FR, PL = Need("en", ("de",)), Need("fr", ("de",)), Need("pl", ("de",))


@pytest.mark.parametrize(
    ("needs", "keys", "reason", "detected"),
    [
        ((EN,), ("n/east", "n/west"), "pair", None),
        ((EN, FR), ("n/west",), "pair", None),
        ((EN, PL), ("n/east",), "pair", None),
        ((EN, Need(None, ("de",), ("fr",))), ("n/west",), "pair-detected", "fr"),
        (
            (Need(None, ("de",), ("en",)), Need(None, ("de", "de"), ("pl",))),
            ("n/east",),
            "pair-detected",
            "en,pl",
        ),
        ((Need(None, ("de",), ("?",)), PL), ("n/east",), "pair", None),
        ((PL, Need(None, ("it",), ("?",)), EN), (), "", None),
        ((Need(None, ("it",), ("?",)), Need(None, ("de",), ("?",))), ("n/west",), "undetected", None),
    ],
)
async def test_one_deployment_serves_all_needs(
    needs: tuple[Need, ...], keys: tuple[str, ...], reason: str, detected: str | None
) -> None:
    if keys:
        assert await placed(*needs) == Placement(keys, reason, detected)
        return
    with pytest.raises(UnsupportedPairError):
        await placed(*needs)


async def test_the_error_says_whether_the_pairs_are_served_apart() -> None:
    with pytest.raises(UnsupportedPairError, match="no single deployment serves fr to de; pl to de; ask for"):
        await placed(FR, PL)
    with pytest.raises(UnsupportedPairError, match="fr to de; fr to nl is not served here"):
        await placed(FR, Need("fr", ("nl",)))
