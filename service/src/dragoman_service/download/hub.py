"""Models of Hugging Face, or of a mirror that HF_ENDPOINT names, into the cache of huggingface_hub.

huggingface_hub itself starts a file anew when its process was ended. Therefore large files, which the cache names by
their SHA-256, are received here, with its own function for ranges and retries, also where the hub offers Xet, which has
no ranges and other hosts than a mirror's; the rest is left to huggingface_hub. So are files over 50 GB, which Hugging
Face has in Xet alone: they are not resumed.

Imports of huggingface_hub are inside functions: it reads HF_HOME once, on import.
"""

from __future__ import annotations

import io
import logging
import re
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from dragoman_service.download.cache import Record, exclusive
from dragoman_service.download.checksums import Algorithm, Checksum
from dragoman_service.download.errors import ChecksumError, IncompleteModelError
from dragoman_service.download.files import check_complete, needed
from dragoman_service.download.transfer import PARTIAL, Meter, RemoteFile, download, own_partial, verify

log = logging.getLogger(__name__)

MAX_HTTP_BYTES = 50 * 1000**3
"""Larger files need Xet (huggingface_hub.constants.MAX_HTTP_DOWNLOAD_SIZE)."""

TIMEOUT_S = 10
"""A hub that is gone has to be reported within half a minute."""

CHUNK = 1 << 20

_ALGORITHMS: dict[int, Algorithm] = {64: "sha256", 40: "git-sha1"}
"""By the length of a blob's name."""


def fetch(model: str, revision: str | None, trusted: bool, meter: Meter) -> Path:
    """Download a model, or the files that the cache lacks, and verify it.

    If the hub cannot be reached, or HF_HUB_OFFLINE is set, a complete model of the cache is used.

    Args:
        model: A Hugging Face id, org/name.
        revision: Commit, tag or branch; None is main.
        trusted: Whether the model may run code.
        meter: Counts the bytes.

    Returns:
        The directory that has the model.

    Raises:
        ModelLoadError: The model is not complete, not verified, or does not fit.
        Exception: As huggingface_hub raises it; `errors.reason` knows the meaning.
    """
    from huggingface_hub import HfApi, constants
    from huggingface_hub.errors import RepositoryNotFoundError, RevisionNotFoundError

    folder = Path(constants.HF_HUB_CACHE) / f"models--{model.replace('/', '--')}"
    with exclusive(folder, meter) as locked:
        record = Record(folder)
        try:
            with meter.requesting():
                info = HfApi().model_info(model, revision=revision, files_metadata=True, timeout=TIMEOUT_S)
        except (RepositoryNotFoundError, RevisionNotFoundError):
            raise
        except Exception as unreachable:
            directory = _cached(model, revision, trusted, folder, record)
            if directory is None:
                raise
            log.warning("the hub is not used, %s is taken from the cache: %s", model, unreachable)
        else:
            files = _remote_files(model, info, trusted)
            # Before the download: without the hub nothing else tells a partial commit from a complete one.
            record.listed[f"snapshots/{info.sha}"] = [file.rfilename for file in info.siblings or ()]
            record.write(record.directory)
            directory = _downloaded(model, info.sha, files, folder, record, meter, locked)
        check_complete(directory)
        _verify(directory, folder, record)
        record.write(str(directory.relative_to(folder)))
        if directory.name != revision:
            ref = folder / "refs" / (revision or "main")
            ref.parent.mkdir(parents=True, exist_ok=True)
            ref.write_text(directory.name)
    return directory


def listed(model: str, revision: str | None, trusted: bool) -> list[RemoteFile]:
    """The files of a model that are needed; arguments and errors are those of `fetch`."""
    from huggingface_hub import HfApi

    info = HfApi().model_info(model, revision=revision, files_metadata=True, timeout=TIMEOUT_S)
    return _remote_files(model, info, trusted)


def _remote_files(model: str, info: Any, trusted: bool) -> list[RemoteFile]:
    found = {file.rfilename: file for file in info.siblings or ()}
    return [_remote(found[name]) for name in needed(found, model, trusted)]


def _remote(listed: Any) -> RemoteFile:
    if listed.lfs is not None:
        return RemoteFile(listed.rfilename, listed.lfs.size, Checksum("sha256", listed.lfs.sha256))
    blob = listed.blob_id or ""
    checksum = Checksum("git-sha1", blob) if re.fullmatch(r"[0-9a-f]{40}", blob) else None
    return RemoteFile(listed.rfilename, listed.size or 0, checksum)


def _cached(model: str, revision: str | None, trusted: bool, folder: Path, record: Record) -> Path | None:
    """The complete model of the cache, if there is one."""
    ref = folder / "refs" / (revision or "main")
    name = f"snapshots/{ref.read_text().strip() if ref.is_file() else revision or ''}"
    if revision is None and record.directory and name not in record.listed:
        # Other programs move the ref before the files are there.
        name = record.directory
    directory = folder / name
    names = record.listed.get(name) or [
        str(file.relative_to(directory)) for file in directory.rglob("*") if file.is_file()
    ]
    try:
        check_complete(directory)
        is_complete = all((directory / each).is_file() for each in needed(names, model, trusted))
    except IncompleteModelError:
        return None
    return directory if is_complete else None


def _downloaded(
    model: str,
    commit: str,
    files: list[RemoteFile],
    folder: Path,
    record: Record,
    meter: Meter,
    locked: bool,
) -> Path:
    from huggingface_hub import constants, file_download, hf_hub_url, snapshot_download
    from huggingface_hub.file_download import http_get
    from huggingface_hub.utils import build_hf_headers

    # It passes on 10 MiB at a time: too much for a rate, and for what a killed process loses.
    constants.DOWNLOAD_CHUNK_SIZE = CHUNK
    if not locked:
        # Its own locks fall back to files that stay when their process is killed; its cache is correct without them.
        file_download.WeakFileLock = lambda *_, **__: nullcontext()
    blobs = folder / "blobs"
    # By path: files with the same content are one blob.
    large = {
        blobs / file.checksum.value: file
        for file in files
        if file.checksum and file.checksum.algorithm == "sha256" and file.size <= MAX_HTTP_BYTES
    }
    others = sum(file.size for file in files if not file.checksum or blobs / file.checksum.value not in large)
    meter.total_bytes = others + sum(file.size for file in large.values())
    before = {path for path in large if path.exists()}
    meter.resume(sum(large[path].size for path in before))

    def receive(file: RemoteFile, output: io.RawIOBase, offset: int) -> None:
        url = hf_hub_url(model, file.name, revision=commit)
        http_get(url, output, resume_size=offset, headers=build_hf_headers(), expected_size=file.size)

    download(
        [(file, path) for path, file in large.items()],
        receive,
        meter,
        partial=PARTIAL if locked else own_partial(),
    )
    for path in large.keys() - before:
        record.add(path)
    names = [file.name for file in files]
    # Nothing counts what Xet receives.
    with nullcontext() if any(file.size > MAX_HTTP_BYTES for file in files) else meter.requesting():
        # By its commit: for a branch, huggingface_hub would move the ref before the files are there.
        directory = Path(snapshot_download(model, revision=commit, allow_patterns=names))
    meter.resume(others)
    if missing := [file.name for file in files if not (directory / file.name).is_file()]:
        raise IncompleteModelError(f"{model} changed during the download: {missing[0]} is missing; try again")
    return directory


def _verify(directory: Path, folder: Path, record: Record) -> None:
    """Compare every file with the name of its blob: the SHA-256 of a large file, git's id of another one."""
    for pointer in sorted(directory.rglob("*")):
        if not pointer.is_file():
            continue
        # Not resolved: a blob may itself be a link, to a file that models share and that has another name.
        target = pointer.parent / pointer.readlink() if pointer.is_symlink() else pointer
        algorithm = _ALGORITHMS.get(len(target.name))
        if (
            not algorithm
            or not re.fullmatch(r"[0-9a-f]+", target.name)
            or target.parent.resolve() != (folder / "blobs").resolve()
        ):
            # A mirror with names of its own, or a volume without symbolic links.
            continue
        blob = folder / "blobs" / target.name
        if record.has(blob):
            continue
        name = str(pointer.relative_to(directory))
        try:
            verify(RemoteFile(name, blob.stat().st_size, Checksum(algorithm, blob.name)), blob)
        except ChecksumError:
            blob.resolve().unlink()
            blob.unlink(missing_ok=True)
            pointer.unlink()
            raise
        record.add(blob)
