"""The loop around a generation: checked, tried again, and then given, flagged, left or refused."""

import pytest

from dragoman_protocols.errors import EmptyOutputError, TruncatedOutputError, UnreliableTranslationError
from dragoman_protocols.translation import Format, OnFinding, TranslationRequest
from dragoman_service.core.stages import Origin
from dragoman_service.engine.protocol import Chunk, Finish
from dragoman_service.metric_definitions import GUARD_FINDINGS, SEGMENT_RETRIES, SOURCE_KEPT_SEGMENTS

GERMAN = {
    "The cat sleeps on the sofa.": "Die Katze schläft auf dem Sofa.",
    "The dog sees <x1>the cat</x1> every day.": "Der Hund sieht <x1>die Katze</x1> jeden Tag.",
    "The dog sees the big cat every day.": "Der Hund sieht jeden Tag die große Katze.",
}

BLANKS = "\n" * 5
"""More than a marker has."""


def request_for(*texts, **options):
    return TranslationRequest(texts, "de", "en", **options)


async def test_a_good_answer_is_given_at_once(core, counts) -> None:
    translator = core(lambda text, _: GERMAN[text])
    (result,) = await translator.translate(request_for("  The cat sleeps on the sofa.\n"))
    assert result.text == "  Die Katze schläft auf dem Sofa.\n"
    assert (result.source_lang, result.confidence, result.warnings) == ("en", None, ())
    assert (result.segments, result.prompt_tokens, result.output_tokens) == (1, 10, 5)
    assert (counts.segments, len(counts.of(SEGMENT_RETRIES)), counts.tokens) == (1, 0, 15)


async def test_a_doubtful_answer_is_tried_again_by_other_sampling(core, counts) -> None:
    def answers(text, times):
        return text if times == 0 else GERMAN[text]

    translator = core(answers)
    (result,) = await translator.translate(request_for("The cat sleeps on the sofa."))
    assert result.text == "Die Katze schläft auf dem Sofa."
    assert (counts.of(GUARD_FINDINGS), len(counts.of(SEGMENT_RETRIES)), result.warnings) == (
        ["untranslated"],
        1,
        (),
    )
    first, second = translator.engine.decodings
    assert (first.temperature, second.temperature) == (0.0, 0.5)
    assert (result.prompt_tokens, result.output_tokens) == (20, 10)


async def test_an_answer_doubted_twice_is_flagged_or_refused(core, counts) -> None:
    translator = core(lambda text, _: text)
    (result,) = await translator.translate(request_for("The cat sleeps on the sofa."))
    assert result.text == "The cat sleeps on the sofa."
    assert [(warned.code, warned.segment) for warned in result.warnings] == [("untranslated", 0)]
    assert counts.of(GUARD_FINDINGS) == ["untranslated"] * 2
    with pytest.raises(UnreliableTranslationError, match=r"segment 1 .* untranslated"):
        await translator.translate(request_for("The cat sleeps on the sofa.", on_finding=OnFinding.FAIL))


CAT = "<p>The dog sees <b>the cat</b> every day.</p>"


async def test_lost_tags_are_put_back_by_alignment(core, counts) -> None:
    html = f"{CAT}<p>The cat sleeps on the sofa.</p>"
    answers = {text: answer.replace("<x1>", "").replace("</x1>", "") for text, answer in GERMAN.items()}
    answers["the cat"] = "die Katze"
    translator = core(lambda text, _: answers[text])
    (result,) = await translator.translate(request_for(html, format=Format.HTML))
    assert result.text == (
        "<p>Der Hund sieht <b>die Katze</b> jeden Tag.</p><p>Die Katze schläft auf dem Sofa.</p>"
    )
    assert [(warned.code, warned.segment) for warned in result.warnings] == [("tags_aligned", 0)]
    assert counts.of(GUARD_FINDINGS) == ["marker_lost", "marker_lost", "tags_aligned"]
    assert (len(counts.of(SOURCE_KEPT_SEGMENTS)), len(translator.engine.prompts)) == (0, 4)
    with pytest.raises(UnreliableTranslationError, match=r"segment 1 .* tags_aligned"):
        await translator.translate(request_for(html, format=Format.HTML, on_finding=OnFinding.FAIL))


async def test_an_answer_with_other_faults_is_made_again_without_tags(core) -> None:
    def answers(text, times):
        untagged = {
            "The dog sees the cat every day.": "Der Hund sieht die Katze jeden Tag.",
            "the cat": "die Katze",
        }
        return untagged.get(text, "Sure! Here is the translation: Der Hund.")

    translator = core(answers)
    (result,) = await translator.translate(request_for(CAT, format=Format.HTML))
    assert result.text == "<p>Der Hund sieht <b>die Katze</b> jeden Tag.</p>"
    assert [warned.code for warned in result.warnings] == ["tags_aligned"]
    assert len(translator.engine.prompts) == 4


async def test_many_lost_elements_cost_two_more_generations_at_most(core) -> None:
    words = ["apple", "pear", "plum", "cherry", "grape"]
    html = f"<p>I eat {' and '.join(f'<b>{word}</b>' for word in words)} every day.</p>"
    german = {"apple": "Apfel", "pear": "Birne", "plum": "Pflaume", "cherry": "Kirsche", "grape": "Traube"}

    def answers(text, times):
        if text == "I eat apple and pear and plum and cherry and grape every day.":
            return "Täglich esse ich Apfel und Birne und Pflaume und Kirsche und Traube."
        if "<x1>" in text:
            return "nein <x1>"
        return "\n".join(german[line] for line in text.split("\n"))

    translator = core(answers)
    (result,) = await translator.translate(request_for(html, format=Format.HTML))
    assert result.text == (
        "<p>Täglich esse ich <b>Apfel</b> und <b>Birne</b> und <b>Pflaume</b> und <b>Kirsche</b> und <b>Traube</b>.</p>"
    )
    assert len(translator.engine.prompts) == 4


async def test_a_lost_placeholder_is_shown_as_it_is_instead(core) -> None:
    answers = {
        "Hello <x1/>, good morning to you.": "Hallo, guten Morgen.",
        "Hello {name}, good morning to you.": "Hallo {name}, guten Morgen.",
    }
    translator = core(lambda text, _: answers[text])
    (result,) = await translator.translate(request_for("Hello {name}, good morning to you."))
    assert (result.text, result.warnings) == ("Hallo {name}, guten Morgen.", ())


async def test_a_lost_placeholder_that_looks_like_a_marker_leaves_the_source(core) -> None:
    text = "Hello <x4/>, good morning to you."
    answers = {
        "Hello <x1/>, good morning to you.": "Hallo, guten Morgen.",
        text: "Hallo <x4/>, guten Morgen.",
    }
    translator = core(lambda text, _: answers[text])
    (result,) = await translator.translate(request_for(text))
    assert result.text == text
    assert [warned.code for warned in result.warnings] == ["source_kept"]


async def test_text_that_reads_as_a_marker_once_its_line_breaks_are_blanks_is_protected(core) -> None:
    source = "See the <x1><x2/> x4/<x3/> cat</x1> of today and more."
    answer = "Sieh die <x1><x2/> x4/<x3/> Katze</x1> von heute und mehr."
    translator = core(lambda text, _: answer if text == source else "nein")
    html = f"<p>See the <b>&lt;{BLANKS}x4/&gt; cat</b> of today and more.</p>"
    (result,) = await translator.translate(request_for(html, format=Format.HTML))
    assert result.text == f"<p>Sieh die <b>&lt;{BLANKS}x4/&gt; Katze</b> von heute und mehr.</p>"
    assert len(translator.engine.prompts) == 1


async def test_a_segment_that_fails_without_tags_too_stays_as_it_was(core, counts) -> None:
    translator = core(lambda text, _: "<b>Der Hund</b>")
    (result,) = await translator.translate(request_for(CAT, format=Format.HTML))
    assert result.text == CAT
    assert [(warned.code, warned.segment) for warned in result.warnings] == [("source_kept", 0)]
    assert len(counts.of(SOURCE_KEPT_SEGMENTS)) == 1
    with pytest.raises(UnreliableTranslationError):
        await translator.translate(request_for(CAT, format=Format.HTML, on_finding=OnFinding.FAIL))


async def test_kept_tags_come_back_in_place(core) -> None:
    translator = core(lambda text, _: GERMAN[text])
    html = '<p>The dog sees <b class="x">the cat</b> every day.</p>'
    (result,) = await translator.translate(request_for(html, format=Format.HTML))
    assert result.text == '<p>Der Hund sieht <b class="x">die Katze</b> jeden Tag.</p>'


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (Chunk("Die Katze Katze", Finish.LENGTH, 3, 99), TruncatedOutputError),
        (Chunk("Die Die Die", Finish.REPETITION, 3, 99), TruncatedOutputError),
        (Chunk("\n ", Finish.STOP, 3, 1), EmptyOutputError),
    ],
)
async def test_one_segment_without_an_answer_does_not_lose_the_others(core, answer, error) -> None:
    bad = "The dog sees the big cat every day."
    translator = core(lambda text, _: answer if text == bad else GERMAN[text])
    (result,) = await translator.translate(request_for(f"The cat sleeps on the sofa.\n{bad}"))
    assert result.text == f"Die Katze schläft auf dem Sofa.\n{bad}"
    assert [(warned.code, warned.segment) for warned in result.warnings] == [("source_kept", 1)]
    with pytest.raises(error):
        await translator.translate(request_for(bad))
    with pytest.raises(UnreliableTranslationError):
        await translator.translate(
            request_for(f"The cat sleeps on the sofa.\n{bad}", on_finding=OnFinding.FAIL)
        )


async def test_thoughts_and_special_tokens_are_not_part_of_a_translation(core) -> None:
    translator = core(lambda text, _: f"<think>hm</think>{GERMAN[text]}<|im_end|>")
    (result,) = await translator.translate(request_for("The cat sleeps on the sofa."))
    assert (result.text, result.warnings) == ("Die Katze schläft auf dem Sofa.", ())


async def test_what_has_no_letters_needs_no_model(core) -> None:
    translator = core(lambda text, _: "never")
    (result,) = await translator.translate(request_for("12 345\n— 3.5 %"))
    assert (result.text, result.segments, translator.engine.prompts) == ("12 345\n— 3.5 %", 0, [])


async def test_alternatives_are_different_and_good(core) -> None:
    answers = iter(
        ["Die Katze schläft auf dem Sofa."] * 2
        + ["Auf dem Sofa schläft die Katze.", "The cat sleeps on the sofa."]
    )
    translator = core(lambda *_: next(answers))
    (result,) = await translator.translate(request_for("The cat sleeps on the sofa.", alternatives=3))
    assert result.alternatives == ("Auf dem Sofa schläft die Katze.",)
    assert [decoding.seed for decoding in translator.engine.decodings] == [None, 1, 2, 3]


async def test_the_observer_receives_the_api_and_the_engine_the_priority(core, counts) -> None:
    translator = core(lambda text, _: text)
    origin = Origin("deepl", lambda pair, tokens: tokens, {"traceparent": "00-1-2-01"})
    await translator.on_behalf_of(origin).translate(request_for("The cat sleeps on the sofa."))
    assert counts.apis == {"deepl"}
    assert translator.engine.options == [{"priority": 7, "trace_headers": {"traceparent": "00-1-2-01"}}] * 2
