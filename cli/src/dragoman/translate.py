"""`dragoman translate`: texts, lines of standard input, files and folders, by a running service."""

from __future__ import annotations

import argparse
import asyncio
import os
import shlex
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx

from dragoman.engine import EngineError, started
from dragoman.exits import FAILED, INTERRUPTED, UNREACHABLE, USAGE
from dragoman.files import FilesError
from dragoman.journal import JournalError, journal_of
from dragoman.summary import Summary
from dragoman.translate_job import KEY_VARIABLE, Job, UsageError, add_arguments, in_cluster, job_of
from dragoman.translate_run import Run, say
from dragoman.translator import KUBERNETES, NOT_DONE, RefusedError, Translator, UnreachableError

if TYPE_CHECKING:
    from dragoman.reach import Reached

CONNECT_TIMEOUT_S = 10.0


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
        for text in filter(os.path.exists, options.text):
            say(f"warning: {text!r} is translated as a text; --file {shlex.quote(text)} translates the file")
        return asyncio.run(_run(job, options))
    except (UsageError, FilesError, JournalError) as error:
        return say(str(error), USAGE)
    except BrokenPipeError:
        raise
    except OSError as error:
        return say(str(error), FAILED)
    except EngineError as error:
        return say(str(error), UNREACHABLE)
    except UnreachableError as error:
        return say(f"{error}{_resumed(outputs, options)}", UNREACHABLE)
    except RefusedError as error:
        return say(f"{error}{_about_key(error, options)}{_resumed(outputs, options)}", FAILED)
    except KeyboardInterrupt:
        return say(f"interrupted{_resumed(outputs, options)}", INTERRUPTED)


async def _run(job: Job, options: argparse.Namespace) -> int:
    due = [task for task in job.tasks if options.overwrite or not task.is_up_to_date]
    summary = Summary(len(due), up_to_date=len(job.tasks) - len(due), other_kinds=job.other_kinds)
    is_idle = job.is_blank or (bool(job.tasks) and not due)
    try:
        async with _translator(options, job.key, is_idle=is_idle) as translator:
            run = Run(translator, job.wanted, options, summary)
            if job.tasks:
                status = await run.files(due)
            elif job.output:
                status = await run.lines_to_file(job.content, job.output)
            else:
                status = await run.texts_to_stdout(job.texts, job.ends)
            if job.wanted.memory is not None:
                say(f"segments from the memory: {translator.from_memory}")
            if translator.source_kept:
                kept = say(f"{NOT_DONE['source_kept']}: {translator.source_kept}", FAILED)
                status = max(status, kept)
            return status
    finally:
        # On a terminal the translations are seen themselves.
        if job.outputs or (summary.texts_due > 1 and not (summary.is_whole and sys.stdout.isatty())):
            say(str(summary))


@asynccontextmanager
async def _translator(options: argparse.Namespace, key: str, *, is_idle: bool) -> AsyncIterator[Translator]:
    """A client of the service; with nothing to send, no engine is started for it and no cluster read."""
    url: str = options.url
    arguments: Mapping[str, Any] = {}
    async with AsyncExitStack() as stack:
        if is_idle:
            pass
        elif options.model:
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
    from dragoman_kube import errors as kube

    try:
        return await find(options.kubeconfig, options.context, options.deployment)
    except (NoServiceError, kube.ConfigurationError) as error:
        raise UsageError(str(error)) from error
    except kube.RefusedError as error:
        hint = (
            "" if options.deployment else "; --deployment NAMESPACE/NAME needs rights in one namespace alone"
        )
        raise RefusedError(error.status, KUBERNETES, f"{error}{hint}") from error
    except kube.ClusterError as error:
        raise UnreachableError(str(error)) from error


def _about_key(error: RefusedError, options: argparse.Namespace) -> str:
    """Where the API key comes from, if that is what the service refuses."""
    if not error.is_of_the_key:
        return ""
    if options.key_file:
        return f"; the API key is that of --key-file {options.key_file}"
    if os.environ.get(KEY_VARIABLE):
        return (
            f"; the API key is that of the variable {KEY_VARIABLE}, unless --key-file names a file with one"
        )
    return f"; pass --key-file FILE, a file with an API key, or set {KEY_VARIABLE}"


def _resumed(outputs: Sequence[Path], options: argparse.Namespace) -> str:
    """A sentence about what is kept, if there is something."""
    kept = [journal_of(output) for output in outputs if journal_of(output).exists()]
    again = "the same command goes on"
    if options.overwrite:
        # The other files of the command may be up to date without it.
        again = "the same command without --overwrite goes on with this file"
    return f"; {kept[0]} has what is finished: {again}" if kept else ""
