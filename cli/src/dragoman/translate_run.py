"""The work of `dragoman translate`: files, lines and texts, with what is printed about them."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import NamedTuple

from dragoman.exits import DONE, FAILED
from dragoman.files import FilesError, Task
from dragoman.journal import Journal, JournalError, digest_of, write_atomically
from dragoman.lines import Done, split, translate_lines
from dragoman.progress import progress
from dragoman.summary import Summary
from dragoman.translate_job import decoded
from dragoman.translator import RefusedError, Translator, Wanted

SHOWN_FAILURES = 5


class Run(NamedTuple):
    """One command.

    Args:
        options: Flags: `overwrite`, `partial`, `batch`, `concurrency`.
        summary: Is kept up to date.
    """

    translator: Translator
    wanted: Wanted
    options: argparse.Namespace
    summary: Summary

    async def files(self, tasks: Sequence[Task]) -> int:
        """Translate files, each to its output; the exit status."""
        status = DONE
        for task in tasks:
            try:
                done = await self._file(task)
            except RefusedError as error:
                # With one file this is the end; of several the next may be translated.
                may_go_on = error.is_of_the_text or (task.is_document and not error.is_of_the_key)
                if len(tasks) == 1 or not may_go_on:
                    raise
                done = say(f"{task.source}: {error}", FAILED)
                self.summary.failed_files += 1
            except (FilesError, JournalError, OSError) as error:
                if len(tasks) == 1:
                    raise
                done = say(f"{task.source}: {error}", FAILED)
                self.summary.failed_files += 1
            status = max(status, done)
        return status

    async def _file(self, task: Task) -> int:
        status = DONE
        task.output.parent.mkdir(parents=True, exist_ok=True)
        before = task.source.stat()
        content = task.source.read_bytes()
        if task.is_document:
            with progress(task.source.name, 1) as advance:
                translated = await self.translator.document(task.source.name, content, self.wanted)
                write_atomically(task.output, translated.content)
                advance(1)
            self.summary.files += 1
            self.summary.characters += translated.characters
            if translated.remarks:
                status = say(f"{task.source}: {translated.remarks}", DONE if translated.is_whole else FAILED)
        else:
            status = await self.lines_to_file(content, task.output, str(task.source))
        if task.is_up_to_date and _is_changed(task.source, before):
            # With the time of what was translated, the next run does not skip it.
            os.utime(task.output, ns=(before.st_mtime_ns, before.st_mtime_ns))
            status = say(f"{task.source} was changed meanwhile; the same command translates it again", FAILED)
        return status

    async def lines_to_file(self, content: bytes, output: Path, name: str = "standard input") -> int:
        """Translate the lines of a text to a file, with a journal; the exit status. `name` is for messages."""
        mark, text = decoded(content, name)
        lines, ends = split(text)
        journal = Journal(output, digest_of(content, self.wanted.identity), anew=self.options.overwrite)
        try:
            blank = {number for number, line in enumerate(lines) if not line.strip()}
            waiting = [(n, line) for n, line in enumerate(lines) if n not in blank and n not in journal.done]
            writing = asyncio.Lock()
            with progress(output.name, len(lines) - len(blank), len(journal.done)) as advance:

                async def keep(finished: Mapping[int, str]) -> None:
                    async with writing:
                        await asyncio.to_thread(journal.add, finished)
                    advance(len(finished))

                failed = await self._lines(waiting, keep)
            for number, reason in sorted(failed.items())[:SHOWN_FAILURES]:
                say(f"line {number + 1}: {reason}")
            if failed and not self.options.partial:
                self.summary.failed_files += 1
                again = "Again without --overwrite" if self.options.overwrite else "Again"
                return say(
                    f"{len(failed)} lines failed; {journal.path} has the others. {again}, or with --partial",
                    FAILED,
                )
            whole = mark + "".join(
                journal.done.get(number, line) + end
                for number, (line, end) in enumerate(zip(lines, ends, strict=True))
            )
            journal.finish(whole.encode())
            self.summary.files += 1
            return FAILED if failed else DONE
        finally:
            journal.close()

    async def texts_to_stdout(self, texts: Sequence[str], ends: Sequence[str]) -> int:
        """Print the translations in their order, each followed by its end; the exit status."""
        # Each text keeps its line.
        ready = {number: text for number, text in enumerate(texts) if not text.strip()}
        waiting = [(number, text) for number, text in enumerate(texts) if number not in ready]
        printed = 0

        async def show(finished: Mapping[int, str]) -> None:
            nonlocal printed
            advance(len(finished))
            ready.update(finished)
            while printed in ready:
                try:
                    print(ready.pop(printed), end=ends[printed], flush=True)
                except UnicodeEncodeError as error:
                    raise OSError(
                        f"the encoding of standard output, {error.encoding}, has not all characters of translation "
                        f"{printed + 1}; set PYTHONIOENCODING=utf-8"
                    ) from None
                printed += 1

        # On a terminal the translations themselves are the progress.
        shown = nullcontext(_unseen) if sys.stdout.isatty() else progress("texts", len(waiting))
        with shown as advance:
            await show({})
            failed = await self._lines(waiting, show)
        for number, error in sorted(failed.items()):
            say(f"text {number + 1}: {error}")
        await show({number: texts[number] if self.options.partial else "" for number in failed})
        return FAILED if failed else DONE

    async def _lines(self, waiting: Iterable[tuple[int, str]], done: Done) -> dict[int, RefusedError]:
        lines = dict(waiting)
        self.summary.texts_due += len(lines)

        async def counted(finished: Mapping[int, str]) -> None:
            await done(finished)
            self.summary.texts += len(finished)
            self.summary.characters += sum(len(lines[number]) for number in finished)

        failed = await translate_lines(
            *(self.translator, self.wanted, lines.items(), counted),
            max_lines=self.options.batch,
            concurrency=self.options.concurrency,
        )
        self.summary.failed_texts += len(failed)
        return failed


def _is_changed(source: Path, before: os.stat_result) -> bool:
    """Whether a file was written since; false for a pipe, whose time says nothing about its content."""
    return source.is_file() and source.stat().st_mtime_ns > before.st_mtime_ns


def _unseen(count: int) -> None:
    """Progress that is not shown."""


def say(message: str, status: int = DONE) -> int:
    """Print to standard error; the status."""
    print(f"dragoman translate: {message}", file=sys.stderr, flush=True)
    return status
