"""`/v2/translate`: its fields, read into the core's values, and its answer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from dragoman_protocols.calls import Peek, Reading, Results, Translate, peek_of
from dragoman_protocols.deepl.codes import has_formality, source_code, source_tag, target_tag
from dragoman_protocols.deepl.errors import missing, unsupported
from dragoman_protocols.deepl.fields import Fields, fields_of
from dragoman_protocols.deepl.types import MAX_GLOSSARIES, MAX_INSTRUCTION_CHARS, MAX_INSTRUCTIONS
from dragoman_protocols.errors import InvalidFieldError
from dragoman_protocols.messages import Answer, json_answer
from dragoman_protocols.offer import Offer
from dragoman_protocols.served import Need
from dragoman_protocols.site import Site
from dragoman_protocols.translation import (
    Formality,
    Format,
    Split,
    TranslationRequest,
    TranslationResult,
    not_blank,
    put_back,
)

SPLITS = {"0": Split.NONE, "1": None, "nonewlines": Split.NO_LINES}
"""`1` is DeepL's default, and stands for the deployment's setting."""

MODEL_TYPES = {
    "quality_optimized": "quality_optimized",
    "prefer_quality_optimized": "quality_optimized",
    "latency_optimized": "latency_optimized",
}
"""There is one model; the answer names the type that was requested."""

GLOSSARY_FIELDS = frozenset({"glossary_id", "glossary_ids", "style_id"})

STRICT = (Formality.MORE, Formality.LESS)

NOT_SERVED = ("translation_memory_id",)
"""Objects that a client created at DeepL; without them the translation would be another."""


@dataclass(frozen=True)
class Labels:
    """What the answer repeats of the request.

    Args:
        model_type: Type of the model, where one was requested.
        tag_handling_version: Version of the tag handling, where tags are handled.
    """

    model_type: str | None = None
    tag_handling_version: str | None = None


def find(fields: Fields, offer: Offer) -> Peek:
    """The pair, the texts and the glossaries of a translation."""
    need = need_of(fields, offer, _texts(fields))
    return peek_of(need, None, glossary_ids(fields, need.source))


def call(fields: Fields, found: Peek, site: Site) -> Translate:
    """Texts of one pair; unknown fields are ignored, as DeepL does."""
    (need,) = found.needs
    texts, most = len(need.texts), site.limits.max_texts
    if most is not None and texts > most:
        raise InvalidFieldError(f"Too many texts in this request: {texts}; at most {most} are accepted.")
    request = options(fields, found)
    labels = _labels(fields)

    def render(results: Results) -> Answer:
        return json_answer({"translations": list(translations(need, results[0] if results else (), labels))})

    requests = (request,) if request.texts else ()
    return Translate(requests, found.characters, render, glossary_ids=found.glossary_ids)


READING = Reading(fields_of, find, call)


def need_of(fields: Fields, offer: Offer, texts: tuple[str, ...] = ()) -> Need:
    """The pair that is requested.

    Raises:
        InvalidFieldError: A code is missing or not supported.
    """
    target = target_tag(fields.required("target_lang"), offer)
    code = fields.text("source_lang")
    return Need(None if code is None else source_tag(code, offer), (target,), texts, keeps=True)


def glossary_ids(fields: Fields, source: str | None) -> tuple[str, ...]:
    """The glossaries that are requested, in their order, and the list of style rules.

    Raises:
        InvalidFieldError: There are too many, or they require a source language.
    """
    if GLOSSARY_FIELDS.isdisjoint(fields.values):
        return ()
    one, several = fields.text("glossary_id"), fields.names("glossary_ids")
    if one is not None and several:
        raise InvalidFieldError("glossary_id and glossary_ids cannot be used together")
    if len(several) > MAX_GLOSSARIES:
        raise InvalidFieldError(f"glossary_ids: at most {MAX_GLOSSARIES} glossaries")
    found = tuple(several) if one is None else (one,)
    if found and source is None:
        raise InvalidFieldError("Use of a glossary requires the source_lang parameter to be specified")
    style = fields.text("style_id")
    return found if style is None else (*found, style)


def options(fields: Fields, found: Peek) -> TranslationRequest:
    """What the core has to do with the texts of the pair that are not blank.

    Raises:
        InvalidFieldError: A field is not supported.
    """
    (need,) = found.needs
    (target,) = need.targets
    for name in NOT_SERVED:
        if fields.text(name) is not None:
            raise unsupported(name)
    formality = _formality(fields, target)
    instructions = _instructions(fields)
    tag_handling = _tag_handling(fields)
    fields.flag("outline_detection")
    fields.flag("preserve_formatting")  # Layout and casing are always kept.
    fields.flag("show_billed_characters")
    return TranslationRequest(
        texts=not_blank(need.texts),
        target_lang=target,
        source_lang=need.source,
        format=Format.PLAIN if tag_handling is None else Format(tag_handling),
        split=SPLITS[fields.choice("split_sentences", SPLITS) or "1"],
        formality=formality,
        context=fields.text("context") or "",
        instructions=instructions,
        ignore_tags=frozenset(fields.names("ignore_tags")),
        splitting_tags=frozenset(fields.names("splitting_tags")),
        non_splitting_tags=frozenset(fields.names("non_splitting_tags")),
        # A context is a hint; explicit options are applied or refused.
        ignore_unsupported=not (found.glossary_ids or instructions or formality in STRICT),
    )


def translations(
    need: Need, results: Sequence[TranslationResult], labels: Labels
) -> Iterable[dict[str, Any]]:
    """The answer's items, in the order of the texts.

    Args:
        need: Whose blank texts have no results.
        results: Of the others.
        labels: What each item repeats.
    """
    for text, result in zip(need.texts, put_back(need.texts, results, need.source), strict=True):
        item: dict[str, Any] = {
            "detected_source_language": source_code(result.source_lang),
            "text": result.text,
            # Always, though DeepL sends it on request alone: its own Python client fails without.
            "billed_characters": len(text),
        }
        if labels.model_type is not None:
            item["model_type_used"] = labels.model_type
        if labels.tag_handling_version is not None:
            item["tag_handling_version"] = labels.tag_handling_version
        yield item


def _texts(fields: Fields) -> tuple[str, ...]:
    texts = tuple(fields.texts("text"))
    if not texts:
        raise missing("text")
    return texts


def _labels(fields: Fields) -> Labels:
    model_type = fields.choice("model_type", MODEL_TYPES)
    version = fields.choice("tag_handling_version", ("v1", "v2"))
    return Labels(
        None if model_type is None else MODEL_TYPES[model_type],
        None if _tag_handling(fields) is None else version or "v2",
    )


def _tag_handling(fields: Fields) -> str | None:
    return fields.choice("tag_handling", ("xml", "html"))


def _formality(fields: Fields, target: str) -> Formality:
    formality = Formality(fields.choice("formality", [each.value for each in Formality]) or "default")
    if has_formality(target) or formality is Formality.DEFAULT:
        return formality
    if formality in STRICT:
        raise InvalidFieldError(f"Target language '{target}' doesn't support formality.")
    return Formality.DEFAULT


def _instructions(fields: Fields) -> tuple[str, ...]:
    instructions = tuple(text for text in fields.texts("custom_instructions") if text.strip())
    if len(instructions) > MAX_INSTRUCTIONS:
        raise InvalidFieldError(f"custom_instructions: at most {MAX_INSTRUCTIONS} instructions")
    if any(len(text) > MAX_INSTRUCTION_CHARS for text in instructions):
        raise InvalidFieldError(
            f"custom_instructions: an instruction has at most {MAX_INSTRUCTION_CHARS} characters"
        )
    return instructions
