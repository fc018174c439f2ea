"""`dragoman translate`: send a text to a running service and print its translation."""

from __future__ import annotations

import argparse
import json
import sys
import urllib.error
import urllib.request

from dragoman_contract.http import ENGINE_PORT, TRANSLATE_PATH


def main(argv: list[str]) -> int:
    """Translate the arguments, or each line of standard input; 0, or 1 where the service refused."""
    parser = argparse.ArgumentParser(prog="dragoman translate", description=__doc__)
    parser.add_argument(
        "text", nargs="*", help="texts to translate; lines of standard input where there are none"
    )
    parser.add_argument("--url", default=f"http://127.0.0.1:{ENGINE_PORT}", help="address of the service")
    parser.add_argument("--from", dest="source", default="en", metavar="TAG", help="BCP-47 tag of the text")
    parser.add_argument(
        "--to", dest="target", required=True, metavar="TAG", help="BCP-47 tag of the translation"
    )
    parser.add_argument(
        "--timeout", type=float, default=60, metavar="SECONDS", help="maximum wait for the response"
    )
    options = parser.parse_args(argv)
    texts = options.text or [line for line in sys.stdin.read().splitlines() if line.strip()]
    try:
        translations = post(options.url, texts, options.source, options.target, options.timeout)
    except urllib.error.HTTPError as refusal:
        print(f"dragoman translate: {_reason(refusal)}", file=sys.stderr)
        return 1
    except OSError as failure:
        print(f"dragoman translate: {options.url} cannot be reached: {failure}", file=sys.stderr)
        return 1
    print("\n".join(translations))
    return 0


def post(url: str, texts: list[str], source: str, target: str, timeout_s: float) -> list[str]:
    """One native request for a list of texts.

    Returns:
        The translations, in the order of `texts`.

    Raises:
        urllib.error.HTTPError: The service refused; its body has the reason.
        OSError: The service cannot be reached.
    """
    body = json.dumps({"text": texts, "source_lang": source, "target_lang": target}).encode()
    request = urllib.request.Request(
        url.rstrip("/") + TRANSLATE_PATH, body, {"content-type": "application/json"}, method="POST"
    )
    with urllib.request.urlopen(request, timeout=timeout_s) as response:
        translations: list[str] = json.load(response)["translation"]
    return translations


def _reason(refusal: urllib.error.HTTPError) -> str:
    text = refusal.read().decode("utf-8", "replace")
    try:
        return f"{refusal.code}: {json.loads(text)['error']['message']}"
    except (ValueError, KeyError, TypeError):
        return f"{refusal.code}: {text[:500] or refusal.reason}"
