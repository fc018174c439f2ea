"""Directories that the API fills, changed in one step: who reads them sees all of the old files or all of the new.

The layout is the kubelet's: `name` is a link to `..data/name`, and `..data` one to a directory of its own for each
version. Old versions stay until the pod ends, because a subPath goes on showing the one that it was mounted from.

Source: https://github.com/kubernetes/kubernetes/blob/v1.34.0/pkg/volume/util/atomic_writer.go
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

CURRENT = "..data"


def put(place: Path, files: Mapping[str, bytes]) -> None:
    """Make `files`, by their paths inside it, all that a directory holds; nothing is done where they are."""
    current = place / CURRENT
    if current.is_symlink() and _held(current) == dict(files):
        return
    place.mkdir(parents=True, exist_ok=True)
    version = Path(tempfile.mkdtemp(prefix="..", dir=place))
    version.chmod(0o755)
    for name, content in files.items():
        (version / name).parent.mkdir(parents=True, exist_ok=True)
        (version / name).write_bytes(content)
    _link(current, version.name)
    tops = {Path(name).parts[0] for name in files}
    for top in tops:
        _link(place / top, f"{CURRENT}/{top}")
    for entry in place.iterdir():
        if entry.is_symlink() and entry.name not in {CURRENT, *tops}:
            entry.unlink()


def inside(place: Path, sub_path: str) -> Path:
    """A path inside a directory, as a mount by subPath shows it: whatever is put later does not reach it."""
    chosen = place / sub_path
    return chosen.resolve() if sub_path and (place / CURRENT).is_symlink() else chosen


def _held(directory: Path) -> dict[str, bytes]:
    files = (path for path in directory.rglob("*") if path.is_file())
    return {str(path.relative_to(directory)): path.read_bytes() for path in files}


def _link(link: Path, target: str) -> None:
    new = link.with_name(f"..new-{link.name}")
    new.unlink(missing_ok=True)
    new.symlink_to(target)
    os.replace(new, link)
