"""Models of S3: what a store lists about files, and which states of a prefix stay in the cache."""

import base64
import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dragoman_service.download import s3
from dragoman_service.download.checksums import Checksum
from dragoman_service.download.s3 import checksum_of_head, sums_of
from dragoman_service.download.transfer import Meter

SHA = hashlib.sha256(b"hello").digest()
MD5 = "5d41402abc4b2a76b9719d911017c592"


@pytest.mark.parametrize(
    ("head", "found"),
    [
        ({"ETag": f'"{MD5}"'}, Checksum("md5", MD5)),
        ({"ETag": f'"{MD5}-3"'}, None),
        ({"ETag": f'"{MD5}"', "ServerSideEncryption": "aws:kms"}, None),
        ({"ETag": f'"{MD5}"', "ServerSideEncryption": "AES256"}, Checksum("md5", MD5)),
        ({"ETag": f'"{MD5}"', "SSECustomerAlgorithm": "AES256"}, None),
        (
            {"ETag": '"x"', "ChecksumSHA256": base64.b64encode(SHA).decode(), "ChecksumType": "FULL_OBJECT"},
            Checksum("sha256", SHA.hex()),
        ),
        ({"ChecksumCRC32": "NhCmhg=="}, Checksum("crc32", "3610a686")),
        ({"ChecksumCRC32": "NhCmhg==-3", "ETag": f'"{MD5}-3"', "ChecksumType": "COMPOSITE"}, None),
        ({"ChecksumCRC32": "NhCmhg==", "ETag": f'"{MD5}-3"'}, Checksum("crc32", "3610a686")),
        ({"ChecksumSHA256": "abcd", "ChecksumType": "COMPOSITE", "ETag": f'"{MD5}-2"'}, None),
        ({"ChecksumCRC64NVME": "M3eFcAZSQlc=", "ChecksumType": "FULL_OBJECT"}, None),
        ({"ChecksumSHA256": "abcd", "ChecksumType": "COMPOSITE"}, None),
        ({"ChecksumSHA256": "a"}, None),
        ({}, None),
    ],
)
def test_what_an_object_s_head_says_of_its_content(head: dict[str, str], found: Checksum | None) -> None:
    assert checksum_of_head(head) == found


def test_a_file_of_sums() -> None:
    text = f"{'A' * 64}  a.safetensors\n{'b' * 64} *./b/c.json\r\n# comment\nshort  d\n"
    assert sums_of(text) == {
        "a.safetensors": Checksum("sha256", "a" * 64),
        "b/c.json": Checksum("sha256", "b" * 64),
    }


@pytest.fixture
def put(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str, bytes], Any]]:
    """Writes an object of the bucket `models`, which moto has in this process."""
    boto3, moto = pytest.importorskip("boto3"), pytest.importorskip("moto")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "x")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    with moto.mock_aws():
        client = boto3.client("s3")
        client.create_bucket(Bucket="models")
        yield lambda key, body: client.put_object(Bucket="models", Key=key, Body=body)


def put_model(put: Callable[[str, bytes], Any], prefix: str, state: int) -> None:
    put(f"{prefix}/config.json", b'{"state": %d}' % state)
    put(f"{prefix}/model.safetensors", bytes([state]) * 1000)


@pytest.mark.slow
def test_the_state_before_the_last_is_removed(put: Callable[[str, bytes], Any], tmp_path: Path) -> None:
    # A model below another one's prefix has its folder in the other one's.
    put_model(put, "it/below", 9)
    below = s3.fetch("s3://models/it/below", tmp_path, False, Meter())
    found = []
    for state in range(4):
        put_model(put, "it", state)
        found.append(s3.fetch("s3://models/it", tmp_path, False, Meter()))
    # Pods that share the volume may still read the state that was the last.
    assert [path.is_dir() for path in found] == [False, False, True, True]
    assert (found[-1] / "config.json").read_bytes() == b'{"state": 3}'
    assert below.is_dir()
    s3.fetch("s3://models/it", tmp_path, False, Meter())
    assert [path.is_dir() for path in found] == [False, False, False, True]
