"""The pod's own API, as httpx asks it."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from dragoman import translate

PAIR = {"source_lang": "en", "target_lang": "fr"}
TWO = "The bus leaves at 10:45. The farmer likes fish."
ZWEI = "Le bus part à 10 h 45. L'agriculteur aime le poisson."


def events_of(answer: httpx.Response) -> list[tuple[str, Any]]:
    """Name and data of each event."""
    found = []
    for block in "".join(answer.iter_text()).split("\n\n"):
        if block:
            name, data = block.split("\n")
            found.append((name.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
    return found


def test_one_text_and_a_list(demo_pod: Any) -> None:
    one = demo_pod.client.post("/translate", json={"text": "The cat sleeps.", **PAIR})
    assert one.json() == {"translation": "Le chat dort."}
    several = demo_pod.client.post("/translate", json={"text": ["The cat sleeps.", TWO], **PAIR})
    assert several.json() == {"translation": ["Le chat dort.", ZWEI]}


def test_a_translation_memory(scripted_pod: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    unit = {"source": "Tea, please.", "target": "Tee, bitte."}
    body = {"text": ["abc. Tea,  please.", "def"], "source_lang": "en", "target_lang": "de", "details": True}
    answer = scripted_pod.client.post("/translate", json=body | {"memory": [unit]}).json()
    assert answer["translation"] == [".cba Tee, bitte.", "fed"]
    assert [each.get("from_memory") for each in answer["details"]] == [1, None]
    file = tmp_path / "memory.tmx"
    segments = "".join(
        f'<tuv xml:lang="{lang}"><seg>{unit[role]}</seg></tuv>'
        for lang, role in (("en", "source"), ("de", "target"))
    )
    file.write_text(f"<tmx><tu>{segments}</tu></tmx>")
    arguments = ["--url", scripted_pod.url, "--to", "de", "--memory", str(file)]
    assert translate.main([*arguments, "abc. Tea, please.", "def"]) == 0
    printed = capsys.readouterr()
    assert printed.out == ".cba Tee, bitte.\nfed\n"
    assert "segments from the memory: 1" in printed.err
    document = tmp_path / "page.html"
    document.write_text("<p>abc. Tea, please.</p><p>Tea, <b>please</b>.</p>")
    assert (
        translate.main([*arguments, "--file", str(document), "--output", str(tmp_path / "seite.html")]) == 0
    )
    # The scripted engine keeps tags where they are.
    assert "<p>.cba Tee, bitte.</p>" in (tmp_path / "seite.html").read_text()
    assert "segments from the memory: 1" in capsys.readouterr().err


@pytest.mark.parametrize("auto", [{}, {"source_lang": "auto"}])
def test_the_language_is_detected_text_by_text(demo_pod: Any, auto: dict[str, str]) -> None:
    texts = ["Claire schläft, weil sie müde ist.", "Où est la piscine ?"]
    answer = demo_pod.client.post("/translate", json={"text": texts, "target_lang": "en"} | auto).json()
    assert answer["translation"] == [
        "Claire is sleeping because she is tired.",
        "Where is the swimming pool?",
    ]
    assert [each["source_lang"] for each in answer["details"]] == ["de", "fr"]
    assert all(0 < each["confidence"] <= 1 for each in answer["details"])


def test_alternatives(demo_pod: Any) -> None:
    requested = {"text": "The cat sleeps.", "alternatives": 2, **PAIR}
    answer = demo_pod.client.post("/translate", json=requested).json()
    assert answer["translation"] == "Le chat dort."
    found = answer.get("details", [{"alternatives": []}])[0]["alternatives"]
    assert len(found) <= 2
    assert "Le chat dort." not in found


def test_details(demo_pod: Any) -> None:
    requested = {"text": TWO, "details": True, "split": "sentences", **PAIR}
    answer = demo_pod.client.post("/translate", json=requested).json()
    assert answer["translation"] == ZWEI
    (details,) = answer["details"]
    assert details["source_lang"] == "en"
    assert details["segments"] == 2
    assert details["output_tokens"] > 0


def test_a_stream_gives_sentence_by_sentence_and_then_the_whole(demo_pod: Any) -> None:
    requested = {"text": [TWO, "The cat sleeps."], "stream": True, **PAIR}
    with demo_pod.client.stream("POST", "/translate", json=requested) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert answer.headers["cache-control"] == "no-store"
        *deltas, (last, whole) = events_of(answer)
    assert {name for name, _ in deltas} == {"delta"}
    assert last == "result"
    assert whole["translation"] == [ZWEI, "Le chat dort."]
    for index in (0, 1):
        pieces = [delta["text"] for _, delta in deltas if delta["index"] == index]
        assert "".join(pieces) == whole["translation"][index]
    assert len([delta for _, delta in deltas if delta["index"] == 0]) >= 2


def test_an_error_before_the_first_event_is_a_status(demo_pod: Any) -> None:
    for fields, status in (({"target_lang": "ja"}, 422), ({"text": " "}, 400), ({"text": 3}, 422)):
        answer = demo_pod.client.post("/translate", json={"text": TWO, **PAIR, "stream": True} | fields)
        assert answer.status_code == status
        assert answer.headers["content-type"] == "application/json"


def test_an_error_after_the_first_event_is_one(start_served: Any) -> None:
    pod = start_served("--request-timeout-s", "2", "--max-num-seqs", "1", first_token_s=0.8)
    pod.wait_for("/readyz")
    requested = {"text": "One is here. Two is there. Three is gone. Four is left.", "stream": True, **PAIR}
    with pod.client.stream("POST", "/translate", json=requested) as answer:
        assert answer.status_code == 200
        found = events_of(answer)
    assert found[0][0] == "delta"
    name, data = found[-1]
    assert (name, data["error"]["code"]) == ("error", "timeout")
    pod.wait_for_metric("vllm:num_requests_running", 0)


def test_a_client_that_leaves_a_stream_frees_its_places(start_served: Any) -> None:
    pod = start_served(first_token_s=0.3, token_s=0.5)
    pod.wait_for("/readyz")
    # Each sentence takes 20 s, twice the deadline of the waits below: only an abort ends them in time.
    long = " ".join(f"Sentence {number} is a {'very ' * 30}long one." for number in range(4))
    requested = {"text": ["One is here.", long], "stream": True, **PAIR}
    with pod.client.stream("POST", "/translate", json=requested) as answer:
        pieces = answer.iter_bytes()  # held on to: httpx closes the connection with it
        next(pieces)
        assert pod.metric("vllm:num_requests_running") > 0
    pod.wait_for_metric("vllm:num_requests_running", 0)
    pod.wait_for_metric("dragoman_requests_in_flight", 0)


def test_options_reach_the_model_or_are_refused(demo_pod: Any) -> None:
    text = "Ask <b>{name}</b> &amp; call."
    requested = {"text": text, "format": "html", "details": True, **PAIR}
    answer = demo_pod.client.post("/translate", json=requested).json()
    assert "<b>{name}</b>" in answer["translation"]
    ignored = {"text": "The cat sleeps.", "formality": "more", "ignore_unsupported": True, **PAIR}
    assert demo_pod.client.post("/translate", json=ignored).status_code == 200
