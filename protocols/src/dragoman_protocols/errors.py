"""Everything that can go wrong with a request, in the engine pod or in the router, named by cause.

    RequestError
      CallerError               the request is wrong: sending it again does not help
      CapacityError             not now: `retry_after_s`
        UnavailableError        503 in every API: another replica, or this one later, can answer
      DeadlineExceededError     not finished in time
      EngineError               the engine failed
      UpstreamError             the replicas that the router tried failed
      DefectError               an exception that the program does not foresee

Messages say what is wrong and what to do about it, in one sentence a caller may read. Each API maps the classes to
the statuses and bodies of its own with an `ErrorTable`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar, Generic, Literal, TypeVar

Row = TypeVar("Row")
Side = Literal["source", "target", "pair"]


class RequestError(Exception):
    """Root of the tree."""

    code: ClassVar[str] = "internal_error"
    """Stable name of the cause, for callers' programs and as a metric label."""


class CallerError(RequestError):
    """The request cannot be answered as it is; sending it again will not help."""

    code = "bad_request"


class MalformedRequestError(CallerError):
    """The body is not UTF-8, or not JSON."""

    code = "malformed_request"


class InvalidFieldError(CallerError):
    """A field is missing, unknown, or of the wrong type.

    Args:
        field: Its path, such as `messages[0].role`; empty: the message alone has it.
    """

    code = "invalid_field"
    field = ""

    def __init__(self, message: str, field: str = "") -> None:
        super().__init__(message)
        self.field = field


class BodyTooLargeError(CallerError):
    """The body exceeds what the pod reads."""

    code = "body_too_large"


class EmptyTextError(CallerError):
    """There is nothing to translate."""

    code = "empty_text"


class LanguageError(CallerError):
    """A language of the request is unknown or not served.

    Args:
        tag: The language, as the message has it.
        side: Which language of the pair is wrong; `pair`: only both together.
    """

    tag = ""
    side: Side = "pair"

    def __init__(self, message: str, tag: str = "", side: Side = "pair") -> None:
        super().__init__(message)
        self.tag, self.side = tag, side


class UnknownLanguageError(LanguageError):
    """A tag is no BCP-47 tag of a language that has a name."""

    code = "unknown_language"


class UnsupportedPairError(LanguageError):
    """The pair is not among those that are served."""

    code = "unsupported_pair"


class SourceNotServedError(UnsupportedPairError):
    """The text is in a language, as detected, that is not translated into the target."""


class SourceUnclearError(UnknownLanguageError):
    """The language of the text could not be detected."""


class TextTooLongError(CallerError):
    """Prompt and translation do not fit the model's context."""

    code = "text_too_long"


class UnsupportedOptionError(CallerError):
    """The model's prompt family does not support an option: a glossary, a tone, instructions, a context."""

    code = "unsupported_option"


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


class UnknownPathError(CallerError):
    """No API has this path."""

    code = "not_found"


class MethodNotAllowedError(UnknownPathError):
    """The path exists, with other methods, which are `allowed`."""

    code = "method_not_allowed"

    def __init__(self, message: str, allowed: Iterable[str] = ()) -> None:
        super().__init__(message)
        self.allowed = tuple(sorted(allowed))


class UnknownDeploymentError(CallerError):
    """There is no TranslationDeployment of the requested name."""

    code = "unknown_deployment"


class ModelNotFoundError(UnknownDeploymentError):
    """There is no model of the requested name."""

    code = "model_not_found"


class UnknownDocumentError(CallerError):
    """No replica has the requested document."""

    code = "unknown_document"


class KeyMissingError(CallerError):
    """An API key is required, and the request has none."""

    code = "key_missing"


class KeyRefusedError(CallerError):
    """The API key is unknown."""

    code = "key_refused"


class TokenRefusedError(CallerError):
    """The bearer token, or what stands in its place, is not valid here."""

    code = "token_refused"


class FleetForbiddenError(CallerError):
    """The caller may not see the fleet view."""

    code = "fleet_forbidden"


class QuotaError(CallerError):
    """A quota is used up."""

    code = "quota_exceeded"


class StoreFullError(QuotaError):
    """There are as many glossaries as are kept."""


class CapacityError(RequestError):
    """The request cannot be accepted now; the same one may succeed after `retry_after_s`, or on another replica."""

    code = "no_capacity"
    started: ClassVar[bool] = False
    """Whether work had started when it was raised: a router must not retry it as if nothing was done."""

    def __init__(self, message: str, retry_after_s: int = 1) -> None:
        super().__init__(message)
        self.retry_after_s = max(1, retry_after_s)


class RateLimitedError(CapacityError):
    """The key, or the client, sends requests faster than it may."""

    code = "rate_limited"


class TooManyAuthFailuresError(RateLimitedError):
    """Too many requests of the client's address had a wrong key or token."""

    code = "too_many_auth_failures"


class UnavailableError(CapacityError):
    """Another replica, or this one later, can answer."""


class TooManyConnectionsError(UnavailableError):
    """The server has as many connections as it may have."""

    code = "too_many_connections"


class IssuerUnavailableError(UnavailableError):
    """The signing keys of the tokens' issuer are not known yet."""

    code = "issuer_unavailable"


class OverloadedError(CapacityError):
    """A limit of concurrent work is reached; `reason` names it in metrics."""

    code = "overloaded"

    def __init__(self, message: str, retry_after_s: int = 1, reason: str = "engine") -> None:
        super().__init__(message, retry_after_s)
        self.reason = reason


class CrowdedOutError(OverloadedError):
    """A request timed out in an engine that had more requests than it can run."""

    code = "crowded_out"
    started = True


class NotReadyError(UnavailableError):
    """The model is still loading."""

    code = "not_ready"


class DocumentNotDoneError(UnavailableError):
    """A document has no result: it is not translated yet, or failed. Only its pod can answer."""

    code = "document_not_done"


class DrainingError(UnavailableError):
    """The pod finishes its requests and accepts no more."""

    code = "draining"


class GlossaryMissingError(UnavailableError):
    """A router names a glossary that the pod does not hold: it attaches the glossary and retries."""

    code = "glossary_missing"


class NoReplicaError(UnavailableError):
    """No replica could take the request within the time that it may wait."""

    code = "no_replica"


class QueueFullError(UnavailableError):
    """The deployment's queue in the router is full."""

    code = "overloaded"


class GlossariesUnavailableError(UnavailableError):
    """The store of glossaries cannot be read."""

    code = "glossaries_unavailable"


class CutShortError(DrainingError):
    """The drain timed out before an accepted request was finished."""

    started = True


class DeadlineExceededError(RequestError):
    """The translation was not finished within the request's time limit."""

    code = "timeout"


class UpstreamTimeoutError(DeadlineExceededError):
    """No replica answered in time."""


class UpstreamError(RequestError):
    """The replicas that were tried failed."""

    code = "upstream_failed"


class DefectError(RequestError):
    """A defect: an exception that the program does not foresee."""


class GlossaryStoreError(RequestError):
    """Glossaries cannot be read or kept: the place where they live is broken, full or gone."""

    code = "glossary_store_failed"


class EngineError(RequestError):
    """The engine failed on a request."""

    code = "engine_error"


class GenerationError(EngineError):
    """One generation failed; the engine lives on."""

    code = "generation_failed"


class TruncatedOutputError(EngineError):
    """The model reached its token limit before the end of the translation."""

    code = "output_truncated"


class EmptyOutputError(EngineError):
    """The model generated no text."""

    code = "output_empty"


class UnreliableTranslationError(EngineError):
    """A guard flagged the translation after a retry too, and the request has `on_finding: fail`."""

    code = "unreliable_translation"


class EngineDeadError(EngineError):
    """The engine ended; only a restart of the pod helps."""

    code = "engine_dead"


def causes() -> tuple[type[RequestError], ...]:
    """All classes of this module."""
    return tuple(
        each for each in globals().values() if isinstance(each, type) and issubclass(each, RequestError)
    )


class ErrorTable(Generic[Row]):
    """What an API answers for each class of errors: the row of the class, or of the nearest class above it.

    Args:
        rows: By class; `RequestError` has one.
    """

    def __init__(self, rows: Mapping[type[RequestError], Row]) -> None:
        self._rows = dict(rows)

    def __getitem__(self, error: RequestError) -> Row:
        """The row of an error."""
        return self.of(type(error))

    def of(self, kind: type[RequestError]) -> Row:
        """The row of a class."""
        return next(self._rows[each] for each in kind.__mro__ if each in self._rows)


STATUSES: dict[type[RequestError], int] = {
    CallerError: 400,
    KeyMissingError: 401,
    KeyRefusedError: 403,
    TokenRefusedError: 401,
    FleetForbiddenError: 403,
    UnknownPathError: 404,
    UnknownDeploymentError: 404,
    UnknownDocumentError: 404,
    MethodNotAllowedError: 405,
    BodyTooLargeError: 413,
    QuotaError: 429,
    RateLimitedError: 429,
    CapacityError: 503,
    EngineDeadError: 503,
    DeadlineExceededError: 504,
    UpstreamError: 502,
    RequestError: 500,
}
"""HTTP statuses, where an API has none of its own."""


def headers_of(error: RequestError) -> tuple[tuple[str, str], ...]:
    """`Retry-After` where sending the request again can help; `Allow` for a wrong method; RFC 6750's for a token."""
    if isinstance(error, CapacityError):
        return (("Retry-After", str(error.retry_after_s)),)
    if isinstance(error, MethodNotAllowedError):
        return (("Allow", ", ".join(error.allowed)),)
    if isinstance(error, TokenRefusedError):
        return (("WWW-Authenticate", 'Bearer error="invalid_token"'),)
    return ()


def closes(error: RequestError) -> bool:
    """Whether the connection ends with the answer: the body was not read to its end, or the pod terminates."""
    return isinstance(error, DrainingError | EngineDeadError | BodyTooLargeError)
