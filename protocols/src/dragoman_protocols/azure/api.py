"""Azure AI Translator: `/translate`, `/detect` and `/languages` with an `api-version`, 3.0 or 2026-06-06; documents.

Sources: https://learn.microsoft.com/azure/ai-services/translator/text-translation/reference/v3/translate and
the client azure-ai-translation-text, 1.0.1 and 2.0.0.
"""

from __future__ import annotations

from dragoman_contract.http import TRANSLATE_PATH
from dragoman_protocols import errors
from dragoman_protocols.azure import documents, types
from dragoman_protocols.azure.head import (
    KEY_HEADER,
    VERSION_PREFIX,
    AzureError,
    has_numeric_codes,
    id_headers,
)
from dragoman_protocols.azure.languages import read_detection, respond_languages
from dragoman_protocols.azure.translate import READING
from dragoman_protocols.bodies import JSON_TYPE
from dragoman_protocols.endpoints import Api, Endpoint, EndpointKind, Operation
from dragoman_protocols.errors import ErrorTable, RequestError
from dragoman_protocols.messages import Answer, Request, error_answer
from dragoman_protocols.multipart import MULTIPART

DOCUMENT_PATH = "/translator/document:translate"

ERRORS: ErrorTable[int] = ErrorTable(
    {
        errors.MalformedRequestError: 400074,
        errors.BodyTooLargeError: 400077,
        errors.TextTooLongError: 400050,
        errors.LanguageError: 400023,
        errors.KeyMissingError: 401000,
        errors.KeyRefusedError: 401000,
        errors.TokenRefusedError: 401000,
        errors.QuotaError: 403001,
        errors.MethodNotAllowedError: 405000,
        errors.UnknownPathError: 404000,
        errors.UnknownDeploymentError: 404001,
        errors.CallerError: 400000,
        errors.RateLimitedError: 429000,
        errors.CapacityError: 503000,
        errors.EngineDeadError: 503000,
        errors.DeadlineExceededError: 504000,
        errors.UpstreamError: 502000,
        RequestError: 500000,
    }
)
"""Azure's numbers: six digits, the first three of which are the HTTP status; it has none for 502 and 504.

Source: https://learn.microsoft.com/azure/ai-services/translator/text-translation/reference/status-response-codes
"""


SIDES = {"source": 400035, "target": 400036}
"""For a language that is unknown, or not served as a source or a target at all."""


class Azure(Api):
    """The API."""

    name = "azure"
    key_headers = (KEY_HEADER,)
    key_parameters = ("subscription-key",)
    key_place = "in the header `Ocp-Apim-Subscription-Key: KEY`"

    def claims(self, request: Request) -> bool:
        """Whether it has the version or the key of Azure's clients, or a path that no other API has."""
        query = request.query
        if query and (query.startswith(VERSION_PREFIX) or b"&" + VERSION_PREFIX in query):
            return True
        return request.header(KEY_HEADER) is not None or request.path.startswith(DOCUMENT_PATH)

    def error(self, error: RequestError, request: Request) -> Answer:
        """`{"error": {"code", "message"}}` with a number of six digits."""
        number = ERRORS[error]
        if isinstance(error, errors.LanguageError):
            number = SIDES.get(error.side, number)
        elif isinstance(error, AzureError):
            number = error.number
        code = number if has_numeric_codes(request) else str(number)
        document = {"error": {"code": code, "message": str(error)}}
        return error_answer(error, number // 1000, document, id_headers(request))


API = Azure()
ENDPOINTS = (
    Endpoint(
        API,
        EndpointKind.TRANSLATE,
        TRANSLATE_PATH,
        frozenset({"POST"}),
        reading=READING,
        operation=Operation(
            "Translate texts into one or several languages.",
            {JSON_TYPE: types.Items | types.Inputs},
            types.TranslateQuery,
            query_beside_body=True,
        ),
    ),
    Endpoint(
        API,
        EndpointKind.FILE,
        DOCUMENT_PATH,
        frozenset({"POST"}),
        reading=documents.READING,
        operation=Operation(
            "Translate a document; the response is the translated one.",
            {MULTIPART.decode(): types.DocumentForm},
            types.DocumentQuery,
            query_beside_body=True,
        ),
    ),
    Endpoint(
        API,
        EndpointKind.DETECT,
        "/detect",
        frozenset({"POST"}),
        detect=read_detection,
        operation=Operation(
            "Detect the language of each text.",
            {JSON_TYPE: types.Items},
            types.VersionQuery,
            query_beside_body=True,
        ),
    ),
    Endpoint(
        API,
        EndpointKind.RESPOND,
        "/languages",
        frozenset({"GET"}),
        respond=respond_languages,
        is_public=True,
        operation=Operation("List the languages.", query=types.LanguagesQuery),
    ),
)
