import asyncio
import io
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from dragoman import translate
from dragoman.exits import DONE, FAILED, INTERRUPTED, UNREACHABLE, USAGE
from dragoman.journal import journal_of
from dragoman.lines import Done
from dragoman.translator import Translator


def test_translations_are_printed_a_line_each(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert translate.main(["--url", url, "--to", "fr", "one", "two"]) == 0
    assert capsys.readouterr().out == "ONE\nTWO\n"


def test_a_refusal_has_the_message_of_the_service(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert translate.main(["--url", url, "--to", "tlh", "one"]) == 1
    assert "422: en to tlh is not served" in capsys.readouterr().err


def test_an_address_where_nothing_listens_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert translate.main(["--url", "http://127.0.0.1:1", "--to", "fr", "one"]) == UNREACHABLE
    assert "http://127.0.0.1:1/ cannot be reached" in capsys.readouterr().err


def test_lines_of_standard_input_keep_their_order(
    url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [f"line {number}" if number % 7 else "" for number in range(100)]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("\n".join(lines).encode())))
    assert translate.main(["--url", url, "--to", "fr", "--batch", "3", "--concurrency", "5"]) == DONE
    assert capsys.readouterr().out.splitlines() == [line.upper() for line in lines]


def test_standard_input_that_is_no_text_is_named(
    url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"caf\xe9")))
    assert translate.main(["--url", url, "--to", "fr"]) == USAGE
    assert "standard input is not UTF-8" in capsys.readouterr().err


def test_a_file_that_is_no_text_is_named(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "a.txt"
    source.write_bytes("café".encode("utf-16"))
    assert translate.main(["--url", url, "--to", "fr", "--file", str(source)]) == USAGE
    assert f"{source} is not UTF-8 (invalid start byte, byte 0); convert it" in capsys.readouterr().err
    assert {path.name for path in tmp_path.iterdir()} == {"a.txt"}


def test_a_text_that_fails_keeps_its_place(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert translate.main(["--url", url, "--to", "fr", "one", "too long", "two"]) == FAILED
    printed = capsys.readouterr()
    assert printed.out == "ONE\n\nTWO\n"
    assert "text 2: 413: 9 tokens" in printed.err


def test_a_file_is_translated_beside_it_with_blank_lines_and_line_ends(url: str, tmp_path: Path) -> None:
    source = tmp_path / "letter.txt"
    source.write_bytes("\ufeffone\r\n\n  \ntwo".encode())
    assert translate.main(["--url", url, "--to", "fr", "--file", str(source)]) == DONE
    assert (tmp_path / "letter.fr.txt").read_bytes() == "\ufeffONE\r\n\n  \nTWO".encode()
    assert {path.name for path in tmp_path.iterdir()} == {"letter.txt", "letter.fr.txt"}


def test_what_is_up_to_date_is_not_sent_again(service: Any, url: str, tmp_path: Path) -> None:
    source = tmp_path / "letter.txt"
    source.write_text("one\n")
    command = ["--url", url, "--to", "fr", "--file", str(source)]
    assert [translate.main(command), translate.main(command)] == [DONE, DONE]
    assert len(service.received) == 1
    os.utime(source, (2e9, 2e9))
    assert translate.main(command) == DONE
    assert len(service.received) == 2
    assert translate.main([*command, "--overwrite"]) == DONE
    assert len(service.received) == 3


def test_lines_that_fail_leave_the_others_in_the_journal(
    service: Any, url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, output = tmp_path / "in.txt", tmp_path / "out.txt"
    source.write_text("one\ntoo long\ntwo\n")
    command = ["--url", url, "--to", "fr", "--file", str(source), "--output", str(output)]
    assert translate.main(command) == FAILED
    assert "line 2: 413: 9 tokens" in capsys.readouterr().err
    assert not output.exists()
    assert journal_of(output).exists()
    service.received.clear()
    assert translate.main([*command, "--partial"]) == FAILED
    assert [body["text"] for body, _ in service.received] == [["too long"]]
    assert output.read_text() == "ONE\ntoo long\nTWO\n"
    assert not journal_of(output).exists()


@pytest.mark.parametrize(
    ("findings", "status", "said"),
    [
        ({}, DONE, ""),
        ({"number": 2}, DONE, "number: 2"),
        ({"nothing_to_translate": 1}, FAILED, "nothing was found to translate"),
        ({"parts_left": 3}, FAILED, "parts of it, such as embedded documents, stay as they are: 3"),
        (
            {"source_kept": 1, "tags_aligned": 2},
            FAILED,
            "segments stay in the source language: 1; tags aligned: 2",
        ),
    ],
)
def test_what_was_not_translated_in_a_file_is_said(
    *,
    findings: dict[str, int],
    status: int,
    said: str,
    service: Any,
    url: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    service.findings = findings
    source = tmp_path / "a.html"
    source.write_text("<p>The cat sleeps.</p>")
    assert translate.main(["--to", "fr", "--url", url, "--file", str(source)]) == status
    assert (tmp_path / "a.fr.html").read_text() == "<P>THE CAT SLEEPS.</P>"
    assert said in capsys.readouterr().err


def test_a_folder_becomes_a_folder_with_documents(url: str, tmp_path: Path) -> None:
    folder = tmp_path / "texts"
    (folder / "deep").mkdir(parents=True)
    (folder / "deep" / "a.txt").write_text("one\n")
    (folder / "page.html").write_text("<p>two</p>")
    (folder / "picture.png").write_bytes(b"")
    assert translate.main(["--url", url, "--to", "fr", "--file", str(folder)]) == DONE
    made = tmp_path / "texts.fr"
    assert (made / "deep" / "a.txt").read_text() == "ONE\n"
    assert (made / "page.html").read_text() == "<P>TWO</P>"
    assert not (made / "picture.png").exists()


def test_a_document_has_the_languages_and_the_glossary_of_the_command(
    service: Any, url: str, tmp_path: Path
) -> None:
    (tmp_path / "terms.tsv").write_text("pod\tPod\n")
    (tmp_path / "page.html").write_text("<p>two</p>")
    files = ["--glossary", str(tmp_path / "terms.tsv"), "--file", str(tmp_path / "page.html")]
    assert translate.main(["--url", url, "--from", "pt-BR", "--to", "zh-Hant", *files]) == DONE
    assert (tmp_path / "page.zh-Hant.html").read_text() == "<P>TWO</P>"
    for part in (
        b'name="source_lang"\r\n\r\npt-BR\r\n',
        b'name="target_lang"\r\n\r\nzh-Hant\r\n',
        b'name="terms"; filename="terms.json"',
        b'\r\n[{"source": "pod", "target": "Pod"}]\r\n',
    ):
        assert part in service.form


def test_a_glossary_and_a_key_go_with_each_request(
    service: Any, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    terms = tmp_path / "terms.tsv"
    terms.write_text("# house style\npod\tPod\n")
    monkeypatch.setenv("DRAGOMAN_API_KEY", "secret")
    assert translate.main(["--url", url, "--to", "de", "--glossary", str(terms), "a pod"]) == DONE
    ((body, key),) = service.received
    assert body["terms"] == [{"source": "pod", "target": "Pod"}]
    assert key == "secret"


def test_a_memory_goes_with_the_texts_that_have_its_segments(
    service: Any, url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    memory = tmp_path / "memory.tmx"
    memory.write_text(
        '<tmx><tu><tuv xml:lang="en"><seg>a pod</seg></tuv><tuv xml:lang="de"><seg>ein Pod</seg></tuv></tu></tmx>'
    )
    arguments = ["--url", url, "--to", "de", "--memory", str(memory), "--batch", "1"]
    assert translate.main([*arguments, "a pod", "two pods"]) == DONE
    bodies = sorted((body for body, _ in service.received), key=lambda body: body["text"])
    assert [body.get("memory") for body in bodies] == [[{"source": "a pod", "target": "ein Pod"}], None]
    assert "segments from the memory: 0" in capsys.readouterr().err
    (tmp_path / "page.html").write_text("a pod")
    assert translate.main([*arguments, "--file", str(tmp_path / "page.html")]) == DONE
    assert b'name="memory"; filename="memory.tmx"' in service.form
    assert memory.read_bytes() in service.form
    assert "segments from the memory: 2" in capsys.readouterr().err


def kubeconfig(folder: Path, url: str) -> str:
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": url}}],
        "users": [{"name": "u", "user": {"token": "person"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    file = folder / "kubeconfig"
    file.write_text(json.dumps(content))
    return str(file)


def test_a_cluster_leads_to_its_router(url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert translate.main(["--kubeconfig", kubeconfig(tmp_path, url), "--to", "fr", "one"]) == DONE
    assert capsys.readouterr().out == "ONE\n"


@pytest.mark.parametrize("status", [401, 403])
def test_a_cluster_that_refuses_is_no_unreachable_one(
    status: int, service: Any, url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    service.refusal = (status, {"kind": "Status", "code": status, "message": "services is forbidden"})
    assert translate.main(["--kubeconfig", kubeconfig(tmp_path, url), "--to", "fr", "one"]) == FAILED
    said = capsys.readouterr().err
    assert "services is forbidden" in said
    assert "--deployment NAMESPACE/NAME needs rights in one namespace alone" in said
    assert "--key-file" not in said


def test_detection_is_asked_for_by_name(service: Any, url: str) -> None:
    assert translate.main(["--url", url, "--from", "auto", "--to", "de", "one"]) == DONE
    ((body, _),) = service.received
    assert "source_lang" not in body


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--file", "nowhere.txt"], "nowhere.txt does not exist"),
        (["--file", "nowhere.txt", "--", "text"], "exclude each other"),
        (["--output", "out.txt", "text"], "--output is for"),
        (["--glossary", "nowhere.tsv", "text"], "nowhere.tsv cannot be read"),
        (["--memory", "nowhere.tmx", "text"], "nowhere.tmx cannot be read"),
        (["--key-file", "nowhere", "text"], "the API key cannot be read"),
        (["--kubeconfig", "/nowhere", "text"], "read /nowhere"),
        (["text", "b\udce9"], r"text 2 is not UTF-8: 'b\udce9'"),
    ],
)
def test_what_cannot_be_used_is_named(
    arguments: list[str], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert translate.main(["--to", "de", *arguments]) == USAGE
    assert reason in capsys.readouterr().err


async def interrupt(_: object, __: object, ___: object, done: Done, **____: object) -> None:
    """In place of `translate_lines`."""
    await done({0: "ONE"})
    raise KeyboardInterrupt


def test_an_interruption_says_what_is_kept(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    source, output = tmp_path / "in.txt", tmp_path / "out.txt"
    source.write_text("one\n")

    monkeypatch.setattr("dragoman.translate_run.translate_lines", interrupt)
    command = ["--url", url, "--to", "fr", "--file", str(source), "--output", str(output)]
    assert translate.main(command) == INTERRUPTED
    assert f"{journal_of(output)} has what is finished: the same command goes on" in capsys.readouterr().err


def test_with_overwrite_an_interruption_names_the_command_that_goes_on(
    service: Any,
    url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    source, output = tmp_path / "in.txt", tmp_path / "out.txt"
    source.write_text("one\ntoo long\n")
    command = ["--url", url, "--to", "fr", "--file", str(source), "--output", str(output)]
    assert translate.main([*command, "--overwrite"]) == FAILED
    assert "Again without --overwrite, or with --partial" in capsys.readouterr().err

    monkeypatch.setattr("dragoman.translate_run.translate_lines", interrupt)
    assert translate.main([*command, "--overwrite"]) == INTERRUPTED
    assert "the same command without --overwrite goes on" in capsys.readouterr().err


def test_files_that_are_translated_one_after_the_other_share_a_new_folder(url: str, tmp_path: Path) -> None:
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text(name)
        command = ["--url", url, "--to", "fr", "--file", str(tmp_path / name), "-o", f"{tmp_path}/french/"]
        assert translate.main(command) == DONE
    assert {path.name: path.read_text() for path in (tmp_path / "french").iterdir()} == {
        "a.txt": "A.TXT",
        "b.txt": "B.TXT",
    }


@pytest.mark.parametrize("folder", ["", "new/"])
def test_standard_input_does_not_become_a_folder(
    folder: str, service: Any, url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert translate.main(["--url", url, "--to", "fr", "-o", f"{tmp_path}/{folder}"]) == USAGE
    assert "is a folder; name a file as --output" in capsys.readouterr().err
    assert not service.received
    assert not [*tmp_path.iterdir()]


def test_standard_input_is_read_outside_the_event_loop(
    url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Interrupted(io.BytesIO):
        """A terminal where Ctrl-C is pressed: within an event loop it would be ignored at first."""

        def read(self, *_: Any) -> bytes:
            with pytest.raises(RuntimeError, match="no running event loop"):
                asyncio.get_running_loop()
            raise KeyboardInterrupt

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(Interrupted()))
    assert translate.main(["--url", url, "--to", "fr"]) == INTERRUPTED
    assert translate.main(["--url", url, "--to", "fr", "-o", "out.txt"]) == INTERRUPTED
    assert capsys.readouterr().err.splitlines() == ["dragoman translate: interrupted"] * 2


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1:18731", "", "http://", "http://[::1", "http://127.0.0.1:99999", "http://\udce9", "ftp://pod"],
)
def test_what_is_no_address_is_a_usage_error(address: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert translate.main(["--url", address, "--to", "fr", "one"]) == USAGE
    assert capsys.readouterr().err == (
        f"dragoman translate: --url {address!r} is no address such as http://127.0.0.1:8000\n"
    )


@pytest.mark.parametrize("key", ["käse".encode(), b"one\ntwo", b"\xff\xfe", b"a\0b"])
def test_what_is_no_key_is_a_usage_error(
    key: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "key"
    file.write_bytes(key)
    assert translate.main(["--key-file", str(file), "--to", "fr", "one"]) == USAGE
    (said,) = capsys.readouterr().err.splitlines()
    assert str(file) in said


def test_the_variable_of_a_bad_key_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DRAGOMAN_API_KEY", "one\ntwo")
    assert translate.main(["--to", "fr", "one"]) == USAGE
    assert "DRAGOMAN_API_KEY has no API key" in capsys.readouterr().err


@pytest.mark.parametrize("tag", ["a/b", "", "fr\udce9"])
def test_what_is_no_tag_is_a_usage_error(tag: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match=str(USAGE)):
        translate.main(["--to", tag, "--file", "x.txt"])
    assert f"--to: {tag!r} is no BCP-47 tag" in capsys.readouterr().err.replace("\\\\", "\\")


def test_names_that_are_not_utf_8_are_translated_like_others(service: Any, url: str, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "caf\udce9.html").write_text("<p>one</p>")
    (folder / "caf\udce9.txt").write_text("two")
    (folder / "d.txt").write_text("three")
    assert translate.main(["--url", url, "--to", "fr", "--file", str(folder)]) == DONE
    assert b'filename="caf?.html"' in service.form
    assert {path.name: path.read_text() for path in (tmp_path / "in.fr").iterdir()} == {
        "caf\udce9.html": "<P>ONE</P>",
        "caf\udce9.txt": "TWO",
        "d.txt": "THREE",
    }


def test_standard_input_does_not_replace_a_device_or_pipe(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"one")))
    assert translate.main(["--url", url, "--to", "fr", "--output", str(pipe)]) == USAGE
    assert "is no regular file" in capsys.readouterr().err
    assert pipe.is_fifo()


def test_a_file_that_is_changed_while_it_is_translated_is_not_up_to_date(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "a.txt"
    source.write_text("one\n")
    os.utime(source, (1_000, 1_000))
    command = ["--url", url, "--to", "fr", "--file", str(source)]
    with monkeypatch.context() as patched:
        sent = Translator.texts

        async def edited(*arguments: Any) -> list[str]:
            source.write_text("two\n")
            os.utime(source, (2_000, 2_000))
            return await sent(*arguments)

        patched.setattr(Translator, "texts", edited)
        assert translate.main(command) == FAILED
    assert f"{source} was changed meanwhile" in capsys.readouterr().err
    assert translate.main(command) == DONE
    assert (tmp_path / "a.fr.txt").read_text() == "TWO\n"


@pytest.mark.parametrize(
    "flag", ["--timeout=nan", "--timeout=-1", "--timeout=0", "--patience=nan", "--patience=x"]
)
def test_what_is_no_time_is_a_usage_error(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match=str(USAGE)):
        translate.main(["--to", "fr", flag, "one"])
    assert f"argument {flag.partition('=')[0]}: " in capsys.readouterr().err


def test_an_output_whose_encoding_lacks_characters_is_named(
    url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="latin-1"))
    assert translate.main(["--url", url, "--to", "ja", "日本"]) == FAILED
    assert "the encoding of standard output, latin-1, has not all" in capsys.readouterr().err
