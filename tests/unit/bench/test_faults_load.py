"""The load of the runs with faults: its counts, its texts, and the work of the engines."""

from itertools import islice

import pytest
from faults import load as loads
from faults.chaos import work_of
from faults.questions import KnownRequest, numbered, translated_twice
from faults.sending import Patience, RequestOutcome

from dragoman_service.text.guards import Expectation, check


async def test_outcomes_are_counted_for_their_phase(monkeypatch):
    outcomes = {
        "a": RequestOutcome(seconds=0.1),
        "b": RequestOutcome(lost="503"),
        "c": RequestOutcome(wrong="half", reconnected=2),
    }
    patience = Patience(attempts=4)

    async def send(client, question, ports, given):
        assert given is patience
        return outcomes[question.text]

    monkeypatch.setattr(loads, "send", send)
    load = loads.FaultLoad([1, 2], 1, patience)
    for phase, texts in {"calm": "ab", "SIGKILL": "c"}.items():
        load.begin(phase)
        for text in texts:
            await load.one(KnownRequest(text, "en", "de", ""), "steady")
    await load.finish()
    calm, killed = (phase.row() for phase in load.phases)
    counted = ("phase", "sent", "ok", "lost", "wrong", "reconnected")
    assert [calm[name] for name in counted] == ["calm", 2, 1, 1, 0, 0]
    assert [killed[name] for name in counted] == ["SIGKILL", 1, 0, 0, 1, 2]
    assert [trouble["why"] for trouble in calm["troubles"]["lost"]] == ["503"]
    assert calm["p50_s"] == 0.1
    assert killed["p50_s"] == 0


def test_no_text_is_sent_twice():
    first = list(islice(numbered(), 500))
    assert len({question.text for question in first}) == 500


def test_work_is_counted_by_text_and_pod(tmp_path):
    journal = tmp_path / "journal"
    # c is translated twice each time that it is begun, unless the pod is killed in between.
    journal.write_text("1\ta\n1\tb\n2\tb\n1\tb\n1\tc\n1\tc\n1\tcc\n2\tcc\n2\tcc\n1\td\n1\td\n")
    assert work_of(journal, lambda text: "c" in text) == {
        "texts": 5,
        "generations": 11,
        "again": 3,
        "again_elsewhere": 2,
        "most": 3,
    }


@pytest.mark.slow
def test_some_texts_are_translated_twice():
    first = list(islice(numbered(), 2000))
    found = [question for question in first if translated_twice(question.text)]
    assert 0 < len(found) < 200
    for question in found:
        assert check(question.text, question.expected, Expectation("en", question.target))
