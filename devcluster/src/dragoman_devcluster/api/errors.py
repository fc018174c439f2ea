"""What the API refuses, each as the `Status` object that a real server would answer.

Source: https://kubernetes.io/docs/reference/using-api/api-concepts/ and k8s.io/apimachinery's api/errors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dragoman_devcluster.api.objects import Object


@dataclass(frozen=True)
class Cause:
    """One reason among several: its machine-readable `reason`, a sentence, and the field it is about."""

    reason: str
    message: str
    field: str

    def render(self) -> Object:
        """The cause as an entry of `Status.details.causes`."""
        message = {"reason": self.reason, "message": self.message}
        return {**message, "field": self.field} if self.field else message


class ApiError(Exception):
    """A refusal with an HTTP status code and a Kubernetes reason; `status()` is its body."""

    code = 500
    reason = "InternalError"

    def __init__(self, message: str, *, details: Object | None = None, causes: Sequence[Cause] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.details = dict(details or {})
        if causes:
            self.details["causes"] = [cause.render() for cause in causes]

    def status(self) -> Object:
        """The `v1.Status` object that clients parse."""
        status: Object = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
        status["message"] = self.message
        if self.reason:
            status["reason"] = self.reason
        if self.details:
            status["details"] = self.details
        status["code"] = self.code
        return status


class BadRequestError(ApiError):
    """The request cannot be understood."""

    code, reason = 400, "BadRequest"


class UnauthorizedError(ApiError):
    """No token, or an unknown one."""

    code, reason = 401, "Unauthorized"


class ForbiddenError(ApiError):
    """Refused for every user."""

    code, reason = 403, "Forbidden"


class NotFoundError(ApiError):
    """No such path, kind or object."""

    code, reason = 404, "NotFound"


class MethodNotAllowedError(ApiError):
    """The path is there, the verb is not."""

    code, reason = 405, "MethodNotAllowed"


class AlreadyExistsError(ApiError):
    """A name that is taken."""

    code, reason = 409, "AlreadyExists"


class ConflictError(ApiError):
    """The object has changed, or another manager owns the field."""

    code, reason = 409, "Conflict"


class ExpiredError(ApiError):
    """A resourceVersion that history no longer reaches; list again."""

    code, reason = 410, "Expired"


class UnsupportedMediaTypeError(ApiError):
    """A body or patch format that is not served here."""

    code, reason = 415, "UnsupportedMediaType"


class InvalidError(ApiError):
    """An object that breaks its schema or rules; `causes` name every broken field."""

    code, reason = 422, "Invalid"


class UntypedError(ApiError):
    """What a real server reports as a plain 500 without a reason: an apply patch outside the schema."""

    code, reason = 500, ""


def no_such_object(group: str, plural: str, name: str) -> NotFoundError:
    """The 404 for an object, worded as kubectl prints it: `pods "x" not found`."""
    return NotFoundError(
        f'{qualified(plural, group)} "{name}" not found', details=named_details(group, plural, name)
    )


def invalid(group: str, kind: str, name: str, causes: Sequence[Cause]) -> InvalidError:
    """The 422 for an object; its message joins the causes as a real server does."""
    message = [f"{cause.field}: {cause.message}" if cause.field else cause.message for cause in causes]
    text = message[0] if len(message) == 1 else "[" + ", ".join(message) + "]"
    return InvalidError(
        f'{qualified(kind, group)} "{name}" is invalid: {text}',
        details=named_details(group, kind, name),
        causes=causes,
    )


def stale(group: str, plural: str, name: str) -> ConflictError:
    """The 409 for an update made from an outdated copy."""
    return ConflictError(
        f'Operation cannot be fulfilled on {qualified(plural, group)} "{name}": the object has been modified; '
        "please apply your changes to the latest version and try again",
        details=named_details(group, plural, name),
    )


def failed_precondition(
    group: str, plural: str, name: str, field: str, wanted: str, found: str
) -> ConflictError:
    """The 409 for a request about an object of another uid or resourceVersion."""
    return ConflictError(
        f'Operation cannot be fulfilled on {qualified(plural, group)} "{name}": '
        f"Precondition failed: {field} in precondition: {wanted}, {field} in object meta: {found}",
        details=named_details(group, plural, name),
    )


def qualified(resource: str, group: str) -> str:
    """`deployments.apps`, or just `pods` in the core group."""
    return f"{resource}.{group}" if group else resource


def named_details(group: str, kind: str, name: str) -> Object:
    """`Status.details` for one object."""
    return {**({"name": name} if name else {}), **({"group": group} if group else {}), "kind": kind}
