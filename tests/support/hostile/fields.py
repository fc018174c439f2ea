"""Every field of every API, each with a function that makes an HTTP request with a given value in it; pure.

For pods and routers alike: what is sent is what a client sends. `values` has the values, `files` the
files that they are put into.
"""

import json
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import urlencode

from tests.support.hostile.files import FILES
from tests.support.hostile.requests import (
    FORM,
    HERE,
    JSON,
    MULTIPART,
    Parts,
    Request,
    as_body,
    in_form,
    in_header,
    in_json,
    in_parts,
    in_target,
    part,
    quoted,
)
from tests.support.hostile.values import KINDS, Value

Body = dict[str, Any]
Variants = dict[str, Body]


@dataclass(frozen=True)
class Field:
    """A position for a value.

    Args:
        api: The API that has it; `http` for headers and paths, which all have.
        name: Path, and the position in its request.
        request: The request with the value there; everything else in it is right.
    """

    api: str
    name: str
    request: Callable[[Value], Request]


def _positions(example: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Everything in an example, by its path: the example with `HERE` in its place, or as one more key."""
    if name:
        yield name, HERE
    if isinstance(example, dict):
        children = {f"{name}.{key}" if name else key: (key, child) for key, child in example.items()}
        yield f"{name}.key" if name else "key", example | {HERE: 1}
        for path, (key, child) in children.items():
            yield from ((at, example | {key: found}) for at, found in _positions(child, path))
    elif isinstance(example, list):
        yield from ((at, [found]) for at, found in _positions(example[0], f"{name}[0]"))


def _json(
    api: str,
    method: str,
    path: str,
    example: Any,
    optional: str = "",
    variants: Variants | None = None,
) -> Iterator[Field]:
    """Everything in a body of JSON, and the body itself.

    Args:
        api: See `Field`.
        method: Of the request.
        path: Its target.
        example: The smallest body that is right.
        optional: Names of fields that it can have beside.
        variants: By name, what is added to the example; None removes a field.
    """
    templates = dict(_positions(example))
    templates |= {name: example | {name: HERE} for name in optional.split()}
    for name, added in (variants or {}).items():
        templates[name] = {key: value for key, value in (example | added).items() if value is not None}
    for name, template in templates.items():
        yield Field(api, f"{path} {name}", partial(in_json, method, path, template))
    yield Field(api, f"{path} body", partial(as_body, method, path, JSON))


def _form(api: str, path: str, example: Mapping[str, str], optional: str = "") -> Iterator[Field]:
    for name in [*example, *optional.split()]:
        yield Field(api, f"{path} form {name}", partial(in_form, path, example, name))
    yield Field(api, f"{path} form", partial(as_body, "POST", path, FORM))


def _query(
    api: str, method: str, path: str, example: Mapping[str, str], optional: str = "", body: bytes = b""
) -> Iterator[Field]:
    for name in [*example, *optional.split()]:
        others = {key: value for key, value in example.items() if key != name}
        before = f"{path}?{urlencode({**others, name: ''})}"
        yield Field(api, f"{path} query {name}", partial(in_target, method, before, body=body))
    # At the end of the query, with everything that an address may have.
    any_character = "=&%+;,:/?@!$'()*-._~[]{}|^`"
    end = partial(in_target, method, f"{path}?{urlencode(example)}&", body=body, safe=any_character)
    yield Field(api, f"{path} query", end)


def _upload(api: str, path: str, example: Mapping[str, str]) -> Iterator[Field]:
    hello = part(b"file", b"Hello", b"a.txt")

    def in_file(filename: str, wrap: Callable[[bytes], bytes], value: Value) -> list[bytes]:
        return [part(b"file", wrap(value.bytes), filename.encode())]

    def in_field(name: str, value: Value) -> list[bytes]:
        return [hello, part(name.encode(), value.bytes)]

    def many(value: Value) -> list[bytes]:
        """Parts of four bytes each, which take about as much as the value."""
        content = value.bytes
        return [part(b"f%d" % at, content[4 * at : 4 * at + 4]) for at in range(len(content) // 60)]

    positions: dict[str, Parts] = {
        **{f"file: {name}": partial(in_file, *file) for name, file in FILES.items()},
        "name of the file": lambda value: [part(b"file", b"Hello", quoted(value) + b".txt")],
        "name of a part": lambda value: [part(quoted(value), b"x"), hello],
        "parts": lambda value: [*many(value), hello],
    }
    for name, parts in positions.items():
        yield Field(api, f"{path} {name}", partial(in_parts, path, example, parts))
    for name in (*example, "filename", "output_format", "glossary_id", "formality"):
        others = {key: value for key, value in example.items() if key != name}
        yield Field(api, f"{path} {name}", partial(in_parts, path, others, partial(in_field, name)))
    yield Field(api, f"{path} multipart body", partial(as_body, "POST", path, MULTIPART))
    boundary = Request("POST", path, (), b"--b0\r\n\r\n")
    yield Field(api, f"{path} content-type", partial(in_header, boundary, b"content-type"))


def _native() -> Iterator[Field]:
    example = {"text": "Hello", "source_lang": "en", "target_lang": "de"}
    optional = "format terms memory formality context instructions alternatives ignore_tags split on_finding"
    optional += " timeout_s details stream"
    term = {"source": "a", "target": "b"}
    variants: Variants = {
        "text in html": {"text": HERE, "format": "html"},
        "text in xml": {"text": HERE, "format": "xml"},
        "text detected": {"text": HERE, "source_lang": None},
        "text streamed": {"text": HERE, "stream": True},
        "text by sentences": {"text": HERE, "split": "sentences"},
        "text unsplit": {"text": HERE, "split": "none"},
        "text with terms": {"text": HERE, "terms": [term, {"source": "<!--", "target": "c"}]},
        "text failing": {"text": HERE, "on_finding": "fail"},
        "text in a list": {"text": [HERE, "b"]},
        "text with tags ignored": {"text": HERE, "format": "html", "ignore_tags": ["a", "script"]},
        "text with a memory": {"text": HERE, "memory": [{"source": "a", "target": "c"}]},
        "memory[0].source": {"memory": [{"source": HERE, "target": "c"}]},
        "memory[0].target": {"text": "a", "memory": [{"source": "a", "target": HERE}]},
        "memory[0].target in html": {
            "text": "<p>a</p>",
            "format": "html",
            "memory": [{"source": "a", "target": HERE}],
        },
        "terms[0].source": {"terms": [term | {"source": HERE}]},
        "terms[0].target": {"terms": [term | {"target": HERE}]},
        "terms matched": {"text": "a" * 1999, "terms": HERE},
        "terms matched in words": {"text": "w1 w2 aaaa " * 180, "terms": HERE},
        "instructions[0]": {"instructions": [HERE]},
        "ignore_tags[0]": {"ignore_tags": [HERE], "format": "html", "text": "<a>b</a>" * 100},
    }
    yield from _json("native", "POST", "/translate", example, optional, variants)
    yield from _upload("native", "/documents", {"source_lang": "en", "target_lang": "de"})
    yield Field("native", "/documents id", partial(in_target, "GET", "/documents/", after="/result"))


def _libretranslate() -> Iterator[Field]:
    api, path = "libretranslate", "/translate"
    example = {"q": "Hello", "source": "en", "target": "de"}
    variants: Variants = {
        "q in html": {"q": HERE, "format": "html"},
        "q detected": {"q": HERE, "source": "auto"},
        "q in a list": {"q": [HERE, "b"]},
    }
    yield from _json(api, "POST", path, example, "format alternatives api_key", variants)
    yield from _form(api, path, example, "format alternatives")
    yield from _query(api, "POST", path, example, "format alternatives")
    for name in example:
        others = {key: value for key, value in example.items() if key != name}
        parts = partial(lambda name, value: [part(name.encode(), value.bytes)], name)
        yield Field(api, f"{path} multipart {name}", partial(in_parts, path, others, parts))
    yield from _json(api, "POST", "/detect", {"q": "Hello"})
    yield from _form(api, "/detect", {"q": "Hello"})
    yield from _upload(api, "/translate_file", {"source": "en", "target": "de"})
    yield Field(api, "/download_file key", partial(in_target, "GET", "/download_file/"))


def _deepl() -> Iterator[Field]:
    api, path = "deepl", "/v2/translate"
    pair = {"source_lang": "EN", "target_lang": "DE"}
    optional = "context split_sentences preserve_formatting formality glossary_id glossary_ids tag_handling"
    optional += " tag_handling_version outline_detection ignore_tags splitting_tags non_splitting_tags"
    optional += " model_type custom_instructions show_billed_characters style_id"
    variants: Variants = {
        "text[0] in html": {"text": [HERE], "tag_handling": "html"},
        "text[0] in xml": {"text": [HERE], "tag_handling": "xml"},
        "text[0] detected": {"text": [HERE], "source_lang": None},
        "text[0] without newlines": {"text": [HERE], "split_sentences": "nonewlines"},
        "ignore_tags in xml": {"text": ["<a>b</a>" * 50], "tag_handling": "xml", "ignore_tags": HERE},
        "custom_instructions[0]": {"custom_instructions": [HERE]},
    }
    yield from _json(api, "POST", path, {"text": ["Hello"], **pair}, optional, variants)
    yield from _form(api, path, {"text": "Hello", **pair}, optional)
    yield from _query(api, "GET", "/v2/languages", {"type": "source"})
    yield from _upload(api, "/v2/document", pair)
    yield Field(api, "/v2/document id", partial(in_target, "POST", "/v2/document/", after="/result"))
    yield from _json(api, "POST", f"/v2/document/{'A' * 32}", {"document_key": "A" * 64})
    yield from _deepl_glossaries(api)


def _deepl_glossaries(api: str) -> Iterator[Field]:
    pair = {"source_lang": "en", "target_lang": "de"}
    dictionary = {**pair, "entries": "a\tb", "entries_format": "tsv"}
    path, identity = "/v2/glossaries", "3f2504e0-4f89-41d3-9a0c-0305e82c3301"
    formats = {f"entries in {name}": {"entries_format": name, "entries": HERE} for name in ("csv", "tmx")}
    yield from _json(api, "POST", path, {"name": "a", **dictionary}, variants=formats)
    yield from _form(api, path, {"name": "a", **dictionary})
    yield Field(api, f"{path} id", partial(in_target, "GET", f"{path}/", after="/entries"))
    entries = Request("GET", f"{path}/{identity}/entries")
    yield Field(api, f"{path} accept", partial(in_header, entries, b"accept"))
    body = json.dumps({"text": ["Hello"], **pair, "glossary_id": identity}).encode()
    attached = Request("POST", "/v2/translate", ((b"content-type", JSON),), body)
    yield Field(
        api, "/v2/translate glossaries header", partial(in_header, attached, b"x-dragoman-glossaries")
    )
    path = "/v3/glossaries"
    several = {"name": "a", "dictionaries": [dictionary]}
    yield from _json(api, "POST", path, several)
    yield from _json(api, "PATCH", f"{path}/{identity}", several)
    yield from _json(api, "PUT", f"{path}/{identity}/dictionaries", dictionary)
    yield from _query(api, "GET", f"{path}/{identity}/entries", pair)
    yield Field(api, f"{path} id", partial(in_target, "GET", f"{path}/"))


def _openai() -> Iterator[Field]:
    api, path = "openai", "/v1/chat/completions"
    message: Body = {"role": "user", "content": "Hello"}
    example = {"model": "org/model", "messages": [message]}
    optional = "temperature top_p max_tokens max_completion_tokens stop seed presence_penalty"
    optional += " frequency_penalty n logprobs tools functions response_format stream stream_options"
    optional += " translation_options user logit_bias"
    here, pair = message | {"content": HERE}, {"target_lang": "German", "source_lang": "English"}
    variants: Variants = {
        "content translated": {"messages": [here], "translation_options": pair},
        "content streamed": {"messages": [here], "stream": True},
        "content parts": {"messages": [message | {"content": [{"type": "text", "text": HERE}]}]},
        "system": {"messages": [{"role": "system", "content": HERE}, message]},
        "stop[0]": {"stop": [HERE]},
        "terms matched": {
            "messages": [message | {"content": "a" * 1999}],
            "translation_options": pair | {"terms": HERE},
        },
    }
    for name in ("source_lang", "target_lang", "terms", "tm_list", "domains"):
        variants[f"translation_options.{name}"] = {"translation_options": pair | {name: HERE}}
    yield from _json(api, "POST", path, example, optional, variants)
    yield Field(api, "/v1/models name", partial(in_target, "GET", "/v1/models/"))


def _google() -> Iterator[Field]:
    api, path = "google", "/language/translate/v2"
    example = {"q": "Hello", "source": "en", "target": "de"}
    variants: Variants = {
        "q in a list": {"q": [HERE]},
        "q as text": {"q": HERE, "format": "text"},
        "q detected": {"q": HERE, "source": None},
    }
    yield from _json(api, "POST", path, example, "format model", variants)
    yield from _form(api, path, example, "format model")
    yield from _query(api, "GET", path, example, "format model")
    yield from _json(api, "POST", f"{path}/detect", {"q": "Hello"}, variants={"q in a list": {"q": [HERE]}})
    yield from _query(api, "GET", f"{path}/languages", {"target": "de"})
    parent = "/v3/projects/any/locations/any"
    v3 = {"contents": ["Hello"], "sourceLanguageCode": "en", "targetLanguageCode": "de"}
    variants = {
        "contents": {"contents": [HERE]},
        "contents as text": {"contents": [HERE], "mimeType": "text/plain"},
        "glossary": {"glossaryConfig": {"glossary": HERE}},
    }
    yield from _json(api, "POST", f"{parent}:translateText", v3, "mimeType model", variants)
    yield from _json(api, "POST", f"{parent}:detectLanguage", {"content": "Hello"})


def _browser_extensions() -> Iterator[Field]:
    api, pair = "browser-extensions", {"source_lang": "en", "target_lang": "de"}
    variants: Variants = {
        "text in html": {"text": HERE, "tag_handling": "html"},
        "text detected": {"text": HERE, "source_lang": None},
    }
    yield from _json(api, "POST", "/deeplx", {"text": "a", **pair}, "tag_handling", variants)
    markup = {"text_list[0] with markup": {"text_list": [HERE, "<b0>a</b0>"]}}
    yield from _json(api, "POST", "/imme", {**pair, "text_list": ["a"]}, variants=markup)


def _crowdin() -> Iterator[Field]:
    api, path = "crowdin", "/crowdin/translate?source=en&target=de"
    variants: Variants = {
        "strings[0].text": {"strings": [{"text": HERE}]},
        "strings[0] protected": {"strings": [HERE, "<notranslate>a</notranslate>"]},
    }
    yield from _json(api, "POST", path, {"strings": ["a"]}, "stringsUrl", variants)


def _azure() -> Iterator[Field]:
    api, version = "azure", {"api-version": "3.0"}
    query, texts = version | {"from": "en", "to": "de"}, [{"Text": "Hello"}]
    path = f"/translate?{urlencode(query)}"
    yield from _json(api, "POST", path, texts)
    yield from _json(api, "POST", f"{path}&textType=html", texts)
    yield from _json(api, "POST", "/detect?api-version=3.0", texts)
    target = {"language": "de"}
    item: Body = {"text": "Hello", "language": "en", "targets": [target]}
    variants: Variants = {
        f"inputs[0].{name}": {"inputs": [item | {name: HERE}]} for name in ("script", "textType")
    }
    for name in ("script", "tone", "gender", "profanityAction", "profanityMarker", "deploymentName"):
        changed = item | {"targets": [target | {name: HERE}]}
        variants[f"inputs[0].targets[0].{name}"] = {"inputs": [changed]}
    newest = "/translate?api-version=2026-06-06"
    yield from _json(api, "POST", newest, {"inputs": [item]}, variants=variants)
    optional = "textType fromScript toScript profanityAction category"
    yield from _query(api, "POST", "/translate", query, optional, json.dumps(texts).encode())
    yield from _query(api, "GET", "/languages", version, "scope")
    listed = Request("GET", "/languages?api-version=3.0")
    for header in ("accept-language", "x-requestid", "x-clienttraceid", "if-none-match"):
        yield Field(api, f"/languages {header}", partial(in_header, listed, header.encode()))


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
    body = json.dumps({"text": "Hello", "source_lang": "en", "target_lang": "de"}).encode()
    request = Request("POST", "/translate", ((b"content-type", JSON),), body)
    for name in HEADERS:
        yield Field("http", f"header {name}", partial(in_header, request, name.encode()))
    file = [part(b"file", b"Hello", b"a.txt")]
    pair = {"source": "en", "target": "de"}
    upload = in_parts("/translate_file", pair, lambda _: file, Value("", ""))
    for name in ("x-forwarded-host", "x-forwarded-prefix", "x-dragoman-replica"):
        yield Field("http", f"upload header {name}", partial(in_header, upload, name.encode()))
    yield Field("http", "path", partial(in_target, "GET", "/"))
    yield Field("http", "path of a version", partial(in_target, "POST", "/v2/"))
    path = partial(in_target, "POST", "/d/default/", after="/translate")
    yield Field("http", "path of a deployment", path)


FIELDS: tuple[Field, ...] = tuple(
    field
    for fields in (
        _native,
        _libretranslate,
        _deepl,
        _openai,
        _google,
        _azure,
        _browser_extensions,
        _crowdin,
        _http,
    )
    for field in fields()
)
"""Every field of every API."""


def draws(chance: random.Random, max_chars: int) -> Iterator[tuple[Field, Value]]:
    """Fields and values without end: every API as often as the others, sizes evenly by their order of magnitude.

    Args:
        chance: Decides; the same one gives the same draws.
        max_chars: Maximum size of a value.
    """
    by_api: dict[str, list[Field]] = {}
    for field in FIELDS:
        by_api.setdefault(field.api, []).append(field)
    apis, kinds = list(by_api), list(KINDS)
    while True:
        field = chance.choice(by_api[chance.choice(apis)])
        yield field, KINDS[chance.choice(kinds)](round(max_chars ** chance.random()))
