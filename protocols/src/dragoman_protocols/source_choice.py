"""The language that a text is translated from if the request names none: one rule for routers and pods.

A language is looked for among all that the model knows, not only among those that are served: a Spanish text is never
taken for French because Spanish is not served. That a language is served makes it likelier, as do the request's other
texts: most single words could be of several languages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dragoman_protocols.detection import MAX_CHARS, NOISE, family, label, probabilities, tag_of
from dragoman_protocols.errors import SourceNotServedError, SourceUnclearError
from dragoman_protocols.languages import script
from dragoman_protocols.offer import name_in
from dragoman_protocols.scripts import chinese_script, scripts_of_language, scripts_of_text
from dragoman_protocols.translation import UNDETERMINED

SERVED_ODDS = 10.0
"""Prior odds of a language that is served."""

HINT_ODDS = 30.0
"""Prior odds of the language that a request's texts together are in."""

SURE = 0.8
"""Minimum probability that a text is in the target language already and is returned unchanged, or in a language that is
not served and is refused: translating two words needlessly does less harm than not translating them."""

LIKELY = 0.5
"""Below it a translation has a warning that asks for the source language, or is refused where findings are; and no text
is returned unchanged because the target language is served."""

UNLIKELY = 0.2
"""A text that is likely in a language that is not served, and in all served ones less than this, is refused."""

SAMPLED_TEXTS = 200
"""Texts of a request that together show what language it is in."""

MAX_LISTED = 20


@dataclass(frozen=True)
class Source:
    """The language of a text.

    Args:
        tag: BCP-47 tag; `und` if the text has no letters.
        confidence: Probability of it among all languages that the model knows, 0 to 1.
        is_target: Whether the text is in the target language already.
        is_likely: Whether it is likely enough to go without a warning.
    """

    tag: str
    confidence: float
    is_target: bool = False
    is_likely: bool = True


NO_LETTERS = Source(UNDETERMINED, 0.0)


def sample_of(texts: Sequence[str]) -> str:
    """The beginnings of a request's texts."""
    chars = 2 * MAX_CHARS // max(1, min(len(texts), SAMPLED_TEXTS))
    return "\n".join(text[:chars] for text in texts[:SAMPLED_TEXTS])


def hint_of(texts: Sequence[str]) -> str | None:
    """The language of `probabilities` that texts together are in; None if there is one text, or it is not clear."""
    if len(texts) < 2:
        return None
    found = probabilities(sample_of(texts))
    best = max(found, key=found.__getitem__, default=None)
    return best if best is not None and found[best] >= SURE else None


def choose_source(
    text: str,
    sources: Sequence[str],
    targets: Sequence[str],
    hint: str | None = None,
    *,
    strict: bool = False,
) -> Source:
    """The language that a text is translated from.

    Args:
        text: In any format.
        sources: BCP-47 tags of the languages that are translated into all of `targets`; empty: every language.
        targets: BCP-47 tags, at least one.
        hint: From `hint_of` of the request's texts.
        strict: Whether a language that is not likely is refused.

    Raises:
        SourceNotServedError: It is in a language that is not served.
        SourceUnclearError: It has letters, and its language could not be told.
    """
    told = probabilities(text)
    if not told:
        return _without_evidence(text, sources)
    found = told if hint is None else _weighed(told, {hint: HINT_ODDS})
    served = dict.fromkeys((family(tag) for tag in (*sources, *targets)), SERVED_ODDS) if sources else {}
    likely = _weighed(found, served) if served else found
    best = max(likely, key=likely.__getitem__)
    best_tag = tag_of(best, text)
    unknown = [tag for tag in sources if family(tag) not in found]
    if served and best not in served:
        if len(unknown) == 1:
            return Source(unknown[0], 0.0, is_likely=False)
        of_served = sum(likely.get(code, 0.0) for code in served)
        is_other = likely[best] >= SURE or (found[best] >= LIKELY and of_served < UNLIKELY)
        if is_other and not unknown:
            raise _not_served(best_tag, found[best], sources, targets)
    in_target = Source(best_tag, round(found[best], 4), is_target=True)
    if (
        found[best] >= LIKELY
        and likely[best] >= SURE
        and any(_is_in(text, best_tag, target) for target in targets)
    ):
        return in_target
    tags = sources or [tag_of(code, text) for code in likely]
    own = {family(target) for target in targets}
    possible: dict[str, str] = {}
    for tag in tags:
        code = family(tag)
        # Another script than the target's is a source: Simplified for Traditional Chinese.
        if code not in own or not any(_is_in(text, _written(tag, text), target) for target in targets):
            possible.setdefault(code, tag)
    if not possible:
        return in_target
    code = max(possible, key=lambda each: likely.get(each, 0.0))
    is_likely = likely.get(code, 0.0) >= LIKELY
    if strict and not is_likely and len(possible) > 1:
        raise _not_told(found, text, sources)
    return Source(_written(possible[code], text), round(found.get(code, 0.0), 4), is_likely=is_likely)


def _weighed(found: dict[str, float], odds: dict[str, float]) -> dict[str, float]:
    weighed = {code: share * odds.get(code, 1.0) for code, share in found.items()}
    total = sum(weighed.values())
    return {code: share / total for code, share in weighed.items()}


def _without_evidence(text: str, sources: Sequence[str]) -> Source:
    """Of a text in a script that the model does not know, or without letters."""
    if not any(map(str.isalpha, NOISE.sub(" ", text))):
        return NO_LETTERS
    if len(sources) == 1:
        return Source(sources[0], 0.0, is_likely=False)
    raise _not_told({}, text, sources)


def _written(tag: str, text: str) -> str:
    """The tag of a source, for Chinese with the script of the text, unless it is listed without one."""
    if family(tag) != "zh" or "-" not in tag:
        return tag
    found = chinese_script(text[:MAX_CHARS])
    return tag if found is None else f"zh-{found}"


def _is_in(text: str, tag: str, target: str) -> bool:
    """Whether a text in the language of `tag` is in the target language as it is.

    Scripts make a difference (zh-Hans is not zh-Hant, sr-Latn not sr-Cyrl); regions do not: a sentence does not
    show whether it is en-GB or en-US.
    """
    if label(tag) != label(target):
        return False
    if family(tag) == "zh":
        return script(tag) == script(target)
    written, letters = scripts_of_language(target), scripts_of_text(text[:MAX_CHARS])
    return not written or not letters or letters.most_common(1)[0][0] in written


def _not_served(
    tag: str, confidence: float, sources: Sequence[str], targets: Sequence[str]
) -> SourceNotServedError:
    return SourceNotServedError(
        f"the text is in {_named(tag)} (confidence {confidence:.2f}), which is not translated into "
        f"{', '.join(targets)} here; {_served(sources)}. If it is in one of these, name the source language"
    )


def _not_told(found: dict[str, float], text: str, sources: Sequence[str]) -> SourceUnclearError:
    closest = sorted(found, key=found.__getitem__, reverse=True)[:3]
    guesses = f" (closest: {', '.join(_named(tag_of(code, text)) for code in closest)})" if closest else ""
    return SourceUnclearError(
        f"the language of the text could not be detected{guesses}; name the source language"
        + (f": {_served(sources)}" if sources else "")
    )


def _served(sources: Sequence[str]) -> str:
    return f"served are {', '.join(sources[:MAX_LISTED])}" + (", …" if len(sources) > MAX_LISTED else "")


def _named(tag: str) -> str:
    return f"{name_in(tag, 'en')} ({tag})"
