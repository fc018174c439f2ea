"""The flags of `dragoman translate`."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from dragoman.command_line import seconds, whole
from dragoman_contract.http import ENGINE_PORT

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
        help="start an engine on this machine for the time of the command (needs dragoman-service)",
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
        type=_patience,
        default=60,
        metavar="SECONDS",
        help="give up a service that has refused for load, or not answered, for so long (default: 60)",
    )


def _tag(text: str) -> str:
    # The service knows which tags there are; here it is a part of file names.
    if not re.fullmatch(r"[A-Za-z0-9_*-]+", text):
        raise argparse.ArgumentTypeError(f"{text!r} is no BCP-47 tag, such as fr or pt-BR")
    return text


def _patience(text: str) -> float:
    number = float(text)
    if not number >= 0:  # NaN would wait for ever.
        raise argparse.ArgumentTypeError(f"{text} is not 0 or more")
    return number
