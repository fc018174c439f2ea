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
from dragoman_kube.client import connect
from dragoman_kube.config import configuration
from dragoman_kube.errors import ClusterError
from dragoman_kube.objects import Manifest, key_of
from dragoman_router.access.keys import read_keys
from dragoman_router.errors import SettingsError
from dragoman_router.fleet.cluster import TRANSLATION_DEPLOYMENT

SENTENCE = "The train is late."
ANY_PAIR = ("en", "de")
"""For an object without `languages`, which serves every pair."""


class Result(NamedTuple):
    """What came of the sentence sent to one TranslationDeployment.

    Args:
        line: What is printed; of a failure also the conditions, a line each.
    """

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
        key = None if options.keys_dir is None else first_key(options.keys_dir)
        results = asyncio.run(_run(options, key))
    except (ClusterError, SettingsError) as error:
        print(f"dragoman check: {error}", file=sys.stderr)
        return 1
    for each in results:
        print(each.line)
    if not results:
        print("there is no TranslationDeployment; apply one, such as examples/demo.yaml")
    return 0 if results and all(each.translated for each in results) else 1


def first_key(directory: Path) -> str:
    """The first key of a directory of keys.

    Raises:
        SettingsError: There is none, or the directory cannot be read.
    """
    for key, _ in read_keys(directory).values():
        return key
    raise SettingsError(f"{directory} has no API key")


async def _run(options: argparse.Namespace, key: str | None) -> list[Result]:
    async with connect(await configuration()) as kube:
        lists = [await kube.list(TRANSLATION_DEPLOYMENT, each) for each in options.namespaces.split(",")]
    objects = sorted((item for each in lists for item in each.items), key=key_of)
    return await check(options.url, objects, key, options.timeout_s, verify=not options.insecure)


async def check(
    url: str, objects: Sequence[Manifest], key: str | None, timeout_s: float, *, verify: bool = True
) -> list[Result]:
    """The result of each TranslationDeployment, in their order; all are sent at once.

    Args:
        url: Of the router.
        objects: The TranslationDeployments.
        key: API key; None: the router requires none.
        timeout_s: Maximum seconds of a request.
        verify: Whether the router's certificate is verified.
    """
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    connector = aiohttp.TCPConnector(ssl=verify)
    timeout = aiohttp.ClientTimeout(total=timeout_s)
    async with aiohttp.ClientSession(timeout=timeout, connector=connector, headers=headers) as http:
        return await asyncio.gather(*(_translated(http, url.rstrip("/"), each) for each in objects))


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
        if response.status == 200 and (translation := _field(text, "translation")):
            return Result(True, f"{key}: {source} to {target}: {translation}")
        failure = reason(response.status, text)
    return Result(False, "\n    ".join([f"{key}: {failure}", *conditions(manifest)]))


def pair_of(manifest: Manifest) -> tuple[str, str]:
    """The first pair that an object serves."""
    languages = manifest.get("spec", {}).get("languages") or []
    return (languages[0]["source"], languages[0]["targets"][0]) if languages else ANY_PAIR


def reason(status: int, text: str) -> str:
    """The router's error; the beginning of another server's answer."""
    return f"{status}: {_field(text, 'error', 'message') or text[:500]}"


def _field(text: str, *path: str) -> str | None:
    """A text in a JSON object; None where it is none."""
    try:
        found = json.loads(text)
        for name in path:
            found = found[name]
    except (ValueError, KeyError, TypeError):
        return None
    return found if isinstance(found, str) else None


def conditions(manifest: Manifest) -> list[str]:
    """The conditions of an object that say why it does not serve, one line each."""
    found: list[dict[str, Any]] = manifest.get("status", {}).get("conditions") or []
    if not found:
        return ["it has no conditions: is the operator running?"]
    expected = {"Available": "True", "Degraded": "False"}
    bad = [each for each in found if each["status"] != expected.get(each["type"], each["status"])]
    return [f"{each['type']} is {each['status']}, {each['reason']}: {each['message']}" for each in bad]
