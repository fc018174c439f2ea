"""What `dragoman translate` takes, what it leaves alone, and what it says about that."""

import io
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.unit.cli.conftest import Refusal

from dragoman import translate
from dragoman.exits import DONE, FAILED, UNREACHABLE, USAGE
from dragoman_protocols.files import FILE_ENDINGS


def feed(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))


@pytest.mark.parametrize(
    ("content", "translated"),
    [
        (b"", ""),
        (b"\n", "\n"),
        (b"  \n\r\n", "  \n\r\n"),
        (b"one", "ONE"),
        (b"one\n", "ONE\n"),
        (b"one\r\ntwo", "ONE\r\nTWO"),
        (b"one\rtwo\r", "ONE\rTWO\r"),
        (b"one\n\n\ntwo\n\n", "ONE\n\n\nTWO\n\n"),
        ("one\u2028two\x0bthree\x85four\n".encode(), "ONE\u2028TWO\x0bTHREE\x85FOUR\n"),
    ],
    ids=repr,
)
def test_standard_input_keeps_its_line_ends_and_blank_lines(
    *,
    content: bytes,
    translated: str,
    url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    feed(monkeypatch, content)
    assert translate.main(["--url", url, "--to", "fr"]) == DONE
    assert capsys.readouterr().out == translated
    feed(monkeypatch, content)
    output = tmp_path / "out"
    assert translate.main(["--url", url, "--to", "fr", "--output", str(output)]) == DONE
    assert output.read_bytes() == translated.encode()


@pytest.mark.parametrize("content", [b"", b"\n \n"])
@pytest.mark.parametrize(
    "service", [["--url", "http://127.0.0.1:1"], ["--cluster"], ["--model", "nowhere"]], ids="".join
)
def test_nothing_to_translate_reaches_no_service(
    content: bytes, service: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    feed(monkeypatch, content)
    assert translate.main([*service, "--to", "fr"]) == DONE
    assert capsys.readouterr() == (content.decode(), "")


def test_what_is_up_to_date_starts_no_engine(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.txt").write_text("one")
    files = ["--to", "fr", "--file", str(tmp_path / "a.txt")]
    assert translate.main(["--url", url, *files]) == DONE
    capsys.readouterr()
    assert translate.main(["--model", "nowhere", *files]) == DONE
    said = capsys.readouterr().err
    assert "translated nothing" in said
    assert "left: 1 file up to date (--overwrite translates again)" in said


@pytest.mark.parametrize("name", ["a.xyz", "a.doc", "a.png", "README", ".txt", "a.txt.bak", "a."])
def test_a_file_of_another_kind_is_refused_with_those_that_are_translated(
    name: str, service: Any, url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "b.txt").write_text("one")
    (tmp_path / name).write_text("one")
    files = [str(tmp_path / "b.txt"), str(tmp_path / name)]
    assert translate.main(["--url", url, "--to", "fr", "--file", *files]) == USAGE
    said = capsys.readouterr().err
    assert f"{tmp_path / name}: files " in said
    assert all(ending in said for ending in FILE_ENDINGS)
    assert not service.received
    assert {path.name for path in tmp_path.iterdir()} == {"b.txt", name}


@pytest.mark.parametrize("ending", FILE_ENDINGS)
def test_every_kind_of_file_is_sent(ending: str, service: Any, url: str, tmp_path: Path) -> None:
    source = tmp_path / f"a{ending.upper()}"
    source.write_text("one")
    assert translate.main(["--url", url, "--to", "fr", "--file", str(source)]) == DONE
    assert (service.uploads, len(service.received)) == ((0, 1) if ending == ".txt" else (1, 0))


@pytest.mark.parametrize("name", ["a.po", "a file.docx", "texts"])
def test_a_text_that_names_a_file_is_translated_with_a_warning(
    name: str,
    url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).mkdir() if name == "texts" else (tmp_path / name).touch()
    assert translate.main(["--url", url, "--to", "fr", name]) == DONE
    printed = capsys.readouterr()
    assert printed.out == f"{name.upper()}\n"
    shown = f"'{name}'" if " " in name else name
    assert f"warning: '{name}' is translated as a text; --file {shown} translates" in printed.err


KEY = {"error": {"code": "key_missing", "message": "an API key is required"}}
FORBIDDEN = {"kind": "Status", "code": 403, "message": "services/proxy is forbidden"}


@pytest.mark.parametrize(
    ("refusal", "arguments", "said"),
    [
        ((401, KEY), [], "401: an API key is required; pass --key-file FILE"),
        ((403, KEY), [], "403: an API key is required; pass --key-file FILE"),
        ((401, "<html>"), [], "; pass --key-file FILE"),
        ((403, KEY), ["--key-file", "key"], "; the API key is that of --key-file key"),
        ((403, FORBIDDEN), [], "403: services/proxy is forbidden\n"),
        ((401, FORBIDDEN | {"code": 401}), [], "401: services/proxy is forbidden\n"),
    ],
)
@pytest.mark.parametrize("kind", ["text", "files"])
def test_a_refused_key_names_where_it_comes_from(
    *,
    kind: str,
    refusal: Refusal,
    arguments: list[str],
    said: str,
    service: Any,
    url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("key", "a.docx", "b.docx"):
        (tmp_path / name).write_text("secret")
    service.refusal = refusal
    what = ["one"] if kind == "text" else ["--file", "a.docx", "b.docx"]
    assert translate.main(["--url", url, "--to", "fr", *arguments, *what]) == FAILED
    assert said in capsys.readouterr().err
    if "--key-file" in said and kind == "files":
        assert service.uploads == 1, "the key of the second file is the same"


def test_a_key_of_the_environment_is_named(
    service: Any, url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DRAGOMAN_API_KEY", "wrong")
    service.refusal = (403, KEY)
    assert translate.main(["--url", url, "--to", "fr", "one"]) == FAILED
    said = capsys.readouterr().err
    assert "--key-file" in said
    assert "DRAGOMAN_API_KEY" in said


def summary(err: str) -> str:
    (line,) = (line for line in err.splitlines() if line.startswith("dragoman translate: translated "))
    return line


def test_files_end_with_a_summary(url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / "a.txt").write_text("one\n\ntwo\n")
    (folder / "b.txt").write_text("three\ntoo long\n")
    (folder / "c.docx").write_text("four")
    (folder / "picture.png").touch()
    command = ["--url", url, "--to", "fr", "--batch", "1", "--file", str(folder)]
    assert translate.main(command) == FAILED
    first = summary(capsys.readouterr().err)
    assert "translated 2 files, 3 texts, 31 characters in " in first
    assert first.endswith(" s; failed: 1 file, 1 text; left: 1 file of other kinds")
    assert translate.main([*command, "--partial"]) == FAILED
    again = summary(capsys.readouterr().err)
    assert "translated 1 file in " in again
    assert again.endswith(
        "; failed: 1 text; left: 2 files up to date (--overwrite translates again), 1 file of other kinds"
    )


def test_what_ends_early_says_what_is_left(
    service: Any, url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text("one\ntwo\n")
    service.refusal = (422, {"error": {"code": "unsupported_pair", "message": "no"}})
    assert translate.main(["--url", url, "--to", "fr", "--file", *map(str, tmp_path.iterdir())]) == FAILED
    assert summary(capsys.readouterr().err).endswith("; left: 2 files, 2 texts")


def test_a_service_that_does_not_answer_leaves_no_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    files = ["--to", "fr", "--file", str(tmp_path / "a.txt")]
    assert translate.main(["--url", "http://127.0.0.1:1", *files]) == UNREACHABLE
    said = capsys.readouterr().err
    assert "left: 1 file, 1 text" in summary(said)
    assert "has what is finished" not in said
    assert {path.name for path in tmp_path.iterdir()} == {"a.txt"}


def test_one_text_has_no_summary_and_several_have_one(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert translate.main(["--url", url, "--to", "fr", "one"]) == DONE
    assert capsys.readouterr() == ("ONE\n", "")
    assert translate.main(["--url", url, "--to", "fr", "one", "two"]) == DONE
    assert "translated 2 texts, 6 characters in " in summary(capsys.readouterr().err)


def test_on_a_terminal_the_translations_are_the_summary(
    url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert translate.main(["--url", url, "--to", "fr", "one", "two"]) == DONE
    assert capsys.readouterr() == ("ONE\nTWO\n", "")
    assert translate.main(["--url", url, "--to", "fr", "one", "too long"]) == FAILED
    assert "failed: 1 text" in summary(capsys.readouterr().err)


def test_a_number_that_is_none_is_named_without_a_function(capsys: pytest.CaptureFixture[str]) -> None:
    for flag in ("--batch=x", "--timeout=x", "--patience=x"):
        with pytest.raises(SystemExit, match=str(USAGE)):
            translate.main(["--to", "fr", flag, "one"])
        assert "'x' is no " in capsys.readouterr().err


def test_requests_have_the_lines_without_their_ends(
    service: Any, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed(monkeypatch, b"one\r\ntwo\rthree\n")
    assert translate.main(["--url", url, "--to", "fr"]) == DONE
    ((body, _),) = service.received
    assert body["text"] == ["one", "two", "three"]


def test_texts_that_stay_in_the_source_language_are_counted(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert translate.main(["--url", url, "--to", "fr", "one", "kept", "two"]) == FAILED
    printed = capsys.readouterr()
    assert printed.out == "ONE\nKEPT\nTWO\n"
    assert "segments stay in the source language: 1" in printed.err
    source = tmp_path / "a.txt"
    source.write_text("kept\n")
    assert translate.main(["--url", url, "--to", "fr", "--file", str(source)]) == FAILED
    assert (tmp_path / "a.fr.txt").read_text() == "KEPT\n"
    assert "segments stay in the source language: 1" in capsys.readouterr().err
