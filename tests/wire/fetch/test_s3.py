"""`dragoman fetch` from moto's S3 server, with boto3."""

import hashlib
import io
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.support.fetching import failure, fetch, start
from tests.support.fresh import until

boto3 = pytest.importorskip("boto3")
moto_server = pytest.importorskip("moto.server", reason="make test installs it")
pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

MIB = 1 << 20
WEIGHTS = os.urandom(MIB) * 20
FILES = {
    "config.json": b"{}",
    "model.safetensors": WEIGHTS,
    "tokenizer/vocab.txt": b"a\nb\n",
    "pytorch_model.bin": b"y" * MIB,
    "notes.pdf": b"%PDF",
}
URI = "s3://models/team/it"
KEYS = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_REGION": "us-east-1"}


class Meddler:
    """Passes TCP through to a server; counts what comes back, and may stand still or cut it after some bytes."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.returned = 0
        self.stops_at: int | None = None
        self.cuts_at: int | None = None
        self.stopped, self.released = threading.Event(), threading.Event()
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._listening.getsockname()[1]}"

    def close(self) -> None:
        self.released.set()
        self._listening.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            threading.Thread(target=self._pass, args=(client,), daemon=True).start()

    def _pass(self, client: socket.socket) -> None:
        with client, socket.create_connection(("127.0.0.1", self._port)) as server:
            forth = threading.Thread(target=self._forth, args=(client, server), daemon=True)
            forth.start()
            with suppress(OSError):
                self._back(client, server)
            for end in (client, server):
                with suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
            forth.join()

    def _forth(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while data := client.recv(1 << 16):
                server.sendall(data)
            server.shutdown(socket.SHUT_WR)

    def _back(self, client: socket.socket, server: socket.socket) -> None:
        passed = 0
        while data := server.recv(1 << 16):
            if self.stops_at is not None and passed >= self.stops_at:
                self.stopped.set()
                self.released.wait(60)
            if self.cuts_at is not None and passed >= self.cuts_at:
                self.cuts_at = None
                return
            client.sendall(data)
            passed += len(data)
            self.returned += len(data)


@pytest.fixture(scope="module")
def store() -> Iterator[Any]:
    server = moto_server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    yield server
    server.stop()


@pytest.fixture
def port(store: Any) -> Iterator[int]:
    _, number = store.get_host_and_port()
    address = f"http://127.0.0.1:{number}"
    client = client_of(number)
    client.create_bucket(Bucket="models")
    for name, content in FILES.items():
        client.put_object(Bucket="models", Key=f"team/it/{name}", Body=content)
    client.put_object(Bucket="models", Key="team/it2/config.json", Body=b"another model")
    yield number
    httpx.post(f"{address}/moto-api/reset").raise_for_status()


@pytest.fixture
def meddler(port: int) -> Iterator[Meddler]:
    running = Meddler(port)
    yield running
    running.close()


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def at(port: int, **more: str) -> dict[str, str]:
    return {**KEYS, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}", **more}


def client_of(port: int) -> Any:
    return boto3.client(
        "s3",
        endpoint_url=f"http://127.0.0.1:{port}",
        region_name="us-east-1",
        aws_access_key_id="key",
        aws_secret_access_key="secret",
    )


def put(port: int, name: str, content: bytes) -> None:
    client_of(port).put_object(Bucket="models", Key=f"team/it/{name}", Body=content)


def put_in_parts(port: int, name: str, parts: list[bytes]) -> None:
    """As clients upload large files."""
    client = client_of(port)
    at = {"Bucket": "models", "Key": f"team/it/{name}"}
    upload = client.create_multipart_upload(**at)["UploadId"]
    done = [
        {
            "PartNumber": number,
            "ETag": client.upload_part(**at, UploadId=upload, PartNumber=number, Body=part)["ETag"],
        }
        for number, part in enumerate(parts, 1)
    ]
    client.complete_multipart_upload(**at, UploadId=upload, MultipartUpload={"Parts": done})


def corrupt(store: Any, name: str) -> None:
    """Let moto send other bytes of the same size."""
    backends = pytest.importorskip("moto.s3.models").s3_backends
    key = backends["123456789012"]["aws"].get_object("models", f"team/it/{name}")
    changed = bytes(key.contentsize)
    with key.lock:
        key._value_buffer.seek(0)
        key._value_buffer.write(changed)


def pieces(content: bytes, *sizes: int) -> list[bytes]:
    source = io.BytesIO(content)
    return [source.read(size * MIB) for size in sizes]


def test_an_object_in_parts_is_compared_by_its_size(port: int, cache: Path) -> None:
    put_in_parts(port, "model.safetensors", pieces(WEIGHTS, 8, 8, 4))
    status, errors = fetch(cache, URI, env=at(port))
    assert status == 0, errors
    assert "model.safetensors: only its size is compared" in errors
    assert "config.json: its crc32 is the store's" in errors
    assert (cache / "models" / "it" / "model.safetensors").read_bytes() == WEIGHTS


def test_a_corrupt_object_is_refused(store: Any, port: int, cache: Path) -> None:
    corrupt(store, "model.safetensors")
    assert "did not match calculated checksum" in failure(cache, URI, env=at(port))
    # What was received is verified before it is continued.
    assert failure(cache, URI, env=at(port)).startswith("model.safetensors has the crc32 ")


def test_what_vllm_needs_is_fetched_verified_and_linked(port: int, cache: Path) -> None:
    status, errors = fetch(cache, URI, env=at(port))
    assert status == 0, errors
    model = cache / "models" / "it"
    found = {str(file.relative_to(model)): file.read_bytes() for file in model.rglob("*") if file.is_file()}
    assert found == {
        name: FILES[name] for name in ("config.json", "model.safetensors", "tokenizer/vocab.txt")
    }

    status, errors = fetch(cache, URI, env=at(port))
    assert (status, "received 0 bytes" in errors) == (0, True), errors
    status, errors = fetch(cache, URI, env=at(9))
    assert status == 0, errors
    assert "is taken from the cache" in errors


def test_another_state_of_the_prefix_is_another_directory(port: int, cache: Path) -> None:
    assert fetch(cache, URI, env=at(port))[0] == 0
    model = cache / "models" / "it"
    before = model.resolve()
    put(port, "config.json", b'{"new": 1}')
    status, errors = fetch(cache, URI, env=at(port))
    assert status == 0, errors
    assert (before / "config.json").read_bytes() == b"{}"
    assert (model / "config.json").read_bytes() == b'{"new": 1}'


def test_a_download_that_is_killed_at_half_goes_on_there(meddler: Meddler, cache: Path) -> None:
    meddler.stops_at = len(WEIGHTS) // 2
    process = start(cache, URI, env={**KEYS, "AWS_ENDPOINT_URL": meddler.url})
    assert meddler.stopped.wait(60)
    # What the kernel has in its buffers is stored, too.
    until(lambda: stored_bytes(cache) >= len(WEIGHTS) // 2 - MIB, "all but a chunk is stored")
    process.kill()
    process.communicate(timeout=60)
    meddler.stops_at = None
    meddler.released.set()
    status, errors = fetch(cache, URI, env={**KEYS, "AWS_ENDPOINT_URL": meddler.url})
    assert status == 0, errors
    assert (cache / "models" / "it" / "model.safetensors").read_bytes() == WEIGHTS
    # A chunk of 1 MiB, listings and heads.
    again = meddler.returned - len(WEIGHTS)
    assert 0 < again < 2 * MIB, f"{again} bytes were transferred again"


def stored_bytes(cache: Path) -> int:
    return sum(file.stat().st_size for file in cache.rglob("*") if file.is_file())


def test_a_connection_that_breaks_is_resumed_in_the_same_process(meddler: Meddler, cache: Path) -> None:
    meddler.cuts_at = len(WEIGHTS) // 2
    status, errors = fetch(cache, URI, env={**KEYS, "AWS_ENDPOINT_URL": meddler.url})
    assert status == 0, errors
    assert "the download of model.safetensors goes on at" in errors
    assert meddler.returned < len(WEIGHTS) + 8 * MIB


def test_a_file_with_checksums_is_used(port: int, cache: Path) -> None:
    right = hashlib.sha256(WEIGHTS).hexdigest()
    put(port, "SHA256SUMS", f"{'0' * 64}  model.safetensors\n".encode())
    sentence = failure(cache, URI, env=at(port))
    assert sentence.startswith(
        f"model.safetensors has the sha256 {right} and the store lists {'0' * 64}; it is downloaded again"
    )
    put(port, "SHA256SUMS", f"{right} *./model.safetensors\n".encode())
    status, errors = fetch(cache, URI, env=at(port))
    assert status == 0, errors


def test_a_file_that_changed_in_the_cache_is_downloaded_again(port: int, cache: Path) -> None:
    assert fetch(cache, URI, env=at(port))[0] == 0
    weights = cache / "models" / "it" / "model.safetensors"
    weights.write_bytes(bytes(len(WEIGHTS)))
    status, errors = fetch(cache, URI, env=at(port))
    assert status == 0, errors
    assert "downloading again: model.safetensors has the" in errors
    assert weights.read_bytes() == WEIGHTS


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        ("s3://nowhere/it", "there is no bucket of s3://nowhere/it: check spec.model.uri, AWS_ENDPOINT_URL"),
        ("s3://models/nothing", "there are no files below s3://models/nothing: check the prefix"),
        ("s3://models/team/it2", "s3://models/team/it2 has no weights"),
        ("s3://models/../it", "s3://models/../it is not s3://BUCKET/PREFIX"),
    ],
)
def test_what_is_not_there(port: int, cache: Path, uri: str, expected: str) -> None:
    assert expected in failure(cache, uri, env=at(port))


def test_a_denied_key(port: int, cache: Path) -> None:
    httpx.post(f"http://127.0.0.1:{port}/moto-api/reset-auth", content="0").raise_for_status()
    try:
        sentence = failure(cache, URI, env=at(port))
    finally:
        httpx.post(f"http://127.0.0.1:{port}/moto-api/reset-auth", content="inf").raise_for_status()
    assert f"the store refuses access to {URI} (InvalidAccessKeyId): check the credentials" in sentence


def test_no_credentials(port: int, cache: Path, tmp_path: Path) -> None:
    environment = {**at(port), "AWS_EC2_METADATA_DISABLED": "true", "HOME": str(tmp_path)}
    del environment["AWS_ACCESS_KEY_ID"], environment["AWS_SECRET_ACCESS_KEY"]
    assert "there are no credentials for s3://models/team/it" in failure(cache, URI, env=environment)


def test_a_store_that_is_gone(cache: Path) -> None:
    sentence = failure(cache, URI, env=at(9))
    assert f"the store of {URI} cannot be reached and the cache does not hold the model" in sentence
