"""Files: their texts are read and translated, and the translation is kept until it is fetched."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from dragoman_protocols.calls import TranslateFile
from dragoman_protocols.detection import NOTHING, detect
from dragoman_protocols.offer import Offer
from dragoman_protocols.translation import TranslationRequest, not_blank, put_back
from dragoman_service.core.costs import Cost, cost_of, demands_of
from dragoman_service.core.translator import Translator
from dragoman_service.files.document import FileDocument
from dragoman_service.files.kinds import read

SAMPLED_TEXTS = 200
"""A file's language is detected from its first texts: each alone may be too short."""


class Translated(NamedTuple):
    """The content of a translated file.

    Args:
        findings: The number of warnings by their codes, and of segments that are the translation memory's.
    """

    content: bytes
    findings: Mapping[str, int]


@dataclass(frozen=True)
class ReadFile:
    """A file that was read.

    Args:
        texts: All of its texts, blank ones too.
        words: Its texts without their markup, which is what it is charged for.
        request: What the core has to do; None where all texts are blank.
    """

    file: FileDocument
    texts: tuple[str, ...]
    words: tuple[str, ...]
    request: TranslationRequest | None

    @property
    def characters(self) -> int:
        """What it is charged for."""
        return sum(map(len, self.words))

    @property
    def cost(self) -> Cost:
        """Of the translation, for the engine."""
        if self.request is None:
            return cost_of(())
        return cost_of(demands_of(replace(self.request, texts=self.words)))

    async def translated(self, translator: Translator) -> Translated:
        """The file with its texts translated."""
        results = [] if self.request is None else await translator.translate(self.request)

        def rebuilt() -> bytes:
            return self.file.rebuild([result.text for result in put_back(self.texts, results, None)])

        findings = Counter(warned.code for result in results for warned in result.warnings)
        if remembered := sum(result.from_memory for result in results):
            findings["from_memory"] = remembered
        return Translated(await asyncio.to_thread(rebuilt), dict(sorted(findings.items())))


def read_file(call: TranslateFile, offer: Offer) -> ReadFile:
    """The texts of a file, and what has to be done with them. Takes long: call it in a thread.

    Raises:
        CallerError: The file cannot be read.
    """
    file = read(call.name, call.content, call.request.target_lang)
    texts, words = not_blank(file.texts), tuple(file.words())
    request = replace(
        call.request,
        texts=texts,
        format=file.format,
        ignore_tags=file.ignore_tags,
        splitting_tags=file.splitting_tags,
        non_splitting_tags=file.non_splitting_tags,
        source_lang=call.request.source_lang or _detected(words, offer),
    )
    return ReadFile(file, tuple(file.texts), words, request if texts else None)


def _detected(words: tuple[str, ...], offer: Offer) -> str | None:
    """One language for the file; None if it is not clear: the core then detects it text by text."""
    found = detect("\n".join(words[:SAMPLED_TEXTS]), offer.sources)
    return None if found == NOTHING else found.tag
