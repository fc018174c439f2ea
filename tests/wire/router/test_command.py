"""`dragoman router` as a process: its start, its words, TLS, and its end."""

import asyncio
import datetime
import signal
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from tests.support.servers import ForkedProcess, listens

from dragoman_devcluster.ports import free_port


class Process:
    """One `dragoman router --static`."""

    def __init__(self, directory: Path, replicas: list[str], *flags: str) -> None:
        self.port, self.admin_port = free_port(), free_port()
        self.log = directory / f"router-{self.port}.log"
        static = directory / "static.yaml"
        static.write_text(f"deployments: [{{name: a, replicas: {replicas}}}]")
        command = ["router", f"--static={static}", "--host=127.0.0.1"]
        command += [f"--port={self.port}", f"--admin-port={self.admin_port}", *flags]
        self.process = ForkedProcess(command, self.log)

    async def status(self, path: str) -> int:
        """Of the admin port; 0 without an answer."""
        try:
            async with (
                aiohttp.ClientSession() as http,
                http.get(f"http://127.0.0.1:{self.admin_port}{path}") as answer,
            ):
                return answer.status
        except aiohttp.ClientError:
            return 0

    async def until(self, path: str, status: int) -> None:
        async with asyncio.timeout(30):
            # The client's port too: it is listened to a moment after the probe turned.
            while await self.status(path) != status or not listens(self.port):
                assert self.process.poll() is None, self.log.read_text()
                await asyncio.sleep(0.05)

    async def ended(self) -> int:
        return await asyncio.to_thread(self.process.wait, 30)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Any]:
    started: list[Process] = []

    def make(replicas: list[str], *flags: str) -> Process:
        started.append(Process(tmp_path, replicas, *flags))
        return started[-1]

    yield make
    for each in started:
        if each.process.poll() is None:
            each.process.kill()
            each.process.wait()


BODY = {"text": "x", "source_lang": "en", "target_lang": "de"}


async def test_a_drain_finishes_what_is_in_flight(start: Any, start_upstream: Any, until: Any) -> None:
    one = await start_upstream()
    let_go = asyncio.Event()

    async def wait(exchange: Any) -> None:
        await let_go.wait()
        await exchange.answer({"by": "one"})

    one.script = wait
    router = start([f"127.0.0.1:{one.port}"], "--lame-duck-s=20")
    await router.until("/readyz", 200)
    assert "no API keys are required" in router.log.read_text()
    assert "TLS is off" in router.log.read_text()
    url = f"http://127.0.0.1:{router.port}/translate"
    async with aiohttp.ClientSession() as http:

        async def send() -> tuple[int, str]:
            async with http.post(url, json=BODY) as answer:
                await answer.read()
                return answer.status, answer.headers.get("Connection", "")

        before = asyncio.ensure_future(send())
        await until(lambda: one.received)
        router.process.send_signal(signal.SIGTERM)
        await router.until("/readyz", 503)
        during = asyncio.ensure_future(send())
        await until(lambda: len(one.received) == 2)
        let_go.set()
        assert (await before)[0] == (await during)[0] == 200
        assert (await during)[1] == "close"
    # A second signal: no other request is waited for.
    router.process.send_signal(signal.SIGTERM)
    assert await router.ended() == 0
    assert "Traceback" not in router.log.read_text()


async def test_a_drain_that_runs_out_of_time_refuses_what_is_left(
    start: Any, start_upstream: Any, until: Any
) -> None:
    one = await start_upstream()

    async def never(exchange: Any) -> None:
        await asyncio.Event().wait()

    one.script = never
    flags = ("--lame-duck-s=0", "--drain-timeout-s=0.5")
    router = start([f"127.0.0.1:{one.port}"], *flags)
    await router.until("/readyz", 200)
    async with aiohttp.ClientSession() as http:

        async def translate() -> tuple[int, str | None, str | None, Any]:
            async with http.post(f"http://127.0.0.1:{router.port}/translate", json=BODY) as answer:
                headers = answer.headers
                return (
                    answer.status,
                    headers.get("Retry-After"),
                    headers.get("Connection"),
                    await answer.json(),
                )

        waiting = asyncio.ensure_future(translate())
        await until(lambda: one.received)
        router.process.send_signal(signal.SIGTERM)
        status, retry_after, connection, body = await waiting
    assert (status, retry_after, connection) == (503, "1", "close")
    assert body["error"]["code"] == "draining"
    assert await router.ended() == 0
    assert "1 requests did not finish in time" in router.log.read_text()


@pytest.mark.parametrize(
    ("flags", "reason"),
    [
        (["--max-queued-requests=-1"], "--max-queued-requests: "),
        (["--max-queued=1"], "no option --max-queued; did you mean --max-queue"),
        (["--tls-cert=/nowhere"], "tls-cert and tls-key go together"),
        (["--keys-dir=/nowhere"], "keys in /nowhere: No such file or directory"),
        (["--glossary-dir=/tmp", "--state-url=redis://a"], "glossary-dir and state-url: set one of them"),
        (
            ["--state-url=http://a"],
            "--state-url: expected a URL that begins with one of redis, rediss, valkey",
        ),
        (["--trusted-proxies=10.0.0.5/8"], "--trusted-proxies: 10.0.0.5/8 has host bits set"),
        (["--trusted-proxies=*"], "does not appear to be an IPv4 or IPv6 network"),
        (["--static=/nowhere"], "read /nowhere: No such file or directory"),
    ],
)
async def test_a_wrong_setting_is_named(start: Any, flags: list[str], reason: str) -> None:
    router = start([], *flags)
    assert await router.ended() == 2
    message = router.log.read_text()
    assert reason in message
    assert "Traceback" not in message


async def test_a_start_without_shared_state_is_logged(start: Any, tmp_path: Path) -> None:
    (tmp_path / "keys").mkdir()
    (tmp_path / "keys/alice").write_text("a-secret-of-alice")
    router = start([], f"--keys-dir={tmp_path}/keys", "--lame-duck-s=0")
    await router.until("/readyz", 200)
    assert "are this router's own, since its start (--state-url)" in router.log.read_text()
    router.process.terminate()
    assert await router.ended() == 0


async def test_a_bad_static_file_ends_no_router(start: Any, start_upstream: Any, tmp_path: Path) -> None:
    one = await start_upstream()
    router = start([f"127.0.0.1:{one.port}"], "--lame-duck-s=0")
    await router.until("/readyz", 200)
    (tmp_path / "static.yaml").write_bytes(b"\xff")
    async with asyncio.timeout(10):
        while "not UTF-8" not in router.log.read_text():
            assert router.process.poll() is None, router.log.read_text()
            await asyncio.sleep(0.05)
    async with (
        aiohttp.ClientSession() as http,
        http.post(f"http://127.0.0.1:{router.port}/translate", json=BODY) as answer,
    ):
        assert answer.status == 200
    router.process.terminate()
    assert await router.ended() == 0


def certify(directory: Path, name: str) -> None:
    """A certificate of our own for 127.0.0.1 and its key, as a Secret of type kubernetes.io/tls has them."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    private = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (directory / "tls.key").write_bytes(key.private_bytes(*private))
    (directory / "tls.crt").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))


async def presented(port: int) -> str:
    """The name in the certificate that a new connection gets."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    encoded = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.transport.abort()
    found = x509.load_der_x509_certificate(encoded).subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return str(found[0].value)


async def test_certificates_are_read_again(start: Any, start_upstream: Any, tmp_path: Path) -> None:
    certify(tmp_path, "first")
    one = await start_upstream()
    flags = (f"--tls-cert={tmp_path}/tls.crt", f"--tls-key={tmp_path}/tls.key", "--lame-duck-s=0")
    router = start([f"127.0.0.1:{one.port}"], *flags)
    await router.until("/readyz", 200)
    assert await presented(router.port) == "first"
    async with (
        aiohttp.ClientSession() as http,
        http.post(f"https://127.0.0.1:{router.port}/translate", json=BODY, ssl=False) as answer,
    ):
        assert answer.status == 200
    (tmp_path / "tls.crt").write_text("no certificate")
    async with asyncio.timeout(10):
        while "reload failed" not in router.log.read_text():  # noqa: ASYNC110 - another process writes it
            await asyncio.sleep(0.05)
    certify(tmp_path, "second")
    async with asyncio.timeout(10):
        while await presented(router.port) != "second":  # noqa: ASYNC110 - another process reads it
            await asyncio.sleep(0.05)
    router.process.terminate()
    assert await router.ended() == 0
