"""Attaches glossaries to replicas that lack them."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from dragoman_contract.routing import HELD_GLOSSARIES_PATH
from dragoman_protocols.glossaries.packed import Packed
from dragoman_router.fleet.connections import ExchangeError, Pool

log = logging.getLogger(__name__)

MAX_ATTACHMENTS = 5
"""Maximum number of replicas for one request: if none of these keeps its glossaries, no other will."""

NO_CONTENT = 204


async def attach(pool: Pool, address: str, glossaries: Iterable[Packed], deadline_s: float) -> bool:
    """Attach glossaries to a replica.

    Args:
        pool: Connections to it.
        address: Its `host:port`.
        glossaries: All that the request names: the replica did not report which it lacks.
        deadline_s: Of the request.

    Returns:
        Whether it accepted them.
    """
    for each in glossaries:
        head = (
            f"PUT {HELD_GLOSSARIES_PATH}{each.revision} HTTP/1.1\r\nhost: {address}\r\n"
            f"content-type: application/gzip\r\ncontent-length: {len(each.content)}\r\n\r\n"
        )
        try:
            reply, connection = await pool.send(head.encode("latin-1", "replace"), each.content, deadline_s)
        except ExchangeError as error:
            log.warning("%s did not accept a glossary: %s", address, error)
            return False
        pool.release(connection)
        if reply.status != NO_CONTENT:
            log.warning("%s did not accept a glossary: status %d", address, reply.status)
            return False
    return True
