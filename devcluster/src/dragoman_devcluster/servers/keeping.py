"""An API server that ends is started again, as a kubelet does with a static pod."""

from __future__ import annotations

import asyncio
import logging

from dragoman_devcluster.errors import StartFailedError
from dragoman_devcluster.node.backoff import Backoff
from dragoman_devcluster.servers.server import ApiServer

logger = logging.getLogger(__name__)

STARTS = 3
"""Maximum number of failed starts in a row; one may fail because another process has the port for a moment."""

RETRY_S = 1.0


async def keep(server: ApiServer, backoff: Backoff) -> None:
    """Start an API server again whenever it ends, until cancelled.

    Args:
        server: A running one.
        backoff: How long it waits if it ends again and again.

    Raises:
        StartFailedError: It failed to start `STARTS` times in a row; the message is the last one's.
    """
    loop = asyncio.get_running_loop()
    delay_s: float | None = None
    while True:
        began_s = loop.time()
        await server.wait()
        delay_s = backoff.next_delay_s(delay_s, loop.time() - began_s)
        logger.warning("the API server has ended; it is started again in %g s", delay_s)
        await asyncio.sleep(delay_s)
        await _start(server)
        logger.info("the API server answers again")


async def _start(server: ApiServer) -> None:
    for left in reversed(range(STARTS)):
        try:
            await server.start()
        except StartFailedError as error:
            if not left:
                raise
            logger.warning("%s", error)
            await asyncio.sleep(RETRY_S)
        else:
            return
