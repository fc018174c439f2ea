"""Models of S3 and stores with its API, by boto3: AWS_ENDPOINT_URL, AWS_REGION and credentials as boto3 reads them."""

from __future__ import annotations

import base64
import binascii
import hashlib
import io
import json
import logging
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from dragoman_service.download.cache import Record, exclusive
from dragoman_service.download.checksums import Algorithm, Checksum
from dragoman_service.download.errors import ChecksumError, IncompleteModelError
from dragoman_service.download.files import check_complete, needed
from dragoman_service.download.transfer import (
    PARALLEL_FILES,
    PARTIAL,
    Meter,
    RemoteFile,
    download,
    own_partial,
    verify,
)

log = logging.getLogger(__name__)

SUMS = "SHA256SUMS"
"""File with the checksums of the others, as sha256sum(1) writes it."""
_CHUNK = 1 << 20
_CONNECT_S = 5
_READ_S, _ATTEMPTS = 30, 3
"""Of content, which a store may have to bring from a slow tier; meanwhile the progress has the silence."""
_LIST_READ_S, _LIST_ATTEMPTS = 8, 2
"""Of the rest: a store that is gone has to be reported within half a minute."""


def fetch(uri: str, cache: Path, trusted: bool, meter: Meter) -> Path:
    """Bring a model into the cache, or what the cache lacks, and verify it.

    If the store cannot be reached, the model that was complete last is used.

    Args:
        uri: ``s3://BUCKET/PREFIX``.
        cache: Folder of all models.
        trusted: Whether the model may run code.
        meter: Counts the bytes.

    Returns:
        The directory that has the model; another one for each state of the prefix.

    Raises:
        ModelLoadError: The model is not complete, not verified, or does not fit.
        Exception: As boto3 raises it; `errors.reason` knows the meaning.
    """
    from botocore.exceptions import ConnectionError as UnreachableError
    from botocore.exceptions import HTTPClientError

    bucket, prefix = location(uri)
    folder = cache / "s3" / bucket / prefix
    with exclusive(folder, meter) as locked:
        record = Record(folder)
        try:
            client = _client(_LIST_READ_S, _LIST_ATTEMPTS)
            with meter.requesting():
                listed = _listed(client, bucket, prefix)
        except (UnreachableError, HTTPClientError) as error:
            if record.directory is None:
                raise
            log.warning("the store is not used, %s is taken from the cache: %s", uri, error)
            directory = folder / record.directory
        else:
            directory = folder / _version(listed)
            with meter.requesting():
                files = _remote_files(client, bucket, prefix, listed, uri, trusted, meter)
            meter.total_bytes = sum(file.size for file in files)
            client = _client(_READ_S, _ATTEMPTS)
            _download(client, bucket, prefix, files, listed, directory, record, meter, locked)
        check_complete(directory)
        record.write(directory.name)
    return directory


def listed(uri: str, trusted: bool) -> list[RemoteFile]:
    """The files of a model that are needed, with what the store says about them."""
    bucket, prefix = location(uri)
    client = _client(_LIST_READ_S, _LIST_ATTEMPTS)
    return _remote_files(client, bucket, prefix, _listed(client, bucket, prefix), uri, trusted, Meter())


def location(uri: str) -> tuple[str, str]:
    """Bucket and prefix, the latter without slashes at its ends.

    Raises:
        IncompleteModelError: There is no prefix, or one that leads out of the cache.
    """
    parts = urlsplit(uri)
    prefix = parts.path.strip("/")
    if not parts.netloc or not prefix or ".." in (parts.netloc, *PurePosixPath(prefix).parts):
        raise IncompleteModelError(f"{uri} is not s3://BUCKET/PREFIX")
    return parts.netloc, prefix


def _client(read_s: int, attempts: int) -> Any:
    import boto3
    from botocore.config import Config

    return boto3.client(
        "s3",
        config=Config(
            connect_timeout=_CONNECT_S,
            read_timeout=read_s,
            retries={"mode": "standard", "total_max_attempts": attempts},
            max_pool_connections=PARALLEL_FILES,
        ),
    )


def _listed(client: Any, bucket: str, prefix: str) -> dict[str, Mapping[str, Any]]:
    """The store's entries by path relative to the prefix."""
    pages = client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=f"{prefix}/")
    found = {
        entry["Key"].removeprefix(f"{prefix}/"): entry
        for page in pages
        for entry in page.get("Contents") or ()
    }
    return {
        name: entry for name, entry in found.items() if name and not name.endswith("/") and _is_inside(name)
    }


def _is_inside(name: str) -> bool:
    path = PurePosixPath(name)
    return not path.is_absolute() and ".." not in path.parts


def _version(listed: Mapping[str, Mapping[str, Any]]) -> str:
    """Name of a state of the prefix."""
    state = sorted((name, entry["Size"], entry.get("ETag")) for name, entry in listed.items())
    return hashlib.sha256(json.dumps(state).encode()).hexdigest()[:16]


def _remote_files(
    client: Any,
    bucket: str,
    prefix: str,
    listed: Mapping[str, Mapping[str, Any]],
    uri: str,
    trusted: bool,
    meter: Meter,
) -> list[RemoteFile]:
    if not listed:
        raise IncompleteModelError(f"there are no files below {uri}: check the prefix")
    sums = {}
    if SUMS in listed:
        body = client.get_object(Bucket=bucket, Key=f"{prefix}/{SUMS}")["Body"].read()
        sums = sums_of(body.decode("utf-8", "replace"))
    files = []
    for name in needed(listed, uri, trusted):
        checksum = sums.get(name)
        if checksum is None:
            key = f"{prefix}/{name}"
            head = client.head_object(Bucket=bucket, Key=key, ChecksumMode="ENABLED")
            meter.receive(0)
            checksum = checksum_of_head(head, partial(_parts, client, bucket, key, int(listed[name]["Size"])))
        files.append(RemoteFile(name, int(listed[name]["Size"]), checksum))
    return files


def _parts(client: Any, bucket: str, key: str, total: int, count: int) -> tuple[int, ...]:
    if count == 1:
        return (total,)
    first, last = (_part_bytes(client, bucket, key, number) for number in (1, count))
    if not 0 < first < total or not 0 < last < total:
        # The store does not know parts, or ignores their number.
        return ()
    return uniform(total, first, last, count) or _every_part(client, bucket, key, total, count)


def _every_part(client: Any, bucket: str, key: str, total: int, count: int) -> tuple[int, ...]:
    """By a request for each."""
    sizes = tuple(_part_bytes(client, bucket, key, number) for number in range(1, count + 1))
    return sizes if sum(sizes) == total else ()


def _part_bytes(client: Any, bucket: str, key: str, number: int) -> int:
    """0 where the store does not tell."""
    from botocore.exceptions import ClientError

    try:
        return int(client.head_object(Bucket=bucket, Key=key, PartNumber=number)["ContentLength"])
    except ClientError as error:
        log.debug("no part %d of %s: %s", number, key, error)
        return 0


def sums_of(text: str) -> dict[str, Checksum]:
    """The content of a file SHA256SUMS."""
    lines = re.findall(r"^([0-9a-fA-F]{64}) [ *](?:\./)?(.+?)\r?$", text, re.MULTILINE)
    return {name: Checksum("sha256", value.lower()) for value, name in lines}


Parts = Callable[[int], tuple[int, ...]]
"""Bytes of each part of an object that was uploaded in so many; none if they are not known."""


def checksum_of_head(head: Mapping[str, Any], parts: Parts = lambda _: ()) -> Checksum | None:
    """What can be compared of an object, the best first; None if the store has nothing that is known here.

    A checksum is that of the object, or of its parts' checksums, with their number behind a hyphen. CRC-32C and
    CRC-64/NVME are not compared: nothing that is installed computes them fast. An ETag is an MD5 unless the object
    is encrypted with a key of KMS or of the client.
    Source: https://docs.aws.amazon.com/AmazonS3/latest/userguide/checking-object-integrity-upload.html,
    https://docs.aws.amazon.com/AmazonS3/latest/API/API_Object.html
    """
    known: tuple[tuple[str, Algorithm], ...] = (
        ("ChecksumSHA256", "sha256"),
        ("ChecksumSHA1", "sha1"),
        ("ChecksumCRC32", "crc32"),
    )
    etag = re.fullmatch(r'"?([0-9a-f]{32})(?:-(\d+))?"?', str(head.get("ETag") or ""))
    is_of_parts = head.get("ChecksumType", "FULL_OBJECT") != "FULL_OBJECT"
    listed: list[tuple[Algorithm, str, int]] = []
    for field, algorithm in known:
        found = re.fullmatch(r"([A-Za-z0-9+/]+=*)(?:-(\d+))?", str(head.get(field) or ""))
        # Some stores leave out the number.
        count = found and (found[2] or (is_of_parts and etag and etag[2]))
        if found and (count or not is_of_parts):
            with suppress(binascii.Error):
                listed.append((algorithm, base64.b64decode(found[1]).hex(), int(count or 0)))
    is_encrypted = head.get("SSECustomerAlgorithm") or str(head.get("ServerSideEncryption") or "").startswith(
        "aws:kms"
    )
    if etag and not is_encrypted:
        listed.append(("md5", etag[1], int(etag[2] or 0)))
    for algorithm, value, count in sorted(listed, key=lambda each: each[2] > 0):
        if not count:
            return Checksum(algorithm, value)
        if sizes := parts(count):
            return Checksum(algorithm, value, sizes)
    return None


def uniform(total: int, first: int, last: int, count: int) -> tuple[int, ...]:
    """Bytes of `count` parts of one size but the last, as clients upload them; none if these are not such parts."""
    if first <= 0 or first * (count - 1) + last != total or not 0 < last <= first:
        return ()
    return (*[first] * (count - 1), last)


def _download(
    client: Any,
    bucket: str,
    prefix: str,
    files: list[RemoteFile],
    listed: Mapping[str, Mapping[str, Any]],
    directory: Path,
    record: Record,
    meter: Meter,
    locked: bool,
) -> None:
    from botocore.exceptions import HTTPClientError, IncompleteReadError

    def check(file: RemoteFile, path: Path) -> None:
        try:
            verify(file, path)
        except ChecksumError:
            # Sizes of parts were concluded from those of the first and the last.
            if file.checksum is None or path.stat().st_size != file.size:
                raise
            count = len(file.checksum.parts)
            sizes = (
                _every_part(client, bucket, f"{prefix}/{file.name}", file.size, count) if count > 3 else ()
            )
            if sizes in ((), file.checksum.parts):
                raise
            verify(replace(file, checksum=replace(file.checksum, parts=sizes)), path)

    targets = [(file, directory / file.name) for file in files]
    for file, path in targets:
        if path.exists() and not record.has(path):
            try:
                check(file, path)
            except ChecksumError as error:
                log.warning("downloading again: %s", error)
                path.unlink()
    meter.resume(sum(file.size for file, path in targets if path.exists()))

    def receive(file: RemoteFile, output: io.RawIOBase, offset: int) -> None:
        while True:
            body = client.get_object(
                Bucket=bucket,
                Key=f"{prefix}/{file.name}",
                Range=f"bytes={offset}-",
                IfMatch=listed[file.name]["ETag"],
            )["Body"]
            try:
                for chunk in body.iter_chunks(_CHUNK):
                    output.write(chunk)
            except (HTTPClientError, IncompleteReadError) as error:
                if output.tell() == offset:
                    raise
                offset = output.tell()
                log.warning("the download of %s goes on at %d bytes: %s", file.name, offset, error)
            else:
                return

    download(targets, receive, meter, check, partial=PARTIAL if locked else own_partial())
    for _, path in targets:
        record.add(path)
