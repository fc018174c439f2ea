"""`dragoman images`: every image and model of an installation, for a registry and a store of one's own."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from dragoman_contract.kubernetes import KIND
from dragoman_operator.api.v1alpha1 import parse
from dragoman_operator.errors import SpecError
from dragoman_operator.resources.children import Defaults
from dragoman_operator.settings import Settings

_ENGINE_IMAGES = {"--cuda-image": "cuda", "--cpu-image": "cpu"}
"""Flags of the operator with the images of engine pods."""


def main(argv: list[str]) -> int:
    """Print the list; `argv` follows `dragoman images`. 1 if a file is not what it should be."""
    parser = argparse.ArgumentParser(
        "dragoman images",
        description="Lists images and models. With TranslationDeployments, engine images are those that they use.",
    )
    parser.add_argument(
        "files",
        nargs="+",
        help="what `helm template` prints for your values, and TranslationDeployments; -: standard input",
    )
    try:
        documents = [document for name in parser.parse_args(argv).files for document in _read(name)]
        lines = inventory(documents)
    except (OSError, SpecError, yaml.YAMLError) as error:
        sys.stderr.write(f"dragoman images: {error}\n")
        return 1
    sys.stdout.writelines(f"{line}\n" for line in lines)
    return 0


def inventory(documents: Iterable[Mapping[str, Any]]) -> list[str]:
    """Lines such as ``image REFERENCE`` and ``model hf://ORG/NAME REVISION``, each once.

    Raises:
        SpecError: A TranslationDeployment is invalid.
    """
    documents = list(documents)
    settings = Settings.model_construct()
    engines = {"cuda": settings.cuda_image, "cpu": settings.cpu_image}
    images: set[str] = set()
    for container in (each for document in documents for each in _containers(document)):
        images.add(container["image"])
        for argument in container.get("args") or ():
            flag, _, value = str(argument).partition("=")
            if flag in _ENGINE_IMAGES:
                engines[_ENGINE_IMAGES[flag]] = value
    objects = [parse(_named(document)) for document in documents if document.get("kind") == KIND]
    models = set()
    for td in objects:
        images.add(Defaults(cuda=engines["cuda"], cpu=engines["cpu"]).image(td))
        scheme, _, reference = td.spec.model.uri.partition("://")
        if scheme == "oci":
            images.add(reference)
        else:
            models.add(f"{td.spec.model.uri} {td.spec.model.revision or ''}".strip())
    if not objects:
        images.update(engines.values())
    return [*(f"image {image}" for image in sorted(images)), *(f"model {model}" for model in sorted(models))]


def _named(document: Mapping[str, Any]) -> dict[str, Any]:
    """An object as if it was in a cluster."""
    return {**document, "metadata": {"namespace": "default", "uid": "", **document["metadata"]}}


def _containers(document: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    spec = document.get("spec") or {}
    pod = spec if document.get("kind") == "Pod" else (spec.get("template") or {}).get("spec") or {}
    for field in ("initContainers", "containers"):
        yield from pod.get(field) or ()


def _read(name: str) -> Iterator[dict[str, Any]]:
    text = sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
    for document in yaml.safe_load_all(text):
        if isinstance(document, dict):
            yield document
