"""Which files are translated into which: decided from names and times, before anything is sent."""

from __future__ import annotations

import csv
import errno
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from dragoman.journal import NEW_SUFFIX, SUFFIX, journal_of
from dragoman_protocols.files import FILE_ENDINGS, translated_ending
from dragoman_protocols.memories import MAX_TERM_WORDS, read_terms

TEXT_ENDING = ".txt"
"""Translated line by line; the other endings of `FILE_ENDINGS` are documents, which the service takes apart."""


class FilesError(Exception):
    """Files or flags do not fit together; the message says what to change."""


class Task(NamedTuple):
    """One file to translate."""

    source: Path
    output: Path

    @property
    def is_document(self) -> bool:
        """Whether it is translated as a whole, by `/documents`; a pipe has no ending, and is text."""
        return self.source.suffix.lower() not in ("", TEXT_ENDING)

    @property
    def is_up_to_date(self) -> bool:
        """Whether the output is newer than the source, and no run that was interrupted left a journal."""
        return (
            self.output.exists()
            and not journal_of(self.output).exists()
            and self.output.stat().st_mtime >= self.source.stat().st_mtime
        )


def tasks_of(sources: Sequence[Path], output: str | None, target: str) -> list[Task]:
    """The files of `sources`, which are files and folders, with their outputs.

    Without `output` they lie beside: `letter.fr.txt`, `folder.fr/letter.txt`. An output of the same command is no
    source.

    Args:
        sources: Files and folders.
        output: A file for one file, else a folder; it need not exist. With a slash at its end it is a folder.
        target: BCP-47 tag, for names.

    Raises:
        FilesError: A source does not exist, or an output would replace another one, a source or a folder.
    """
    into = None if output is None else Path(output)
    into_folder = output is not None and (len(sources) > 1 or names_folder(output))
    if into and into.is_file() and (into_folder or any(source.is_dir() for source in sources)):
        raise FilesError(f"{into} is a file; name a folder as --output")
    found: list[Task] = []
    for source in sources:
        if source.is_dir():
            named = source.resolve() if source.name in ("", "..") else source
            if into is None:
                if not named.name:
                    raise FilesError(f"{source} has no folder beside it; name an --output")
                root = named.with_name(f"{named.name}.{target}")
            else:
                root = into / named.name if len(sources) > 1 else into
            found += _in_folder(source, root, into or root)
        elif source.exists():
            _check_ending(source)
            if into is None:
                found.append(Task(source, _renamed(source.with_stem(f"{source.stem}.{target}"))))
            elif into_folder:
                found.append(Task(source, into / _renamed(source).name))
            else:
                made = translated_ending(source.suffix.lower())
                if made != source.suffix.lower() and into.suffix.lower() != made:
                    raise FilesError(f"the translation of {source} is a {made} file; name --output so")
                found.append(Task(source, into))
        else:
            raise FilesError(f"{source} does not exist")
    return _without_outputs(found, is_beside=into is None)


def _check_ending(source: Path) -> None:
    """Raise FilesError for a file of another kind; a pipe may be without an ending."""
    ending = source.suffix.lower()
    if ending not in FILE_ENDINGS and (ending or source.is_file()):
        kind = f"files that end in {ending}" if ending else "files without an ending"
        raise FilesError(
            f"{source}: {kind} are not translated, but those that end in {', '.join(FILE_ENDINGS)}; "
            "text in a file of another name is translated as standard input (< FILE)"
        )


def of_other_kinds(sources: Sequence[Path]) -> list[Path]:
    """The files in folders that are not translated for their ending, hidden ones aside."""
    return [
        file
        for folder in sources
        for file in sorted(folder.rglob("*"))
        if not (file.suffix.lower() in FILE_ENDINGS or file.name.endswith((SUFFIX, NEW_SUFFIX)))
        and not any(part.startswith(".") for part in file.relative_to(folder).parts)
        and file.is_file()
    ]


def names_folder(output: str) -> bool:
    """Whether an `--output` is a folder: one that exists, or by the slash at its end."""
    return Path(output).is_dir() or output.endswith("/")


def check_replaceable(output: Path) -> None:
    """Raise FilesError for a device or a pipe, such as /dev/null: the rename at the end would replace it by a file."""
    try:
        os.path.realpath(output, strict=True)
    except OSError as error:
        if error.errno == errno.ELOOP:  # A link to itself.
            raise FilesError(f"{output} cannot be resolved: {error}") from error
    if output.exists() and not output.is_file():
        raise FilesError(f"{output} is no regular file; name another --output")


def _without_outputs(found: Sequence[Task], *, is_beside: bool) -> list[Task]:
    """Each task once. Beside its source, an output is known by its name, and no source: `*.txt` can be repeated."""
    by_output: dict[Path, Task] = {}
    for task in found:
        if task.output.is_dir():
            raise FilesError(
                f"{task.output}, the output of {task.source}, is a folder; name another --output"
            )
        check_replaceable(task.output)
        other = by_output.setdefault(task.output.resolve(), task)
        if other.source.resolve() != task.source.resolve():
            raise FilesError(f"{other.source} and {task.source} would both be written to {task.output}")
    tasks = []
    for task in by_output.values():
        maker = by_output.get(task.source.resolve())
        if maker is None:
            tasks.append(task)
        elif maker is task:
            raise FilesError(f"{task.source} would be written over itself; name another --output")
        elif not is_beside:
            raise FilesError(f"{maker.source} would be written over {task.source}; name another --output")
    return tasks


def _in_folder(folder: Path, root: Path, outputs: Path) -> Iterator[Task]:
    """Files of known kinds in a folder, hidden ones and earlier outputs aside."""
    # A folder may lie in that of its outputs.
    own_folders = [
        own for own in (outputs.resolve(), root.resolve()) if not folder.resolve().is_relative_to(own)
    ]
    for source in [folder, *sorted(folder.rglob("*"))]:
        inside = source.relative_to(folder)
        hidden = any(part.startswith(".") for part in inside.parts)
        if source == folder or (not hidden and source.is_dir() and not source.is_symlink()):
            _check_readable(source)
        # First: a link to itself is no file, and cannot be resolved.
        if not source.is_file() or hidden or source.suffix.lower() not in FILE_ENDINGS:
            continue
        own = source.name.endswith((SUFFIX, NEW_SUFFIX)) or any(
            source.resolve().is_relative_to(own_folder) for own_folder in own_folders
        )
        if not own:
            yield Task(source, root / _renamed(inside))


def _check_readable(folder: Path) -> None:
    """Raise FilesError for a folder without permission: `rglob` leaves out what is in it, without an error."""
    try:
        os.scandir(folder).close()
    except OSError as error:
        raise FilesError(f"the folder {folder} cannot be read: {error}") from error


def _renamed(path: Path) -> Path:
    """The path with the ending of a translation, where that is another."""
    ending = path.suffix.lower()
    made = translated_ending(ending)
    return path if made == ending else path.with_suffix(made)


def read_glossary(file: Path, source: str | None, target: str) -> tuple[tuple[str, str], ...]:
    """Terms and their translations: two columns, divided by tabs, or by commas in a `.csv`; or a `.tmx`.

    Empty lines and lines that begin with `#` are skipped.

    Args:
        file: The glossary.
        source: BCP-47 tag, which picks the segments of a `.tmx`; None: the one that its header names.
        target: The same of the translations.

    Raises:
        FilesError: It cannot be read, a line has no two columns, or a `.tmx` has no terms of the pair.
    """
    try:
        text = file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise FilesError(f"the glossary {file} cannot be read: {error}") from error
    if file.suffix.lower() == ".tmx":
        return _terms_of_memory(file, text, source, target)
    terms = []
    reader = (
        csv.reader(text.splitlines())
        if file.suffix.lower() == ".csv"
        else (line.split("\t") for line in text.splitlines())
    )
    try:
        rows = [*reader]
    except csv.Error as error:  # Such as a quote that does not end.
        raise FilesError(f"the glossary {file} cannot be read: {error}") from error
    for number, columns in enumerate(rows, 1):
        if not any(columns) or columns[0].startswith("#"):
            continue
        if len(columns) < 2 or not columns[0].strip() or not columns[1].strip():
            raise FilesError(
                f"{file}, line {number}: a term and its translation are expected, divided by a tab"
            )
        terms.append((columns[0].strip(), columns[1].strip()))
    return tuple(terms)


def _terms_of_memory(file: Path, text: str, source: str | None, target: str) -> tuple[tuple[str, str], ...]:
    try:
        terms = read_terms(text, source, target)
    except ValueError as error:
        raise FilesError(f"the glossary {file} cannot be read: {error}") from error
    if not terms:
        raise FilesError(
            f"{file} has no segment of at most {MAX_TERM_WORDS} words with a translation from "
            f"{source or 'the language of its header'} into {target}"
        )
    return terms
