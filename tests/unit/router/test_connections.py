"""Connections to replicas: a response is that of its request."""

import asyncio

import pytest

from dragoman_router.fleet.connections import Pool

RESPONSE = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfirst"
ANOTHER = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nother"


@pytest.mark.parametrize("cut", [1, 20, len(ANOTHER) - 1, len(ANOTHER)])
async def test_more_than_a_response_ends_the_connection(cut: int) -> None:
    """The rest would be taken for the response to the next request."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(RESPONSE + ANOTHER[:cut])
            await reader.readuntil(b"\r\n\r\n")
            writer.write(ANOTHER[cut:])
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        pool = Pool("127.0.0.1", server.sockets[0].getsockname()[1])
        deadline_s = asyncio.get_running_loop().time() + 10
        try:
            for _ in range(2):
                reply, connection = await pool.send(b"GET / HTTP/1.1\r\n\r\n", b"", deadline_s)
                assert (reply.status, reply.body) == (200, b"first")
                assert not connection.reusable
                pool.release(connection)
        finally:
            pool.close()
