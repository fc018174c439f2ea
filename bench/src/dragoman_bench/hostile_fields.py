"""Every field of every API, each with a function that makes an HTTP request with a given value in it; pure.

For pods and routers alike: what is sent is what a client sends. `hostile_values` has the values.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import urlencode

from dragoman_bench.hostile_files import FILES
from dragoman_bench.hostile_requests import (
    HERE,
    Request,
    as_body,
    as_file_name,
    as_part_name,
    as_parts,
    as_query,
    as_upload,
    in_file,
    in_form,
    in_header,
    in_json,
    in_path,
    in_query,
    in_upload,
)
from dragoman_bench.hostile_values import KINDS, Value

Body = dict[str, Any]

GLOSSARY_ID = "3f2504e0-4f89-41d3-9a0c-0305e82c3301"


@dataclass(frozen=True)
class Field:
    """A place for a value.

    Args:
        api: Whose it is.
        name: Path, and where the value stands there.
        request: The request with the value there; all else in it is right.
    """

    api: str
    name: str
    request: Callable[[Value], Request]


NATIVE: Body = {"text": "Hello", "source_lang": "en", "target_lang": "de"}
LIBRETRANSLATE: Body = {"q": "Hello", "source": "en", "target": "de"}
DEEPL: Body = {"text": ["Hello"], "source_lang": "EN", "target_lang": "DE"}
DICTIONARY: Body = {"source_lang": "en", "target_lang": "de", "entries": "a\tb", "entries_format": "tsv"}
CHAT: Body = {"model": "org/model", "messages": [{"role": "user", "content": "Hello"}]}
QWEN: Body = CHAT | {"translation_options": {"target_lang": "German", "source_lang": "English"}}
GOOGLE: Body = {"q": "Hello", "source": "en", "target": "de"}
AZURE_ITEM: Body = {"text": "Hello", "language": "en", "targets": [{"language": "de"}]}
AZURE_3: dict[str, str] = {"api-version": "3.0", "from": "en", "to": "de"}


def _json_fields(api: str, method: str, path: str, templates: Mapping[str, Any]) -> Iterator[Field]:
    for name, template in templates.items():
        yield Field(api, f"{path} {name}", partial(in_json, method, path, template))
    yield Field(api, f"{path} body", partial(as_body, method, path, b"application/json"))


def _native() -> Iterator[Field]:
    term = {"source": "a", "target": "b"}
    texts = {
        "text": NATIVE | {"text": HERE},
        "text in html": NATIVE | {"text": HERE, "format": "html"},
        "text in xml": NATIVE | {"text": HERE, "format": "xml"},
        "text detected": {"text": HERE, "target_lang": "de"},
        "text streamed": NATIVE | {"text": HERE, "stream": True},
        "text by sentences": NATIVE | {"text": HERE, "split": "sentences"},
        "text unsplit": NATIVE | {"text": HERE, "split": "none"},
        "text with terms": NATIVE | {"text": HERE, "terms": [term, {"source": "<!--", "target": "c"}]},
        "text failing": NATIVE | {"text": HERE, "on_finding": "fail"},
        "text in a list": NATIVE | {"text": [HERE, "b"]},
        "text with tags ignored": NATIVE | {"text": HERE, "format": "html", "ignore_tags": ["a", "script"]},
    }
    names: tuple[str, ...] = (
        "source_lang",
        "target_lang",
        "format",
        "terms",
        "formality",
        "context",
        "instructions",
    )
    names += ("alternatives", "ignore_tags", "split", "on_finding", "timeout_s", "details", "stream")
    others = {name: NATIVE | {name: HERE} for name in names} | {
        "terms[0].source": NATIVE | {"terms": [term | {"source": HERE}]},
        "terms[0].target": NATIVE | {"terms": [term | {"target": HERE}]},
        "terms matched": NATIVE | {"text": "a" * 1999, "terms": HERE},
        "terms matched in words": NATIVE | {"text": "w1 w2 aaaa " * 180, "terms": HERE},
        "instructions[0]": NATIVE | {"instructions": [HERE]},
        "ignore_tags[0]": NATIVE | {"ignore_tags": [HERE], "format": "html", "text": "<a>b</a>" * 100},
        "key": NATIVE | {HERE: 1},
    }
    yield from _json_fields("native", "POST", "/translate", texts | others)


def _libretranslate() -> Iterator[Field]:
    api, path, upload = "libretranslate", "/translate", {"source": "en", "target": "de"}
    fields: Body = {
        name: LIBRETRANSLATE | {name: HERE} for name in ("q", "source", "target", "format", "alternatives")
    }
    fields |= {
        "q in html": LIBRETRANSLATE | {"q": HERE, "format": "html"},
        "q detected": LIBRETRANSLATE | {"q": HERE, "source": "auto"},
        "q in a list": LIBRETRANSLATE | {"q": [HERE, "b"]},
        "api_key": LIBRETRANSLATE | {"api_key": HERE},
        "key": LIBRETRANSLATE | {HERE: 1},
    }
    yield from _json_fields(api, "POST", path, fields)
    yield from _json_fields(api, "POST", "/detect", {"q": {"q": HERE}})
    for name in (*LIBRETRANSLATE, "format", "alternatives"):
        yield Field(api, f"{path} form {name}", partial(in_form, "POST", path, LIBRETRANSLATE, name))
        yield Field(api, f"{path} query {name}", partial(in_query, "POST", path, LIBRETRANSLATE, name, b""))
    yield Field(api, "/detect form q", partial(in_form, "POST", "/detect", {}, "q"))
    yield Field(
        api,
        f"{path} form",
        partial(as_body, "POST", path, b"application/x-www-form-urlencoded"),
    )
    yield Field(api, f"{path} query", partial(as_query, "POST", path, urlencode(LIBRETRANSLATE), b""))
    yield from _uploads(api, "/translate_file", upload)
    for name in ("q", "source", "target"):
        yield Field(api, f"{path} multipart {name}", partial(in_upload, path, LIBRETRANSLATE, name))
    yield Field(api, "/download_file key", partial(in_path, "GET", "/download_file/", ""))


def _uploads(api: str, path: str, fields: Mapping[str, str]) -> Iterator[Field]:
    for name, (filename, wrap) in FILES.items():
        yield Field(api, f"{path} file: {name}", partial(in_file, path, fields, filename, wrap))
    for name in (*fields, "filename", "output_format", "glossary_id", "formality"):
        yield Field(api, f"{path} {name}", partial(in_upload, path, fields, name))
    yield Field(api, f"{path} name of the file", partial(as_file_name, path, fields))
    yield Field(api, f"{path} name of a part", partial(as_part_name, path, fields))
    yield Field(api, f"{path} parts", partial(as_parts, path, fields))
    yield Field(api, f"{path} multipart body", partial(as_upload, path))
    boundary = Request("POST", path.encode(), ((b"content-type", b"x"),), b"--b0\r\n\r\n")
    yield Field(api, f"{path} content-type", partial(in_header, boundary, b"content-type"))


def _deepl() -> Iterator[Field]:
    api, path = "deepl", "/v2/translate"
    choices: tuple[str, ...] = (
        "text",
        "source_lang",
        "target_lang",
        "context",
        "split_sentences",
        "preserve_formatting",
    )
    choices += ("formality", "glossary_id", "glossary_ids", "tag_handling", "tag_handling_version")
    choices += ("outline_detection", "ignore_tags", "splitting_tags", "non_splitting_tags", "model_type")
    choices += ("custom_instructions", "show_billed_characters", "style_id")
    fields = {name: DEEPL | {name: HERE} for name in choices} | {
        "text[0]": DEEPL | {"text": [HERE]},
        "text[0] in html": DEEPL | {"text": [HERE], "tag_handling": "html"},
        "text[0] in xml": DEEPL | {"text": [HERE], "tag_handling": "xml"},
        "text[0] detected": {"text": [HERE], "target_lang": "DE"},
        "text[0] without newlines": DEEPL | {"text": [HERE], "split_sentences": "nonewlines"},
        "ignore_tags in xml": DEEPL | {"text": ["<a>b</a>" * 50], "tag_handling": "xml", "ignore_tags": HERE},
        "custom_instructions[0]": DEEPL | {"custom_instructions": [HERE]},
        "key": DEEPL | {HERE: 1},
    }
    yield from _json_fields(api, "POST", path, fields)
    form = {"text": "Hello", "source_lang": "EN", "target_lang": "DE"}
    for name in choices:
        yield Field(api, f"{path} form {name}", partial(in_form, "POST", path, form, name))
    yield Field(api, f"{path} form", partial(as_body, "POST", path, b"application/x-www-form-urlencoded"))
    yield Field(api, "/v2/languages type", partial(in_query, "GET", "/v2/languages", {}, "type", b""))
    yield Field(api, "/v2/languages query", partial(as_query, "GET", "/v2/languages", "type=source", b""))
    yield from _uploads(api, "/v2/document", {"source_lang": "EN", "target_lang": "DE"})
    yield Field(api, "/v2/document id", partial(in_path, "POST", "/v2/document/", "/result"))
    document = f"/v2/document/{'A' * 32}"
    yield from _json_fields(api, "POST", document, {"document_key": {"document_key": HERE}})
    yield from _glossaries(api)


def _glossaries(api: str) -> Iterator[Field]:
    named = {"name": "a"} | DICTIONARY
    two = {name: named | {name: HERE} for name in named} | {
        "entries in csv": named | {"entries_format": "csv", "entries": HERE}
    }
    yield from _json_fields(api, "POST", "/v2/glossaries", two)
    for name in named:
        made = partial(in_form, "POST", "/v2/glossaries", named, name)
        yield Field(api, f"/v2/glossaries form {name}", made)
    yield Field(api, "/v2/glossaries id", partial(in_path, "GET", "/v2/glossaries/", "/entries"))
    accepted = Request("GET", f"/v2/glossaries/{GLOSSARY_ID}/entries".encode())
    yield Field(api, "/v2/glossaries accept", partial(in_header, accepted, b"accept"))
    three = {
        f"dictionaries[0].{name}": {"name": "a", "dictionaries": [DICTIONARY | {name: HERE}]}
        for name in DICTIONARY
    }
    three |= {
        "name": {"name": HERE, "dictionaries": [DICTIONARY]},
        "dictionaries": {"name": "a", "dictionaries": HERE},
    }
    yield from _json_fields(api, "POST", "/v3/glossaries", three)
    one = f"/v3/glossaries/{GLOSSARY_ID}"
    yield from _json_fields(api, "PATCH", one, three)
    entries = {name: DICTIONARY | {name: HERE} for name in DICTIONARY}
    yield from _json_fields(api, "PUT", f"{one}/dictionaries", entries)
    for name in ("source_lang", "target_lang"):
        made = partial(
            in_query, "GET", f"{one}/entries", {"source_lang": "en", "target_lang": "de"}, name, b""
        )
        yield Field(api, f"/v3/glossaries entries {name}", made)
    yield Field(api, "/v3/glossaries id", partial(in_path, "GET", "/v3/glossaries/", ""))
    held = json.dumps(DEEPL | {"glossary_id": GLOSSARY_ID}).encode()
    request = Request("POST", b"/v2/translate", ((b"content-type", b"application/json"),), held)
    yield Field(api, "/v2/translate glossaries header", partial(in_header, request, b"x-dragoman-glossaries"))


def _openai() -> Iterator[Field]:
    names: tuple[str, ...] = (
        "model",
        "messages",
        "temperature",
        "top_p",
        "max_tokens",
        "max_completion_tokens",
        "stop",
        "seed",
    )
    names += (
        "presence_penalty",
        "frequency_penalty",
        "n",
        "logprobs",
        "tools",
        "functions",
        "response_format",
    )
    names += ("stream", "stream_options", "translation_options", "user", "logit_bias")
    options = QWEN["translation_options"]
    fields = {name: CHAT | {name: HERE} for name in names} | {
        f"translation_options.{name}": QWEN | {"translation_options": options | {name: HERE}}
        for name in ("source_lang", "target_lang", "terms", "tm_list", "domains")
    }
    message = {"role": "user", "content": HERE}
    fields |= {
        "content": CHAT | {"messages": [message]},
        "content translated": QWEN | {"messages": [message]},
        "content streamed": CHAT | {"messages": [message], "stream": True},
        "content parts": CHAT | {"messages": [message | {"content": [{"type": "text", "text": HERE}]}]},
        "role": CHAT | {"messages": [{"role": HERE, "content": "a"}]},
        "system": CHAT
        | {"messages": [{"role": "system", "content": HERE}, {"role": "user", "content": "a"}]},
        "stop[0]": CHAT | {"stop": [HERE]},
        "terms matched": QWEN
        | {
            "messages": [{"role": "user", "content": "a" * 1999}],
            "translation_options": options | {"terms": HERE},
        },
        "key": CHAT | {HERE: 1},
    }
    yield from _json_fields("openai", "POST", "/v1/chat/completions", fields)
    yield Field("openai", "/v1/models name", partial(in_path, "GET", "/v1/models/", ""))


def _google() -> Iterator[Field]:
    api, path = "google", "/language/translate/v2"
    names: tuple[str, ...] = ("q", "source", "target", "format", "model")
    fields = {name: GOOGLE | {name: HERE} for name in names} | {
        "q in a list": GOOGLE | {"q": [HERE]},
        "q as text": GOOGLE | {"q": HERE, "format": "text"},
        "q detected": {"q": HERE, "target": "de"},
        "key": GOOGLE | {HERE: 1},
    }
    yield from _json_fields(api, "POST", path, fields)
    yield from _json_fields(api, "POST", f"{path}/detect", {"q": {"q": HERE}, "q in a list": {"q": [HERE]}})
    for name in names:
        yield Field(api, f"{path} form {name}", partial(in_form, "POST", path, GOOGLE, name))
        yield Field(api, f"{path} query {name}", partial(in_query, "GET", path, GOOGLE, name, b""))
    yield Field(api, f"{path} form", partial(as_body, "POST", path, b"application/x-www-form-urlencoded"))
    yield Field(api, f"{path} query", partial(as_query, "GET", path, urlencode(GOOGLE), b""))
    yield Field(
        api,
        f"{path}/languages target",
        partial(in_query, "GET", f"{path}/languages", {}, "target", b""),
    )


def _browser_extensions() -> Iterator[Field]:
    api = "browser-extensions"
    text: Body = {"text": "a", "source_lang": "en", "target_lang": "de"}
    fields: Body = {name: text | {name: HERE} for name in (*text, "tag_handling")} | {
        "text in html": text | {"text": HERE, "tag_handling": "html"},
        "text detected": {"text": HERE, "target_lang": "de"},
        "key": text | {HERE: 1},
    }
    yield from _json_fields(api, "POST", "/deeplx", fields)
    texts: Body = {"source_lang": "en", "target_lang": "de", "text_list": ["a"]}
    fields = {name: texts | {name: HERE} for name in texts} | {
        "text_list[0]": texts | {"text_list": [HERE]},
        "text_list[0] with markup": texts | {"text_list": [HERE, "<b0>a</b0>"]},
        "key": texts | {HERE: 1},
    }
    yield from _json_fields(api, "POST", "/imme", fields)


def _azure() -> Iterator[Field]:
    api = "azure"
    v3, v2026 = f"/translate?{urlencode(AZURE_3)}", "/translate?api-version=2026-06-06"
    html = f"{v3}&textType=html"
    items: Body = {"Text": [{"Text": HERE}], "body list": HERE, "key": [{HERE: "a"}]}
    yield from _json_fields(api, "POST", v3, items)
    yield from _json_fields(api, "POST", html, {"Text": [{"Text": HERE}]})
    target = {"language": "de"}
    names: tuple[str, ...] = (
        "language",
        "script",
        "tone",
        "gender",
        "profanityAction",
        "profanityMarker",
        "deploymentName",
    )
    fields: Body = {
        f"targets[0].{name}": {"inputs": [AZURE_ITEM | {"targets": [target | {name: HERE}]}]}
        for name in names
    }
    fields |= {
        name: {"inputs": [AZURE_ITEM | {name: HERE}]}
        for name in ("text", "language", "script", "textType", "targets")
    }
    fields |= {"inputs": {"inputs": HERE}, "key": {HERE: 1}}
    yield from _json_fields(api, "POST", v2026, fields)
    body = json.dumps([{"Text": "Hello"}]).encode()
    for name in (
        "api-version",
        "from",
        "to",
        "textType",
        "fromScript",
        "toScript",
        "profanityAction",
        "category",
    ):
        made = partial(in_query, "POST", "/translate", AZURE_3, name, body)
        yield Field(api, f"/translate query {name}", made)
    yield Field(api, "/translate query", partial(as_query, "POST", "/translate", urlencode(AZURE_3), body))
    texts: Body = {"Text": [{"Text": HERE}], "body list": HERE}
    yield from _json_fields(api, "POST", "/detect?api-version=3.0", texts)
    listed = Request("GET", b"/languages?api-version=3.0")
    yield Field(api, "/languages accept-language", partial(in_header, listed, b"accept-language"))
    yield Field(api, "/languages x-requestid", partial(in_header, listed, b"x-requestid"))
    yield Field(api, "/languages x-clienttraceid", partial(in_header, listed, b"x-clienttraceid"))
    yield Field(api, "/languages if-none-match", partial(in_header, listed, b"if-none-match"))
    scoped = partial(in_query, "GET", "/languages", {"api-version": "3.0"}, "scope", b"")
    yield Field(api, "/languages scope", scoped)


HEADERS = (
    *("accept", "accept-encoding", "accept-language", "authorization", "connection", "content-encoding"),
    *("content-type", "cookie", "expect", "forwarded", "if-none-match", "ocp-apim-subscription-key", "range"),
    *("traceparent", "tracestate", "baggage", "transfer-encoding", "user-agent", "x-request-id"),
    *("x-forwarded-for", "x-forwarded-host", "x-forwarded-prefix", "x-forwarded-proto", "x-request-timeout"),
    *("x-dragoman-deployment", "x-dragoman-glossaries", "x-dragoman-replica", "x-dragoman-router"),
    *("x-dragoman-source-lang", "x-dragoman-timeout", "x-dragoman-priority"),
)


def _http() -> Iterator[Field]:
    """What all APIs have in common: headers and paths."""
    body = json.dumps(NATIVE).encode()
    request = Request("POST", b"/translate", ((b"content-type", b"application/json"),), body)
    for name in HEADERS:
        yield Field("http", f"header {name}", partial(in_header, request, name.encode()))
    upload = in_upload("/translate_file", {"source": "en"}, "target", Value("", "de"))
    for name in ("x-forwarded-host", "x-forwarded-prefix", "x-dragoman-replica"):
        made = partial(in_header, upload, name.encode())
        yield Field("http", f"upload header {name}", made)
    yield Field("http", "path", partial(in_path, "GET", "/", ""))
    yield Field("http", "path of a version", partial(in_path, "POST", "/v2/", ""))
    yield Field("http", "path of a deployment", partial(in_path, "POST", "/d/default/", "/translate"))


FIELDS: tuple[Field, ...] = tuple(
    field
    for made in (_native, _libretranslate, _deepl, _openai, _google, _azure, _browser_extensions, _http)
    for field in made()
)
"""Every field of every API."""


def draws(chance: random.Random, most_chars: int) -> Iterator[tuple[Field, Value]]:
    """Fields and values without end: every API as often as the others, sizes evenly by their order of magnitude.

    Args:
        chance: Decides; the same one gives the same draws.
        most_chars: Largest size of a value.
    """
    by_api: dict[str, list[Field]] = {}
    for field in FIELDS:
        by_api.setdefault(field.api, []).append(field)
    apis, kinds = list(by_api), list(KINDS)
    while True:
        field = chance.choice(by_api[chance.choice(apis)])
        yield field, KINDS[chance.choice(kinds)](round(most_chars ** chance.random()))
