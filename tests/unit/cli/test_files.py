import os
from pathlib import Path
from typing import Any

import pytest

from dragoman.files import FilesError, Task, read_glossary, tasks_of


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("a.txt", "b.docx", "deep/c.HTML", ".hidden/d.txt", "picture.png", "a.fr.txt.dragoman-part"):
        (tmp_path / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "in" / name).touch()
    return tmp_path / "in"


def names(tasks: list[Task], root: Path) -> dict[str, str]:
    return {str(task.source.relative_to(root)): str(task.output.relative_to(root)) for task in tasks}


def test_files_get_their_translation_beside_them(folder: Path) -> None:
    tasks = tasks_of([folder / "a.txt", folder / "b.docx"], None, "fr")
    assert names(tasks, folder) == {"a.txt": "a.fr.txt", "b.docx": "b.fr.docx"}
    assert [task.is_document for task in tasks] == [False, True]


def test_one_file_gets_the_name_that_is_given(folder: Path, tmp_path: Path) -> None:
    (task,) = tasks_of([folder / "a.txt"], str(tmp_path / "out"), "fr")
    assert task.output == tmp_path / "out"
    (task,) = tasks_of([folder / "a.txt"], str(tmp_path), "fr")
    assert task.output == tmp_path / "a.txt"


def test_the_translation_of_a_pdf_is_a_word_document(tmp_path: Path) -> None:
    pdf = tmp_path / "in" / "a.PDF"
    pdf.parent.mkdir()
    pdf.touch()
    assert names(tasks_of([pdf], None, "fr"), tmp_path) == {"in/a.PDF": "in/a.fr.docx"}
    assert names(tasks_of([pdf], str(tmp_path), "fr"), tmp_path) == {"in/a.PDF": "a.docx"}
    assert names(tasks_of([pdf.parent], str(tmp_path / "out"), "fr"), tmp_path) == {"in/a.PDF": "out/a.docx"}
    with pytest.raises(FilesError, match=r"is a \.docx file"):
        tasks_of([pdf], str(tmp_path / "b.pdf"), "fr")


def test_a_folder_is_searched_for_files_of_known_kinds(folder: Path, tmp_path: Path) -> None:
    tasks = tasks_of([folder], None, "fr")
    assert names(tasks, tmp_path) == {
        "in/a.txt": "in.fr/a.txt",
        "in/b.docx": "in.fr/b.docx",
        "in/deep/c.HTML": "in.fr/deep/c.HTML",
    }


def test_outputs_inside_a_folder_are_no_inputs_of_the_next_run(folder: Path) -> None:
    output = folder / "french"
    output.mkdir()
    (output / "a.txt").touch()
    assert not any(task.source.is_relative_to(output) for task in tasks_of([folder], str(output), "fr"))


def test_several_sources_share_a_folder(folder: Path, tmp_path: Path) -> None:
    tasks = tasks_of([folder, folder / "a.txt"], str(tmp_path / "out"), "fr")
    assert {str(task.output.relative_to(tmp_path)) for task in tasks} == {
        "out/in/a.txt",
        "out/in/b.docx",
        "out/in/deep/c.HTML",
        "out/a.txt",
    }


def test_two_files_are_not_written_to_one(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "a.txt").touch()
    with pytest.raises(FilesError, match="would both be written to"):
        tasks_of([folder / "a.txt", tmp_path / "a.txt"], str(tmp_path / "out"), "fr")


def test_a_file_is_not_written_over_itself(folder: Path) -> None:
    with pytest.raises(FilesError, match="would be written over itself"):
        tasks_of([folder / "a.txt"], str(folder), "fr")


def test_a_slash_at_the_end_makes_the_output_a_folder(folder: Path, tmp_path: Path) -> None:
    (task,) = tasks_of([folder / "a.txt"], f"{tmp_path}/french/", "fr")
    assert task.output == tmp_path / "french" / "a.txt"


def test_a_file_is_no_folder_for_outputs(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "french").touch()
    for sources, output in (([folder / "a.txt"], "french/"), ([folder], "french")):
        with pytest.raises(FilesError, match="french is a file"):
            tasks_of(sources, f"{tmp_path}/{output}", "fr")


def test_a_folder_is_not_replaced_by_an_output(folder: Path) -> None:
    (folder / "a.fr.txt").mkdir()
    with pytest.raises(FilesError, match=r"a\.fr\.txt, the output of .*, is a folder"):
        tasks_of([folder / "a.txt"], None, "fr")


@pytest.mark.parametrize(("where", "named"), [("in", "."), ("in/deep", "..")])
def test_the_output_of_a_folder_without_a_name_lies_beside_it(
    where: str, named: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path / where)
    outputs = {task.output.resolve().relative_to(tmp_path) for task in tasks_of([Path(named)], None, "fr")}
    assert outputs == {Path("in.fr/a.txt"), Path("in.fr/b.docx"), Path("in.fr/deep/c.HTML")}


def test_the_root_needs_an_output() -> None:
    with pytest.raises(FilesError, match="name an --output"):
        tasks_of([Path("/")], None, "fr")


@pytest.mark.parametrize("sources", [["in"], ["."], ["in", "in/deep"]])
def test_outputs_inside_a_folder_are_known_however_it_is_named(
    sources: list[str], folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    def tasks() -> list[Task]:
        return tasks_of([*map(Path, sources)], str(folder / "out"), "fr")

    first = tasks()
    for task in first:
        task.output.parent.mkdir(parents=True, exist_ok=True)
        task.output.touch()
    assert tasks() == first


def test_outputs_beside_their_files_are_no_inputs_of_the_next_run(folder: Path) -> None:
    (folder / "a.fr.txt").touch()
    tasks = tasks_of([folder / "a.txt", folder / "a.fr.txt"], None, "fr")
    assert names(tasks, folder) == {"a.txt": "a.fr.txt"}


def test_a_folder_may_lie_in_that_of_its_outputs(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert [str(task.output) for task in tasks_of([Path("in")], ".", "fr")] == [
        "a.txt",
        "b.docx",
        "deep/c.HTML",
    ]
    (folder / "in").mkdir()
    (folder / "in" / "a.txt").touch()
    with pytest.raises(FilesError, match=r"in/in/a\.txt would be written over in/a\.txt"):
        tasks_of([Path("in")], ".", "fr")


def test_columns_of_a_glossary(tmp_path: Path) -> None:
    tabs, commas = tmp_path / "a.tsv", tmp_path / "a.csv"
    tabs.write_text("# terms\npod\tPod\n\nqueue depth\tLänge der Schlange\tignored\n", encoding="utf-8-sig")
    commas.write_text('"pods, all",Pods\n')
    assert read_glossary(tabs, "en", "fr") == (("pod", "Pod"), ("queue depth", "Länge der Schlange"))
    assert read_glossary(commas, "en", "fr") == (("pods, all", "Pods"),)


@pytest.mark.parametrize("line", ["pod", "pod\t", "\tPod"])
def test_a_glossary_with_a_missing_column_is_refused_by_its_line(line: str, tmp_path: Path) -> None:
    file = tmp_path / "a.tsv"
    file.write_text(f"a\tb\n{line}\n")
    with pytest.raises(FilesError, match="line 2"):
        read_glossary(file, "en", "fr")


def test_a_glossary_is_the_short_segments_of_a_memory(tmp_path: Path) -> None:
    file = tmp_path / "a.TMX"
    segments = ("<tuv xml:lang='en'><seg>pod</seg></tuv>", "<tuv xml:lang='de'><seg>Pod</seg></tuv>")
    file.write_text(f"<tmx><header srclang='en'/><tu>{''.join(segments)}</tu></tmx>")
    assert read_glossary(file, None, "de") == read_glossary(file, "en", "de-AT") == (("pod", "Pod"),)
    with pytest.raises(FilesError, match="no segment of at most 4 words with a translation from en into fr"):
        read_glossary(file, "en", "fr")
    file.write_text("pod\tPod")
    with pytest.raises(FilesError, match="cannot be read: no TMX: line 1"):
        read_glossary(file, "en", "de")


def test_a_link_to_itself_is_no_file_of_a_folder(folder: Path) -> None:
    expected = [task.source for task in tasks_of([folder], None, "fr")]
    (folder / "loop.txt").symlink_to("loop.txt")
    assert [task.source for task in tasks_of([folder], None, "fr")] == expected


def test_a_device_or_pipe_is_not_replaced_by_an_output(folder: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(FilesError, match="is no regular file"):
        tasks_of([folder / "a.txt"], str(pipe), "fr")


def test_a_quote_that_does_not_end_is_an_error_of_the_glossary(tmp_path: Path) -> None:
    file = tmp_path / "terms.csv"
    file.write_text('engine,"moteur\n' + "train,train\n" * 20_000)
    with pytest.raises(FilesError, match="cannot be read: field larger than field limit"):
        read_glossary(file, "en", "fr")


@pytest.mark.parametrize("denied", [".", "deep"])
def test_a_folder_that_cannot_be_read_is_not_left_out(
    denied: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scandir = os.scandir

    def scan(path: Any) -> Any:
        if Path(path) == folder / denied:
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", scan)
    with pytest.raises(FilesError, match="Permission denied"):
        tasks_of([folder], None, "fr")


def test_an_output_that_is_a_link_to_itself_is_named(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    for output in ("loop", "loop/"):
        with pytest.raises(FilesError, match="cannot be resolved"):
            tasks_of([folder / "a.txt"], f"{tmp_path}/{output}", "fr")
