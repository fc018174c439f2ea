import asyncio
import time

import pytest

from dragoman_protocols.errors import TextTooLongError
from dragoman_protocols.languages import language
from dragoman_protocols.translation import Split, TranslationRequest
from dragoman_service.core.budgets import expansion_ratio, segment_budget
from dragoman_service.engine.protocol import output_budget
from dragoman_service.prompts.families import FAMILIES

SENTENCE = "The train number {} leaves at noon and everybody is waiting for it on the platform. "


@pytest.mark.slow
async def test_100_000_characters_come_back_as_they_were_laid_out(core) -> None:
    text = "".join(SENTENCE.format(number) + ("\n\n  " if number % 9 == 0 else "") for number in range(1200))
    assert len(text) > 100_000
    translator = core(lambda text, _: text.upper(), timeout_s=100, max_num_seqs=64)
    (result,) = await translator.translate(TranslationRequest((text,), "de", "en"))
    assert result.text == text.upper()
    assert 100 < result.segments < 200


async def test_segments_fit_the_model(core) -> None:
    translator = core(lambda text, _: text.upper(), max_model_len=300)
    text = "".join(SENTENCE.format(number) for number in range(30))
    request = TranslationRequest((text,), "de", "en", split=Split.LINES)
    (result,) = await translator.translate(request)
    assert result.text == text.upper()
    longest = max(len(prompt.segment) for prompt in translator.engine.prompts) / 4
    assert longest <= (300 - 48) / 2.5
    with pytest.raises(TextTooLongError):
        await translator.translate(TranslationRequest((text,), "de", "en", split=Split.NONE))


async def test_a_long_context_that_leaves_no_room_is_refused(core) -> None:
    translator = core(lambda text, _: text, max_model_len=300)
    with pytest.raises(TextTooLongError, match="leave no room"):
        await translator.translate(TranslationRequest(("Hi.",), "de", "en", context="word " * 400))


async def test_a_small_model_gets_each_sentence_by_itself(core) -> None:
    request = TranslationRequest(("The cat sleeps. The dog barks.",), "de", "en")
    for max_model_len, segments in ((1024, 2), (2048, 1)):
        translator = core(lambda text, _: text, max_model_len=max_model_len)
        assert (await translator.translate(request))[0].segments == segments
    translator = core(lambda text, _: text, max_model_len=1024, split=Split.LINES)
    assert (await translator.translate(request))[0].segments == 1


async def test_a_check_is_quick_at_any_length(core) -> None:
    translator = core(lambda text, _: text)
    request = TranslationRequest(("word " * 20_000,), "de", "en")
    translator.check(request)
    took_s = []
    for _ in range(5):
        began_s = time.thread_time()
        translator.check(request)
        took_s.append(time.thread_time() - began_s)
    assert min(took_s) < 0.001


async def test_the_loop_goes_on_while_a_long_text_is_prepared(core) -> None:
    translator = core(lambda text, _: text.upper(), timeout_s=100)
    text = "".join(SENTENCE.format(number) for number in range(1200))
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0)
            ticks += 1

    ticking = asyncio.create_task(tick())
    await translator._prepared(TranslationRequest((text,), "de", "en"))
    ticking.cancel()
    assert ticks > 0  # none, were it prepared on the loop


@pytest.mark.parametrize(
    ("source", "target", "low", "high"),
    [
        ("en", "de", 1.5, 1.5),
        ("en", "ne", 4, 6),
        ("ne", "en", 1, 1),
        ("zh", "en", 1, 2),
        ("en", "ja", 1.5, 3),
    ],
)
def test_the_room_for_a_translation_follows_its_script(source, target, low, high) -> None:
    assert low <= expansion_ratio(language(source), language(target)) <= high


@pytest.mark.parametrize("family", FAMILIES.values(), ids=lambda family: family.name)
@pytest.mark.parametrize("max_model_len", [512, 1024, 4096, 131_072])
def test_a_full_segment_is_never_refused_by_the_engine(family, max_model_len) -> None:
    most_prompt = family.decoding.max_prompt_tokens
    for ratio in (1.0, 1.5, 5.3):
        segment_tokens = segment_budget(max_model_len, most_prompt, 100, ratio, family.segment_tokens)
        assert (
            output_budget(148 + segment_tokens, segment_tokens, max_model_len, most_prompt)
            >= ratio * segment_tokens
        )
