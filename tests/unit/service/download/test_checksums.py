"""Checksums against the programs and documents that define them."""

from pathlib import Path

import pytest

from dragoman_service.download.checksums import Algorithm, Checksum, checksum_of


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
