"""The core as a library: vLLM's AsyncLLM in the caller's own event loop, without HTTP.

    async with AsyncVLLMTranslationProvider("tencent/Hy-MT2-1.8B", gpu_memory_utilization=0.3) as provider:
        print(await provider.translate("The cat sleeps.", "en", "de"))

vLLM runs the model in a process of its own, which it spawns: a script needs the usual guard,
`if __name__ == "__main__":`.
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from types import TracebackType
from typing import Any, Self

from dragoman_contract.languages import Languages
from dragoman_protocols.errors import NotReadyError
from dragoman_protocols.translation import TranslationRequest, TranslationResult
from dragoman_service.core.stages import Observer
from dragoman_service.core.translator import Translator, translator_of
from dragoman_service.engine.protocol import Engine, Report
from dragoman_service.settings import Settings


class AsyncVLLMTranslationProvider:
    """Translates by a model that it loads itself.

    Args:
        model_name: A directory, or a Hugging Face id (org/name).
        revision: Commit, tag or branch; None is the main one.
        gpu_memory_utilization: Fraction of the GPU's memory, over 0 to 1; None: vLLM's default.
        max_num_seqs: Maximum concurrent sequences; None: vLLM's default.
        huggingface_token: For gated models; None leaves HF_TOKEN as it is. It is put into this process's
            environment, where huggingface_hub and vLLM's processes read it.
        supported_language_pairs: Each a source and a target as BCP-47 tags; None serves every pair.
        settings: Any other setting of `dragoman serve` by its name, such as `device="cpu"` or
            `prompt_family="hy-mt2"`.

    Raises:
        pydantic.ValidationError: A setting is unknown or wrong.
    """

    def __init__(
        self,
        model_name: str,
        revision: str | None = None,
        gpu_memory_utilization: float | None = None,
        max_num_seqs: int | None = None,
        huggingface_token: str | None = None,
        supported_language_pairs: Sequence[tuple[str, str]] | None = None,
        **settings: Any,
    ) -> None:
        self._settings = Settings(
            model=model_name,
            revision=revision,
            gpu_memory_utilization=gpu_memory_utilization,
            max_num_seqs=max_num_seqs,
            languages=tuple(
                Languages(source=source, targets=(target,))
                for source, target in supported_language_pairs or ()
            ),
            **settings,
        )
        self._huggingface_token = huggingface_token
        self._engine: Engine | None = None
        self._translator: Translator | None = None

    async def initialize_engine(self, report: Report | None = None) -> None:
        """Load the model; returns once it can translate. A second call does nothing.

        Raises:
            StartError: With the reason, in one sentence.
        """
        if self._engine is not None:
            return
        if self._huggingface_token is not None:
            os.environ["HF_TOKEN"] = self._huggingface_token
        engine = _engine(self._settings)
        translator = translator_of(self._settings, engine, Observer())
        self._engine = engine
        try:
            await engine.load(report or (lambda _: None))
            await translator.warm_up()
        except BaseException:
            await self.aclose()
            raise
        self._translator = translator

    async def translate(self, text: str, source_lang: str | None, target_lang: str) -> str:
        """One text's translation.

        Args:
            text: Plain text of any length.
            source_lang: BCP-47 tag; None detects it.
            target_lang: BCP-47 tag.

        Raises:
            NotReadyError: Before `initialize_engine`.
            RequestError: As `Translator.translate` does.
        """
        (result,) = await self.request(TranslationRequest((text,), target_lang, source_lang))
        return result.text

    async def translate_batch(
        self, texts: Sequence[str], source_lang: str | None, target_lang: str
    ) -> list[str]:
        """Several texts' translations, in their order, generated concurrently.

        Args and errors: as `translate`.
        """
        found = await self.request(TranslationRequest(tuple(texts), target_lang, source_lang))
        return [result.text for result in found]

    async def stream(self, text: str, source_lang: str | None, target_lang: str) -> AsyncGenerator[str]:
        """One text's translation in pieces, sentence by sentence; joined they are the whole.

        Args and errors: as `translate`.
        """
        request = TranslationRequest((text,), target_lang, source_lang)
        async with aclosing(self._ready().stream(request)) as deltas:
            async for delta in deltas:
                if delta.text:
                    yield delta.text

    async def request(self, request: TranslationRequest) -> list[TranslationResult]:
        """Translations with all options and results of the core: HTML, terms, warnings, tokens.

        Args and errors: as `Translator.translate`.
        """
        return await self._ready().translate(request)

    async def aclose(self) -> None:
        """End the engine and its processes; nothing is translated after it."""
        engine, self._engine, self._translator = self._engine, None, None
        if engine is not None:
            await engine.aclose()

    async def __aenter__(self) -> Self:
        await self.initialize_engine()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        await self.aclose()

    def _ready(self) -> Translator:
        if self._translator is None:
            raise NotReadyError("the model is not loaded; await initialize_engine() first")
        return self._translator


def _engine(settings: Settings) -> Engine:
    if settings.engine == "scripted":
        from prometheus_client import CollectorRegistry

        from dragoman_service.engine.scripted.engine import ScriptedEngine, script_from

        return ScriptedEngine(script_from(settings), settings.name, CollectorRegistry())
    # Brings vLLM and torch along, which take seconds.
    from dragoman_service.engine.vllm.engine import AsyncLLMEngine
    from dragoman_service.prompts.families import prompt_family

    family = prompt_family(settings.prompt_family, settings.prompt_template)
    return AsyncLLMEngine(settings, family.framing)
