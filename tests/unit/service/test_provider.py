import subprocess
import sys
from collections.abc import AsyncIterator

import pytest

from dragoman_protocols.errors import NotReadyError, UnsupportedPairError
from dragoman_protocols.translation import Format, TranslationRequest
from dragoman_service import AsyncVLLMTranslationProvider
from dragoman_service.errors import ModelLoadError

ANSWERS = {
    "The cat sleeps on the sofa.": "Die Katze schläft auf dem Sofa.",
    "The dog sees the big cat.": "Der Hund sieht die große Katze.",
}


def provider(**script: object) -> AsyncVLLMTranslationProvider:
    return AsyncVLLMTranslationProvider(
        model_name="org/model",
        revision="0123abc",
        gpu_memory_utilization=0.3,
        max_num_seqs=16,
        supported_language_pairs=[("en", "de"), ("en", "fr")],
        engine="scripted",
        engine_args={"answers": ANSWERS} | script,
    )


@pytest.fixture
async def loaded() -> AsyncIterator[AsyncVLLMTranslationProvider]:
    async with provider() as ready:
        yield ready


async def test_one_text_several_and_a_stream(loaded: AsyncVLLMTranslationProvider) -> None:
    first, second = ANSWERS
    assert await loaded.translate(first, "en", "de") == ANSWERS[first]
    assert await loaded.translate_batch([second, first], "en", "de") == [ANSWERS[second], ANSWERS[first]]
    assert await loaded.translate(first, None, "de") == ANSWERS[first]
    pieces = [piece async for piece in loaded.stream(f"{first} {second}", "en", "de")]
    assert pieces == [ANSWERS[first], f" {ANSWERS[second]}"]


async def test_a_request_of_the_core_s_own(loaded: AsyncVLLMTranslationProvider) -> None:
    html = "<p>The cat sleeps on the sofa.</p>"
    (result,) = await loaded.request(TranslationRequest((html,), "de", "en", format=Format.HTML))
    assert result.text == "<p>Die Katze schläft auf dem Sofa.</p>"


async def test_other_pairs_are_refused(loaded: AsyncVLLMTranslationProvider) -> None:
    with pytest.raises(UnsupportedPairError, match="it to de is not served here; sources are en"):
        await loaded.translate("Ciao", "it", "de")


async def test_nothing_is_translated_before_the_load_and_after_the_end() -> None:
    unloaded = provider()
    with pytest.raises(NotReadyError, match="initialize_engine"):
        await unloaded.translate("Hi", "en", "de")
    await unloaded.initialize_engine()
    await unloaded.initialize_engine()
    assert await unloaded.translate("Hi there.", "en", "de")
    await unloaded.aclose()
    with pytest.raises(NotReadyError):
        await unloaded.translate("Hi", "en", "de")


async def test_a_load_that_fails_has_a_reason_and_can_be_repeated() -> None:
    failing = provider(fail_load="no such luck")
    for _ in range(2):
        with pytest.raises(ModelLoadError, match="no such luck"):
            await failing.initialize_engine()


def test_importing_the_package_loads_nothing_heavy() -> None:
    heavy = "{'torch', 'vllm', 'transformers', 'py3langid', 'fastapi'}"
    code = (
        f"import sys, dragoman_service, dragoman_service.provider; print(sorted({heavy} & set(sys.modules)))"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"
