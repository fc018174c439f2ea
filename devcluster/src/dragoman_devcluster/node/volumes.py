"""The volumes of a pod as directories.

Those that the API fills change in one step: readers see all of the old files or all of the new. The layout is the
kubelet's: `name` is a link to `..data/name`, and `..data` one to a directory of its own for each version.

Source: https://github.com/kubernetes/kubernetes/blob/v1.34.0/pkg/volume/util/atomic_writer.go
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from dragoman_devcluster.errors import MissingReferenceError, PodRefusedError
from dragoman_devcluster.node.context import Directories
from dragoman_devcluster.node.environment import read
from dragoman_kube.client import KubeClient
from dragoman_kube.kinds import CLAIM, CONFIG_MAP, SECRET
from dragoman_kube.objects import Key, Manifest

TERMINATION_PATH = "/dev/termination-log"
"""Default file for a container's termination message."""


async def mount(pod: Manifest, client: KubeClient, directories: Directories) -> dict[str, Path]:
    """Make the directory of every volume of the pod, and bring the files in it up to date.

    Returns:
        Directory of each volume, by the volume's name.

    Raises:
        MissingReferenceError: A claim, ConfigMap, Secret or key does not exist; files of its volume stay as they were.
        PodRefusedError: A kind of volume that this node cannot offer.
    """
    namespace = pod["metadata"]["namespace"]
    volumes = pod["spec"].get("volumes") or ()
    places: dict[str, Path] = {}
    for volume in volumes:
        place = directories.volume(pod, volume["name"])
        if "persistentVolumeClaim" in volume:
            claim = volume["persistentVolumeClaim"]["claimName"]
            place = directories.claim(namespace, claim)
            await _bind(client, namespace, claim)
        place.mkdir(parents=True, exist_ok=True)
        if can_change(volume):
            put(place, await _files(volume, namespace, client))
        elif not _is_storage(volume):
            kind = next(field for field in volume if field != "name")
            raise PodRefusedError(
                f"volume {volume['name']!r} of type {kind}: the local node has no images and no storage drivers; "
                "use emptyDir, persistentVolumeClaim, configMap or secret"
            )
        places[volume["name"]] = place
    return places


def can_change(volume: Manifest) -> bool:
    """Whether a volume shows what may change in the API while the pod runs."""
    return "configMap" in volume or "secret" in volume


def mounted_at(container: Manifest, volumes: Mapping[str, Path]) -> dict[str, Path]:
    """The directory of every mountPath of a container.

    Raises:
        PodRefusedError: The container uses subPath, or mounts a volume that the pod does not have.
    """
    places: dict[str, Path] = {}
    for item in container.get("volumeMounts") or ():
        if item.get("subPath") or item.get("subPathExpr"):
            raise PodRefusedError("the local node does not know subPath; mount the whole volume")
        volume = volumes.get(item["name"])
        if volume is None:
            raise PodRefusedError(f"volumeMounts: the pod has no volume {item['name']!r}")
        places[item["mountPath"]] = volume
    return places


async def _bind(client: KubeClient, namespace: str, name: str) -> None:
    key = Key(namespace, name)
    claim = await client.get(CLAIM, key)
    if claim is None:
        raise MissingReferenceError(f'persistentvolumeclaim "{name}" not found')
    if (claim.get("status") or {}).get("phase") == "Bound":
        return
    spec = claim["spec"]
    status = {
        "phase": "Bound",
        "accessModes": spec.get("accessModes"),
        "capacity": (spec.get("resources") or {}).get("requests"),
    }
    await client.merge(CLAIM, key, {"status": status}, "status")


def _is_storage(volume: Manifest) -> bool:
    """Whether the pod's processes alone decide what is in a volume.

    A kube-apiserver adds a volume with a token to pods, at a path that processes do not have here.
    """
    is_token = volume["name"].startswith("kube-api-access-")
    return set(volume) == {"name"} or is_token or "emptyDir" in volume or "persistentVolumeClaim" in volume


async def _files(volume: Manifest, namespace: str, client: KubeClient) -> Mapping[str, bytes]:
    """The files that the API puts into a volume, by their paths inside it."""
    kind, part = CONFIG_MAP, volume.get("configMap")
    about = "configmap references non-existent config key"
    if part is None:
        kind, part, about = SECRET, volume["secret"], "references non-existent secret key"
    key, optional = Key(namespace, part.get("name") or part["secretName"]), bool(part.get("optional"))
    try:
        found = await read(client, kind, key, optional=optional)
        missing = [item["key"] for item in part.get("items") or () if item["key"] not in found]
        if missing and not optional:
            raise MissingReferenceError(f"{about}: {missing[0]}")
    except MissingReferenceError as error:
        raise MissingReferenceError(
            f'MountVolume.SetUp failed for volume "{volume["name"]}" : {error}'
        ) from error
    if not part.get("items"):
        return found
    return {item["path"]: found[item["key"]] for item in part["items"] if item["key"] in found}


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
        elif entry.name.startswith("..") and not entry.is_symlink() and entry != version:
            shutil.rmtree(entry)


def _held(directory: Path) -> dict[str, bytes]:
    files = (path for path in directory.rglob("*") if path.is_file())
    return {str(path.relative_to(directory)): path.read_bytes() for path in files}


def _link(link: Path, target: str) -> None:
    new = link.with_name(f"..new-{link.name}")
    new.unlink(missing_ok=True)
    new.symlink_to(target)
    os.replace(new, link)
