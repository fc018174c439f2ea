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


CODES = {
    "BadRequest": 400,
    "Unauthorized": 401,
    "Forbidden": 403,
    "NotFound": 404,
    "MethodNotAllowed": 405,
    "AlreadyExists": 409,
    "Conflict": 409,
    "Expired": 410,
    "UnsupportedMediaType": 415,
    "Invalid": 422,
    "InternalError": 500,
    "": 500,
}
"""The HTTP status of each reason. A real server reports an apply patch outside the schema without a reason."""


class ApiError(Exception):
    """A refusal with a Kubernetes reason, one of `CODES`; `status()` is its body."""

    def __init__(
        self, reason: str, message: str, *, details: Object | None = None, causes: Sequence[Cause] = ()
    ) -> None:
        super().__init__(message)
        self.reason = reason
        self.code = CODES[reason]
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


def no_such_object(group: str, plural: str, name: str) -> ApiError:
    """The 404 for an object, worded as kubectl prints it: `pods "x" not found`."""
    return ApiError(
        "NotFound",
        f'{qualified(plural, group)} "{name}" not found',
        details=named_details(group, plural, name),
    )


def invalid(group: str, kind: str, name: str, causes: Sequence[Cause]) -> ApiError:
    """The 422 for an object; its message joins the causes as a real server does."""
    message = [f"{cause.field}: {cause.message}" if cause.field else cause.message for cause in causes]
    text = message[0] if len(message) == 1 else "[" + ", ".join(message) + "]"
    return ApiError(
        "Invalid",
        f'{qualified(kind, group)} "{name}" is invalid: {text}',
        details=named_details(group, kind, name),
        causes=causes,
    )


def stale(group: str, plural: str, name: str) -> ApiError:
    """The 409 for an update made from an outdated copy."""
    return ApiError(
        "Conflict",
        f'Operation cannot be fulfilled on {qualified(plural, group)} "{name}": the object has been modified; '
        "please apply your changes to the latest version and try again",
        details=named_details(group, plural, name),
    )


def failed_precondition(group: str, plural: str, name: str, field: str, wanted: str, found: str) -> ApiError:
    """The 409 for a request about an object of another uid or resourceVersion."""
    return ApiError(
        "Conflict",
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
