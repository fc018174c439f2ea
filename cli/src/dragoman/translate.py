"""`dragoman translate`: texts, lines of standard input, files and folders, by a running service."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx

from dragoman.engine import EngineError, started
from dragoman.exits import DONE, FAILED, INTERRUPTED, UNREACHABLE, USAGE
from dragoman.files import FilesError, Task
from dragoman.journal import Journal, JournalError, digest_of, journal_of, write_atomically
from dragoman.lines import split, translate_lines
from dragoman.progress import progress
from dragoman.translate_job import Job, UsageError, add_arguments, decoded, in_cluster, job_of
from dragoman.translator import RefusedError, Translator, UnreachableError, Wanted

if TYPE_CHECKING:
    from dragoman.reach import Reached

CONNECT_TIMEOUT_S = 10.0
SHOWN_FAILURES = 5


def main(argv: list[str]) -> int:
    """Translate; see `dragoman.exits` for the status."""
    parser = argparse.ArgumentParser(prog="dragoman translate", description=__doc__)
    add_arguments(parser)
    options = parser.parse_args(argv)
    outputs: Sequence[Path] = ()
    try:
        # Standard input is read here: asyncio would not end this at the first Ctrl-C.
        job = job_of(options)
        outputs = job.outputs
        return asyncio.run(_run(job, options))
    except (UsageError, FilesError, JournalError) as error:
        return _say(str(error), USAGE)
    except BrokenPipeError:
        raise
    except OSError as error:
        return _say(str(error), FAILED)
    except EngineError as error:
        return _say(str(error), UNREACHABLE)
    except UnreachableError as error:
        return _say(f"{error}{_resumed(outputs, options)}", UNREACHABLE)
    except RefusedError as error:
        return _say(f"{error}{_resumed(outputs, options)}", FAILED)
    except KeyboardInterrupt:
        return _say(f"interrupted{_resumed(outputs, options)}", INTERRUPTED)


async def _run(job: Job, options: argparse.Namespace) -> int:
    async with _translator(options, job.key) as translator:
        if job.tasks:
            status = await _files(translator, job.wanted, job.tasks, options)
        elif job.output:
            status = await _lines_to_file(translator, job.wanted, job.content, job.output, options)
        else:
            status = await _texts_to_stdout(translator, job.wanted, job.texts, options)
        if job.wanted.memory is not None:
            _say(f"segments from the memory: {translator.from_memory}")
        return status


async def _files(
    translator: Translator, wanted: Wanted, tasks: Sequence[Task], options: argparse.Namespace
) -> int:
    status = DONE
    for task in tasks:
        if task.is_up_to_date and not options.overwrite:
            _say(f"{task.output} is newer than {task.source}: only --overwrite translates it again")
            continue
        try:
            task.output.parent.mkdir(parents=True, exist_ok=True)
            before = task.source.stat()
            content = task.source.read_bytes()
            if task.is_document:
                with progress(task.source.name, 1) as advance:
                    translated = await translator.document(task.source.name, content, wanted)
                    write_atomically(task.output, translated.content)
                    advance(1)
                if translated.remarks:
                    remarked = _say(
                        f"{task.source}: {translated.remarks}", DONE if translated.is_whole else FAILED
                    )
                    status = max(status, remarked)
            else:
                status = max(status, await _lines_to_file(translator, wanted, content, task.output, options))
            if task.is_up_to_date and _is_changed(task.source, before):
                # With the time of what was translated, the next run does not skip it.
                os.utime(task.output, ns=(before.st_mtime_ns, before.st_mtime_ns))
                status = _say(
                    f"{task.source} was changed meanwhile; the same command translates it again", FAILED
                )
        except RefusedError as error:
            # With one file this is the end; of several the next may be translated.
            if len(tasks) == 1 or not (error.is_of_the_text or task.is_document):
                raise
            status = _say(f"{task.source}: {error}", FAILED)
        except (FilesError, JournalError, OSError) as error:
            if len(tasks) == 1:
                raise
            status = _say(f"{task.source}: {error}", FAILED)
    return status


def _is_changed(source: Path, before: os.stat_result) -> bool:
    """Whether a file was written since; false for a pipe, whose time says nothing about its content."""
    return source.is_file() and source.stat().st_mtime_ns > before.st_mtime_ns


async def _lines_to_file(
    translator: Translator, wanted: Wanted, content: bytes, output: Path, options: argparse.Namespace
) -> int:
    mark, text = decoded(content, f"the text for {output}")
    lines, ends = split(text)
    journal = Journal(output, digest_of(content, wanted.identity), anew=options.overwrite)
    try:
        blank = {number for number, line in enumerate(lines) if not line.strip()}
        waiting = [(n, line) for n, line in enumerate(lines) if n not in blank and n not in journal.done]
        writing = asyncio.Lock()
        with progress(output.name, len(lines) - len(blank), len(journal.done)) as advance:

            async def keep(finished: Mapping[int, str]) -> None:
                async with writing:
                    await asyncio.to_thread(journal.add, finished)
                advance(len(finished))

            failed = await translate_lines(
                *(translator, wanted, waiting, keep), max_lines=options.batch, concurrency=options.concurrency
            )
        for number, reason in sorted(failed.items())[:SHOWN_FAILURES]:
            _say(f"line {number + 1}: {reason}")
        if failed and not options.partial:
            again = "Again without --overwrite" if options.overwrite else "Again"
            return _say(
                f"{len(failed)} lines failed; {journal.path} has the others. {again}, or with --partial",
                FAILED,
            )
        whole = mark + "".join(
            journal.done.get(number, line) + end
            for number, (line, end) in enumerate(zip(lines, ends, strict=True))
        )
        journal.finish(whole.encode())
        return FAILED if failed else DONE
    finally:
        journal.close()


async def _texts_to_stdout(
    translator: Translator, wanted: Wanted, texts: Sequence[str], options: argparse.Namespace
) -> int:
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
                print(ready.pop(printed), flush=True)
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
        failed = await translate_lines(
            *(translator, wanted, waiting, show), max_lines=options.batch, concurrency=options.concurrency
        )
    for number, error in sorted(failed.items()):
        _say(f"text {number + 1}: {error}")
    await show({number: texts[number] if options.partial else "" for number in failed})
    return FAILED if failed else DONE


def _unseen(count: int) -> None:
    """Progress that is not shown."""


@asynccontextmanager
async def _translator(options: argparse.Namespace, key: str) -> AsyncIterator[Translator]:
    url: str = options.url
    arguments: Mapping[str, Any] = {}
    async with AsyncExitStack() as stack:
        if options.model:
            engine = started(options.model, options.prompt_family, options.device)
            url = await stack.enter_async_context(engine)
        elif in_cluster(options):
            url, arguments = await _reached(options)
        http = httpx.AsyncClient(
            base_url=url.rstrip("/") + "/",
            headers={"X-API-Key": key} if key else {},
            timeout=httpx.Timeout(options.timeout, connect=CONNECT_TIMEOUT_S, pool=None),
            limits=httpx.Limits(max_connections=options.concurrency),
            **arguments,
        )
        yield Translator(await stack.enter_async_context(http), options.patience)


async def _reached(options: argparse.Namespace) -> Reached:
    # Without a cluster, neither the client of Kubernetes nor its seconds of imports are needed.
    from dragoman.reach import NoServiceError, find
    from dragoman_kube.errors import ClusterError

    try:
        return await find(options.kubeconfig, options.context, options.deployment)
    except NoServiceError as error:
        raise UsageError(str(error)) from error
    except ClusterError as error:
        raise UnreachableError(str(error)) from error


def _resumed(outputs: Sequence[Path], options: argparse.Namespace) -> str:
    """A sentence about what is kept, if there is something."""
    kept = [journal_of(output) for output in outputs if journal_of(output).exists()]
    again = "the same command goes on"
    if options.overwrite:
        # The other files of the command may be up to date without it.
        again = "the same command without --overwrite goes on with this file"
    return f"; {kept[0]} has what is finished: {again}" if kept else ""


def _say(message: str, status: int = DONE) -> int:
    print(f"dragoman translate: {message}", file=sys.stderr, flush=True)
    return status
