"""Which files of a model are needed, and whether a directory has them."""

from __future__ import annotations

import json
from collections.abc import Collection
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath

from dragoman_service.download.errors import IncompleteModelError
from dragoman_service.errors import ModelLoadError

SAFETENSORS = ".safetensors"
PICKLED = (".bin", ".pt", ".pth")
INDEX = "*.safetensors.index.json"
_BESIDE_WEIGHTS = ("*.json", "*.jinja", "*.txt", "*.model", "*.tiktoken")
_OTHER_PROGRAMS = frozenset({"original", "onnx", "openvino", "metal", "coreml"})
"""Folders with the same weights for other programs."""


def needed(names: Collection[str], model: str, trusted: bool) -> list[str]:
    """The files that vLLM reads: safetensors, configuration, tokenizer; all files of a model without safetensors.

    Args:
        names: Paths relative to the model, with ``/``.
        model: Its name, for the error.
        trusted: Whether the model may run code: modules of its own, or pickled weights alone.

    Raises:
        ModelLoadError: It has no weights, or pickled ones alone and is not trusted.
    """
    if not trusted:
        check_formats(names)
    listed = [name for name in names if not _OTHER_PROGRAMS.intersection(PurePosixPath(name).parts[:-1])]
    if not any(name.endswith((SAFETENSORS, ".gguf", *PICKLED)) for name in listed):
        raise IncompleteModelError(f"{model} has no weights")
    if not any(name.endswith(SAFETENSORS) for name in listed):
        return listed
    patterns = [f"*{SAFETENSORS}", *_BESIDE_WEIGHTS, *(["*.py"] if trusted else [])]
    return [name for name in listed if any(fnmatch(name, pattern) for pattern in patterns)]


def check_formats(files: Collection[str]) -> None:
    """Refuse a model that vLLM would unpickle: it takes these files where there are no safetensors.

    Args:
        files: Names of the model's files.

    Raises:
        ModelLoadError: It has pickled weights alone.
    """
    pickled = sorted(name for name in files if name.endswith(PICKLED))
    if pickled and not any(name.endswith(SAFETENSORS) for name in files):
        raise ModelLoadError(
            f"the model has no safetensors, and its pickled weights ({pickled[0]}) may run code: convert them, or set "
            "spec.model.trustRemoteCode to true (--trust-remote-code=true) if you trust it"
        )


def check_complete(directory: Path) -> None:
    """Check that a directory has a configuration and all weights that its index names.

    Raises:
        IncompleteModelError: A file is missing, with its name.
    """
    if not (directory / "config.json").is_file():
        raise IncompleteModelError(f"the model directory {directory} holds no config.json")
    for index in directory.glob(INDEX):
        try:
            shards = set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values())
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise IncompleteModelError(f"{index} cannot be read: {error}") from error
        if missing := sorted(name for name in shards if not (directory / name).is_file()):
            raise IncompleteModelError(
                f"the model directory {directory} lacks {missing[0]}, which {index.name} names"
            )
