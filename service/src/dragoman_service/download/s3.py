"""Models of S3 and stores with its API, by boto3: AWS_ENDPOINT_URL, AWS_REGION and credentials as boto3 reads them."""

from __future__ import annotations

import base64
import binascii
import hashlib
import io
import json
import logging
import re
import shutil
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from dragoman_service.download.cache import LOCK, Record, exclusive
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
_STATE = re.compile("[0-9a-f]{16}")
"""Names of the directories of states; see `_version`."""
_CHUNK = 1 << 20
_CONNECT_S = 5
_READ_S, _ATTEMPTS = 30, 3
"""Of content, which a store may have to bring from a slow tier; meanwhile the progress has the silence."""
_LIST_READ_S, _LIST_ATTEMPTS = 8, 2
"""Of the rest: a store that is gone has to be reported within half a minute."""


def fetch(uri: str, cache: Path, trusted: bool, meter: Meter) -> Path:
    """Download a model, or the files that the cache lacks, and verify it.

    If the store cannot be reached, the model that was complete last is used.

    Args:
        uri: ``s3://BUCKET/PREFIX``.
        cache: Folder of all models.
        trusted: Whether the model may run code.
        meter: Counts the bytes.

    Returns:
        The directory that has the model; another one for each state of the prefix. Those of earlier states are removed,
        except for that of the last complete one, which other pods may be reading.

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
            if locked:
                _remove_states(folder, {record.directory, directory.name})
            with meter.requesting():
                files = _remote_files(client, bucket, prefix, listed, uri, trusted, meter)
            meter.total_bytes = sum(file.size for file in files)
            client = _client(_READ_S, _ATTEMPTS)
            _download(client, bucket, prefix, files, listed, directory, record, meter, locked)
        check_complete(directory)
        record.write(directory.name)
    return directory


def listed(uri: str, trusted: bool) -> list[RemoteFile]:
    """The files of a model that are needed, with size and checksum."""
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


def _remove_states(folder: Path, kept: Collection[str | None]) -> None:
    """Remove the directories of states of the prefix, but those that are kept; the folder's lock is held."""
    for found in folder.iterdir():
        # A folder with a lock is that of a model below this one's prefix.
        if found.name not in kept and _STATE.fullmatch(found.name) and not (found / LOCK).exists():
            log.info("%s has an earlier state of the prefix and is removed", found)
            shutil.rmtree(found)


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
            head = client.head_object(Bucket=bucket, Key=f"{prefix}/{name}", ChecksumMode="ENABLED")
            meter.receive(0)
            checksum = checksum_of_head(head)
        files.append(RemoteFile(name, int(listed[name]["Size"]), checksum))
    return files


def sums_of(text: str) -> dict[str, Checksum]:
    """The content of a file SHA256SUMS."""
    lines = re.findall(r"^([0-9a-fA-F]{64}) [ *](?:\./)?(.+?)\r?$", text, re.MULTILINE)
    return {name: Checksum("sha256", value.lower()) for value, name in lines}


def checksum_of_head(head: Mapping[str, Any]) -> Checksum | None:
    """The checksum of a whole object, from the store's answer to HEAD.

    Checksums of checksums of parts are not used: the store does not list the sizes of the parts. Neither are CRC-32C
    and CRC-64/NVME: nothing that is installed computes them fast. An ETag is an MD5 unless the object is in parts or
    encrypted with a key of KMS or of the client.

    Returns:
        None if the store has no such checksum.

    Source: https://docs.aws.amazon.com/AmazonS3/latest/userguide/checking-object-integrity-upload.html,
    https://docs.aws.amazon.com/AmazonS3/latest/API/API_Object.html
    """
    known: tuple[tuple[str, Algorithm], ...] = (
        ("ChecksumSHA256", "sha256"),
        ("ChecksumSHA1", "sha1"),
        ("ChecksumCRC32", "crc32"),
    )
    if head.get("ChecksumType", "FULL_OBJECT") == "FULL_OBJECT":
        for field, algorithm in known:
            value = str(head.get(field) or "")
            # A number of parts behind a hyphen marks a checksum of checksums.
            if re.fullmatch(r"[A-Za-z0-9+/]+=*", value):
                with suppress(binascii.Error):
                    return Checksum(algorithm, base64.b64decode(value).hex())
    etag = re.fullmatch(r'"?([0-9a-f]{32})"?', str(head.get("ETag") or ""))
    is_encrypted = head.get("SSECustomerAlgorithm") or str(head.get("ServerSideEncryption") or "").startswith(
        "aws:kms"
    )
    return Checksum("md5", etag[1]) if etag and not is_encrypted else None


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

    targets = [(file, directory / file.name) for file in files]
    for file, path in targets:
        if path.exists() and not record.has(path):
            try:
                verify(file, path)
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

    download(targets, receive, meter, partial=PARTIAL if locked else own_partial())
    for _, path in targets:
        record.add(path)
