"""Documents of pods: the id in a path, the one replica that has it, and its response."""

from __future__ import annotations

import re

from dragoman_contract.routing import tag_of
from dragoman_protocols.documents import NOT_FOUND
from dragoman_protocols.errors import UnknownDocumentError, UpstreamError, UpstreamTimeoutError
from dragoman_router.fleet.backend import Backend, ReplicaEndpoint
from dragoman_router.fleet.connections import ExchangeError
from dragoman_router.fleet.fleet import Fleet
from dragoman_router.http.job import Answered, Job
from dragoman_router.request import RoutedRequest
from dragoman_router.routing.placement import in_scope

_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_DOCUMENTS = (
    re.compile(r"/v2/document/([0-9A-Fa-f]{32})(?:/result|/cancel)?"),
    re.compile(r"/documents/([0-9a-f]{32})(?:/result)?"),
    re.compile(rf"/download_file/({_UUID})\.[\w.\-]{{1,200}}", re.A),
)
"""Paths of documents that pods have."""

HOLDER = "the replica that has the document"


def document_of(request: RoutedRequest) -> str | None:
    """The id of the document that a request is for; None where it does not have the form of one."""
    for pattern in _DOCUMENTS:
        found = pattern.fullmatch(request.path)
        if found is not None:
            return found[1]
    return None


def owner(
    fleet: Fleet, document_id: str | None, deployment: str | None, scope: tuple[str, ...] | None
) -> tuple[Backend, ReplicaEndpoint]:
    """The replica that has a document.

    Args:
        fleet: All deployments.
        document_id: As a pod gave it out; None where it does not have the form of an id.
        deployment: `NAMESPACE/NAME` where the request names one.
        scope: Deployments that the client may use; None: all.

    Raises:
        UnknownDocumentError: There is none.
    """
    found = None if document_id is None else fleet.owner(tag_of(document_id))
    if found is None or deployment not in (None, found[0].deployment.key):
        raise UnknownDocumentError(NOT_FOUND)
    if scope is not None and not in_scope(found[0].deployment.key, scope):
        raise UnknownDocumentError(NOT_FOUND)
    return found


async def fetch(job: Job, backend: Backend, endpoint: ReplicaEndpoint) -> Answered:
    """Send the request to the replica in any state; retry once on a new connection where a kept one broke.

    Raises:
        UpstreamError: It did not answer.
    """
    backend.take(endpoint)
    try:
        return await _answer(job, backend, endpoint)
    except BaseException:
        backend.release(endpoint)
        raise


async def _answer(job: Job, backend: Backend, endpoint: ReplicaEndpoint) -> Answered:
    why = ""
    for fresh in (False, True):
        job.attempts += 1
        try:
            reply, connection = await endpoint.pool.send(job.head, job.body, job.deadline_s, fresh=fresh)
        except ExchangeError as error:
            if error.timed_out:
                raise UpstreamTimeoutError(f"{HOLDER} did not answer in time") from None
            if not error.connected:
                backend.refused(endpoint)
            why = str(error)
        else:
            return Answered(reply, backend, endpoint, connection)
    raise UpstreamError(f"{HOLDER} does not answer: {why}")
