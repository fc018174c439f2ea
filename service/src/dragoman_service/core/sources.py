"""Which language a text is translated from, where the caller leaves that to detection."""

from __future__ import annotations

from dataclasses import dataclass

from dragoman_contract.languages import Languages
from dragoman_protocols.detection import NOTHING, Detection, detect
from dragoman_protocols.errors import UnknownLanguageError
from dragoman_protocols.languages import Language, Pair, language, listing, script, sources
from dragoman_protocols.scripts import scripts_of_language, scripts_of_text
from dragoman_service.text.segments import has_letters

SURE_RATIO = 0.8
"""How sure detection must be that a text is in the target language already, before it is left as it is: a
needless translation of a heading of two words does less harm than a missing one."""


@dataclass(frozen=True)
class Source:
    """What a text is, and what is to be done with it.

    Args:
        tag: BCP-47 tag of its language, `und` if it has no letters.
        confidence: 0 to 1; None where the caller named the language.
        pair: What it is translated by; None if it stays as it is.
    """

    tag: str
    confidence: float | None
    pair: Pair | None


def source_of(text: str, target: Language, served: tuple[Languages, ...]) -> Source:
    """What a text is to be translated from.

    Args:
        text: Of any format.
        target: The language it shall become.
        served: The deployment's pairs; empty means every pair.

    Raises:
        UnknownLanguageError: It has letters, and could be in any of several languages.
    """
    among = sources(target, served)
    found = detect(text, (*among, target.tag) if among else ())
    if found == NOTHING:
        if not has_letters(text):
            return Source(found.tag, found.confidence, None)
        if len(among) != 1:
            raise UnknownLanguageError(
                "the language of the text could not be detected; name it"
                + (f" (served are {listing(served)})" if served else "")
            )
        found = Detection(among[0], 0.0)
    if _is_in(text, found.tag, target):
        if found.confidence >= SURE_RATIO or not among:
            return Source(found.tag, found.confidence, None)
        others = [tag for tag in among if language(tag).code != target.code]
        if not others:
            return Source(found.tag, found.confidence, None)
        other = detect(text, others)
        found = Detection(other.tag if other != NOTHING else others[0], round(1 - found.confidence, 4))
    return Source(found.tag, found.confidence, Pair(language(found.tag), target))


def _is_in(text: str, tag: str, target: Language) -> bool:
    """Whether a text in the language of `tag` is in the target language as it is.

    Scripts make a difference (zh-Hans is not zh-Hant, sr-Latn not sr-Cyrl); regions do not, for nobody can
    tell en-GB from en-US by a sentence.
    """
    found = language(tag)
    if found.code != target.code:
        return False
    written = scripts_of_language(target.tag)
    letters = scripts_of_text(text[:1000])
    if found.is_chinese:
        return script(found.tag) == script(target.tag)
    return not written or not letters or letters.most_common(1)[0][0] in written
