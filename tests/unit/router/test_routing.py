"""Where a request goes: properties of the pure decisions."""

import random
import time
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_contract.languages import Languages, serves
from dragoman_protocols.languages import fallbacks
from dragoman_router.http.proxy import FORM, traceparent
from dragoman_router.routing import health
from dragoman_router.routing.deployments import Deployment
from dragoman_router.routing.health import HEALTHY
from dragoman_router.routing.placement import Catalogue
from dragoman_router.routing.replicas import choose, pressure, split, weight
from dragoman_router.routing.retry import MAX_BROKEN, RESERVE, Failure, RetryBudget, may_retry

TAGS = st.sampled_from(["en", "de", "pt", "pt-BR", "zh", "zh-Hant", "zh-Hant-TW", "*"])
TAGS = st.sampled_from(["en", "EN", "de-AT", "pt-BR", "pt", "zh-Hant-TW", "zh-hant", "zh", "fr"])
LISTED = st.lists(
    st.builds(Languages, source=TAGS, targets=st.lists(TAGS, min_size=1, max_size=3).map(tuple)), max_size=3
).map(tuple)


def index(*deployments: Deployment) -> Catalogue:
    made = Catalogue()
    for deployment in deployments:
        made.put(deployment)
    return made


def deployment(key: str, *pairs: tuple[str, str]) -> Deployment:
    return Deployment(key, tuple(Languages(source=source, targets=(target,)) for source, target in pairs))


@given(st.lists(LISTED, max_size=5), TAGS, st.lists(TAGS, min_size=1, max_size=3).map(tuple))
def test_a_pair_is_found_exactly_where_the_contract_says_that_it_is_served(
    listed: list[tuple[Languages, ...]], source: str, targets: tuple[str, ...]
) -> None:
    found = index(*(Deployment(f"n/{at}", languages) for at, languages in enumerate(listed))).find(
        source, targets
    )
    serving = {
        f"n/{at}"
        for at, languages in enumerate(listed)
        if all(serves(languages, source, target) for target in targets)
    }
    assert set(found.keys) <= serving
    assert bool(found.keys) == bool(serving)


@given(st.lists(LISTED, min_size=1, max_size=4), st.data())
def test_an_index_that_changed_is_as_one_made_anew(
    listed: list[tuple[Languages, ...]], data: st.DataObject
) -> None:
    made = [Deployment(f"n/{at}", languages) for at, languages in enumerate(listed)]
    changed = index(*made)
    key = data.draw(st.sampled_from(made)).key
    changed.put(Deployment(key, data.draw(LISTED)))
    changed.find("en", ("de",))
    changed.remove(key)
    fresh = index(*(each for each in made if each.key != key))
    wanted = data.draw(TAGS), (data.draw(TAGS),)
    assert changed.find(*wanted) == fresh.find(*wanted)
    assert changed.sources(wanted[1]) == fresh.sources(wanted[1])


@pytest.mark.parametrize(
    ("wanted", "keys", "kind"),
    [
        (("en", ("de",)), ("n/exact",), "pair"),
        (("en-GB", ("de",)), ("n/exact",), "language"),
        (("en", ("de-AT",)), ("n/exact",), "language"),
        (("fr", ("de",)), ("n/into-de",), "wildcard"),
        (("fr", ("it",)), ("n/any",), "wildcard"),
        (("en", ("de", "it")), ("n/any",), "wildcard"),
    ],
)
def test_the_closest_wins(wanted: tuple[str, tuple[str, ...]], keys: tuple[str, ...], kind: str) -> None:
    found = index(
        deployment("n/exact", ("en", "de")), deployment("n/into-de", ("*", "de")), Deployment("n/any")
    ).find(*wanted)
    assert (found.keys, found.kind) == (keys, kind)


@given(
    st.lists(LISTED, max_size=5),
    st.lists(st.tuples(TAGS, st.lists(TAGS, min_size=1, max_size=2).map(tuple)), min_size=1, max_size=3),
)
def test_several_sources_are_found_where_one_deployment_serves_them_all(
    listed: list[tuple[Languages, ...]], pairs: list[tuple[str, tuple[str, ...]]]
) -> None:
    found = index(*(Deployment(f"n/{at}", languages) for at, languages in enumerate(listed))).find_all(pairs)
    serving = {
        f"n/{at}"
        for at, languages in enumerate(listed)
        if all(serves(languages, source, target) for source, targets in pairs for target in targets)
    }
    assert set(found.keys) <= serving
    assert bool(found.keys) == bool(serving)


def test_of_several_pairs_the_worst_decides() -> None:
    both = index(
        deployment("n/any", ("en", "de"), ("*", "it")), deployment("n/exact", ("en", "de"), ("fr", "it"))
    )
    found = both.find_all([("en", ("de",)), ("fr", ("it",))])
    assert (found.keys, found.kind) == (("n/exact",), "pair")
    assert both.find_all([("en", ("de",)), ("es", ("it",))]).kind == "wildcard"
    assert both.find_all([("en", ("de",)), ("fr", ("de",))]).keys == ()


def test_a_region_is_preferred_to_its_language() -> None:
    both = index(deployment("n/pt", ("en", "pt")), deployment("n/br", ("en", "pt-BR")))
    assert both.find("en", ("pt-BR",)).keys == ("n/br",)
    assert both.find("en", ("pt-PT",)).keys == ("n/pt",)
    assert both.find("en", ("pt",)).keys == ("n/pt",)


def test_a_language_is_detected_only_where_it_decides() -> None:
    same = index(deployment("n/a", ("en", "de")), deployment("n/b", ("en", "de")))
    assert not same.sources(("de",)).decisive
    differ = index(deployment("n/a", ("en", "de")), deployment("n/b", ("fr", "de")))
    assert differ.sources(("de",)).decisive
    assert differ.sources(("de",)).tags == ("en", "fr")
    assert differ.sources(("it",)).keys == ()


def test_tags_fall_back_from_the_right() -> None:
    assert fallbacks("zh-Hant-TW") == [("zh-hant-tw", 0), ("zh-hant", 1), ("zh", 2), ("*", -1)]


@dataclass
class Load:
    in_flight: int
    limit: float = 1e9
    weight: float = 1.0


LOADS = st.lists(
    st.builds(Load, in_flight=st.integers(0, 20), weight=st.floats(0.05, 1)), min_size=1, max_size=40
)
CHANCE = st.floats(0, 0.9999999)


@given(LOADS, st.integers(1, 20), CHANCE, CHANCE)
def test_a_replica_is_found_exactly_while_one_is_not_full(
    loads: list[Load], most: int, a: float, b: float
) -> None:
    at = choose(loads, most, a, b)
    assert (at is None) == all(each.in_flight >= most for each in loads)
    if at is not None:
        assert loads[at].in_flight < most


@given(LOADS.filter(lambda loads: len(loads) <= 16), CHANCE, CHANCE)
def test_of_few_replicas_the_least_pressed_is_chosen(loads: list[Load], a: float, b: float) -> None:
    at = choose(loads, 1000, a, b)
    assert at is not None
    assert pressure(loads[at]) == min(map(pressure, loads))


def test_two_choices_keep_many_replicas_even() -> None:
    chance = random.Random(7)
    loads = [Load(0) for _ in range(100)]
    for _ in range(10_000):
        at = choose(loads, 1000, chance.random(), chance.random())
        assert at is not None
        loads[at].in_flight += 1
    assert max(each.in_flight for each in loads) - min(each.in_flight for each in loads) <= 12


@given(st.lists(st.tuples(st.integers(0, 1000), st.booleans()), min_size=1, max_size=6), CHANCE)
def test_a_share_goes_to_who_can_take_it(shares: list[tuple[int, bool]], chance: float) -> None:
    weights, able = [each[0] for each in shares], [each[1] for each in shares]
    at = split(weights, able, chance)
    assert (at is None) == (sum(weights) == 0)
    if at is not None:
        assert weights[at] > 0
        if any(share and each for share, each in zip(weights, able, strict=True)):
            assert able[at]


def test_shares_are_kept() -> None:
    chance = random.Random(3)
    counts = [0, 0]
    for _ in range(20_000):
        at = split([95, 5], [True, True], chance.random())
        assert at is not None
        counts[at] += 1
    assert counts[1] == pytest.approx(1000, rel=0.15)


def test_a_new_replica_works_up_to_its_share_and_an_erring_one_loses_it() -> None:
    assert weight(0, 0) < weight(5, 0) < weight(10, 0) == weight(1e9, 0) == 1
    assert weight(1e9, 0.5) == 0.25
    assert weight(0, 1) > 0


def test_errors_in_a_row_eject_unless_it_is_the_last() -> None:
    found = kept = HEALTHY
    for _ in range(health.ERRORS_IN_A_ROW):
        found, kept = health.after_error(found, last=False), health.after_error(kept, last=True)
    assert found.ejected
    assert not kept.ejected
    assert health.after_refusal(HEALTHY).ejected
    probes = [found := health.after_probe(found, answered=False) for _ in range(12)]
    assert [each.probe_in_s for each in probes] == sorted(each.probe_in_s for each in probes)
    assert probes[-1].probe_in_s == health.MAX_PROBE_S
    assert not health.after_probe(found, answered=True).ejected


@given(st.lists(st.booleans(), max_size=300))
def test_retries_of_real_work_stay_within_their_share(requests: list[bool]) -> None:
    budget, retried = RetryBudget(0), 0
    for count, fails in enumerate(requests, 1):
        if fails:
            retried += may_retry(Failure.CONNECTION_LOST, 1, budget, count, 0, 1)
    assert retried <= RESERVE + 0.2 * len(requests)


def test_what_costs_no_work_is_free_of_the_budget() -> None:
    budget = RetryBudget(0)
    while budget.withdraw(0, 0):
        pass
    assert may_retry(Failure.CONNECT_FAILED, 0, budget, 0, 0, 1)
    assert may_retry(Failure.REFUSED, 0, budget, 0, 0, 1)
    assert not may_retry(Failure.CONNECTION_LOST, 1, budget, 0, 0, 1)
    assert not may_retry(Failure.CONNECT_FAILED, 0, budget, 0, 2, 1), "the deadline passed"
    assert not may_retry(Failure.CONNECTION_LOST, MAX_BROKEN, RetryBudget(0), 0, 0, 1)
    assert may_retry(Failure.CONNECTION_LOST, 1, budget, 0, 1, 2), "it fills with time"


@given(st.binary(max_size=80))
def test_a_trace_is_always_valid(given: bytes) -> None:
    assert FORM.fullmatch(traceparent(given, random.Random(1)))


def test_a_valid_trace_is_kept() -> None:
    given = b"00-" + b"1" * 32 + b"-" + b"2" * 16 + b"-01"
    assert traceparent(given, random.Random(1)) == given


@pytest.mark.slow
def test_a_decision_among_ten_thousand_replicas_takes_microseconds() -> None:
    """A bound with a wide margin, against a change of its order of growth: 4 µs are usual."""
    languages = ["en", "de", "fr", "es", "it", "pt", "nl", "pl", "cs", "ne"]
    made = index(
        *(
            deployment(
                f"n/{at}", *((source, f"{target}-x{at}") for source in languages for target in languages)
            )
            for at in range(500)
        )
    )
    loads = [Load(at % 7) for at in range(20)]
    began_s = time.process_time()
    for at in range(500):
        assert made.find("en", (f"de-x{at}",)).keys == (f"n/{at}",)
        choose(loads, 100, 0.3, 0.7)
    assert (time.process_time() - began_s) / 500 < 0.002
