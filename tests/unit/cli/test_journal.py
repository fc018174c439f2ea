import json
from pathlib import Path

import pytest

from dragoman.journal import Journal, JournalError, digest_of, journal_of, write_atomically

DIGEST = "a" * 64


@pytest.fixture
def output(tmp_path: Path) -> Path:
    return tmp_path / "out.txt"


def begun(output: Path) -> Journal:
    journal = Journal(output, DIGEST)
    journal.add({0: "eins", 2: "drei"})
    journal.close()
    return journal


def test_finished_lines_are_there_for_the_next_run(output: Path) -> None:
    begun(output)
    journal = Journal(output, DIGEST)
    assert journal.done == {0: "eins", 2: "drei"}
    journal.close()


def test_the_first_line_is_the_hash_and_each_further_one_a_line(output: Path) -> None:
    begun(output)
    first, *lines = map(json.loads, journal_of(output).read_text().splitlines())
    assert first == {"dragoman": DIGEST}
    assert lines == [{"line": 0, "text": "eins"}, {"line": 2, "text": "drei"}]


@pytest.mark.parametrize(
    "torn", [b'{"line": 7, "te', b'{"line": 7, "text": "sieben"}', b'{"li\n{"line"', b"\xff\n"]
)
def test_what_a_killed_process_wrote_in_part_is_dropped(output: Path, torn: bytes) -> None:
    begun(output)
    whole = journal_of(output).read_bytes()
    journal_of(output).write_bytes(whole + torn)
    journal = Journal(output, DIGEST)
    assert journal.done.keys() == {0, 2}
    assert journal_of(output).read_bytes() == whole
    journal.add({1: "zwei"})
    journal.close()
    again = Journal(output, DIGEST)
    assert again.done.keys() == {0, 1, 2}
    again.close()


def test_a_torn_first_line_is_a_new_journal(output: Path) -> None:
    journal_of(output).write_bytes(b'{"dragoman": "aa')
    journal = Journal(output, DIGEST)
    assert journal.done == {}
    journal.close()


def test_another_input_is_refused_and_nothing_lost(output: Path) -> None:
    begun(output)
    before = journal_of(output).read_bytes()
    with pytest.raises(JournalError, match="another input or of other options"):
        Journal(output, "b" * 64)
    assert journal_of(output).read_bytes() == before
    anew = Journal(output, "b" * 64, anew=True)
    assert anew.done == {}
    anew.close()


def test_a_file_that_is_no_journal_is_left_alone(output: Path) -> None:
    journal_of(output).write_text("my notes\n")
    with pytest.raises(JournalError, match="is no journal"):
        Journal(output, DIGEST)
    assert journal_of(output).read_text() == "my notes\n"


def test_two_processes_do_not_share_it(output: Path) -> None:
    journal = Journal(output, DIGEST)
    with pytest.raises(JournalError, match="another process writes"):
        Journal(output, DIGEST)
    journal.close()


def test_the_output_replaces_the_journal(output: Path) -> None:
    journal = Journal(output, DIGEST)
    journal.finish(b"eins\n")
    assert output.read_bytes() == b"eins\n"
    assert [*output.parent.iterdir()] == [output]


def test_an_output_is_replaced_at_once(output: Path) -> None:
    output.write_text("before")
    write_atomically(output, b"after")
    assert output.read_text() == "after"
    assert [*output.parent.iterdir()] == [output]


def test_the_hash_is_of_the_input_and_of_the_options() -> None:
    digests = {
        digest_of(b"one", {"target": "fr"}),
        digest_of(b"two", {"target": "fr"}),
        digest_of(b"one", {"target": "de"}),
    }
    assert len(digests) == 3
    assert digest_of(b"one", {"a": 1, "b": 2}) == digest_of(b"one", {"b": 2, "a": 1})
