import pytest

from dragoman_contract.languages import Languages
from dragoman_protocols.errors import UnknownLanguageError, UnsupportedPairError
from dragoman_protocols.languages import language
from dragoman_protocols.offer import Offer, offer_of
from dragoman_protocols.served import Need, pair_of, refusal, refusal_of

OFFER = offer_of(
    [(Languages(source="en", targets=("de", "pt-BR", "zh-Hans")), Languages(source="de", targets=("en",)))]
)
EVERY = offer_of([()])


@pytest.mark.parametrize(("source", "target"), [("en", "de"), ("en-GB", "de"), ("EN", "pt-br"), ("de", "en")])
def test_a_listed_pair_is_served(source: str, target: str) -> None:
    found = pair_of(source, target, OFFER)
    assert (found.source, found.target, found.kept) == (language(source), language(target), False)
    assert refusal_of(source, target, OFFER, keeps=False) is None


@pytest.mark.parametrize(
    ("source", "target", "message", "tag", "side"),
    [
        ("en", "fr", "en to fr is not served here; targets are de, pt-BR, zh-Hans, en", "fr", "target"),
        ("en", "pt", "en to pt is not served here; targets are de, pt-BR, zh-Hans, en", "pt", "target"),
        ("fr", "de", "fr to de is not served here; sources are en, de", "fr", "source"),
        ("fr", "ja", "fr to ja is not served here; sources are en, de", "fr", "source"),
        ("de-AT", "pt-BR", "de-AT to pt-BR is not served here; de-AT is translated into en", "pt-BR", "pair"),
        (None, "fr", "auto to fr is not served here; targets are de, pt-BR, zh-Hans, en", "fr", "target"),
        ("de", "de", "source_lang and target_lang are both de", "de", "pair"),
    ],
)
def test_another_pair_is_refused_with_what_is_served(
    source: str | None, target: str, message: str, tag: str, side: str
) -> None:
    error = refusal_of(source, target, OFFER, keeps=False)
    assert isinstance(error, UnsupportedPairError)
    assert (str(error), error.tag, error.side) == (message, tag, side)


@pytest.mark.parametrize(("source", "target", "side"), [("xx", "de", "source"), ("qq", "xx", "source")])
@pytest.mark.parametrize("offer", [OFFER, EVERY])
def test_what_is_no_language_is_unknown_rather_than_not_served(
    source: str, target: str, side: str, offer: Offer
) -> None:
    wanted: list[tuple[str | None, str, str]] = [
        (source, target, side),
        (None, source, "target"),
        ("en", "qaa", "target"),
    ]
    for found, into, expected in wanted:
        error = refusal_of(found, into, offer, keeps=True)
        assert isinstance(error, UnknownLanguageError)
        assert error.side == expected


@pytest.mark.parametrize(
    ("source", "target", "kept"),
    [
        ("en", "en", True),
        ("en", "en-US", True),
        ("en-GB", "en-US", True),
        ("zh", "zh-Hans", True),
        ("zh-Hant", "zh-Hans", False),
        ("sr-Latn", "sr-Cyrl", False),
    ],
)
def test_a_text_in_the_target_language_is_kept_where_the_api_does(
    source: str, target: str, kept: bool
) -> None:
    served = offer_of([(Languages(source="de", targets=(target, source)),)])
    assert (refusal_of(source, target, served, keeps=True) is None) is kept
    assert isinstance(refusal_of(source, target, served, keeps=False), UnsupportedPairError)
    if kept:
        assert pair_of(source, target, served).kept


def test_a_pair_of_variants_that_is_served_is_translated() -> None:
    assert not pair_of("en-GB", "en-US", EVERY).kept
    assert pair_of("en-US", "en-us", EVERY).kept


def test_the_first_pair_that_is_not_served_is_named() -> None:
    needs = [Need("en", ("de", "pt-BR")), Need("de", ("en", "fr", "xx"))]
    assert str(refusal(needs, OFFER)).startswith("de to fr is not served")
    assert refusal(needs[:1], OFFER) is None


def test_a_refusal_is_short() -> None:
    tags = tuple(
        f"{language}-{region}" for language in ("de", "fr", "es") for region in ("AT", "CH", "BE", "LU", "CA")
    )
    many = offer_of([tuple(Languages(source=tag, targets=tags) for tag in tags)])
    assert len(str(refusal_of("ja", "ko", many, keeps=False))) < 200
    assert len(str(refusal_of("de-AT", "ko", many, keeps=False))) < 200


def test_nothing_is_served_without_a_deployment() -> None:
    error = refusal_of("en", "de", offer_of([]), keeps=True)
    assert str(error) == "en to de is not served here: there is no deployment"


def test_a_deprecated_tag_is_served_under_either_name() -> None:
    assert pair_of("iw", "en", offer_of([(Languages(source="he", targets=("en",)),)])).source.tag == "he"
    assert pair_of("iw", "en", offer_of([(Languages(source="iw", targets=("en",)),)])).source.tag == "he"
