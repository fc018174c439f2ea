"""Where the model of an engine is: a directory, an object store, or Hugging Face."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from dragoman_service.download import hub
from dragoman_service.download.files import check_complete
from dragoman_service.download.transfer import Meter
from dragoman_service.errors import ModelLoadError

POLL_S = 0.5


def is_local(model: str) -> bool:
    """Whether `model` names a directory: one that exists, or one that can only be meant as a path."""
    return model.startswith(("/", "./", "../", "~")) or Path(model).is_dir()


def local_directory(model: str) -> str | None:
    """The directory that `model` names, or None where it names something to fetch.

    Links are followed: `dragoman fetch` may make them point to another version while this one is loaded.

    Raises:
        ModelLoadError: It is a path, and no complete model is there.
    """
    if not is_local(model):
        return None
    directory = Path(model).expanduser()
    if not directory.is_dir():
        raise ModelLoadError(f"the model directory {model} does not exist in this pod")
    check_complete(directory)
    return str(directory.resolve() if directory.is_symlink() else directory)


def is_remote_store(model: str) -> bool:
    """Whether vLLM itself reads `model` from an object store."""
    return "://" in model


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
        Exception: As `hub.fetch` raises it; `failures.reason` knows the meaning.
    """
    report(None)
    meter, done = Meter(), threading.Event()

    def watch() -> None:
        while not done.wait(POLL_S):
            report(meter.read().ratio)

    watching = threading.Thread(target=watch, name="download-progress", daemon=True)
    watching.start()
    try:
        return hub.fetch(model, revision, trusted, meter)
    finally:
        done.set()
        watching.join()
