"""Measurements of starts: their order, their budget, and the table."""

import pytest

from dragoman_bench.starts.figures import (
    COLD,
    FIRST,
    SIBLING,
    WARM,
    Start,
    durations,
    has_time,
    logged,
    plan,
    table,
)


def test_rounds_have_every_variant_in_turn() -> None:
    names = [start.name for start in plan(2, [COLD, SIBLING], ["fastsafetensors"])]
    assert names == ["first", *["sibling", "sibling, fastsafetensors", "cold"] * 2]
    assert [start.name for start in plan(2, [WARM], [])] == ["first", "warm", "warm"]


@pytest.mark.parametrize(
    ("start", "left_s", "fits"),
    [
        (Start(COLD), None, True),
        (Start(COLD), 95.0, False),
        (Start(SIBLING), 95.0, True),
        (Start(SIBLING), 35.0, False),
        (Start(FIRST), 85.0, False),
    ],
)
def test_a_start_begins_only_if_it_fits_into_the_budget(
    start: Start, left_s: float | None, fits: bool
) -> None:
    done = [{"variant": COLD, "took_s": 100.0}, {"variant": SIBLING, "took_s": 40.0}]
    assert has_time(start, left_s, done) is fits


def test_the_first_start_always_begins() -> None:
    assert has_time(Start(FIRST), 1.0, [])


def test_seconds_are_read_from_vllms_log() -> None:
    text = (
        "Loading weights took 0.61 seconds\nModel loading took 3.3 GiB memory and 1.25 seconds\n"
        "torch.compile takes 22.41 s in total\nGraph capturing finished in 9 secs, took 0.5 GiB\n"
        "init engine (profile, create kv cache, warmup model) took 33.79 seconds\n"
        "Applying persisted startup plan (fingerprint a)\n"
    )
    assert logged(text) == {
        "weights_s": 0.61,
        "model_s": 1.25,
        "compile_s": 22.41,
        "graphs_s": 9.0,
        "engine_s": 33.79,
        "profile_skipped": True,
    }
    assert logged("") == {"profile_skipped": False}


def test_the_table_has_medians_and_failures() -> None:
    def entry(variant: str, ready_s: float) -> dict[str, object]:
        phases_s = {"starting": 0.0, "loading": ready_s / 2, "ready": ready_s}
        common = {"name": variant, "variant": variant, "answer_s": ready_s + 1, "start_cache": "taken"}
        return {**common, "ready_s": ready_s, "phases_s": phases_s, "logged": {"weights_s": 1.0}}

    failed = {"name": COLD, "variant": COLD, "failed": "OSError: x", "logged": {}}
    document = {"starts": [entry(SIBLING, 10.0), entry(SIBLING, 30.0), entry(SIBLING, 12.0), failed]}
    head, _, sibling, cold = (
        [cell.strip() for cell in line.split("|")[1:-1]] for line in table(document).splitlines()
    )
    assert head[:8] == [
        *("start", "n", "ready s", "min to max", "first answer s", "cache"),
        *("starting", "loading"),
    ]
    assert sibling[:9] == ["sibling", "3", "12.0", "10.0 to 30.0", "13.0", "taken", "6.0", "6.0", "1.0"]
    assert cold[:2] == ["cold", "0, 1 failed"]


def test_phases_last_until_the_next_one() -> None:
    assert durations({"starting": 0.0, "loading": 2.5, "ready": 7.0}) == {"starting": 2.5, "loading": 4.5}
