"""What `/v2/translate` asks for, in the core's values."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dragoman_contract.languages import Languages
from dragoman_protocols.blanks import not_blank
from dragoman_protocols.errors import InvalidFieldError
from dragoman_protocols.translation import Formality, Format, Split, TranslationRequest
from dragoman_service.core.costs import Cost, cost_of, demands_of
from dragoman_service.dialects.deepl.codes import has_formality, source_tag, target_tag
from dragoman_service.dialects.deepl.errors import missing, unsupported
from dragoman_service.dialects.deepl.fields import Fields

MOST_INSTRUCTIONS = 10
MOST_INSTRUCTION_CHARS = 300
MOST_GLOSSARIES_ASKED = 5

SPLITS = {"0": Split.NONE, "1": None, "nonewlines": Split.NO_LINES}
"""`1` is what DeepL does unasked, and so what the deployment's setting stands for."""

MODEL_TYPES = {
    "quality_optimized": "quality_optimized",
    "prefer_quality_optimized": "quality_optimized",
    "latency_optimized": "latency_optimized",
}
"""There is one model; what was asked for is what it is said to be."""

FIRM = (Formality.MORE, Formality.LESS)

NOT_SERVED = ("style_id", "translation_memory_id")
"""Things that a caller made at DeepL; to leave them out silently would give another translation."""


@dataclass(frozen=True)
class Asked:
    """A request for translations.

    Args:
        texts: All of them, blank ones too, which come back as they are.
        request: What the core is asked for: the texts that are not blank; None where all are.
        glossary_ids: Whose terms hold, the first before the others.
        model_type: What the answer calls the model, where it was asked for one.
        tag_handling_version: The same of the way tags are handled.
        words: Of a document, without its markup; None where the texts came as they are.
    """

    texts: tuple[str, ...]
    request: TranslationRequest | None
    glossary_ids: tuple[str, ...] = ()
    model_type: str | None = None
    tag_handling_version: str | None = None
    words: tuple[str, ...] | None = None

    @property
    def characters(self) -> int:
        """What is counted as usage: code points of all texts, or of a document's words."""
        return sum(map(len, self.texts if self.words is None else self.words))

    @property
    def cost(self) -> Cost:
        """What the translation takes of the engine."""
        if self.request is None:
            return cost_of(())
        texts = self.request.texts if self.words is None else self.words
        return cost_of(demands_of(replace(self.request, texts=texts)))


def read_asked(fields: Fields, served: tuple[Languages, ...], max_texts: int) -> Asked:
    """What a request's fields ask for; unknown fields are passed over, as DeepL does.

    Args:
        fields: Of the body.
        served: The deployment's pairs; empty means every pair.
        max_texts: Most texts in one request.

    Raises:
        InvalidFieldError: In DeepL's words.
    """
    texts = tuple(fields.texts("text"))
    if not texts:
        raise missing("text")
    if len(texts) > max_texts:
        raise InvalidFieldError(
            f"Too many texts in this request: {len(texts)}; at most {max_texts} are taken."
        )
    target = target_tag(fields.required("target_lang"), served)
    source_code = fields.text("source_lang")
    source = None if source_code is None else source_tag(source_code)
    glossary_ids = _glossary_ids(fields)
    if glossary_ids and source is None:
        raise InvalidFieldError("Use of a glossary requires the source_lang parameter to be specified")
    for name in NOT_SERVED:
        if fields.text(name) is not None:
            raise unsupported(name)
    formality = _formality(fields, target)
    instructions = _instructions(fields)
    model_type = fields.choice("model_type", MODEL_TYPES)
    tag_handling = fields.choice("tag_handling", ("xml", "html"))
    version = fields.choice("tag_handling_version", ("v1", "v2"))
    fields.flag("outline_detection")
    fields.flag("preserve_formatting")  # Layout and casing are kept in any case.
    fields.flag("show_billed_characters")
    request = TranslationRequest(
        texts=not_blank(texts),
        target_lang=target,
        source_lang=source,
        format=Format.PLAIN if tag_handling is None else Format(tag_handling),
        split=SPLITS[fields.choice("split_sentences", SPLITS) or "1"],
        formality=formality,
        context=fields.text("context") or "",
        instructions=instructions,
        ignore_tags=frozenset(fields.names("ignore_tags")),
        splitting_tags=frozenset(fields.names("splitting_tags")),
        non_splitting_tags=frozenset(fields.names("non_splitting_tags")),
        # A context is a hint; what is asked for in so many words is done or refused.
        ignore_unsupported=not (glossary_ids or instructions or formality in FIRM),
    )
    return Asked(
        texts=texts,
        request=request if request.texts else None,
        glossary_ids=glossary_ids,
        model_type=None if model_type is None else MODEL_TYPES[model_type],
        tag_handling_version=None if tag_handling is None else version or "v2",
    )


def _formality(fields: Fields, target: str) -> Formality:
    asked = Formality(fields.choice("formality", [each.value for each in Formality]) or "default")
    if has_formality(target) or asked is Formality.DEFAULT:
        return asked
    if asked in FIRM:
        raise InvalidFieldError(f"Target language '{target}' doesn't support formality.")
    return Formality.DEFAULT


def _glossary_ids(fields: Fields) -> tuple[str, ...]:
    one, several = fields.text("glossary_id"), fields.names("glossary_ids")
    if one is not None and several:
        raise InvalidFieldError("glossary_id and glossary_ids cannot be used together")
    if len(several) > MOST_GLOSSARIES_ASKED:
        raise InvalidFieldError(f"glossary_ids: at most {MOST_GLOSSARIES_ASKED} glossaries")
    return tuple(several) if one is None else (one,)


def _instructions(fields: Fields) -> tuple[str, ...]:
    asked = tuple(text for text in fields.texts("custom_instructions") if text.strip())
    if len(asked) > MOST_INSTRUCTIONS:
        raise InvalidFieldError(f"custom_instructions: at most {MOST_INSTRUCTIONS} instructions")
    if any(len(text) > MOST_INSTRUCTION_CHARS for text in asked):
        raise InvalidFieldError(
            f"custom_instructions: an instruction has at most {MOST_INSTRUCTION_CHARS} characters"
        )
    return asked
