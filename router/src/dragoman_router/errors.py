"""Everything that can go wrong in the router, by cause.

    RouterError
      SettingsError                     the command line, a file of static deployments, keys, certificates
      ClusterError                      the Kubernetes API
      StateError                        Redis, which routers share state through
        StateRefusedError               it refused a command, and will again
      RefusedError                      a request that the router itself answers
        CallerError                     the request is wrong: sending it again will not help
        CapacityError                   not now: `retry_after_s`
        UpstreamError                   the replicas failed
        DefectError                     an exception that the router does not foresee

The dialects give them their statuses and shapes.
"""

from __future__ import annotations


class RouterError(Exception):
    """Base of all errors of this package."""


class SettingsError(RouterError):
    """The router was told something that it cannot follow."""


class ClusterError(RouterError):
    """The Kubernetes API did not give what was asked for."""


class StateError(RouterError):
    """Redis did not answer, or with an error."""


class StateRefusedError(StateError):
    """Redis refused a command: out of memory, a missing permission, a wrong password."""


class RefusedError(RouterError):
    """A request that gets an answer of the router's own."""

    code = "internal_error"


class CallerError(RefusedError):
    """The request is wrong."""

    code = "invalid_request"


class MalformedRequestError(CallerError):
    """The body cannot be read."""

    code = "malformed_request"


class InvalidFieldError(CallerError):
    """A field is missing or of the wrong type."""

    code = "invalid_field"


class UnknownPathError(CallerError):
    """No dialect has this path."""

    code = "not_found"


class UnknownDeploymentError(CallerError):
    """The TranslationDeployment or model that was asked for by name is not there."""

    code = "unknown_deployment"


class UnknownDocumentError(CallerError):
    """No replica has the document that is asked for."""

    code = "unknown_document"


class UnsupportedPairError(CallerError):
    """No TranslationDeployment serves the pair."""

    code = "unsupported_pair"


class UnknownGlossaryError(CallerError):
    """There is no glossary of this id."""

    code = "unknown_glossary"


class BodyTooLargeError(CallerError):
    """The body is larger than the router reads."""

    code = "body_too_large"


class KeyMissingError(CallerError):
    """A key is needed and none was sent."""

    code = "key_missing"


class KeyRefusedError(CallerError):
    """The key that was sent is none of ours."""

    code = "key_refused"


class QuotaExceededError(CallerError):
    """The key has used up its characters."""

    code = "quota_exceeded"


class CapacityError(RefusedError):
    """Not now.

    Args:
        message: What is short.
        retry_after_s: Seconds after which it is worth asking again, at least 1.
    """

    code = "overloaded"

    def __init__(self, message: str, retry_after_s: int = 1) -> None:
        super().__init__(message)
        self.retry_after_s = max(1, retry_after_s)


class RateLimitedError(CapacityError):
    """The key, or the caller, asks faster than it may."""

    code = "rate_limited"


class QueueFullError(CapacityError):
    """More requests wait for the deployment than the router holds."""

    code = "overloaded"


class GlossariesUnavailableError(CapacityError):
    """The place where glossaries are kept cannot be read."""

    code = "glossaries_unavailable"


class DrainingError(CapacityError):
    """This router terminates, and the request did not finish in time."""

    code = "draining"


class NoReplicaError(CapacityError):
    """No replica could take the request for as long as it may wait."""

    code = "no_replica"


class DefectError(RefusedError):
    """A defect of the router: an exception that it does not foresee."""


class UpstreamError(RefusedError):
    """The replicas that were tried failed."""

    code = "upstream_failed"


class UpstreamTimeoutError(UpstreamError):
    """No replica answered in time."""

    code = "timeout"
