"""The head of a request to Azure's API: its version, its parameters and its id."""

from __future__ import annotations

import re
import uuid

from dragoman_protocols.azure.types import Version
from dragoman_protocols.errors import CallerError, MalformedRequestError
from dragoman_protocols.forms import FieldValues, last
from dragoman_protocols.messages import Request

VERSION_PARAMETER = "api-version"
KEY_HEADER = b"ocp-apim-subscription-key"
ID_HEADER = "X-RequestId"
ID_HEADERS = (b"x-requestid", b"x-clienttraceid")

VERSION_PREFIX = f"{VERSION_PARAMETER}=".encode()
_REQUEST_ID = re.compile(r"[\x21-\x7e]{1,128}")


class AzureError(CallerError):
    """An error that Azure has a number of its own for.

    Args:
        number: Six digits; the first three are the status.
        message: What is wrong and what to do about it.
    """

    number = 400000

    def __init__(self, number: int, message: str) -> None:
        super().__init__(message)
        self.number = number


def parameters(request: Request) -> FieldValues:
    """The fields of the query.

    Raises:
        AzureError: They cannot be read.
    """
    try:
        return request.query_fields()
    except MalformedRequestError as error:
        raise AzureError(400000, str(error)) from None


def version_of(request: Request) -> Version:
    """The version that a request is of.

    Raises:
        AzureError: None, or an unknown one.
    """
    version = last(parameters(request), VERSION_PARAMETER)
    if version == Version.V3:
        return Version.V3
    if version == Version.V2026:
        return Version.V2026
    raise AzureError(400021, f"{VERSION_PARAMETER}: expected {' or '.join(Version)}")


def has_numeric_codes(request: Request) -> bool:
    """Whether codes of errors are numbers: in 3.0, and where the version is missing; strings in later versions."""
    try:
        version = last(request.query_fields(), VERSION_PARAMETER)
    except MalformedRequestError:
        return True
    return version is None or version == Version.V3


def id_headers(request: Request) -> tuple[tuple[str, str], ...]:
    """The header with a request's id: the caller's, else a new one."""
    sent = next((value for name in ID_HEADERS if (value := request.header(name))), b"").decode("latin-1")
    return ((ID_HEADER, sent if _REQUEST_ID.fullmatch(sent) else str(uuid.uuid4())),)
