"""Reading traces: valid lines, and the errors for others."""

import gzip
from pathlib import Path

import pytest

from dragoman_simulate.__main__ import main
from dragoman_simulate.errors import SpeedTableError, TraceError
from dragoman_simulate.speed import read_speed_table
from dragoman_simulate.trace import read_trace

GOOD = '{"time": 0.5, "source_tokens": 10, "target_tokens": 20}\n'


@pytest.fixture
def write(tmp_path):
    def write(text, name="t.jsonl"):
        path = tmp_path / name
        path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
        return path

    return write


@pytest.mark.parametrize("name", ["rush.jsonl", "rush.jsonl.gz"])
def test_requests_of_a_second_are_one_cohort(write, name):
    text = (
        "# made by hand\n\n"
        '{"time": 3, "count": 3, "source_tokens": 20, "target_tokens": 40}\n' + GOOD +
        '{"time": 3.9, "source_tokens": 60, "target_tokens": 80}\n'
        '{"event": "metrics_outage", "from": 2, "to": 4}\n'
        '{"event": "end", "time": 10}\n'
    )  # fmt: skip
    trace = read_trace(write(text, name))
    assert trace.name == "rush"
    assert trace.counts.tolist() == [1, 0, 0, 4, 0, 0, 0, 0, 0, 0]
    assert (trace.source_tokens[3], trace.target_tokens[3]) == (30, 50)
    assert [trace.blind(second) for second in range(5)] == [False, False, True, True, False]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("nonsense", "not JSON"),
        ("[1, 2]", "not an object"),
        ('{"time": 1, "source_tokens": 2}', '"target_tokens" is missing'),
        ('{"time": -1, "source_tokens": 2, "target_tokens": 2}', '"time" is -1'),
        ('{"time": "1", "source_tokens": 2, "target_tokens": 2}', "\"time\" is '1'"),
        ('{"time": 1, "source_tokens": true, "target_tokens": 2}', '"source_tokens" is True'),
        ('{"time": 1, "source_tokens": 1, "target_tokens": NaN}', '"target_tokens" is nan'),
        ('{"time": 1753600000, "source_tokens": 1, "target_tokens": 1}', "at most 60 days"),
        ('{"event": "earthquake", "time": 3}', "unknown event 'earthquake'"),
        ('{"event": "metrics_outage", "from": 9, "to": 3}', "the outage ends at 3"),
        ('{"event": "metrics_outage", "from": 9}', '"to" is missing'),
    ],
)
def test_a_bad_line_is_named_with_its_file_and_number(write, capsys, line, problem):
    path = write(GOOD * 2 + line + "\n")
    assert main(["--trace", str(path)]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"dragoman simulate: {path}:3: ")
    assert problem in error
    assert error.count("\n") == 1


def test_files_that_are_no_traces(write, tmp_path, capsys):
    (tmp_path / "broken.jsonl.gz").write_bytes(b"no gzip at all")
    (tmp_path / "latin.jsonl").write_bytes(b'{"time": "\xe9"}\n')
    for name, problem in [
        ("absent.jsonl", "No such file"),
        ("broken.jsonl.gz", "cannot be read"),
        ("latin.jsonl", "not UTF-8"),
    ]:
        assert main(["--trace", str(tmp_path / name)]) == 2
        assert problem in capsys.readouterr().err
    with pytest.raises(TraceError, match="holds no request"):
        read_trace(write('{"event": "end", "time": 10}\n'))


@pytest.mark.parametrize(
    "text", ["", "[]", '{"name": "x", "rows": [], "kv_cache_tokens": 1}',
             '{"name": "x", "kv_cache_tokens": 1, "rows": [{"running": 1, "ms_per_token": 0}]}',
             '{"name": "x", "kv_cache_tokens": 1, "rows": [{"running": 1, "ms_per_token": 5}, '
             '{"running": 2, "ms_per_token": 4}]}'],
)  # fmt: skip
def test_a_table_of_speeds_that_cannot_be(write, text):
    path = write(text, "speeds.json")
    with pytest.raises(SpeedTableError, match=r"speeds\.json"):
        read_speed_table(path)


@pytest.mark.slow
def test_shipped_traces_are_small_and_whole():
    folder = Path(__file__).parents[3] / "bench" / "traces"
    files = sorted(folder.glob("*.jsonl.gz"))
    names = {"steady", "daily", "spikes", "step", "ramp", "sawtooth", "silence", "outage"}
    names |= {"on-off", "self-similar", "flash-crowds"}
    assert {path.name.removesuffix(".jsonl.gz") for path in files} == names
    assert sum(path.stat().st_size for path in files) < 5e6
    for path in files:
        trace = read_trace(path)
        assert trace.duration_s == (86_400 if trace.name == "daily" else 10_800)
        assert 50 < trace.counts.mean() < 700
        assert bool(trace.outages) == (trace.name == "outage")
