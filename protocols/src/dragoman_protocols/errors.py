"""Everything that can go wrong in an engine pod, named by cause.

Messages say what is wrong and what to do about it, in one sentence a caller may read. No class here
knows HTTP: each dialect maps classes to the statuses and bodies of its own API.
"""

from __future__ import annotations

from typing import ClassVar


class ServiceError(Exception):
    """Root of the tree."""

    code: ClassVar[str] = "internal_error"
    """Stable name of the cause, for callers' programs and as a metric label."""


class CallerError(ServiceError):
    """The request cannot be answered as it is; sending it again will not help."""

    code = "bad_request"


class MalformedRequestError(CallerError):
    """The body is not UTF-8, or not JSON."""

    code = "malformed_request"


class InvalidFieldError(CallerError):
    """A field is missing, unknown, or of the wrong type."""

    code = "invalid_field"


class BodyTooLargeError(CallerError):
    """The body exceeds what the pod reads."""

    code = "body_too_large"


class EmptyTextError(CallerError):
    """There is nothing to translate."""

    code = "empty_text"


class UnknownLanguageError(CallerError):
    """A tag is no BCP-47 tag of a language that has a name."""

    code = "unknown_language"


class UnsupportedPairError(CallerError):
    """The pair is not among those that this deployment serves."""

    code = "unsupported_pair"


class TextTooLongError(CallerError):
    """Prompt and translation do not fit the model's context."""

    code = "text_too_long"


class UnsupportedWishError(CallerError):
    """The model's prompt family cannot do what was asked for: a glossary, a tone, instructions, a context."""

    code = "unsupported_wish"


class InvalidGlossaryError(CallerError):
    """A glossary cannot be kept as it is; the message names the entry."""

    code = "invalid_glossary"


class UnknownGlossaryError(CallerError):
    """There is no glossary of this id."""

    code = "unknown_glossary"


class UnknownDictionaryError(CallerError):
    """A glossary has nothing for this pair of languages."""

    code = "unknown_dictionary"


class UnsupportedFileError(CallerError):
    """Files of this kind are not translated."""

    code = "unsupported_file"


class BrokenFileError(CallerError):
    """A file is not what its name says, or is larger unpacked than is read."""

    code = "broken_file"


class QuotaError(CallerError):
    """A quota is used up."""

    code = "quota_exceeded"


class StoreFullError(QuotaError):
    """There are as many glossaries as are kept."""


class CapacityError(ServiceError):
    """The pod cannot take the request now; the same request may succeed later or on another replica.

    Args:
        message: What keeps it from being taken.
        retry_after_s: Seconds after which asking again makes sense, at least 1.
    """

    code = "no_capacity"
    begun: ClassVar[bool] = False
    """Whether work had begun when it was raised: a router then may not take asking again for free."""

    def __init__(self, message: str, retry_after_s: int = 1) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class OverloadedError(CapacityError):
    """The pod has taken on as much as it may.

    Args:
        message: What keeps the request from being taken.
        retry_after_s: Seconds after which asking again makes sense, at least 1.
        reason: Which bound it is: a label of metrics.
    """

    code = "overloaded"

    def __init__(self, message: str, retry_after_s: int = 1, reason: str = "engine") -> None:
        super().__init__(message, retry_after_s)
        self.reason = reason


class CrowdedOutError(OverloadedError):
    """A request's time was up while it shared an engine that had more than it can run."""

    code = "crowded_out"
    begun = True


class NotReadyError(CapacityError):
    """The model is still loading."""

    code = "not_ready"


class DrainingError(CapacityError):
    """The pod finishes what it has and takes nothing new."""

    code = "draining"


class GlossaryMissingError(CapacityError):
    """A router names a glossary that the pod does not hold; it brings it and asks again."""

    code = "glossary_missing"


class CutShortError(DrainingError):
    """The drain's time was up before a request that had been taken was finished."""

    begun = True


class DeadlineExceededError(ServiceError):
    """The translation was not finished within the request's time limit."""

    code = "timeout"


class GlossaryStoreError(ServiceError):
    """Glossaries cannot be read or kept: the place where they live is broken, full or gone."""

    code = "glossary_store_failed"


class EngineError(ServiceError):
    """The engine failed on a request."""

    code = "engine_error"


class GenerationError(EngineError):
    """One generation failed; the engine lives on."""

    code = "generation_failed"


class TruncatedOutputError(EngineError):
    """The model ran to its token limit without ending the translation."""

    code = "output_truncated"


class EmptyOutputError(EngineError):
    """The model ended without a word."""

    code = "output_empty"


class UnreliableTranslationError(EngineError):
    """A guard doubts the translation after a retry too, and the caller asked to fail then."""

    code = "unreliable_translation"


class EngineDeadError(EngineError):
    """The engine is gone; only a restart of the pod brings it back."""

    code = "engine_dead"


class StartError(ServiceError):
    """The pod cannot start; the message is the sentence for the termination log."""

    code = "start_failed"


class SettingsError(StartError):
    """A flag or an environment variable is wrong."""

    code = "bad_settings"


class PromptTemplateError(StartError):
    """The prompt family or its template cannot be used."""

    code = "bad_prompt_template"


class ModelLoadError(StartError):
    """The engine could not load the model."""

    code = "model_load_failed"
