"""Which deployments may answer a request that needs several pairs."""

import pytest

from dragoman_contract.languages import Languages
from dragoman_protocols.calls import Peek
from dragoman_protocols.errors import ModelNotFoundError, UnsupportedPairError
from dragoman_protocols.served import Need
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
        UnsupportedPairError, match="no single deployment serves fr to de, pl to de; send one"
    ):
        placed(FR, PL)
    with pytest.raises(UnsupportedPairError, match="fr to nl is not served here; targets are"):
        placed(FR, Need("fr", ("nl",)))


def test_texts_that_stay_as_they_are_need_no_deployment_of_their_pair() -> None:
    assert placed(Need("ja", ("ja",), keeps=True)).keys == ("n/east", "n/south", "n/west")
    assert placed(Need("en", ("en-US", "it"), keeps=True)).keys == ("n/west",)
    with pytest.raises(UnsupportedPairError, match="both ja"):
        placed(Need("ja", ("ja",)))
    with pytest.raises(UnsupportedPairError, match="en to ja is not served"):
        placed(Need("en", ("en", "ja"), keeps=True))


def test_targets_without_a_common_source_are_left_to_the_pod_that_serves_each() -> None:
    catalogue = Catalogue()
    both = (Languages(source="en", targets=("de",)), Languages(source="de", targets=("en",)))
    catalogue.put(Deployment("n/both", both))
    assert place(None, Peek((Need(None, ("de", "en"), ("Hello",)),), 0), catalogue) == Placement(
        ("n/both",), "undetected"
    )
    catalogue.put(Deployment("n/it", (*both, Languages(source="en", targets=("it",)))))
    catalogue.put(Deployment("n/fr", (Languages(source="fr", targets=("de", "en")),)))
    need = Need(None, ("de", "en"), ("Hello",))
    assert place(None, Peek((need,), 0), catalogue) == Undetected(
        (("Hello", ("de", "en", "fr"), ("de", "en")),)
    )
    assert place(None, Peek((need,), 0), catalogue, ["en"]) == Placement(
        ("n/both", "n/it"), "pair-detected", "en"
    )
    undetected = place(None, Peek((need,), 0), catalogue, ["und"])
    assert undetected == Placement(("n/both", "n/fr", "n/it"), "undetected")


def test_a_named_deployment_has_one_model() -> None:
    catalogue = Catalogue()
    catalogue.put(Deployment("n/a", served_name="m"))
    catalogue.put(Deployment("n/b", served_name="other"))
    for name in ("m", "n/a"):
        assert place("n/a", Peek((), 0, model=name), catalogue) == Placement(("n/a",), "named")
    with pytest.raises(ModelNotFoundError, match="no model 'other' here; there is 'm'"):
        place("n/a", Peek((), 0, model="other"), catalogue)


def test_a_model_without_weight_gets_the_requests_that_name_it() -> None:
    catalogue = Catalogue()
    catalogue.put(Deployment("n/a", (Languages(source="en", targets=("de",)),), served_name="m", weight=0))
    catalogue.put(Deployment("n/b", served_name="other"))
    assert place(None, Peek((EN,), 0, model="m"), catalogue) == Placement(("n/a",), "named")
    with pytest.raises(UnsupportedPairError, match="sources are en"):
        place(None, Peek((FR,), 0, model="m"), catalogue)


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
