"""A client of a running service for the command line: texts by `/translate`, files by `/documents`; retries."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import httpx

from dragoman.memory import Memory
from dragoman_contract.http import TRANSLATE_PATH

DOCUMENTS_PATH = "/documents"
POLL_S = 1.0
ENDED = ("done", "failed", "cancelled")
"""States of a document that do not change any more."""
FIRST_DELAY_S, MAX_DELAY_S = 0.25, 15.0
KEY_CODES = ("key_missing", "key_refused", "token_refused")
KUBERNETES = "kubernetes"
"""In place of a code: the API server refuses, not the service behind its proxy."""
NEVER_PASSES = (httpx.UnsupportedProtocol, httpx.LocalProtocolError)
"""Errors of requests that cannot be sent at all."""

Result = TypeVar("Result")


@dataclass(frozen=True)
class Wanted:
    """What a translation depends on beside its text.

    Args:
        source: BCP-47 tag; None: detected, text by text.
        target: BCP-47 tag.
        terms: A glossary, as the native API's `terms`.
        memory: Its translations are taken instead of generating them.
    """

    source: str | None
    target: str
    terms: tuple[tuple[str, str], ...] = ()
    memory: Memory | None = None

    @property
    def options(self) -> dict[str, Any]:
        """Fields of a request for texts or a document."""
        options: dict[str, Any] = {"target_lang": self.target}
        if self.source:
            options["source_lang"] = self.source
        if self.terms:
            options["terms"] = [{"source": source, "target": target} for source, target in self.terms]
        return options

    def body(self, texts: Sequence[str]) -> dict[str, Any]:
        """A request for texts."""
        body = {"text": [*texts], **self.options}
        if self.memory is not None and (units := self.memory.applying(texts)):
            body["memory"] = [{"source": source, "target": target} for source, target in units.items()]
            body["details"] = True
        return body

    @property
    def identity(self) -> Mapping[str, Any]:
        """As JSON, for the journal's hash."""
        memory = {} if self.memory is None else {"memory": self.memory.digest}
        return {"source": self.source, "target": self.target, "terms": [*self.terms], **memory}


NOT_DONE = {
    "nothing_to_translate": "nothing was found to translate",
    "parts_left": "parts of it, such as embedded documents, stay as they are",
    "source_kept": "segments stay in the source language",
}
"""Findings about a file that say that something of it was not translated."""


@dataclass(frozen=True)
class TranslatedFile:
    """A translated file.

    Args:
        findings: Numbers of warnings by code.
        characters: Of its texts in the source language.
    """

    content: bytes
    findings: Mapping[str, int]
    characters: int = 0

    @property
    def is_whole(self) -> bool:
        """Whether all of it was translated."""
        return not NOT_DONE.keys() & self.findings.keys()

    @property
    def remarks(self) -> str:
        """The findings in words; empty without."""
        return "; ".join(
            NOT_DONE[code]
            if code == "nothing_to_translate"
            else f"{NOT_DONE.get(code, code.replace('_', ' '))}: {count}"
            for code, count in self.findings.items()
        )


class UnreachableError(Exception):
    """The service does not answer, or has refused for load for too long."""


class RefusedError(Exception):
    """The service refused; the message has its status and reason.

    Args:
        status: HTTP status.
        code: The native API's name of the cause; empty where there is none.
        retry_after_s: The value of `Retry-After`; 0 without.
    """

    def __init__(self, status: int, code: str, message: str, retry_after_s: float = 0.0) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status
        self.code = code
        self.retry_after_s = retry_after_s

    @property
    def passes(self) -> bool:
        """Whether the same request may succeed later: overload, loading, a drain; not a key's quota."""
        return self.status in (429, 503) and self.code != "quota_exceeded"

    @property
    def is_of_the_text(self) -> bool:
        """Whether another text may succeed: too long, no reliable translation, a failed generation, a timeout."""
        return self.status in (413, 500, 502, 504) or self.code == "empty_text"

    @property
    def is_of_the_key(self) -> bool:
        """Whether the API key is missing or wrong, also for a proxy with other errors; not what Kubernetes refuses."""
        return self.code in KEY_CODES or (self.status == 401 and self.code != KUBERNETES)


class Translator:
    """Requests to one service, each retried while the cause may pass.

    Args:
        http: With the service's address, credentials and timeout.
        patience_s: Time after the last success during which requests to an overloaded or silent service are repeated.
            One that has never answered is given up at once if it cannot be connected to.
    """

    def __init__(self, http: httpx.AsyncClient, patience_s: float) -> None:
        self._http = http
        self._patience_s = patience_s
        self._success_s: float | None = None
        self._began_s = time.monotonic()
        self.from_memory = 0
        """Segments that were the translation memory's."""
        self.source_kept = 0
        """Segments of texts that stay in the source language."""

    async def texts(self, texts: Sequence[str], wanted: Wanted) -> list[str]:
        """Translate texts in one request.

        Raises:
            RefusedError: The service refuses for a cause that does not pass.
            UnreachableError: See the class.
        """

        async def attempt() -> list[str]:
            answer = await self._send("POST", TRANSLATE_PATH, json=wanted.body(texts))
            try:
                document = answer.json()
                translations: list[str] = document["translation"]
                details = document.get("details", ())
                remembered = sum(each.get("from_memory", 0) for each in details)
                kept = sum(
                    warning["code"] == "source_kept"
                    for each in details
                    for warning in each.get("warnings", ())
                )
            except (ValueError, LookupError, TypeError, AttributeError):
                translations, remembered, kept = [], 0, 0
            if len(translations) != len(texts):
                raise self._not_dragoman(answer)
            self.from_memory += remembered
            self.source_kept += kept
            return translations

        return await self._patiently(attempt)

    async def document(self, name: str, content: bytes, wanted: Wanted) -> TranslatedFile:
        """Translate a file, in the format that the ending of its name says.

        Raises:
            RefusedError: The service refuses, or could not translate it.
            UnreachableError: See the class.
        """
        fields = wanted.options
        # A name may have bytes that are not UTF-8.
        files = {"file": (name.encode(errors="replace").decode(), content)}
        if terms := fields.pop("terms", None):
            files["terms"] = ("terms.json", json.dumps(terms).encode())
        if wanted.memory is not None:
            files["memory"] = ("memory.tmx", wanted.memory.content)
        document = await self._document("POST", DOCUMENTS_PATH, data=fields, files=files)
        path = f"{DOCUMENTS_PATH}/{document['id']}"
        while document["state"] not in ENDED:
            await asyncio.sleep(POLL_S)
            document = await self._document("GET", path)
        if document["state"] != "done":
            error = document.get("error") or {}
            raise RefusedError(
                502,
                str(error.get("code") or ""),
                str(error.get("message") or f"the document is {document['state']}"),
            )
        findings = dict(document.get("findings") or {})
        self.from_memory += findings.pop("from_memory", 0)
        result = await self._patiently(lambda: self._send("GET", f"{path}/result"))
        return TranslatedFile(result.content, findings, document.get("characters") or 0)

    async def _document(self, method: str, path: str, **arguments: Any) -> dict[str, Any]:
        """The document that a request answers with: see docs/reference/api.md."""

        async def attempt() -> dict[str, Any]:
            answer = await self._send(method, path, **arguments)
            try:
                document: dict[str, Any] = answer.json()
                document["id"], document["state"]
            except (ValueError, LookupError, TypeError):
                raise self._not_dragoman(answer) from None
            return document

        return await self._patiently(attempt)

    async def _patiently(self, attempt: Callable[[], Awaitable[Result]]) -> Result:
        delay_s = FIRST_DELAY_S
        while True:
            try:
                result = await attempt()
            except RefusedError as error:
                if not error.passes:
                    raise
                cause: Exception = error
                wait_s = max(delay_s, min(error.retry_after_s, MAX_DELAY_S))
            except httpx.TransportError as error:
                cause = error
                wait_s = delay_s
                at_first = self._success_s is None and isinstance(error, httpx.ConnectError)
                if at_first or isinstance(error, NEVER_PASSES):
                    raise UnreachableError(f"{self._http.base_url} cannot be reached: {error}") from error
            else:
                self._success_s = time.monotonic()
                return result
            since_s = time.monotonic() - (self._success_s or self._began_s)
            if since_s + wait_s > self._patience_s:
                # Some errors of connections have no message.
                reason = str(cause) or type(cause).__name__
                raise UnreachableError(
                    f"{self._http.base_url} has not translated for {since_s:.0f} s: {reason}"
                ) from cause
            await asyncio.sleep(wait_s)
            delay_s = min(2 * delay_s, MAX_DELAY_S)

    def _not_dragoman(self, answer: httpx.Response) -> RefusedError:
        return RefusedError(answer.status_code, "", f"{self._http.base_url} did not answer as Dragoman does")

    async def _send(self, method: str, path: str, **arguments: Any) -> httpx.Response:
        try:
            answer = await self._http.request(method, path.lstrip("/"), **arguments)
        except httpx.ReadTimeout as error:
            raise RefusedError(504, "timeout", "no answer within the time of --timeout") from error
        if answer.is_success:
            return answer
        code, message = _reason(answer)
        raise RefusedError(answer.status_code, code, message, _seconds(answer.headers.get("retry-after")))


def _reason(answer: httpx.Response) -> tuple[str, str]:
    """The code and the message of an error of the native API, or of what answered in its place."""
    try:
        document = answer.json()
        if document.get("kind") == "Status":
            return KUBERNETES, str(document["message"])
        error = document.get("error", document)
        return str(error.get("code") or ""), str(error["message"])
    except (ValueError, LookupError, AttributeError):
        return "", answer.text[:500] or answer.reason_phrase


def _seconds(header: str | None) -> float:
    try:
        return float(header or 0)
    except ValueError:
        return 0.0  # A date, which this project's services do not send.
