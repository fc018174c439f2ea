"""Downloads a Hugging Face model into the cache, and reports the progress."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from pathlib import Path

from dragoman_service.errors import ModelLoadError

OTHER_FORMATS = ("*.bin", "*.pt", "*.pth", "*.h5", "*.msgpack", "*.onnx", "*.gguf", "*.ot", "original/*")
"""The same weights in formats that vLLM does not read where there are safetensors."""
PICKLED = (".bin", ".pt", ".pth")

POLL_S = 0.5


def is_local(model: str) -> bool:
    """Whether `model` names a directory: one that exists, or one that can only be meant as a path."""
    return model.startswith(("/", "./", "../", "~")) or Path(model).is_dir()


def local_directory(model: str) -> str | None:
    """The directory that `model` names, or None where it names something to fetch.

    Raises:
        ModelLoadError: It is a path, and no model is there.
    """
    if not is_local(model):
        return None
    directory = Path(model).expanduser()
    if not directory.is_dir():
        raise ModelLoadError(f"the model directory {model} does not exist in this pod")
    if not (directory / "config.json").is_file():
        raise ModelLoadError(f"the model directory {model} holds no config.json")
    return str(directory)


def is_remote_store(model: str) -> bool:
    """Whether vLLM itself reads `model` from an object store."""
    return "://" in model


def unwanted(files: Collection[str]) -> list[str]:
    """Patterns of files that need not be fetched, given the names of all files of a model."""
    return list(OTHER_FORMATS) if any(name.endswith(".safetensors") for name in files) else []


def check_formats(files: Collection[str]) -> None:
    """Refuse a model that vLLM would unpickle: it takes these files where there are no safetensors.

    Args:
        files: Names of the model's files.

    Raises:
        ModelLoadError: It has pickled weights alone.
    """
    pickled = sorted(name for name in files if name.endswith(PICKLED))
    if pickled and not any(name.endswith(".safetensors") for name in files):
        raise ModelLoadError(
            f"the model has no safetensors, and its pickled weights ({pickled[0]}) may run code: convert them, or set "
            "spec.model.trustRemoteCode to true (--trust-remote-code=true) if you trust it"
        )


def fetch(model: str, revision: str | None, trusted: bool, report: Callable[[float | None], None]) -> Path:
    """Download a model, or what its cache lacks.

    Args:
        model: A Hugging Face id, org/name.
        revision: Commit, tag or branch; None is main.
        trusted: Whether it may have pickled weights alone.
        report: Called with the share that is there, 0 to 1, or None if it is not known.

    Returns:
        The directory that holds the model.

    Raises:
        ModelLoadError: It has pickled weights alone, and is not trusted.
        Exception: As huggingface_hub raises it; `failure.reason` knows the meaning.
    """
    # Imported here because huggingface_hub reads HF_HOME once, on import.
    from fnmatch import fnmatch

    from huggingface_hub import HfApi, constants, snapshot_download
    from huggingface_hub.errors import RepositoryNotFoundError, RevisionNotFoundError

    report(None)
    try:
        info = HfApi().model_info(model, revision=revision, files_metadata=True)
    except (RepositoryNotFoundError, RevisionNotFoundError):
        raise
    except Exception as unreachable:
        # A pod restarts on what its cache holds although Hugging Face is unreachable.
        try:
            cached = snapshot_download(
                model, revision=revision, ignore_patterns=list(OTHER_FORMATS), local_files_only=True
            )
            return Path(cached)
        except Exception:
            raise unreachable from None
    siblings = info.siblings or []
    names = [file.rfilename for file in siblings]
    if not trusted:
        check_formats(names)
    skip = unwanted(names)
    wanted_bytes = sum(
        file.size or 0 for file in siblings if not any(fnmatch(file.rfilename, pattern) for pattern in skip)
    )
    blobs = Path(constants.HF_HUB_CACHE) / f"models--{model.replace('/', '--')}" / "blobs"
    done = threading.Event()

    def watch() -> None:
        while not done.wait(POLL_S):
            if wanted_bytes:
                report(min(1.0, _size_bytes(blobs) / wanted_bytes))

    watching = threading.Thread(target=watch, name="download-progress", daemon=True)
    watching.start()
    try:
        return Path(snapshot_download(model, revision=revision, ignore_patterns=skip))
    finally:
        done.set()
        watching.join()


def _size_bytes(directory: Path) -> int:
    total = 0
    for file in directory.glob("*"):
        try:
            total += file.stat().st_size
        except OSError:
            # Renamed since it was listed.
            continue
    return total
