"""Glossaries, tones, contexts and instructions: in each family's own words, or refused."""

import pytest

from dragoman_protocols.errors import UnsupportedOptionError
from dragoman_protocols.glossaries.matching import Term
from dragoman_protocols.offer import offer_of
from dragoman_protocols.served import pair_of
from dragoman_protocols.translation import Formality, TranslationRequest
from dragoman_service.metric_definitions import GUARD_FINDINGS
from dragoman_service.prompts.families import FAMILIES, prompt_family
from dragoman_service.prompts.family import PromptOptions, Tone

EN_DE, EN_ZH = pair_of("en", "de", offer_of([()])), pair_of("en", "zh-Hans", offer_of([()]))
TERMS = (("cat", "Katze"), ("dog", "Hund"))


def instruction(family: str, options: PromptOptions, languages=EN_DE) -> str:
    return prompt_family(family).prompt("Hi {x}", languages, options).instruction


def test_hy_mt2_has_its_publisher_s_templates() -> None:
    assert instruction("hy-mt2", PromptOptions(terms=TERMS)) == (
        "Reference the following translations:\ncat translates to Katze\ndog translates to Hund\n\n"
        "Translate the following text into German. Note that you should only output the translated result "
        "without any additional explanation:\n\nHi {x}"
    )
    assert instruction("hy-mt2", PromptOptions(context="A film.")) == (
        "[Background Information]\nA film.\n\nPlease translate the following text into German, taking the provided "
        "background information into consideration.\n\n[Source Text]\nHi {x}"
    )
    assert instruction("hy-mt2", PromptOptions(tone=Tone.FORMAL)) == (
        "Please translate the following text into German. Note that the translation style must strictly conform to "
        "[formal]:\n\nHi {x}"
    )
    assert instruction("hy-mt2", PromptOptions(tone=Tone.INFORMAL, instructions=("Keep it\nshort.",))) == (
        "[Source Text]\nHi {x}\n\n[Translation Tasks]\n1. Use informal language.\n2. Keep it short.\n"
        "3. Translate the [Source Text] into German."
    )


def test_hy_mt1_5_has_chinese_templates_for_every_pair() -> None:
    assert instruction("hy-mt1.5", PromptOptions(terms=TERMS[:1])) == (
        "参考下面的翻译：\ncat 翻译成 Katze\n\n"
        "将以下文本翻译为德语，注意只需要输出翻译后的结果，不要额外解释：\n\nHi {x}"
    )
    assert instruction("hy-mt1.5", PromptOptions(context="A film."), EN_ZH) == (
        "A film.\n参考上面的信息，把下面的文本翻译成中文，注意不需要翻译上文，也不要额外解释：\nHi {x}"
    )
    assert instruction("hy-mt1.5", PromptOptions()).startswith("Translate the following segment into German")


def test_a_chat_model_has_options_before_its_usual_template() -> None:
    options = PromptOptions(TERMS[:1], "A film.", Tone.FORMAL, ("Be brief.",))
    assert instruction("chatml-generic", options) == (
        "Context, not to be translated:\nA film.\n\nUse these translations of terms:\ncat → Katze\n\n"
        "Follow these instructions for the translation:\n- Use formal language.\n- Be brief.\n\n"
        "Translate the following text from English into German.\nEnglish: Hi {x}\nGerman:"
    )


@pytest.mark.parametrize("name", list(FAMILIES))
@pytest.mark.parametrize(
    "options",
    [
        PromptOptions(TERMS),
        PromptOptions(context="a {b}"),
        PromptOptions(tone=Tone.FORMAL),
        PromptOptions(instructions=("c {d}",)),
    ],
)
@pytest.mark.parametrize("languages", [EN_DE, EN_ZH])
def test_every_family_states_what_it_does_not_refuse(name, options, languages) -> None:
    family = prompt_family(name)
    if family.unsupported(languages, options):
        return
    prompt = family.prompt("Hi", languages, options)
    for words in (*TERMS[0], "a {b}", "c {d}"):
        assert (words in prompt.instruction) == (words in str(options))
    assert "Hi" in {prompt.instruction[start:end] for start, end in prompt.quoted or ()}


@pytest.mark.parametrize(
    ("family", "options", "what"),
    [
        ("alma", {"terms": (Term("cat", "Katze"),)}, "a glossary"),
        ("seed-x", {"context": "x"}, "context"),
        ("translategemma", {"formality": Formality.MORE}, "formality"),
        ("hunyuan-mt", {"instructions": ("x",)}, "instructions"),
        ("hy-mt1.5", {"formality": Formality.LESS, "instructions": ("x",)}, "formality or instructions"),
    ],
)
async def test_an_unsupported_option_is_refused_or_ignored(core, family, options, what) -> None:
    translator = core(lambda text, _: "Die Katze schläft.", family)
    request = TranslationRequest(("The cat sleeps.",), "de", "en", **options)
    with pytest.raises(UnsupportedOptionError, match=f"{family} do not support {what}: remove"):
        translator.check(request)
    ignoring = TranslationRequest(("The cat sleeps.",), "de", "en", **options, ignore_unsupported=True)
    (result,) = await translator.translate(ignoring)
    assert {warned.code for warned in result.warnings} == {"option_ignored"}
    assert len(result.warnings) == len(what.split(" or "))


async def test_a_preferred_tone_is_dropped_without_a_word(core) -> None:
    translator = core(lambda text, _: "Die Katze schläft.", "alma")
    request = TranslationRequest(("The cat sleeps.",), "de", "en", formality=Formality.PREFER_LESS)
    assert (await translator.translate(request))[0].warnings == ()


async def test_only_terms_that_a_segment_has_are_stated_and_checked(core, counts) -> None:
    answers = {"The cat sleeps.": "Die Mieze schläft.", "The dog barks loudly.": "Der Hund bellt laut."}
    translator = core(lambda text, _: answers[text], "hy-mt2")
    request = TranslationRequest(
        ("The cat sleeps.\nThe dog barks loudly.",),
        "de",
        "en",
        terms=(Term("cat", "Katze"), Term("dog", "Hund")),
    )
    (result,) = await translator.translate(request)
    assert [(warned.code, warned.segment) for warned in result.warnings] == [("glossary", 0)]
    assert counts.of(GUARD_FINDINGS) == ["glossary"] * 2
    assert "cat translates to Katze\n\n" in translator.engine.prompts[0].instruction


async def test_a_segment_that_goes_on_is_shown_what_came_before_where_the_family_has_words_for_it(
    core,
) -> None:
    text = "The cat sleeps. It is tired."
    for family, shown in (("hy-mt2", True), ("chatml-generic", False), ("hy-mt1.5", False)):
        translator = core(lambda text, _: "Die Katze.", family)
        async for _ in translator.stream(TranslationRequest((text,), "de", "en")):
            pass
        (second,) = [each for each in translator.engine.prompts if each.segment == "It is tired."][:1]
        assert ("The cat sleeps." in second.instruction) == shown
