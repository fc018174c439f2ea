"""Which deployments may answer a request that needs several pairs."""

import pytest

from dragoman_contract.languages import Languages
from dragoman_protocols.calls import Need, Peek
from dragoman_protocols.errors import UnsupportedPairError
from dragoman_router.routing.deployments import Deployment
from dragoman_router.routing.placement import CACHED_TARGETS, Catalogue, Placement, Undetected, place

SERVED: dict[str, dict[str, tuple[str, ...]]] = {
    "n/west": {"en": ("de", "it"), "fr": ("de",)},
    "n/east": {"en": ("de",), "pl": ("de",)},
    "n/south": {"es": ("it",)},
}


def placed(*needs: Need) -> Placement:
    """The placement; each text names its language."""
    catalogue = Catalogue()
    for key, pairs in SERVED.items():
        languages = tuple(Languages(source=source, targets=targets) for source, targets in pairs.items())
        catalogue.put(Deployment(key, languages))
    found = place(None, Peek(needs, 0), catalogue)
    if isinstance(found, Undetected):
        tags = [text if text in possible else "und" for text, possible, _ in found.samples]
        found = place(None, Peek(needs, 0), catalogue, tags)
    assert isinstance(found, Placement)
    return found


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
def test_one_deployment_serves_all_needs(
    needs: tuple[Need, ...], keys: tuple[str, ...], reason: str, detected: str | None
) -> None:
    if keys:
        assert placed(*needs) == Placement(keys, reason, detected)
        return
    with pytest.raises(UnsupportedPairError):
        placed(*needs)


def test_the_error_says_whether_the_pairs_are_served_apart() -> None:
    with pytest.raises(
        UnsupportedPairError, match="no single deployment serves fr to de; pl to de; send one"
    ):
        placed(FR, PL)
    with pytest.raises(UnsupportedPairError, match="fr to de; fr to nl is not served here"):
        placed(FR, Need("fr", ("nl",)))


def test_served_model_names_follow_their_deployments() -> None:
    catalogue = Catalogue()
    catalogue.put(Deployment("n/a", served_name="m"))
    catalogue.put(Deployment("n/b", served_name="m", weight=0))
    assert (catalogue.named("m"), catalogue.named("n/b"), catalogue.models()) == (
        ["n/a", "n/b"],
        ["n/b"],
        ("m",),
    )
    assert catalogue.find("en", ("de",)).keys == ("n/a",)
    catalogue.put(Deployment("n/a", served_name="other"))
    catalogue.remove("n/b")
    assert (catalogue.named("m"), catalogue.models()) == ([], ("other",))


def test_no_match_of_a_long_list_of_targets_is_cached() -> None:
    catalogue = Catalogue()
    catalogue.put(Deployment("default/a"))
    catalogue.find("en", tuple(f"a{letter}" for letter in "abcdefghijklmnopqrstuvwxyz"))
    assert not catalogue._matches
    catalogue.find("en", ("de",) * CACHED_TARGETS)
    assert len(catalogue._matches) == 1
