"""The web page in Chromium: what people do with it, at a pod and at a router."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from tests.support.browser import NEEDED, WIDTHS, violations, watched_page
from tests.support.servers import PodProcess, RouterProcess

playwright = pytest.importorskip("playwright.sync_api", reason="requirements/test.txt has it")

pytestmark = [pytest.mark.slow, NEEDED]

expect = playwright.expect
KEY = "a-secret-of-alice"
CAT, CHAT = "The cat sleeps on the sofa.", "Le chat dort sur le canapé."
KATZE = "Die Katze schläft auf dem Sofa."
ANSWERS = {CAT: CHAT, CHAT: CAT, KATZE: CAT}
LANGUAGES = [
    {"source": "en", "targets": ["fr", "de", "ne", "zh-Hant"]},
    {"source": "fr", "targets": ["en"]},
    {"source": "de", "targets": ["en"]},
]


@pytest.fixture(scope="module")
def pod(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PodProcess]:
    """Knows three sentences; other ones are reversed, which guards find."""
    flags = [
        "--model",
        "org/model",
        "--engine",
        "scripted",
        "--engine-args",
        json.dumps({"answers": ANSWERS}),
    ]
    started = PodProcess(tmp_path_factory.mktemp("page"), *flags, "--languages", json.dumps(LANGUAGES))
    try:
        started.wait_for("/readyz")
        yield started
    finally:
        started.close()


ANIMALS = {
    "name": "Animals",
    "source_lang": "en",
    "target_lang": "fr",
    "entries_format": "tsv",
    "entries": "cat\tchat",
}
"""A glossary."""
StartRouter = Callable[..., RouterProcess]


@pytest.fixture(scope="module")
def start_router(pod: PodProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StartRouter]:
    """Routers in front of the pod."""
    directory = tmp_path_factory.mktemp("routers")
    deployment = {"name": "default/one", "languages": LANGUAGES, "replicas": [f"127.0.0.1:{pod.port}"]}
    (directory / "static.yaml").write_text(yaml.safe_dump({"deployments": [deployment]}))
    routers: list[RouterProcess] = []

    def start(*arguments: str) -> RouterProcess:
        routers.append(RouterProcess(directory, f"--static={directory / 'static.yaml'}", *arguments))
        routers[-1].wait_until_ready()
        return routers[-1]

    yield start
    for router in routers:
        router.close()


@pytest.fixture(scope="module", params=["pod", "router"])
def url(request: pytest.FixtureRequest, pod: PodProcess, start_router: StartRouter) -> str:
    """Of the page."""
    return f"{pod.url if request.param == 'pod' else start_router().url}/"


def open_page(page: Any, url: str, target: str | None = "fr") -> Any:
    """Open it and choose a target; the place of the translation."""
    page.goto(url)
    if target is not None:
        page.get_by_label("Translate to").select_option(target)
    return page.get_by_role("region", name="Translation")


def document(name: str) -> dict[str, Any]:
    return {"name": name, "mimeType": "text/plain", "buffer": CAT.encode()}


KEEP_FORM = """
    window.sent = {};
    const append = FormData.prototype.append;
    FormData.prototype.append = function (name, value) { sent[name] = value; append.call(this, name, value); };
"""
"""Playwright does not see the fields of a form that has a file."""


def write(page: Any, text: str) -> None:
    page.get_by_label("Text to translate").fill(text)


def test_what_is_typed_is_translated_and_its_language_named(page: Any, url: str) -> None:
    output = open_page(page, url)
    page.get_by_label("Text to translate").press_sequentially(CAT, delay=5)
    expect(output).to_have_text(CHAT)
    expect(page.get_by_text("English detected")).to_be_visible()
    expect(output).to_have_attribute("lang", "fr")
    page.get_by_role("button", name="Clear").click()
    expect(output).to_have_text("")
    expect(page.get_by_label("Text to translate")).to_be_focused()


def test_languages_are_those_that_are_served(page: Any, url: str) -> None:
    open_page(page, url, None)
    targets = page.get_by_label("Translate to").locator("option")
    expect(targets).to_have_text(["English", "French", "German", "Nepali", "Traditional Chinese"])
    page.get_by_label("Translate from").select_option("de")
    expect(targets).to_have_text(["English"])


def test_another_pair_translates_anew(page: Any, url: str) -> None:
    output = open_page(page, url)
    write(page, CAT)
    expect(output).to_have_text(CHAT)
    with page.expect_request("**/translate") as sent:
        page.get_by_label("Translate to").select_option("ne")
    assert sent.value.post_data_json["target_lang"] == "ne"
    page.get_by_label("Translate from").select_option("de")
    expect(page.get_by_label("Translate to")).to_have_value("en")


def test_the_target_follows_a_text_that_is_in_it_to_the_last_one_chosen(page: Any, url: str) -> None:
    output, target = open_page(page, url, "de"), page.get_by_label("Translate to")
    target.select_option("en")
    write(page, CAT)
    expect(target).to_have_value("de")
    expect(output).to_have_attribute("lang", "de")
    expect(page.get_by_text("This text is in English already. It is translated to German.")).to_have_count(1)
    write(page, KATZE)
    expect(target).to_have_value("en")
    expect(output).to_have_text(CAT)
    expect(page.locator("#notice")).to_be_hidden()


def test_without_an_earlier_target_a_text_that_is_in_it_is_translated_to_another(page: Any, url: str) -> None:
    output = open_page(page, url, None)
    expect(page.get_by_label("Translate to")).to_have_value("en")
    write(page, CAT)
    expect(output).to_have_text(CHAT)
    expect(page.get_by_label("Translate to")).to_have_value("fr")


def test_a_text_that_is_in_the_target_and_is_not_translated_to_another_is_pointed_out(
    page: Any, url: str
) -> None:
    output = open_page(page, url, "ne")
    nepali = "मेरो नाम राम हो र म नेपालमा बस्छु।"
    write(page, nepali)
    expect(page.locator("#notice")).to_contain_text(
        "This text is in Nepali already. It is not translated to another language here."
    )
    expect(output).to_have_text(nepali)
    expect(page.get_by_label("Translate to")).to_have_value("ne")


def test_a_target_that_is_chosen_again_stays_and_the_text_is_pointed_out(page: Any, url: str) -> None:
    output = open_page(page, url)
    write(page, CAT)
    expect(output).to_have_text(CHAT)
    page.get_by_label("Translate to").select_option("en")
    expect(page.locator("#notice")).to_contain_text(
        "This text is in English already. Choose another language"
    )
    expect(page.get_by_label("Translate to")).to_have_value("en")
    expect(page.get_by_role("button", name="Try now")).to_be_hidden()
    write(page, "")
    write(page, CAT)
    expect(page.get_by_label("Translate to")).to_have_value("fr")


def test_a_pair_that_is_no_longer_served_is_refused_in_the_server_s_words(page: Any, url: str) -> None:
    error = {"error": {"code": "unsupported_pair", "message": "en to fr is not served"}}
    page.route("**/translate", lambda route: route.fulfill(status=422, json=error))
    open_page(page, url)
    write(page, CAT)
    expect(
        page.get_by_text("This pair of languages is not served. The server says: en to fr")
    ).to_be_visible()


def test_a_link_to_a_language_that_is_not_served_says_which_are(page: Any, url: str) -> None:
    page.goto(f"{url}#from=en&to=fi&text={CAT}")
    notice = page.locator("#notice")
    expect(notice).to_contain_text(
        "Finnish is not served here for texts in English. "
        "Texts are translated to French, German, Nepali, and Traditional Chinese."
    )
    expect(page.get_by_role("button", name="Try now")).to_be_hidden()
    page.get_by_label("Translate to").select_option("fr")
    expect(page.get_by_role("region", name="Translation")).to_have_text(CHAT)
    expect(notice).to_be_hidden()
    page.goto("about:blank")
    page.goto(f"{url}#from=sv&to=en&text=Hej")
    expect(notice).to_contain_text(
        "Swedish is not served here. Texts are translated from English, French, and German."
    )


@pytest.mark.parametrize(
    ("code", "message", "shown"),
    [
        (
            "unsupported_pair",
            "the text is in Finnish (fi) (confidence 0.99), which is not translated into fr here; served are en",
            "This text is in Finnish, which is not translated to French here. "
            "Texts are translated to French from English.",
        ),
        (
            "unsupported_pair",
            "the text is in German (de) (confidence 0.99), which is not translated into fr here; served are en",
            "This text is in German, which is not translated to French here. It is translated to English.",
        ),
        (
            "unknown_language",
            "the language of the text could not be detected; name the source language: served are en",
            "The language of this text could not be detected. Choose it above the text.",
        ),
        ("a_new_code", "the text is in Finnish, which is not served", "the text is in Finnish, which is not"),
    ],
)
def test_a_text_in_a_language_that_is_not_served_is_refused_with_those_that_are(
    page: Any, url: str, code: str, message: str, shown: str
) -> None:
    error = {"error": {"code": code, "message": message}}
    page.route(re.compile("/(translate|documents)$"), lambda route: route.fulfill(status=422, json=error))
    open_page(page, url)
    write(page, "Kissa nukkuu sohvalla.")
    page.locator("#file").set_input_files(document("a.txt"))
    for place in (page.locator("#notice"), page.locator("#files")):
        expect(place).to_contain_text(shown)
    for name in ("Try now", "Try again"):
        expect(page.get_by_role("button", name=name)).to_be_hidden()


@pytest.mark.parametrize("status", [400, 422])
def test_a_refusal_names_no_fields_and_offers_no_other_attempt(page: Any, url: str, status: int) -> None:
    error = {"error": {"code": "invalid_field", "message": "memory[0].source_lang: must be a string"}}
    page.route(re.compile("/(translate|documents)$"), lambda route: route.fulfill(status=status, json=error))
    open_page(page, url)
    write(page, CAT)
    page.locator("#file").set_input_files(document("a.txt"))
    for place in (page.locator("#notice"), page.locator("#files")):
        expect(place).to_contain_text(f"The server does not accept this request (status {status}).")
        expect(place).not_to_contain_text("source_lang")
    for name in ("Try now", "Try again"):
        expect(page.get_by_role("button", name=name)).to_be_hidden()


def test_swap_takes_the_translation_as_the_text(page: Any, url: str) -> None:
    output = open_page(page, url)
    expect(page.get_by_role("button", name="Swap the languages")).to_be_disabled()
    write(page, CAT)
    expect(output).to_have_text(CHAT)
    page.get_by_role("button", name="Swap the languages").press("Enter")
    expect(page.get_by_label("Translate from")).to_have_value("fr")
    expect(page.get_by_label("Translate to")).to_have_value("en")
    expect(page.get_by_label("Text to translate")).to_have_value(CHAT)
    expect(output).to_have_text(CAT)


def test_an_outdated_request_is_cancelled(page: Any, url: str) -> None:
    output = open_page(page, url)
    held: list[Any] = []

    def hold_the_first(route: Any) -> None:
        if held:
            route.continue_()
        else:
            held.append(route)

    page.route("**/translate", hold_the_first)
    with page.expect_request("**/translate"):
        write(page, KATZE)
    with page.expect_event("requestfailed", lambda request: request == held[0].request):
        write(page, CAT)
    expect(output).to_have_text(CHAT)
    with suppress(playwright.Error):  # It is gone.
        held[0].abort()


def test_the_translation_of_an_earlier_text_is_neither_swapped_nor_copied(page: Any, pod: PodProcess) -> None:
    output = open_page(page, pod.url)
    write(page, CAT)
    expect(output).to_have_text(CHAT)
    page.route("**/translate", lambda _: None, times=1)
    with page.expect_request("**/translate"):
        write(page, "The dog sees the cat.")
    expect(page.get_by_role("button", name="Copy", exact=True)).to_be_disabled()
    expect(page.get_by_role("button", name="Alternatives")).to_be_disabled()
    page.get_by_role("button", name="Swap the languages").click()
    expect(page.get_by_label("Translate from")).to_have_value("fr")
    expect(page.get_by_label("Text to translate")).to_have_value("The dog sees the cat.")


def test_what_an_input_method_composes_is_not_translated(page: Any, pod: PodProcess) -> None:
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.post_data or ""))
    page.clock.install()
    output = open_page(page, pod.url)
    page.get_by_label("Text to translate").focus()
    keyboard = page.context.new_cdp_session(page)
    keyboard.send("Input.imeSetComposition", {"text": "the c", "selectionStart": 5, "selectionEnd": 5})
    expect(page.get_by_label("Text to translate")).to_have_value("the c")
    page.clock.fast_forward(2000)
    keyboard.send("Input.insertText", {"text": CAT})
    expect(output).to_have_text(CHAT)
    assert [body for body in sent if '"the c"' in body] == []


def test_keystrokes_are_not_a_request_each(page: Any, url: str) -> None:
    output = open_page(page, url)
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.url) if request.method == "POST" else None)
    page.get_by_label("Text to translate").press_sequentially(CAT)
    expect(output).to_have_text(CHAT)
    assert len(sent) < len(CAT) / 2


def test_findings_of_the_guards_are_shown(page: Any, url: str) -> None:
    open_page(page, url)
    write(page, "The farmer has 12 goats and 30 sheep.")
    expect(page.get_by_text("Check this translation")).to_be_visible()
    expect(page.get_by_text("Numbers differ: 2 lost, 2 invented.")).to_be_visible()
    warnings = [
        {"code": code, "detail": f"not fr: {code}"} for code in ("wrong_language", "wrong_script", "new")
    ]
    answer = {"translation": CHAT, "details": [{"source_lang": "en", "segments": 1, "warnings": warnings}]}
    page.route(
        "**/translate", lambda route: route.fulfill(body=f"event: result\ndata: {json.dumps(answer)}\n\n")
    )
    write(page, CAT)
    found = page.locator("#findings li")
    expect(found).to_have_text(["A part of it may not be in French.", "Not fr: new."])


def test_a_long_text_and_its_translation_grow_together(page: Any, url: str) -> None:
    output, text = open_page(page, url), page.get_by_label("Text to translate")
    measured = (
        "element => [element.clientHeight, element.scrollHeight, element.getBoundingClientRect().bottom]"
    )
    answers: list[str] = []
    page.route("**/translate", lambda route: route.fulfill(body=answers[-1]))
    # Of the second text the translation is the longer one.
    for lines, answered in ((60, 1), (1, 60)):
        details = {"source_lang": "en", "segments": 1, "warnings": []}
        answer = {"translation": f"{CHAT}\n" * answered, "details": [details]}
        answers.append(f"event: result\ndata: {json.dumps(answer)}\n\n")
        write(page, f"{CAT}\n" * lines)
        expect(output).to_have_text(answer["translation"])
        expect(output).to_have_attribute("aria-busy", "false")
        height, needed, bottom = text.evaluate(measured)
        assert height >= needed
        assert height > 1000
        assert abs(bottom - output.evaluate(measured)[2]) < 2
    # What acts on them stays in sight.
    for place in (0, 600):
        page.mouse.wheel(0, place)
        page.wait_for_function("place => scrollY === place", arg=place)
        expect(page.get_by_role("button", name="Copy", exact=True)).to_be_in_viewport(ratio=1)
        expect(page.get_by_label("Translate to")).to_be_in_viewport(ratio=1)


def test_a_browser_that_does_not_size_fields_by_their_content_grows_them_too(
    page: Any, pod: PodProcess
) -> None:
    page.add_init_script("CSS.supports = () => false")
    open_page(page, pod.url)
    text = page.get_by_label("Text to translate")
    text.evaluate("text => { text.style.fieldSizing = 'fixed'; }")
    for lines in (60, 90, 30):
        write(page, f"{CAT}\n" * lines)
        height, needed = text.evaluate("text => [text.clientHeight, text.scrollHeight]")
        assert needed <= height < 30 * (lines + 3)


def test_the_text_its_languages_and_its_glossary_outlive_a_reload(page: Any, url: str) -> None:
    made = httpx.post(f"{url}v2/glossaries", data=ANIMALS).json()["glossary_id"]
    output = open_page(page, url)
    page.get_by_label("Glossary").select_option(made)
    write(page, CAT)
    expect(output).to_have_text(CHAT)
    # Another tab does not change this one.
    with page.context.new_page() as other:
        open_page(other, url, "de")
        expect(other.get_by_label("Text to translate")).to_have_value("")
    with page.expect_request("**/translate") as sent:
        page.reload()
    assert sent.value.post_data_json["glossary_id"] == made
    expect(page.get_by_label("Text to translate")).to_have_value(CAT)
    expect(page.get_by_label("Translate to")).to_have_value("fr")
    expect(output).to_have_text(CHAT)
    assert CAT not in page.evaluate("JSON.stringify(localStorage)")
    page.get_by_role("button", name="Clear").click()
    page.reload()
    expect(page.get_by_label("Text to translate")).to_have_value("")
    httpx.delete(f"{url}v2/glossaries/{made}")


def test_a_text_that_is_refused_has_no_language_of_the_text_before(page: Any, url: str) -> None:
    open_page(page, url)
    write(page, CAT)
    expect(page.get_by_text("English detected")).to_be_visible()
    write(page, "Kissa nukkuu sohvalla ja koira juoksee pihalla.")
    expect(page.locator("#notice")).to_contain_text(
        "This text is in Finnish, which is not translated to French here."
    )
    expect(page.get_by_text("English detected")).to_have_count(0)
    expect(page.get_by_role("button", name="Swap the languages")).to_be_disabled()


def test_a_text_that_was_changed_after_a_link_outlives_a_reload(page: Any, url: str) -> None:
    page.goto(f"{url}#from=en&to=fr&text=The+dog")
    expect(page.get_by_label("Text to translate")).to_have_value("The dog")
    write(page, CAT)
    page.reload()
    expect(page.get_by_label("Text to translate")).to_have_value(CAT)
    expect(page.get_by_role("region", name="Translation")).to_have_text(CHAT)


def test_alternatives_take_the_place_of_the_translation(page: Any, url: str) -> None:
    output = open_page(page, url)

    def with_another(route: Any) -> None:
        answer = {
            "translation": CHAT,
            "details": [{"source_lang": "en", "alternatives": ["Le chat dort.", CHAT]}],
        }
        asks = route.request.post_data_json.get("alternatives")
        route.fulfill(json=answer) if asks else route.continue_()

    page.route("**/translate", with_another)
    write(page, CAT)
    expect(output).to_have_text(CHAT)
    page.get_by_role("button", name="Alternatives").click()
    page.get_by_role("button", name="Le chat dort.").click()
    expect(output).to_have_text("Le chat dort.")
    expect(page.get_by_role("button", name=CHAT)).to_be_visible()


def test_a_busy_server_is_asked_again_after_the_time_it_names(page: Any, url: str) -> None:
    output = open_page(page, url)
    refused: list[int] = []

    def refuse_the_first(route: Any) -> None:
        if refused:
            route.continue_()
            return
        refused.append(503)
        error = {"error": {"code": "overloaded", "message": "the queue is full"}}
        route.fulfill(status=503, headers={"Retry-After": "2"}, json=error)

    page.route("**/translate", refuse_the_first)
    write(page, CAT)
    expect(page.get_by_text("The server is busy.")).to_be_visible()
    expect(output).to_have_text("")
    expect(page.get_by_text(re.compile("Next attempt in [12] s"))).to_be_visible()
    expect(output).to_have_text(CHAT)
    expect(page.get_by_text("The server is busy.")).to_be_hidden()


def test_a_server_that_is_away_is_asked_again(page: Any, url: str) -> None:
    output = open_page(page, url)
    page.route("**/translate", lambda route: route.abort("connectionrefused"), times=1)
    write(page, CAT)
    expect(page.get_by_text("The server does not answer.")).to_be_visible()
    page.get_by_role("button", name="Try now").click()
    expect(output).to_have_text(CHAT)


def test_a_translation_that_takes_long_names_its_language(page: Any, url: str) -> None:
    output = open_page(page, url)
    held: list[Any] = []
    page.route("**/translate", lambda route: held.append(route), times=1)
    write(page, CAT)
    expect(page.get_by_text("Translating to French…")).to_be_visible()
    expect(page.get_by_text("Still waiting for the translation to French. Its model may be")).to_be_visible(
        timeout=20_000
    )
    held[0].continue_()
    expect(output).to_have_text(CHAT)
    expect(page.get_by_text("Still waiting")).to_be_hidden()


def test_a_model_that_starts_is_named_by_its_language(page: Any, url: str) -> None:
    error = {"error": {"code": "not_ready", "message": "the model is not ready yet (phase: loading)"}}
    refusal = {"status": 503, "headers": {"Retry-After": "2"}, "json": error}
    page.route(re.compile("/(translate|documents)$"), lambda route: route.fulfill(**refusal), times=2)
    output = open_page(page, url)
    write(page, CAT)
    expect(page.locator("#notice")).to_contain_text("The model for French is still loading.")
    page.locator("#file").set_input_files(document("a.txt"))
    expect(page.locator("#files")).to_contain_text("The model for French is still loading.")
    expect(output).to_have_text(CHAT)
    expect(page.locator("#files")).to_contain_text("Translated to French")


def test_a_device_that_is_offline_goes_on_when_it_is_back(page: Any, url: str) -> None:
    page.clock.install()
    output = open_page(page, url)
    expect(page.get_by_text("Documents are translated to French.")).to_be_visible()
    page.context.set_offline(True)
    write(page, CAT)
    page.locator("#file").set_input_files(document("a.txt"))
    page.clock.fast_forward(1000)
    for place in (page.locator("#notice"), page.locator("#files")):
        expect(place).to_contain_text("This device is offline. Next attempt in")
    page.context.set_offline(False)
    expect(output).to_have_text(CHAT)
    page.clock.run_for(10_000)
    expect(page.get_by_role("link", name="Download the translation of a.txt")).to_be_visible()


def test_an_answer_of_something_else_is_no_translation(page: Any, url: str) -> None:
    page.route("**/frontend/settings", lambda route: route.fulfill(body="<h1>Sign in</h1>"), times=1)
    page.goto(url)
    expect(page.get_by_text("What answered is not this server")).to_be_visible()
    page.get_by_role("button", name="Try now").click()
    expect(page.get_by_label("Translate to")).to_have_value("en")


def test_a_document_is_sent_again_by_hand_after_a_failure(page: Any, url: str) -> None:
    error = {"error": {"code": "engine_failed", "message": "the engine failed"}}
    page.route("**/documents", lambda route: route.fulfill(status=500, json=error), times=1)
    open_page(page, url)
    page.locator("#file").set_input_files(document("a.txt"))
    expect(page.locator("#files")).to_contain_text(
        "The translation failed. The server says: the engine failed"
    )
    page.get_by_role("button", name="Try again: a.txt").click()
    expect(page.get_by_role("link", name="Download the translation of a.txt")).to_be_visible()


def test_a_document_that_cannot_be_read_is_not_offered_again(page: Any, url: str) -> None:
    open_page(page, url)
    page.locator("#file").set_input_files(document("a.docx"))
    expect(page.locator("#files")).to_contain_text(
        "Not translated to French. This document cannot be read. The server says: the file is no document"
    )
    expect(page.get_by_role("button", name="Try again")).to_have_count(0)
    expect(page.get_by_role("button", name="Remove: a.docx")).to_be_visible()


def test_the_focus_stays_with_a_document_and_goes_to_the_chooser_after_it(page: Any, pod: PodProcess) -> None:
    held: list[Any] = []
    page.route("**/documents", lambda route: held.append(route))
    open_page(page, pod.url)
    chooser = page.locator("#file")
    for ends_by in ("cancel", "translation"):
        with page.expect_request("**/documents"):
            chooser.set_input_files(document("a.txt"))
        page.get_by_role("button", name="Cancel: a.txt").focus()
        if ends_by == "cancel":
            page.keyboard.press("Enter")
            expect(chooser).to_be_focused()
            expect(page.locator("#files")).to_be_hidden()
        else:
            held.pop().continue_()
            expect(page.get_by_role("link", name="Download the translation of a.txt")).to_be_focused()
    page.get_by_role("button", name="Remove: a.txt").press("Enter")
    expect(chooser).to_be_focused()


def test_a_document_to_several_languages_has_a_line_for_each(page: Any, url: str) -> None:
    held: list[Any] = []
    page.route("**/documents", lambda route: held.append(route))
    open_page(page, url)
    lines, chooser = page.locator("#files li"), page.locator("#file")
    with page.expect_request("**/documents"):
        chooser.set_input_files(document("a.txt"))
    page.get_by_label("Translate to").select_option("de")
    chooser.set_input_files(document("a.txt"))
    expect(lines).to_have_text(
        [re.compile("Translating to French|Sending"), re.compile("Waiting to be translated to German")]
    )
    expect(page.get_by_role("progressbar", name="Progress of a.txt to German")).to_be_visible()
    with page.expect_request("**/documents"):
        held.pop().continue_()
    expect(lines.first).to_contain_text("Translated to French")
    held.pop().continue_()
    expect(lines.last).to_contain_text("Translated to German")
    for language, code in (("French", "fr"), ("German", "de")):
        link = page.get_by_role("link", name=f"Download the translation of a.txt to {language}")
        expect(link).to_have_attribute("download", f"a_{code}.txt")


def test_a_document_in_a_language_that_is_not_served_is_refused_with_those_that_are(
    page: Any, url: str
) -> None:
    open_page(page, url, "en")
    finnish = "Kissa nukkuu sohvalla ja koira juoksee pihalla."
    page.locator("#file").set_input_files(document("a.txt") | {"buffer": finnish.encode()})
    expect(page.locator("#files")).to_contain_text(
        "This text is in Finnish, which is not translated to English here. "
        "Texts are translated to English from French and German."
    )
    expect(page.get_by_role("button", name="Try again")).to_have_count(0)


def test_a_document_in_the_target_language_says_so(page: Any, url: str) -> None:
    open_page(page, url, "en")
    page.locator("#file").set_input_files(document("a.txt"))
    expect(page.locator("#files")).to_contain_text("1 text is in English already")


def test_a_reload_that_would_end_a_document_is_confirmed(page: Any, pod: PodProcess) -> None:
    held: list[Any] = []
    asked: list[str] = []
    page.route("**/documents", lambda route: held.append(route))
    open_page(page, pod.url)

    def dismiss(dialog: Any) -> None:
        asked.append(dialog.type)
        dialog.dismiss()

    page.on("dialog", dismiss)
    with page.expect_request("**/documents"):
        page.locator("#file").set_input_files(document("a.txt"))
    # Chromium asks on pages that were used.
    page.get_by_label("Text to translate").click()
    with page.expect_event("dialog"):
        page.evaluate("setTimeout(() => location.reload())")
    held[0].continue_()
    expect(page.get_by_role("link", name="Download the translation of a.txt")).to_be_visible()
    page.reload()
    expect(page.locator("#files")).to_be_hidden()
    assert asked == ["beforeunload"]


def test_a_document_that_is_cancelled_does_not_hold_up_the_next(page: Any, url: str) -> None:
    held: list[Any] = []
    page.route("**/documents", lambda route: held.append(route), times=1)
    open_page(page, url)
    with page.expect_request("**/documents"):
        page.locator("#file").set_input_files([document("a.txt"), document("b.txt")])
    page.get_by_role("button", name="Cancel: a.txt").click()
    expect(page.get_by_role("link", name="Download the translation of b.txt")).to_be_visible()
    with suppress(playwright.Error):  # It is gone.
        held[0].abort()


@pytest.mark.parametrize("body", ["<h1>Sign in</h1>", "{}"])
def test_a_document_that_something_else_takes_does_not_hold_up_the_next(
    page: Any, pod: PodProcess, body: str
) -> None:
    page.route("**/documents", lambda route: route.fulfill(body=body), times=1)
    open_page(page, pod.url)
    page.locator("#file").set_input_files([document("a.txt"), document("b.txt")])
    expect(page.locator("#files")).to_contain_text("What answered is not this server")
    expect(page.get_by_role("link", name="Download the translation of b.txt")).to_be_visible()


def test_a_text_over_the_limit_is_refused_with_the_numbers(page: Any, url: str) -> None:
    output = open_page(page, url)
    write(page, CAT)
    expect(output).to_have_text(CHAT)
    write(page, "a" * 104_858)
    expect(page.get_by_text("This text has 104,858 characters; at most 104,857")).to_be_visible()
    expect(output).to_have_text("")


def test_a_document_is_translated_and_downloaded(page: Any, url: str) -> None:
    open_page(page, url)
    page.locator("#file").set_input_files(
        [
            document("letter.txt"),
            {"name": "scan.tiff", "mimeType": "image/tiff", "buffer": b"%PDF"},
        ]
    )
    expect(page.locator("#files")).to_contain_text("Documents of this kind are not translated.")
    with page.expect_download() as download:
        page.get_by_role("link", name="Download the translation of letter.txt").click()
    assert download.value.suggested_filename == "letter_fr.txt"
    assert Path(download.value.path()).read_text() == CHAT
    page.get_by_role("button", name="Remove: letter.txt").click()
    expect(page.get_by_text("letter.txt", exact=True)).to_have_count(0)


def test_a_link_has_the_pair_and_the_text(page: Any, url: str) -> None:
    output = open_page(page, url)
    write(page, CAT)
    expect(output).to_have_text(CHAT)
    page.get_by_role("button", name="Copy link").click()
    expect(page).to_have_url(re.compile("#from=auto&to=fr&text=The"))
    shared = page.url
    page.goto("about:blank")
    page.goto(shared)
    expect(page.get_by_label("Text to translate")).to_have_value(CAT)
    expect(page.get_by_role("region", name="Translation")).to_have_text(CHAT)


def test_what_a_link_has_is_text_and_nothing_else(page: Any, url: str) -> None:
    page.goto(f"{url}#from=%3Cb%3E&to=__proto__&text=%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E")
    expect(page.get_by_label("Text to translate")).to_have_value("<img src=x onerror=alert(1)>")
    expect(page.get_by_label("Translate from")).to_have_value("auto")
    expect(page.locator("main img")).to_have_count(0)


@pytest.mark.parametrize("source", ["auto", "en"])
def test_a_glossary_of_the_pair_can_be_chosen(page: Any, url: str, source: str) -> None:
    made = httpx.post(f"{url}v2/glossaries", data=ANIMALS).json()
    page.add_init_script(KEEP_FORM)
    output = open_page(page, url)
    chooser = page.get_by_label("Glossary")
    page.get_by_label("Translate from").select_option(source)
    write(page, CAT)
    expect(output).to_have_text(CHAT)
    with page.expect_response("**/translate") as answered:
        chooser.select_option("Animals")
    assert answered.value.request.post_data_json["glossary_id"] == made["glossary_id"]
    assert answered.value.ok
    expect(output).to_have_text(CHAT)
    page.locator("#file").set_input_files(document("a.txt"))
    expect(page.get_by_role("link", name="Download the translation of a.txt")).to_be_visible()
    assert page.evaluate("sent") | {"file": ""} == {
        "source_lang": source,
        "target_lang": "fr",
        "glossary_id": made["glossary_id"],
        "file": "",
    }
    expect(page.get_by_text("Documents are translated to French, with the glossary Animals.")).to_be_visible()
    page.get_by_label("Translate to").select_option("de")
    expect(chooser).to_be_hidden()
    # It is chosen again with its pair.
    page.get_by_label("Translate to").select_option("fr")
    expect(chooser).to_have_value(made["glossary_id"])
    httpx.delete(f"{url}v2/glossaries/{made['glossary_id']}")


def test_a_glossary_that_is_gone_is_named_and_left_out(page: Any, url: str) -> None:
    made = httpx.post(f"{url}v2/glossaries", data=ANIMALS).json()
    output = open_page(page, url)
    page.get_by_label("Glossary").select_option(made["glossary_id"])
    httpx.delete(f"{url}v2/glossaries/{made['glossary_id']}")
    write(page, CAT)
    expect(page.locator("#notice")).to_contain_text("This glossary is not there any more.")
    expect(page.get_by_label("Glossary")).to_be_hidden()
    page.get_by_role("button", name="Try now").click()
    expect(output).to_have_text(CHAT)


def test_a_document_keeps_the_script_of_its_language(page: Any, url: str) -> None:
    open_page(page, url, "zh-Hant")
    with page.expect_response("**/documents") as uploaded:
        page.locator("#file").set_input_files(document("a.txt"))
    assert uploaded.value.json()["target_lang"] == "zh-Hant"
    expect(page.get_by_role("link", name="Download the translation of a.txt")).to_be_visible()


def test_a_document_in_which_nothing_was_found_to_translate_says_so(page: Any, url: str) -> None:
    open_page(page, url)
    page.locator("#file").set_input_files(document("a.txt") | {"buffer": b"12.5"})
    expect(page.locator("#files")).to_contain_text("Nothing was found to translate")
    expect(page.get_by_role("link", name="Download the translation of a.txt")).to_be_visible()


def test_a_document_whose_delivery_breaks_is_fetched_again(page: Any, url: str) -> None:
    page.route("**/documents/*/result", lambda route: route.abort("connectionreset"), times=1)
    open_page(page, url)
    page.locator("#file").set_input_files(document("a.txt"))
    expect(page.locator("#files")).to_contain_text("The server does not answer.")
    with page.expect_download() as download:
        page.get_by_role("link", name="Download the translation of a.txt").click()
    assert Path(download.value.path()).read_text() == CHAT


def test_a_key_is_asked_for_and_kept_in_the_tab_alone(
    page: Any, start_router: StartRouter, tmp_path: Path
) -> None:
    (tmp_path / "alice").write_text(KEY)
    page.goto(start_router(f"--keys-dir={tmp_path}").url)
    field = page.get_by_label("API key or token")
    expect(page.get_by_text("This server asks for a key.")).to_be_visible()
    expect(field).to_be_focused()
    field.fill("wrong")
    field.press("Enter")
    expect(page.get_by_text("This key is not accepted.")).to_be_visible()
    field.fill(KEY)
    field.press("Enter")
    page.get_by_label("Translate to").select_option("fr")
    expect(field).to_be_hidden()
    write(page, CAT)
    expect(page.get_by_role("region", name="Translation")).to_have_text(CHAT)
    page.locator("#file").set_input_files(document("a.txt"))
    expect(page.get_by_role("link", name="Download the translation of a.txt")).to_be_visible()
    assert KEY not in page.evaluate("JSON.stringify(localStorage)")
    assert page.evaluate("sessionStorage.length") == 1
    page.get_by_role("button", name="Forget key").click()
    expect(page.get_by_text("This server asks for a key.")).to_be_visible()
    expect(page.get_by_label("Text to translate")).to_have_value("")
    assert page.evaluate("sessionStorage.length") == 0


def test_another_key_has_its_own_glossaries_and_no_notice_of_before(page: Any, pod: PodProcess) -> None:
    output = open_page(page, pod.url)
    refusals = iter([(503, "overloaded"), (401, "unauthorized")])

    def refuse_twice(route: Any) -> None:
        status, code = next(refusals, (0, ""))
        error = {"error": {"code": code, "message": "an API key is required"}}
        route.fulfill(
            status=status, headers={"Retry-After": "1"}, json=error
        ) if status else route.continue_()

    page.route("**/translate", refuse_twice)
    write(page, CAT)
    expect(page.get_by_text("The server is busy.")).to_be_visible()
    expect(page.get_by_text("This server asks for a key.")).to_be_visible()
    expect(page.get_by_text("The server is busy.")).to_be_hidden()
    page.get_by_label("API key or token").fill(KEY)
    with page.expect_request("**/v3/glossaries"):
        page.get_by_label("API key or token").press("Enter")
    expect(output).to_have_text(CHAT)


def test_the_theme_is_the_system_s_until_it_is_chosen(page: Any, url: str) -> None:
    page.emulate_media(color_scheme="dark")
    open_page(page, url)
    background = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(background)
    page.get_by_role("button", name="Light").click()
    light = page.evaluate(background)
    assert dark != light
    page.reload()
    assert page.evaluate(background) == light


def test_nothing_is_wider_than_the_window(page: Any, start_router: StartRouter, tmp_path: Path) -> None:
    (tmp_path / "alice").write_text(KEY)
    page.set_viewport_size({"width": 360, "height": 800})
    page.goto(start_router(f"--keys-dir={tmp_path}").url)
    wide = "document.documentElement.scrollWidth"
    expect(page.get_by_text("This server asks for a key.")).to_be_visible()
    assert page.evaluate(wide) == 360
    page.get_by_label("API key or token").fill(KEY)
    page.get_by_role("button", name="Use").click()
    expect(page.get_by_role("button", name="Forget key")).to_be_visible()
    write(page, "x" * 200)
    page.locator("#file").set_input_files({"name": f"{'x' * 80}.xyz", "mimeType": "a/b", "buffer": b"x"})
    expect(page.get_by_role("region", name="Translation")).not_to_be_empty()
    for width in (360, 800, 1280):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate(wide) == width


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_at_any_width(
    browser: Any, start_router: StartRouter, pod: PodProcess, axe: str, scheme: str, tmp_path: Path
) -> None:
    (tmp_path / "alice").write_text(KEY)
    keyed = start_router(f"--keys-dir={tmp_path}").url
    for width in WIDTHS:
        # axe would measure the colours of a button in the middle of its transition.
        still = {"color_scheme": scheme, "reduced_motion": "reduce"}
        with watched_page(browser, viewport={"width": width, "height": 800}, **still) as page:
            page.goto(keyed)
            expect(page.get_by_text("This server asks for a key.")).to_be_visible()
            assert violations(page, axe) == []
            open_page(page, pod.url)
            write(page, "The farmer has 12 goats and 30 sheep.")
            page.locator("#file").set_input_files(
                [
                    document("letter.txt"),
                    {"name": "scan.tiff", "mimeType": "image/tiff", "buffer": b"%PDF"},
                ]
            )
            expect(page.get_by_role("link", name="Download")).to_be_visible()
            expect(page.get_by_text("Check this translation")).to_be_visible()
            assert violations(page, axe) == []


def test_the_page_is_used_with_the_keyboard_alone(page: Any, pod: PodProcess) -> None:
    """From the text, which has the focus, through all that can be done, in the order of the page."""
    output = open_page(page, f"{pod.url}/")
    page.get_by_label("Text to translate").focus()
    page.keyboard.type(CAT)
    page.keyboard.press("Control+Enter")
    expect(output).to_have_text(CHAT)
    # The text is complete before the buttons that need it are enabled.
    expect(page.get_by_role("button", name="Copy", exact=True)).to_be_enabled()
    reached = []
    for _ in range(8):
        page.keyboard.press("Tab")
        reached.append(
            page.evaluate("document.activeElement.ariaLabel ?? document.activeElement.textContent")
        )
        if reached[-1] == "Copy":
            break
    assert reached == ["Clear", "Translation", "Alternatives", "Copy link", "Copy"]
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Copied")).to_be_focused()
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_text("The model has no other translation")).to_be_visible()


@pytest.mark.parametrize("path", ["/", "/page/fleet.html"])
def test_a_visit_loads_less_than_30_kilobytes(page: Any, start_router: StartRouter, path: str) -> None:
    loaded: list[Any] = []
    page.on("requestfinished", lambda request: loaded.append(request))
    page.goto(start_router().url + path, wait_until="networkidle" if path == "/" else "load")
    expect(page.get_by_role("region").first).to_be_visible()
    sizes = [request.sizes() for request in loaded]
    assert len(sizes) >= 10
    assert sum(size["responseHeadersSize"] + size["responseBodySize"] for size in sizes) < 30_000
