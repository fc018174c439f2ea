import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_contract.models import CUSTOM_FAMILY, PROMPT_FAMILIES
from dragoman_protocols.offer import offer_of
from dragoman_protocols.served import pair_of
from dragoman_service.engine.protocol import Framing
from dragoman_service.errors import PromptTemplateError
from dragoman_service.prompts.families import FAMILIES, prompt_family
from dragoman_service.prompts.family import fill

EN_DE = pair_of("en", "de", offer_of([()]))
EN_ZH = pair_of("en", "zh", offer_of([()]))
ZH_EN = pair_of("zh-Hant", "en", offer_of([()]))


def test_the_families_are_those_of_the_contract() -> None:
    assert {*FAMILIES, CUSTOM_FAMILY} == set(PROMPT_FAMILIES)


EXPECTED = {
    "chatml-generic": "Translate the following text from English into German.\nEnglish: Hi {x}\nGerman:",
    "hunyuan-mt": "Translate the following segment into German, without additional explanation.\n\nHi {x}",
    "hy-mt1.5": "Translate the following segment into German, without additional explanation.\n\nHi {x}",
    "hy-mt2": "Translate the following text into German. Note that you should only output the translated result "
    "without any additional explanation:\n\nHi {x}",
    "seed-x": "Translate the following English sentence into German:\nHi {x} <de>",
    "translategemma": "<start_of_turn>user\n"
    "You are a professional English (en) to German (de) translator. Your goal is to accurately convey the "
    "meaning and nuances of the original English text while adhering to German grammar, vocabulary, and "
    "cultural sensitivities.\nProduce only the German translation, without any additional explanations or "
    "commentary. Please translate the following English text into German:\n\n\nHi {x}"
    "<end_of_turn>\n<start_of_turn>model\n",
    "tower-plus": "Translate the following English source text to German:\nEnglish: Hi {x}\nGerman: ",
    "tower-instruct": "Translate the following text from English into German.\nEnglish: Hi {x}\nGerman:",
    "alma": "Translate this from English to German:\nEnglish: Hi {x}\nGerman:",
    "gemma": "Translate the text below from English to German.\n\nEnglish: Hi {x}\n\nGerman:\n",
}
"""The prompt of each family, as its publisher has it."""


@pytest.mark.parametrize("name", FAMILIES)
def test_a_family_s_prompt_is_that_of_its_publisher(name: str) -> None:
    prompt = prompt_family(name).prompt("Hi {x}", EN_DE)
    assert (prompt.instruction, prompt.segment) == (EXPECTED[name], "Hi {x}")


def test_translategemma_has_gemma_s_turns_and_no_space_around_the_text() -> None:
    prompt = prompt_family("translategemma").prompt(" Hi \n", EN_DE)
    assert prompt.instruction == EXPECTED["translategemma"].replace("Hi {x}", "Hi")
    assert prompt.framing is Framing.RAW


@pytest.mark.parametrize(
    ("name", "into_chinese", "from_chinese"),
    [
        (
            "hunyuan-mt",
            "把下面的文本翻译成中文，不要额外解释。\n\nHi",
            "把下面的文本翻译成英语，不要额外解释。\n\nHi",
        ),
        (
            "hy-mt1.5",
            "将以下文本翻译为中文，注意只需要输出翻译后的结果，不要额外解释：\n\nHi",
            "将以下文本翻译为英语，注意只需要输出翻译后的结果，不要额外解释：\n\nHi",
        ),
    ],
)
def test_hunyuan_s_prompt_is_chinese_if_a_language_is_chinese(
    name: str, into_chinese: str, from_chinese: str
) -> None:
    family = prompt_family(name)
    assert family.prompt("Hi", EN_ZH).instruction == into_chinese
    assert family.prompt("Hi", ZH_EN).instruction == from_chinese


@pytest.mark.parametrize(
    ("name", "framing"),
    [("seed-x", Framing.RAW), ("alma", Framing.RAW), ("hy-mt2", Framing.CHAT), ("gemma", Framing.CHAT)],
)
def test_families_without_a_chat_template_have_raw_prompts(name: str, framing: Framing) -> None:
    assert prompt_family(name).framing is framing


def test_hunyuan_samples_as_published_and_stops_at_its_token() -> None:
    decoding = prompt_family("hunyuan-mt").decoding
    assert (decoding.temperature, decoding.top_p, decoding.top_k, decoding.repetition_penalty) == (
        0.7,
        0.6,
        20,
        1.05,
    )
    assert decoding.stop_token_ids == (127960,)
    assert prompt_family("hy-mt1.5").decoding.stop_token_ids == ()


def test_a_custom_template_is_filled_with_names_and_tags() -> None:
    family = prompt_family("custom", '{source_code}>{target_code} {"a": {}} {source} {target}: {text}')
    prompt = family.prompt("{target}", pair_of("en", "pt-br", offer_of([()])))
    assert prompt.instruction == 'en>pt-BR {"a": {}} English Portuguese (Brazil): {target}'
    assert prompt.framing is Framing.CHAT_IF_ANY


@pytest.mark.parametrize(
    ("template", "message"),
    [("{text} {tone}", "has {tone}"), ("Translate!", "lacks {text}"), ("{texts}", "has {texts}")],
)
def test_a_template_that_cannot_be_filled_is_refused(template: str, message: str) -> None:
    with pytest.raises(PromptTemplateError, match=message):
        prompt_family("custom", template)


def test_an_unknown_family_and_a_custom_one_without_words_are_refused() -> None:
    with pytest.raises(PromptTemplateError, match="no prompt family 'x'"):
        prompt_family("x")
    with pytest.raises(PromptTemplateError, match="needs a template"):
        prompt_family("custom")


@given(text=st.text(min_size=1))
def test_no_text_can_change_the_words_around_it(text: str) -> None:
    assert fill("a {text} b {text_code}", {"text": text, "text_code": "c"}) == f"a {text} b c"
