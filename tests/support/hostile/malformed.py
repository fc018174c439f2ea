"""Requests of clients that mean harm, or know no better: broken, smuggled, oversized, mislabelled."""

import asyncio
import random
from collections.abc import Callable

GOOD = b'{"text":"x","source_lang":"en","target_lang":"de"}'


def post(body: bytes, path: bytes = b"/translate", headers: bytes = b"", length: int | None = None) -> bytes:
    """A request; `headers` end with a line end, `length` replaces the body's own."""
    size = len(body) if length is None else length
    return b"POST %s HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n%s\r\n%s" % (path, size, headers, body)


def hostile(chance: random.Random) -> bytes:
    """One request of any of the kinds, for a router that serves `default/a`."""
    junk = chance.randbytes(chance.randrange(1, 200))
    word = bytes(chance.choices(b"abcdefgh-", k=12))
    kinds: list[Callable[[], bytes]] = [
        lambda: junk + b"\r\n\r\n",
        lambda: post(GOOD[: chance.randrange(len(GOOD))]),
        lambda: post(b'{"text":' + junk + b"}"),
        lambda: post(b'{"text":"x","source_lang":"%s","target_lang":"%s"}' % (word, word)),
        lambda: post(b"[" * 50_000),
        lambda: post(GOOD, length=len(GOOD) - 5),
        lambda: post(GOOD, headers=b"x: " + b"y" * 100_000 + b"\r\n"),
        lambda: post(GOOD, headers=b"".join(b"x-%d: y\r\n" % at for at in range(5000))),
        lambda: post(GOOD, headers=b"transfer-encoding: chunked\r\n"),
        lambda: post(GOOD, headers=b"content-length: 3\r\n"),
        lambda: post(GOOD, headers=b"transfer-encoding: chunked, identity\r\n"),
        lambda: post(b"5\r\nabcde\r\nzz\r\n", headers=b"transfer-encoding: xchunked\r\n"),
        lambda: (
            b"POST /translate HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nffffffffffffffffff\r\n"
        ),
        lambda: post(GOOD, headers=b"x: a\r\n\tfolded\r\n"),
        lambda: post(GOOD, headers=b"x : y\r\n"),
        lambda: post(GOOD, headers=b"x: a\nx-dragoman-router: forged\r\n"),
        lambda: post(GOOD, headers=b"x-dragoman-router: forged\r\nx-dragoman-deployment: nowhere/none\r\n"),
        lambda: b"GET http://169.254.169.254/latest HTTP/1.1\r\nhost: x\r\n\r\n",
        lambda: b"CONNECT 127.0.0.1:22 HTTP/1.1\r\nhost: x\r\n\r\n",
        lambda: b"GET /translate HTTP/1.1\r\nhost: x\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n",
        lambda: b"GET /d/default/a/metrics HTTP/1.1\r\nhost: x\r\n\r\n",
        lambda: b"GET /d/default/a/%2e%2e/metrics HTTP/1.1\r\nhost: x\r\n\r\n",
        lambda: b"GET /d/" + junk.replace(b" ", b"") + b" HTTP/1.1\r\n\r\n",
        lambda: post(b"", path=b"/" + b"a" * 60_000),
        lambda: post(
            b"q=" + junk.hex().encode(), headers=b"content-type: application/x-www-form-urlencoded\r\n"
        ),
        lambda: post(
            b"&".join(b"q=%d" % at for at in range(9000)),
            headers=b"content-type: application/x-www-form-urlencoded\r\n",
        ),
        lambda: post(
            b'[{"Text":"x"}]', path=b"/translate?api-version=3.0" + b"&to=de" * 500 + b"&to=" + word
        ),
        lambda: post(GOOD, path=b"/v1/chat/completions"),
        lambda: post(b"x" * 2000, length=3_000_000),
        lambda: hostile_form(chance, junk),
        lambda: hostile_form(chance, junk),
        lambda: post(b"", path=b"/v2/document/" + word * 2 + b"ffffffff/result"),
        lambda: b"GET /download_file/%2e%2e%2fmetrics HTTP/1.1\r\nhost: x\r\n\r\n",
        lambda: b"GET /download_file/" + b"0" * 30_000 + b" HTTP/1.1\r\nhost: x\r\n\r\n",
    ]
    return chance.choice(kinds)()


def hostile_form(chance: random.Random, junk: bytes) -> bytes:
    """A form with a file that is broken, endless, mislabelled, or names a pair that is not served."""
    part = b'--b\r\ncontent-disposition: form-data; name="%s"%s\r\n\r\n%s\r\n'
    bodies = [
        part % (b"file", b'; filename="a.txt"', junk) + b"--b--",
        part % (b"file", b'; filename="a.txt"', junk) + part % (b"source", b"", b"en"),
        part % (b"target", b"", junk) + part % (b"target_lang", b"", junk) + b"--b--",
        part % (junk, b"", b"x") + b"--b--\r\n",
        part % (b"x", b"", b"y") * 500 + b"--b--",
        b"--b" + b" " * 50_000 + b"\r\n\r\n--b--",
        b"\r\n--bz" * 20_000,
        b"--b\r\n" + b"x: y\r\n" * 2000,
        part % (b"source", b"; filename*=utf-8''" + junk.hex().encode(), b"en") * 3,
        b"--b\r\n" + junk,
    ]
    kinds = [
        b"boundary=b",
        b'boundary="b"',
        b"boundary=" + b"b" * 3000,
        b"boundary",
        b'boundary="',
        b"boundary=;",
    ]
    path = chance.choice([b"/translate_file", b"/v2/document"])
    declared = b"content-type: multipart/form-data; " + chance.choice(kinds[:2] * 4 + kinds[2:]) + b"\r\n"
    return post(chance.choice(bodies), path=path, headers=declared)


async def throw(port: int, data: bytes, patience_s: float = 0.3) -> bytes:
    """Send it, and read a little of what comes within `patience_s`; then go."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    got = b""
    try:
        writer.write(data)
        async with asyncio.timeout(patience_s):
            got = await reader.read(4096)
    except (TimeoutError, ConnectionError):
        pass
    finally:
        writer.transport.abort()
    return got
