"""`dragoman check`: translate a sentence by each TranslationDeployment through a router, and print what failed.

The chart runs it as `helm test`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import aiohttp

from dragoman_contract.http import TRANSLATE_PATH
from dragoman_kube.client import KubeClient, connect
from dragoman_kube.config import configuration
from dragoman_kube.errors import ClusterError
from dragoman_kube.objects import Manifest, key_of
from dragoman_router.fleet.cluster import TRANSLATION_DEPLOYMENT

SENTENCE = "The train is late."
ANY_PAIR = ("en", "de")
"""For an object without `languages`, which serves every pair."""


class Result(NamedTuple):
    """What came of the sentence sent to one TranslationDeployment."""

    translated: bool
    line: str


def main(argv: list[str]) -> int:
    """Check every object; 0 where all translated, else 1."""
    parser = argparse.ArgumentParser(prog="dragoman check", description=__doc__)
    parser.add_argument("--url", required=True, help="address of the router")
    parser.add_argument("--keys-dir", type=Path, help="directory of API keys, of which the first is used")
    parser.add_argument(
        "--namespaces", default="", help="namespaces of the objects, separated by commas; default: all"
    )
    parser.add_argument(
        "--timeout-s", type=float, default=30.0, help="maximum time of a request (default: 30)"
    )
    parser.add_argument("--insecure", action="store_true", help="do not verify the router's certificate")
    options = parser.parse_args(argv)
    try:
        results = asyncio.run(check(options))
    except (ClusterError, OSError, ValueError) as error:
        print(f"dragoman check: {error}", file=sys.stderr)
        return 1
    for each in results:
        print(each.line)
    if not results:
        print("there is no TranslationDeployment; apply one, such as examples/demo.yaml")
    return 0 if results and all(each.translated for each in results) else 1


async def check(options: argparse.Namespace) -> list[Result]:
    """The result of each object, in the order of their names.

    Raises:
        ClusterError: The objects cannot be listed.
        ValueError: There is no key in the directory, or it cannot be read.
    """
    headers = {} if options.keys_dir is None else {"Authorization": f"Bearer {first_key(options.keys_dir)}"}
    timeout = aiohttp.ClientTimeout(total=options.timeout_s)
    connector = aiohttp.TCPConnector(ssl=not options.insecure)
    async with (
        connect(await configuration()) as kube,
        aiohttp.ClientSession(timeout=timeout, connector=connector, headers=headers) as http,
    ):
        objects = await _objects(kube, options.namespaces.split(","))
        sent = (_translated(http, options.url.rstrip("/"), each) for each in objects)
        return list(await asyncio.gather(*sent))


def first_key(directory: Path) -> str:
    """The key of the first file, as the router reads it: the key alone, or JSON with `key`.

    Raises:
        ValueError: There is none.
    """
    for path in sorted(directory.iterdir()):
        if not path.name.startswith(".") and path.is_file():
            text = path.read_text(encoding="utf-8").strip()
            return str(json.loads(text)["key"]) if text.startswith("{") else text
    raise ValueError(f"{directory} has no API key")


async def _objects(kube: KubeClient, namespaces: Sequence[str]) -> list[Manifest]:
    found = [item for each in namespaces for item in (await kube.list(TRANSLATION_DEPLOYMENT, each)).items]
    return sorted(found, key=key_of)


async def _translated(http: aiohttp.ClientSession, url: str, manifest: Manifest) -> Result:
    key = key_of(manifest)
    source, target = pair_of(manifest)
    where = f"{url}/d/{quote(key.namespace)}/{quote(key.name)}{TRANSLATE_PATH}"
    request = {"text": SENTENCE, "source_lang": source, "target_lang": target}
    try:
        async with http.post(where, json=request) as response:
            text = await response.text()
    except TimeoutError:
        failure = "no response within the timeout"
    except aiohttp.ClientError as error:
        failure = f"{url} does not respond: {type(error).__name__} {error}"
    else:
        if response.status == 200:
            return Result(True, f"{key}: {source} to {target}: {json.loads(text)['translation']}")
        failure = reason(response.status, text)
    return Result(False, "\n    ".join([f"{key}: {failure}", *conditions(manifest)]))


def pair_of(manifest: Manifest) -> tuple[str, str]:
    """The first pair that an object serves."""
    languages = manifest.get("spec", {}).get("languages") or []
    return (languages[0]["source"], languages[0]["targets"][0]) if languages else ANY_PAIR


def reason(status: int, text: str) -> str:
    """The router's error."""
    try:
        return f"{status}: {json.loads(text)['error']['message']}"
    except (ValueError, KeyError, TypeError):
        return f"{status}: {text[:500]}"


def conditions(manifest: Manifest) -> list[str]:
    """The conditions of an object that say why it does not serve, one line each."""
    found: list[dict[str, Any]] = manifest.get("status", {}).get("conditions") or []
    expected = {"Available": "True", "Degraded": "False"}
    bad = [each for each in found if each["status"] != expected.get(each["type"], each["status"])]
    if not found:
        return ["it has no conditions: is the operator running?"]
    return [f"{each['type']} is {each['status']}, {each['reason']}: {each['message']}" for each in bad]
