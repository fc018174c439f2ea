"""The flags of `dragoman translate`, and the job that they describe. Nothing is sent here."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import httpx

from dragoman.command_line import seconds, seconds_or_none, whole
from dragoman.files import (
    FilesError,
    Task,
    check_replaceable,
    names_folder,
    of_other_kinds,
    read_glossary,
    tasks_of,
)
from dragoman.lines import split
from dragoman.memory import read_memory
from dragoman.translator import Wanted
from dragoman_contract.http import ENGINE_PORT
from dragoman_protocols.files import FILE_ENDINGS

KEY_VARIABLE = "DRAGOMAN_API_KEY"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's flags."""
    parser.add_argument(
        "text", nargs="*", help="texts to translate; lines of standard input where there are none"
    )
    parser.add_argument(
        *("-f", "--file"),
        nargs="+",
        action="extend",
        default=[],
        type=Path,
        metavar="PATH",
        help="files and folders to translate; .txt line by line, the others as documents",
    )
    parser.add_argument(
        *("-o", "--output"),
        metavar="PATH",
        help="file, or folder for several; with a slash at its end always a folder; default: beside each file, as "
        "NAME.TAG.txt",
    )
    parser.add_argument(
        "--from",
        dest="source",
        type=_tag,
        default="en",
        metavar="TAG",
        help="BCP-47 tag of the text, or auto (default: en)",
    )
    parser.add_argument(
        "--to", dest="target", type=_tag, required=True, metavar="TAG", help="of the translation"
    )
    parser.add_argument(
        "--glossary",
        type=Path,
        metavar="FILE",
        help="terms and translations in two columns, .tsv or .csv, or a .tmx",
    )
    parser.add_argument(
        "--memory",
        type=Path,
        metavar="FILE",
        help="a .tmx: segments that it has are taken from it, and not generated",
    )
    parser.add_argument("--overwrite", action="store_true", help="translate anew what is up to date or begun")
    parser.add_argument(
        "--partial",
        action="store_true",
        help="where lines fail, write the others with the source in their place",
    )
    where = parser.add_argument_group("where to")
    where.add_argument(
        "--url",
        default=f"http://127.0.0.1:{ENGINE_PORT}",
        help="address of a pod or router (default: %(default)s)",
    )
    where.add_argument(
        "--model",
        metavar="PATH",
        help="start an engine on this machine for the time of the command; a directory, or as dragoman serve takes it",
    )
    where.add_argument(
        "--prompt-family", default="chatml-generic", metavar="NAME", help="of --model (default: %(default)s)"
    )
    where.add_argument(
        "--device", choices=["cuda", "cpu"], default="cuda", help="of --model (default: %(default)s)"
    )
    where.add_argument("--cluster", action="store_true", help="the router of the kubeconfig's cluster")
    where.add_argument("--kubeconfig", type=Path, metavar="FILE", help="implies --cluster")
    where.add_argument("--context", metavar="NAME", help="of the kubeconfig; implies --cluster")
    where.add_argument(
        "--deployment",
        default="",
        metavar="NAMESPACE/NAME",
        help="a TranslationDeployment instead of the router; implies --cluster",
    )
    where.add_argument(
        "--key-file", type=Path, metavar="FILE", help=f"file with an API key; default: ${KEY_VARIABLE}"
    )
    pace = parser.add_argument_group("pace")
    pace.add_argument("--batch", type=whole, default=16, metavar="LINES", help="of a request (default: 16)")
    pace.add_argument(
        "--concurrency", type=whole, default=8, metavar="N", help="requests at a time (default: 8)"
    )
    pace.add_argument(
        "--timeout",
        type=seconds,
        default=60,
        metavar="SECONDS",
        help="maximum wait for a response (default: 60)",
    )
    pace.add_argument(
        "--patience",
        type=seconds_or_none,
        default=60,
        metavar="SECONDS",
        help="give up a service that has refused for load, or not answered, for so long (default: 60)",
    )


class UsageError(Exception):
    """Flags do not fit together, or the cluster has no such service; the message says what to change."""


class Job(NamedTuple):
    """What a command is to do; nothing is sent yet.

    Args:
        key: Of the API; empty for none.
        tasks: Empty for texts and standard input.
        other_kinds: Files in folders that are not translated for their ending.
        texts: For standard output.
        ends: What is written after each of the texts.
        content: Standard input, for `output`.
    """

    key: str
    wanted: Wanted
    tasks: Sequence[Task] = ()
    other_kinds: int = 0
    texts: Sequence[str] = ()
    ends: Sequence[str] = ()
    content: bytes = b""
    output: Path | None = None

    @property
    def outputs(self) -> Sequence[Path]:
        """The files that it writes."""
        return [task.output for task in self.tasks] or ([self.output] if self.output else [])

    @property
    def is_blank(self) -> bool:
        """Whether there is no text to send."""
        return not (self.tasks or self.content.strip() or any(text.strip() for text in self.texts))


def job_of(options: argparse.Namespace) -> Job:
    """The job of a command line; standard input is read.

    Raises:
        UsageError: Flags do not fit together.
        FilesError: A file or a glossary cannot be used.
    """
    if options.text and options.file:
        raise UsageError("texts and --file exclude each other")
    if options.text and options.output is not None:
        raise UsageError("--output is for --file and for standard input")
    if options.model and in_cluster(options):
        raise UsageError("--model is of this machine: it excludes the flags of a cluster")
    for number, text in enumerate(options.text, 1):
        if re.search("[\ud800-\udfff]", text):
            raise UsageError(f"text {number} is not UTF-8: {text!r}")
    key = _key(options.key_file)
    if not options.model and not in_cluster(options):
        _check_url(options.url)
    source = None if options.source.lower() == "auto" else options.source
    terms = read_glossary(options.glossary, source, options.target) if options.glossary else ()
    memory = read_memory(options.memory, source, options.target) if options.memory else None
    wanted = Wanted(source, options.target, terms, memory)
    if options.file:
        tasks = tasks_of(options.file, options.output, options.target)
        if not tasks:
            raise UsageError(
                f"these folders have no files that can be translated, which end in {', '.join(FILE_ENDINGS)}"
            )
        return Job(key, wanted, tasks, len(of_other_kinds(options.file)))
    if options.text:
        return Job(key, wanted, texts=options.text, ends=["\n"] * len(options.text))
    if options.output is None:
        lines, ends = split(decoded(sys.stdin.buffer.read(), "standard input")[1])
        return Job(key, wanted, texts=lines, ends=ends)
    if names_folder(options.output):
        raise UsageError(f"{options.output} is a folder; name a file as --output of standard input")
    check_replaceable(Path(options.output))
    return Job(key, wanted, content=sys.stdin.buffer.read(), output=Path(options.output))


def decoded(content: bytes, what: str) -> tuple[str, str]:
    """A byte order mark, if there is one, and the text after it."""
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise FilesError(
            f"{what} is not UTF-8 ({error.reason}, byte {error.start}); convert it, such as with iconv"
        ) from error
    rest = text.removeprefix("\ufeff")
    return text[: len(text) - len(rest)], rest


def _key(file: Path | None) -> str:
    try:
        key = file.read_text(errors="replace") if file else os.environ.get(KEY_VARIABLE, "")
    except OSError as error:
        raise UsageError(f"the API key cannot be read: {error}") from error
    key = key.strip()
    if not (key.isascii() and key.isprintable()):
        raise UsageError(
            f"{file or KEY_VARIABLE} has no API key: one line of printable ASCII characters is expected"
        )
    return key


def _check_url(url: str) -> None:
    try:
        parsed = httpx.URL(url)
        is_valid = parsed.scheme in ("http", "https") and parsed.host and 0 <= (parsed.port or 0) < 2**16
    except httpx.InvalidURL:
        is_valid = False
    if not is_valid:
        raise UsageError(f"--url {url!r} is no address such as http://127.0.0.1:8000")


def in_cluster(options: argparse.Namespace) -> bool:
    """Whether a flag of a cluster is set."""
    return bool(options.cluster or options.kubeconfig or options.context or options.deployment)


def _tag(text: str) -> str:
    # The service knows which tags there are; here it is a part of file names.
    if not re.fullmatch(r"[A-Za-z0-9_*-]+", text):
        raise argparse.ArgumentTypeError(f"{text!r} is no BCP-47 tag, such as fr or pt-BR")
    return text
