"""What a request wishes of the model, and what of it the model's family can be told."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dragoman_protocols.errors import UnsupportedWishError
from dragoman_protocols.languages import Pair
from dragoman_protocols.translation import Formality, TranslationRequest, Warned
from dragoman_service.prompts.family import PromptFamily
from dragoman_service.prompts.wishes import NONE, Tone, Wishes

TONES = {
    Formality.MORE: Tone.FORMAL,
    Formality.PREFER_MORE: Tone.FORMAL,
    Formality.LESS: Tone.INFORMAL,
    Formality.PREFER_LESS: Tone.INFORMAL,
}

ANY_TERM = (("term", "term"),)


@dataclass(frozen=True)
class Wanted:
    """A request's wishes as its prompts say them.

    Args:
        wishes: Without terms, which differ from segment to segment.
        takes_terms: Whether the family can be told terms.
        warnings: One for each wish that is dropped.
    """

    wishes: Wishes = NONE
    takes_terms: bool = True
    warnings: tuple[Warned, ...] = ()


def wanted(asked: TranslationRequest, pair: Pair, family: PromptFamily) -> Wanted:
    """What of a request's wishes the family can be told.

    Args:
        asked: The request.
        pair: Its languages.
        family: Of the model.

    Raises:
        UnsupportedWishError: There is a wish that it cannot be told, and `ignore_unsupported` is not set.
    """
    tone = TONES.get(asked.formality)
    context = asked.context.strip()
    instructions = tuple(filter(str.strip, asked.instructions))
    if not (asked.terms or context or tone or instructions):
        return _PLAIN[not family.lacking(pair, Wishes(terms=ANY_TERM))]
    wishes = Wishes(ANY_TERM if asked.terms else (), context, tone, instructions)
    preferred = asked.formality in (Formality.PREFER_MORE, Formality.PREFER_LESS)
    if preferred and family.lacking(pair, Wishes(tone=tone)):
        wishes = replace(wishes, tone=None)
    lacking = family.lacking(pair, wishes)
    if lacking and not asked.ignore_unsupported:
        raise UnsupportedWishError(
            f"models of family {family.name} cannot be told {' or '.join(lacking)}; leave it out"
        )
    if lacking:
        wishes = _without(wishes, lacking)
    return Wanted(
        replace(wishes, terms=()),
        not family.lacking(pair, replace(wishes, terms=ANY_TERM)),
        tuple(Warned("ignored", f"models of family {family.name} cannot be told {what}") for what in lacking),
    )


def _without(wishes: Wishes, lacking: tuple[str, ...]) -> Wishes:
    return Wishes(
        () if "a glossary" in lacking else wishes.terms,
        "" if "a context" in lacking else wishes.context,
        None if "a tone" in lacking else wishes.tone,
        () if "instructions" in lacking else wishes.instructions,
    )


_PLAIN = {can: Wanted(takes_terms=can) for can in (False, True)}
