"""LibreTranslate: `POST /translate` with `q`, `source`, `target` as JSON, form or query; `/detect`, `/languages`.

Source: https://github.com/LibreTranslate/LibreTranslate, version 1.9.6, behaviour only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dragoman_contract.http import TRANSLATE_PATH
from dragoman_contract.languages import MAX_TAG_CHARS
from dragoman_protocols import errors
from dragoman_protocols.calls import Detect, Peek, Reading, Results, Translate, peek_of
from dragoman_protocols.endpoints import Api, Endpoint, EndpointKind, Operation, json_or_form
from dragoman_protocols.errors import ErrorTable, InvalidFieldError, RequestError, UnknownLanguageError
from dragoman_protocols.files import FILE_ENDINGS
from dragoman_protocols.languages import AUTO, language
from dragoman_protocols.libretranslate import files
from dragoman_protocols.libretranslate.fields import (
    CODES,
    DetectRequest,
    Fields,
    FileForm,
    LibreTranslateRequest,
    read_fields,
)
from dragoman_protocols.libretranslate.files import API_NAME
from dragoman_protocols.messages import CORS_HEADERS, Answer, Request, cors_answer, error_answer
from dragoman_protocols.multipart import MULTIPART
from dragoman_protocols.native import speaks_libretranslate
from dragoman_protocols.offer import Offer
from dragoman_protocols.site import Limits, Site
from dragoman_protocols.translation import (
    UNDETERMINED,
    Format,
    TranslationRequest,
    not_blank,
    put_back,
)

if TYPE_CHECKING:
    from dragoman_protocols.detection import Detection

ERRORS = ErrorTable(
    errors.STATUSES
    | {
        errors.BodyTooLargeError: 400,
        errors.KeyMissingError: 403,
        errors.QuotaError: 403,
        errors.UnavailableError: 503,
        errors.CapacityError: 429,
        errors.DeadlineExceededError: 500,
    }
)
"""Statuses. LibreTranslate has no 503: here it says that another replica, or this one later, can answer."""

FORMATS = {"": Format.PLAIN, "text": Format.PLAIN, "html": Format.HTML}

MAX_ALTERNATIVES = 9

BODY_BYTES_PER_CHAR = 10
"""A form, the widest of the encodings that clients use, has nine bytes for a character of Chinese; the tenth
leaves room for the other fields. So a text within the limit of characters fits the limit of bytes."""

UNDETECTED = {"confidence": 0.0, "language": "en"}
"""The detected language of a text without letters."""

FRONTEND_TIMEOUT_MS = 500
"""Time from the last keystroke to the request in LibreTranslate's own page."""

DEFAULT_TARGET = "en"
"""The target that a page begins with, where it is served."""


class LibreTranslate(Api):
    """The API."""

    name = API_NAME
    key_parameters = ("api_key",)
    key_fields = ("api_key", "apiKey")
    """The npm package `libretranslate` sends the second."""
    key_place = "in the field `api_key`"
    cors = True

    def error(self, error: RequestError, _: Request) -> Answer:
        """`{"error": "…"}`."""
        status = ERRORS[error]
        message = f"Slowdown: {error}" if status == 429 else str(error)
        if isinstance(error, errors.UnsupportedFileError):
            message = f"Invalid request: file format not supported: {error}"
        elif isinstance(error, errors.LanguageError) and error.side != "pair":
            message = f"{CODES.code(error.tag)[:MAX_TAG_CHARS]} is not supported"
        return error_answer(error, status, {"error": message}, CORS_HEADERS)


def find(fields: Fields, offer: Offer) -> Peek:
    """The pair and the texts."""
    return peek_of(fields.need(offer, fields.texts()))


def call(fields: Fields, found: Peek, site: Site) -> Translate:
    """Texts of one pair; blank ones come back as they are."""
    (need,) = found.needs
    _check_sizes(need.texts, site.limits)
    alternatives = _alternatives(fields)
    written = fields.text("format")
    if written not in FORMATS:
        raise InvalidFieldError(f"{written[:20]} format is not supported")
    wanted = not_blank(need.texts)
    request = TranslationRequest(
        wanted,
        need.targets[0],
        need.source,
        one_source=need.source is None,
        format=FORMATS[written],
        alternatives=alternatives,
        ignore_unsupported=True,
    )
    several = isinstance(fields.values["q"], list)

    def render(results: Results) -> Answer:
        each = put_back(need.texts, results[0] if results else (), need.source)
        answer: dict[str, Any] = {"translatedText": [result.text for result in each]}
        if need.source is None:
            answer["detectedLanguage"] = [
                _detected_language(result.source_lang, result.confidence) for result in each
            ]
        if alternatives:
            answer["alternatives"] = [list(result.alternatives) for result in each]
        return cors_answer(answer if several else {name: values[0] for name, values in answer.items()})

    return Translate((request,) if wanted else (), found.characters, render)


def read_detection(request: Request, _: Site) -> Detect:
    """One text; several are taken as one."""
    return Detect(("\n".join(read_fields(request).texts()),), _detections)


def respond_languages(_: Request, site: Site) -> Answer:
    """Every source with its targets."""
    offer = site.offer
    listed = [
        {**_named(source), "targets": [CODES.code(target) for target in offer.targets[source]]}
        for source in offer.sources
    ]
    return cors_answer(listed)


def respond_settings(_: Request, site: Site) -> Answer:
    """What a page in front of this may do."""
    targets = site.offer.all_targets
    first = targets[0] if targets and DEFAULT_TARGET not in targets else DEFAULT_TARGET
    return cors_answer(
        {
            "charLimit": _max_chars(site.limits),
            "batchLimit": -1 if site.limits.max_texts is None else site.limits.max_texts,
            "frontendTimeout": FRONTEND_TIMEOUT_MS,
            "apiKeys": site.keys_required,
            "keyRequired": site.keys_required,
            "suggestions": False,
            "filesTranslation": True,
            "supportedFilesFormat": list(FILE_ENDINGS),
            "language": {"source": {"code": AUTO, "name": "Auto Detect"}, "target": _named(first)},
            # Not of LibreTranslate: whether the page has a link to its fleet view.
            "fleet": site.page and site.sees_fleet,
        }
    )


def respond_health(_: Request, site: Site) -> Answer:
    """Whether requests are taken."""
    return cors_answer({"status": "ok"}) if site.ready else cors_answer({"error": "not ready"}, 503)


def respond_suggestion(_: Request, __: Site) -> Answer:
    """Always refused."""
    return cors_answer({"error": "Suggestions are disabled on this server."}, 403)


def _max_chars(limits: Limits) -> int:
    """Characters of one text."""
    return limits.max_body_bytes // BODY_BYTES_PER_CHAR


def _check_sizes(texts: Sequence[str], limits: Limits) -> None:
    if limits.max_texts is not None and len(texts) > limits.max_texts:
        raise _too_much(len(texts), limits.max_texts)
    longest = max(map(len, texts))
    if longest > _max_chars(limits):
        raise _too_much(longest, _max_chars(limits))


def _too_much(size: int, limit: int) -> InvalidFieldError:
    return InvalidFieldError(f"Invalid request: request ({size}) exceeds text limit ({limit})")


def _alternatives(fields: Fields) -> int:
    value = fields.values.get("alternatives")
    if isinstance(value, list) and not fields.is_json:
        value = value[0]
    try:
        wanted = max(0, int(value or 0)) if isinstance(value, str | int | float | None) else -1
    except (ValueError, OverflowError):
        wanted = -1
    if wanted < 0:
        raise InvalidFieldError("Invalid request: alternatives parameter is not a number")
    if wanted > MAX_ALTERNATIVES:
        raise InvalidFieldError(f"Invalid request: alternatives parameter must be <= {MAX_ALTERNATIVES}")
    return wanted


def _detected_language(tag: str, confidence: float | None) -> dict[str, Any]:
    if confidence is None or tag == UNDETERMINED:
        return UNDETECTED
    return {"confidence": float(round(confidence * 100)), "language": CODES.code(tag)}


def _detections(found: Sequence[Detection]) -> Answer:
    return cors_answer([_detected_language(each.tag, each.confidence) for each in found])


def _named(tag: str) -> dict[str, str]:
    try:
        return {"code": CODES.code(tag), "name": language(tag).english}
    except UnknownLanguageError:
        return {"code": tag, "name": tag}


API = LibreTranslate()
READING = Reading(read_fields, find, call)
_GET, _POST = frozenset({"GET"}), frozenset({"POST"})
ENDPOINTS = (
    Endpoint(
        API,
        EndpointKind.TRANSLATE,
        TRANSLATE_PATH,
        _POST,
        claims_body=speaks_libretranslate,
        reading=READING,
        operation=Operation(
            "Translate one text or several.",
            json_or_form(LibreTranslateRequest),
        ),
    ),
    Endpoint(
        API,
        EndpointKind.DETECT,
        "/detect",
        _POST,
        detect=read_detection,
        operation=Operation("Detect the language of a text.", json_or_form(DetectRequest)),
    ),
    Endpoint(
        API,
        EndpointKind.RESPOND,
        "/languages",
        # argostranslate sends POST.
        _GET | _POST,
        respond=respond_languages,
        is_public=True,
        operation=Operation("List the languages with their targets."),
    ),
    Endpoint(
        API,
        EndpointKind.RESPOND,
        "/frontend/settings",
        _GET,
        respond=respond_settings,
        is_public=True,
        operation=Operation("Get the size limits and other settings."),
    ),
    Endpoint(
        API,
        EndpointKind.RESPOND,
        "/health",
        _GET,
        respond=respond_health,
        needs_key=False,
        operation=Operation("Check whether the server accepts requests."),
    ),
    Endpoint(
        API,
        EndpointKind.RESPOND,
        "/suggest",
        _POST,
        respond=respond_suggestion,
        needs_key=False,
        operation=Operation("Submit a better translation. Not supported: every request gets 403."),
    ),
    Endpoint(
        API,
        EndpointKind.FILE,
        "/translate_file",
        _POST,
        reading=files.READING,
        operation=Operation(
            "Translate a file. The response contains the URL of the translated file.",
            {MULTIPART.decode(): FileForm},
        ),
    ),
    Endpoint(
        API,
        EndpointKind.DOCUMENT,
        "/download_file/{key}",
        _GET,
        handle=files.handle_download,
        # The key is a secret itself.
        needs_key=False,
        operation=Operation("Download a translated file, from the URL that `/translate_file` returned."),
    ),
)
