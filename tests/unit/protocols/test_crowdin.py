"""Requests of Crowdin's module `custom-mt`, from its documentation and from the package that answers them in Node."""

import json
from typing import Any

import pytest

from dragoman_contract.languages import Languages
from dragoman_protocols.calls import NOTHING
from dragoman_protocols.crowdin import READING
from dragoman_protocols.errors import CallerError
from dragoman_protocols.messages import Request
from dragoman_protocols.offer import offer_of
from dragoman_protocols.site import Limits, Site
from dragoman_protocols.translation import Format, TranslationResult

SITE = Site(offer_of([()]), ("m",), Limits(3, 1000))
PAIR = b"source=en&target=uk&project_id=727186&jwtToken=e30.e30.sig"


def request(body: Any, query: bytes = PAIR) -> Request:
    return Request("POST", "/crowdin/translate", query, [], json.dumps(body).encode())


def translations(body: Any, **results: str) -> list[str]:
    """What is answered where the core translates each text to `results`."""
    call = READING.read(request(body), SITE)
    done = [[TranslationResult(results[text], "en") for text in each.texts] for each in call.requests]
    found: list[str] = json.loads(call.render(done).body)["data"]["translations"]
    return found


def test_strings_are_translated_in_their_order() -> None:
    assert translations({"strings": ["Save", " ", "Open"]}, Save="Зберегти", Open="Відкрити") == [
        "Зберегти",
        " ",
        "Відкрити",
    ]
    assert translations({"strings": []}) == []


def test_strings_come_with_their_context() -> None:
    string = {
        "id": 1,
        "projectId": 2,
        "identifier": "a.b",
        "context": "a button",
        "isPlural": False,
        "text": "Save",
    }
    assert translations({"strings": [string]}, Save="Зберегти") == ["Зберегти"]


def test_protected_parts_are_read_as_html_and_other_strings_as_they_are() -> None:
    strings = ["a < b", 'Hi <span translate="no">{0}</span>', "c", "Hi <notranslate>%s</notranslate>"]
    site = Site(SITE.offer, ("m",), Limits(9, 1000))
    plain, html = READING.read(request({"strings": strings}), site).requests
    assert (plain.texts, plain.format) == (("a < b", "c"), Format.PLAIN)
    assert (html.texts, html.format) == ((strings[1], strings[3]), Format.HTML)
    assert html.ignore_tags == {"notranslate"}
    results = [[TranslationResult(text.upper(), "en") for text in each.texts] for each in (plain, html)]
    answer = READING.read(request({"strings": strings}), site).render(results)
    assert json.loads(answer.body)["data"]["translations"] == [text.upper() for text in strings]


@pytest.mark.parametrize(
    ("code", "tag"),
    [("zh-CN", "zh-Hans"), ("zh-TW", "zh-Hant"), ("pt-BR", "pt-BR"), ("no", "nb"), ("es-ES", "es-ES")],
)
def test_codes(code: str, tag: str) -> None:
    query = f"source=en&target={code}".encode()
    (need,) = READING.peek(request({"strings": ["a"]}, query), SITE.offer).needs
    assert need.targets == (tag,)


def test_the_probe_of_an_installation_needs_no_pair() -> None:
    served = (Languages(source="fr", targets=("it",)),)
    site = Site(offer_of([served]), ("m",), Limits(3, 1000))
    probe = request({"strings": ["validation"]}, b"source=en&target=de")
    assert READING.peek(probe, site.offer) == NOTHING
    call = READING.read(probe, site)
    assert (call.requests, call.characters) == ((), 0)
    assert json.loads(call.render([]).body) == {"data": {"translations": []}}


@pytest.mark.parametrize(
    ("body", "query", "message"),
    [
        ({"strings": ["a"]}, b"source=en", "the parameter target is required"),
        ({"strings": ["a"]}, b"target=en", "the parameter source is required"),
        ({"strings": ["a"]}, b"source=en&target=xx-no-lang", "names no language|no language tag"),
        ({"stringsUrl": "https://crowdin.example/strings"}, PAIR, "set batchSize"),
        ({"strings": [{"text": {"one": "a", "other": "b"}}]}, PAIR, "send each form"),
        ({"strings": ["a"] * 4}, PAIR, "at most 3"),
        ({"strings": "a"}, PAIR, "strings must be a list"),
        ([], PAIR, "object"),
    ],
)
def test_refusals_say_what_to_do(body: Any, query: bytes, message: str) -> None:
    with pytest.raises(CallerError, match=message):
        READING.read(request(body, query), SITE)
