"""Checksums against the programs and documents that define them."""

import base64
import hashlib
from pathlib import Path

import pytest

from dragoman_service.download.checksums import Algorithm, Checksum, checksum_of
from dragoman_service.download.s3 import checksum_of_head, sums_of, uniform


@pytest.mark.parametrize(
    ("algorithm", "value"),
    [
        # printf 'hello' | sha256sum; md5sum; git hash-object --stdin
        ("sha256", "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"),
        ("md5", "5d41402abc4b2a76b9719d911017c592"),
        ("git-sha1", "b6fc4c620b67d95f953a5c1c1230aaab5db5a1b0"),
        ("sha1", "aaf4c61ddcc5e8a2dabede0f3b482cd9aea9434d"),
        ("crc32", "3610a686"),
    ],
)
def test_checksums_of_a_file(tmp_path: Path, algorithm: Algorithm, value: str) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"hello")
    assert checksum_of(file, algorithm) == Checksum(algorithm, value)


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
        ({"ChecksumSHA256": "abcd", "ChecksumType": "COMPOSITE", "ETag": f'"{MD5}-2"'}, None),
        ({"ChecksumCRC64NVME": "M3eFcAZSQlc=", "ChecksumType": "FULL_OBJECT"}, None),
        ({"ChecksumSHA256": "abcd", "ChecksumType": "COMPOSITE"}, None),
        ({}, None),
    ],
)
def test_what_an_object_s_head_says_of_its_content(head: dict[str, str], found: Checksum | None) -> None:
    assert checksum_of_head(head) == found


PARTS = {"ETag": f'"{MD5}-3"', "ChecksumCRC32": "NhCmhg==-3", "ChecksumType": "COMPOSITE"}


@pytest.mark.parametrize(
    ("head", "found"),
    [
        ({"ETag": f'"{MD5}-3"'}, Checksum("md5", MD5, (2, 2, 1))),
        (PARTS, Checksum("crc32", "3610a686", (2, 2, 1))),
        (PARTS | {"ServerSideEncryption": "aws:kms"}, Checksum("crc32", "3610a686", (2, 2, 1))),
        ({"ETag": f'"{MD5}-3"', "ServerSideEncryption": "aws:kms"}, None),
        # One of the whole object is better than one of the parts.
        ({"ETag": f'"{MD5}-3"', "ChecksumCRC32": "NhCmhg=="}, Checksum("crc32", "3610a686")),
    ],
)
def test_what_the_head_of_an_object_in_parts_says(head: dict[str, str], found: Checksum | None) -> None:
    assert checksum_of_head(head, lambda count: (2, 2, 1) if count == 3 else ()) == found


def test_the_checksum_of_the_checksums_of_parts(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"hello")
    digests = b"".join(hashlib.md5(part).digest() for part in (b"he", b"ll", b"o"))
    expected = Checksum("md5", hashlib.md5(digests).hexdigest(), (2, 2, 1))
    assert checksum_of(file, "md5", (2, 2, 1)) == expected


@pytest.mark.parametrize(
    ("total", "first", "last", "count", "sizes"),
    [
        (5, 2, 1, 3, (2, 2, 1)),
        (6, 2, 2, 3, (2, 2, 2)),
        (5, 5, 5, 2, ()),  # the number of the part is ignored
        (5, 1, 2, 3, ()),
        (9, 2, 1, 3, ()),
    ],
)
def test_parts_of_one_size(total: int, first: int, last: int, count: int, sizes: tuple[int, ...]) -> None:
    assert uniform(total, first, last, count) == sizes


def test_a_file_of_sums() -> None:
    text = f"{'A' * 64}  a.safetensors\n{'b' * 64} *./b/c.json\r\n# comment\nshort  d\n"
    assert sums_of(text) == {
        "a.safetensors": Checksum("sha256", "a" * 64),
        "b/c.json": Checksum("sha256", "b" * 64),
    }
