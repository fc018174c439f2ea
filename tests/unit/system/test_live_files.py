"""Files that are read again under a running router: content that cannot be used leaves the previous one in force."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random

import pytest
from tests.support.waiting import until

from dragoman_router.access.keys import KeyRing
from dragoman_router.errors import SettingsError
from dragoman_router.fleet import static
from dragoman_router.fleet.fleet import Fleet
from dragoman_router.fleet.queue import QueueLimits
from dragoman_router.http.server import Certificates
from dragoman_router.metrics import Metrics
from dragoman_router.settings import Settings
from dragoman_system import live_files

GOOD = b"deployments: [{name: a, replicas: ['127.0.0.1:1']}]"
NO_YAML = [b"!!bool maybe", b"!!timestamp x", b"2001-99-99", b":".join([b"1"] * 400) + b".0", b"[" * 20_000]
NO_YAML += [b"[" * 100_000 + b"]" * 100_000]
BAD = [b"\xff", GOOD + b" # \xff", b"", b"a", *NO_YAML, GOOD.replace(b":1'", b":70000'")]
BAD_KEYS = [b"\xff" * 20, b'{"key":"\xff-of-twenty-letters"}', b'{"key":' + b"[" * 100_000, b"short"]


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_files, "POLL_S", 0.005)


@asynccontextmanager
async def watched(path: Path, load: Callable[[], None]) -> AsyncIterator[Callable[[], float | None]]:
    """Watch a file meanwhile; reads the metric."""
    metrics = Metrics(Fleet(QueueLimits(), Random(1)))
    files = live_files.LiveFiles("what", [path], load, (SettingsError,), on_reload=metrics.reloads("what"))
    watching_ = asyncio.create_task(files.watch())
    name = "dragoman_router_config_last_reload_successful"
    yield lambda: metrics.registry.get_sample_value(name, {"file": "what"}) == 0
    assert not watching_.done(), "what ends with an error ends the router"
    watching_.cancel()
    await asyncio.gather(watching_, return_exceptions=True)


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: str(bad[:20]))
async def test_a_bad_static_file_changes_nothing(
    bad: bytes, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path, fleet = tmp_path / "static.yaml", Fleet(QueueLimits(), Random(1))
    path.write_bytes(GOOD)
    static.load(path, fleet)
    async with watched(path, lambda: static.load(path, fleet)) as stale:
        assert stale() == 0
        path.write_bytes(bad)
        await until(stale)
        assert list(fleet.backends) == ["default/a"]
        await asyncio.sleep(0.05)
        message = [record for record in caplog.records if record.levelno == logging.ERROR]
        assert len(message) == 1
        assert message[0].exc_info is None, "a reason, not a traceback"
        path.write_bytes(GOOD.replace(b"name: a", b"name: b"))
        await until(lambda: not stale())
        assert list(fleet.backends) == ["default/b"]


@pytest.mark.parametrize("bad", BAD_KEYS, ids=lambda bad: str(bad[:20]))
async def test_a_bad_key_changes_nothing(bad: bytes, tmp_path: Path) -> None:
    (tmp_path / "one").write_text("a-key-of-some-length")
    ring = KeyRing(tmp_path, asyncio.get_running_loop().time)
    async with watched(tmp_path, ring.load) as stale:
        (tmp_path / "two").write_bytes(bad)
        await until(stale)
        found = ring.known(b"a-key-of-some-length")
        assert found is not None
        assert (len(ring), found.name) == (1, "one")
        with pytest.raises(SettingsError):
            ring.load()


async def test_a_directory_that_goes_changes_nothing(tmp_path: Path) -> None:
    directory = tmp_path / "keys"
    directory.mkdir()
    (directory / "one").write_text("a-key-of-some-length")
    ring = KeyRing(directory, asyncio.get_running_loop().time)
    async with watched(directory, ring.load) as stale:
        directory.rename(tmp_path / "elsewhere")
        await until(stale)
        assert len(ring) == 1
        (tmp_path / "elsewhere").rename(directory)
        await until(lambda: not stale())


@pytest.mark.parametrize(
    "bad", [b"\xff", b"", b"-----BEGIN CERTIFICATE-----\n\xff\n-----END CERTIFICATE-----\n"]
)
def test_certificates_that_are_none_are_refused(bad: bytes, tmp_path: Path) -> None:
    for name in ("tls.crt", "tls.key"):
        (tmp_path / name).write_bytes(bad)
    settings = Settings(_cli_parse_args=False, tls_cert=tmp_path / "tls.crt", tls_key=tmp_path / "tls.key")
    with pytest.raises(SettingsError):
        Certificates(settings)


async def test_what_a_reader_does_not_foresee_ends_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "file"
    path.write_text("1")

    def load() -> None:
        raise ZeroDivisionError

    async with watched(path, load) as stale:
        path.write_text("2")
        await until(stale)
    assert "ZeroDivisionError" in caplog.text
