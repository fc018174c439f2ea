"""What the tuner reads: files of requests, metrics, its own state."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from dragoman_tune.__main__ import main
from dragoman_tune.errors import MetricsError, RequestsFileError, StateError
from dragoman_tune.report import patch
from dragoman_tune.requests import SampleRequest, read_requests
from dragoman_tune.scrape import between, parsed, peak_in_flight
from dragoman_tune.search import EngineSetting, Trial
from dragoman_tune.server import last_error
from dragoman_tune.state import State, fingerprint

LINE = json.dumps({"text": "Hello", "source_lang": "en", "target_lang": "de", "id": 7})
REQUESTS = [SampleRequest("Hello", "en", "de")]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (LINE + "\nno", "line 2: not JSON"),
        ("[]", "line 1: not a JSON object"),
        ('{"text": "a", "source_lang": "en"}', "line 1: target_lang must be"),
        ('{"text": " ", "source_lang": "en", "target_lang": "de"}', "line 1: text must be"),
        ("\n\n", "holds no request"),
    ],
)
def test_a_file_that_cannot_be_used_is_named_with_its_line(
    tmp_path: Path, content: str, problem: str
) -> None:
    path = tmp_path / "requests.jsonl"
    path.write_text(content)
    with pytest.raises(RequestsFileError, match=problem):
        read_requests(path)


def test_requests_are_read_and_other_fields_left(tmp_path: Path) -> None:
    path = tmp_path / "requests.jsonl"
    path.write_text(f"{LINE}\n\n{LINE}\n")
    assert read_requests(path) == REQUESTS * 2


def metrics(running: float, waiting: float) -> dict[str, float]:
    return {"vllm:num_requests_running": running, "vllm:num_requests_waiting": waiting}


def test_a_deployments_load_is_its_95th_percentile() -> None:
    assert peak_in_flight([metrics(10, 0)] * 95 + [metrics(16, 4)] * 3 + [metrics(200, 0)] * 2) == 10
    assert peak_in_flight([metrics(16, 3.5)]) == 20


def test_metrics_without_load_are_refused() -> None:
    with pytest.raises(MetricsError, match="nothing was in flight"):
        peak_in_flight([metrics(0, 0)])
    with pytest.raises(MetricsError, match="is this an engine pod"):
        peak_in_flight([{"up": 1.0}])


def test_histograms_become_means_between_two_scrapes() -> None:
    text = 'vllm:time_to_first_token_seconds_{}{{engine="{}"}} {}\n'
    before = parsed(text.format("sum", 0, 1) + text.format("count", 0, 10))
    after = parsed(
        "# HELP x\n"
        + text.format("sum", 0, 2)
        + text.format("sum", 1, 1)
        + text.format("count", 0, 20)
        + text.format("bucket", 0, 99)
    )
    assert between(before, after).first_token_s == pytest.approx(0.2)
    assert between(before, before).first_token_s is None


def test_a_sweep_goes_on_where_it_was_and_refuses_another(tmp_path: Path) -> None:
    mark = fingerprint(REQUESTS, in_flight=8)
    trials = [
        Trial(EngineSetting(1, 8192), 3.0, 0.5),
        Trial(EngineSetting(2, 8192), 0.0, None, "too little memory"),
    ]
    state = State(tmp_path, mark)
    for trial in trials:
        state.add(trial)
    with (tmp_path / "trials.jsonl").open("a") as out:
        out.write('{"setting": {"max_num_s')
    assert State(tmp_path, mark).trials == trials
    with pytest.raises(StateError, match="another model, load"):
        State(tmp_path, fingerprint(REQUESTS, in_flight=9))


def test_a_file_that_is_no_record_is_refused(tmp_path: Path) -> None:
    (tmp_path / "trials.jsonl").write_text("hello\n")
    with pytest.raises(StateError, match="no record of a sweep"):
        State(tmp_path, "x")


def test_the_patch_is_one_for_the_object() -> None:
    assert yaml.safe_load(patch(Trial(EngineSetting(32, 8192), 1, 1))) == {
        "spec": {"engine": {"maxNumSeqs": 32, "maxNumBatchedTokens": 8192}}
    }


def test_the_last_error_prefers_the_cause_to_what_wraps_it() -> None:
    log = (
        "Traceback\nValueError: Free memory on device cuda:0 (1/80 GiB) is less\n"
        "RuntimeError: Engine core initialization failed. See root cause above.\n"
    )
    assert last_error(log) == "ValueError: Free memory on device cuda:0 (1/80 GiB) is less"
    assert (
        last_error(log + "dragoman serve: not enough GPU memory\n") == "dragoman serve: not enough GPU memory"
    )
    assert last_error("INFO all is well\n") is None


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        (["--in-flight", "0"], "0 is not 1 or more"),
        (["--in-flight", "4", "--metrics-url", "http://x"], "not allowed with"),
        ([], "one of the arguments --in-flight --metrics-url is required"),
        (["--in-flight", "4", "--", "--max-num-seqs", "8"], "--max-num-seqs is set by the sweep itself"),
    ],
)
def test_a_wrong_command_line_is_refused(capsys: Any, more: list[str], problem: str) -> None:
    base = ["--model", "m", "--slo-p95", "2", "--requests", "r.jsonl", "--output", "out"]
    assert main(base + more) == 2
    assert problem in capsys.readouterr().err


def test_a_missing_file_is_named(tmp_path: Path, capsys: Any) -> None:
    base = ["--model", "m", "--slo-p95", "2", "--output", str(tmp_path / "out"), "--in-flight", "4"]
    assert main([*base, "--requests", str(tmp_path / "none.jsonl")]) == 2
    assert "cannot read" in capsys.readouterr().err
