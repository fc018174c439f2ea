"""Kept connections to one replica."""

from __future__ import annotations

import asyncio
from collections import deque

from dragoman_router.fleet.upstream import Connection, ExchangeError, Reply

CONNECT_TIMEOUT_S = 2.0
"""Within a cluster a connection takes a millisecond; a node that is gone swallows the attempt."""
IDLE_S = 30.0
"""Shorter than pods keep an idle connection (75 s), so that it is the router who closes it."""
MOST_IDLE = 256


class Pool:
    """Connections to one address; the one used last is used first, so that the others age out.

    Args:
        host: IP address.
        port: TCP port.
    """

    __slots__ = ("_answered_s", "_busy", "_closed", "_idle", "_loop", "host", "port")

    def __init__(self, host: str, port: int) -> None:
        self.host, self.port = host, port
        self._idle: deque[Connection] = deque()
        self._busy: set[Connection] = set()
        self._closed = False
        self._loop = asyncio.get_running_loop()
        self._answered_s = float("-inf")

    async def ask(
        self, head: bytes, body: bytes, deadline_s: float, *, fresh: bool = False
    ) -> tuple[Reply, Connection]:
        """Send one request.

        Args:
            head: Request line and headers, with their empty line.
            body: As long as the head says.
            deadline_s: When it is given up, on the loop's clock; looked at by `sweep`.
            fresh: Whether to do without kept connections.

        Returns:
            The answer, whole or begun, and the connection, which goes to `release` once the answer ended and is
            to be aborted before.

        Raises:
            ExchangeError: No answer came.
        """
        connection = None if fresh else self._kept()
        if connection is None:
            connection = await self._connect()
        self._busy.add(connection)
        try:
            reply = await connection.ask(head, body, deadline_s)
        except BaseException:
            self._busy.discard(connection)
            connection.abort()
            raise
        self._answered_s = self._loop.time()
        return reply, connection

    def silent_s(self) -> float:
        """Seconds for which a request has waited here while no other was answered either; 0 where none waits."""
        asked_s = min((each.asked_s for each in self._busy if each.waiting), default=float("inf"))
        return max(0.0, self._loop.time() - max(asked_s, self._answered_s))

    def give_up(self, message: str) -> int:
        """End all requests that wait for an answer, with an error that says why; their number."""
        waiting = [each for each in self._busy if each.waiting]
        for connection in waiting:
            connection.fail(message)
        return len(waiting)

    def release(self, connection: Connection) -> None:
        """Keep a connection whose answer has ended; close one that cannot serve again."""
        self._busy.discard(connection)
        if connection.reusable and not self._closed and len(self._idle) < MOST_IDLE:
            connection.idle_since_s = self._loop.time()
            self._idle.append(connection)
        else:
            connection.abort()

    def sweep(self) -> None:
        """Close what has been idle for long, and give up what is over its deadline.

        A timer of its own would cost each request more than being looked at every second or two.
        """
        now_s = self._loop.time()
        for connection in [each for each in self._busy if each.deadline_s < now_s]:
            connection.expire()
        horizon_s = now_s - IDLE_S
        while self._idle and (self._idle[0].closed or self._idle[0].idle_since_s < horizon_s):
            self._idle.popleft().abort()

    def close(self) -> None:
        """Close all idle connections; those in use end with their exchange."""
        self._closed = True
        while self._idle:
            self._idle.pop().abort()

    def _kept(self) -> Connection | None:
        while self._idle:
            connection = self._idle.pop()
            if not connection.closed:
                return connection
        return None

    async def _connect(self) -> Connection:
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                _, connection = await self._loop.create_connection(
                    lambda: Connection(self._loop), self.host, self.port
                )
        except TimeoutError as error:
            raise ExchangeError("no connection in time", connected=False) from error
        except OSError as error:
            raise ExchangeError(f"no connection: {error.strerror or error}", connected=False) from error
        return connection
