"""A glossary as a ConfigMap, and back; pure.

Its entries are in gzip: as JSON they may be several times what an object holds. What lists show is an annotation, so
that a list reads no entries.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any

from pydantic import TypeAdapter

from dragoman_contract.glossaries import MOST_PACKED_BYTES, Packed, revision_of, unpack
from dragoman_contract.kubernetes import (
    GLOSSARY_COMPONENT,
    GROUP,
    LABEL_COMPONENT,
    LABEL_MANAGED_BY,
    LABEL_PART_OF,
    PART_OF,
)
from dragoman_protocols.errors import GlossaryStoreError, InvalidGlossaryError
from dragoman_protocols.glossaries.values import Outline, StoredGlossary

Manifest = dict[str, Any]

PREFIX = "dragoman-glossary-"
KEY = "glossary.json.gz"
OUTLINE = f"{GROUP}/glossary"
"""Annotation: the glossary without its entries, as JSON."""

LABELS = {
    LABEL_PART_OF: PART_OF,
    LABEL_COMPONENT: GLOSSARY_COMPONENT,
    LABEL_MANAGED_BY: "dragoman-router",
}
SELECTOR = f"{LABEL_PART_OF}={PART_OF},{LABEL_COMPONENT}={GLOSSARY_COMPONENT}"

_OUTLINE = TypeAdapter(Outline)


def name_of(glossary_id: str) -> str:
    """The ConfigMap of a glossary.

    Args:
        glossary_id: As `canonical_id` gives it.
    """
    return PREFIX + glossary_id


def config_map(glossary: StoredGlossary, packed: Packed, version: str | None = None) -> Manifest:
    """The object that holds a glossary.

    Args:
        glossary: What it holds.
        packed: The same, packed.
        version: The `resourceVersion` that it replaces; None for a new one.

    Raises:
        InvalidGlossaryError: It is more than an object holds.
    """
    if len(packed.content) > MOST_PACKED_BYTES:
        raise too_large(len(packed.content))
    metadata: Manifest = {
        "name": name_of(glossary.glossary_id),
        "labels": dict(LABELS),
        "annotations": {OUTLINE: _OUTLINE.dump_json(glossary.outline).decode()},
    }
    if version is not None:
        metadata["resourceVersion"] = version
    data = {KEY: base64.b64encode(packed.content).decode()}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "binaryData": data}


def packed_of(manifest: Manifest) -> Packed:
    """The glossary that an object holds, packed.

    Raises:
        GlossaryStoreError: It holds none.
    """
    name = str(manifest["metadata"]["name"])
    try:
        content = base64.b64decode(manifest["binaryData"][KEY], validate=True)
        return Packed(name.removeprefix(PREFIX), revision_of(unpack(content)), content)
    except (KeyError, TypeError, binascii.Error, ValueError) as error:
        raise no_glossary(name) from error


def outline_of(manifest: Manifest) -> Outline:
    """What lists show of an object; of its metadata alone.

    Raises:
        GlossaryStoreError: It says nothing of a glossary.
    """
    metadata = manifest["metadata"]
    try:
        return _OUTLINE.validate_json(metadata["annotations"][OUTLINE])
    except (KeyError, TypeError, ValueError) as error:
        raise no_glossary(str(metadata["name"])) from error


def version_of(manifest: Manifest) -> tuple[str, str]:
    """What tells the states of an object apart, and the object from another of its name."""
    metadata = manifest["metadata"]
    return str(metadata.get("uid", "")), str(metadata["resourceVersion"])


def no_glossary(name: str) -> GlossaryStoreError:
    """What is said of an object that somebody else has written."""
    return GlossaryStoreError(f"the ConfigMap {name} is no glossary; restore or remove it")


def too_large(size_bytes: int) -> InvalidGlossaryError:
    """What is said of a glossary that no object can hold."""
    return InvalidGlossaryError(
        f"entries: {size_bytes} bytes when packed; a glossary has to fit a ConfigMap, which holds "
        f"{MOST_PACKED_BYTES}: make two of it"
    )
