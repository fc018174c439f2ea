"""The volumes of a pod as directories.

Those that the API fills change in one step: readers see all of the old files or all of the new. The layout is the
kubelet's: `name` is a link to `..data/name`, and `..data` one to a directory of its own for each version.

Source: https://github.com/kubernetes/kubernetes/blob/v1.34.0/pkg/volume/util/atomic_writer.go
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from dragoman_devcluster.errors import MissingReferenceError, PodRefusedError
from dragoman_devcluster.node.context import Directories
from dragoman_devcluster.node.credentials import Credentials
from dragoman_devcluster.node.environment import Contents, Source, field_of, lookup, read
from dragoman_kube.client import KubeClient
from dragoman_kube.kinds import CLAIM
from dragoman_kube.objects import Key, Manifest

TERMINATION_PATH = "/dev/termination-log"
"""Default file for a container's termination message."""


async def mount(
    pod: Manifest, client: KubeClient, directories: Directories, credentials: Credentials
) -> dict[str, Path]:
    """Make the directory of every volume of the pod, and fill it.

    Returns:
        Directory of each volume, by the volume's name.

    Raises:
        MissingReferenceError: A claim, ConfigMap or Secret does not exist yet.
        PodRefusedError: A kind of volume that this node cannot offer.
    """
    namespace = pod["metadata"]["namespace"]
    volumes = pod["spec"].get("volumes") or ()
    contents = await read(client, namespace, [source for volume in volumes for source in _sources(volume)])
    places: dict[str, Path] = {}
    for volume in volumes:
        place = directories.volume(pod, volume["name"])
        if "persistentVolumeClaim" in volume:
            claim = volume["persistentVolumeClaim"]["claimName"]
            place = directories.claim(namespace, claim)
            await _bind(client, namespace, claim)
        place.mkdir(parents=True, exist_ok=True)
        if not _is_storage(volume):
            put(place, await _files(volume, pod, contents, credentials))
        places[volume["name"]] = place
    return places


def can_change(volume: Manifest) -> bool:
    """Whether a volume shows what may change in the API while the pod runs.

    One with a token does not, although its ConfigMaps may: each refresh would sign a new token.
    """
    parts = (volume.get("projected") or {}).get("sources")
    if parts is not None:
        return not any("serviceAccountToken" in part for part in parts) and any(map(can_change, parts))
    return any(field in volume for field in ("configMap", "secret", "downwardAPI"))


async def refresh(
    pod: Manifest, client: KubeClient, directories: Directories, credentials: Credentials
) -> None:
    """Bring the files of volumes that can change up to date.

    Raises:
        MissingReferenceError: A ConfigMap, a Secret or a key is gone; the files stay as they were.
    """
    volumes = [volume for volume in pod["spec"].get("volumes") or () if can_change(volume)]
    sources = [source for volume in volumes for source in _sources(volume)]
    contents = await read(client, pod["metadata"]["namespace"], sources)
    for volume in volumes:
        put(directories.volume(pod, volume["name"]), await _files(volume, pod, contents, credentials))


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


def _sources(volume: Manifest) -> Iterator[Source]:
    if "configMap" in volume:
        yield Source("ConfigMap", volume["configMap"]["name"])
    if "secret" in volume:
        yield Source("Secret", volume["secret"].get("secretName") or volume["secret"]["name"])
    for part in (volume.get("projected") or {}).get("sources") or ():
        yield from _sources(part)


def _is_storage(volume: Manifest) -> bool:
    """Whether the pod's processes alone decide what is in a volume."""
    return set(volume) == {"name"} or any(field in volume for field in ("emptyDir", "persistentVolumeClaim"))


async def _files(
    volume: Manifest, pod: Manifest, contents: Contents, credentials: Credentials
) -> Mapping[str, bytes]:
    """The files that the API puts into a volume, by their paths inside it."""
    try:
        return await _found(volume, pod, contents, credentials)
    except MissingReferenceError as error:
        raise MissingReferenceError(
            f'MountVolume.SetUp failed for volume "{volume["name"]}" : {error}'
        ) from error


async def _found(
    volume: Manifest, pod: Manifest, contents: Contents, credentials: Credentials
) -> Mapping[str, bytes]:
    if "projected" in volume:
        parts = [await _found(part, pod, contents, credentials) for part in volume["projected"]["sources"]]
        return {name: value for part in parts for name, value in part.items()}
    if "serviceAccountToken" in volume:
        token = await credentials.token(pod)
        return {volume["serviceAccountToken"]["path"]: token.encode()}
    if "downwardAPI" in volume:
        items = volume["downwardAPI"].get("items") or ()
        return {item["path"]: _field(item, pod).encode() for item in items}
    for field in ("configMap", "secret"):
        if field in volume:
            return _selected(volume[field], next(_sources(volume)), contents, credentials)
    kind = next((field for field in volume if field != "name"), "nothing")
    raise PodRefusedError(
        f"volume {volume.get('name')!r} of type {kind}: the local node has no images and no storage drivers; "
        "use emptyDir, persistentVolumeClaim, configMap, secret or projected"
    )


def _field(item: Manifest, pod: Manifest) -> str:
    if "fieldRef" not in item:
        raise PodRefusedError("the local node knows fieldRef in a downwardAPI volume, nothing else")
    return field_of(pod, item["fieldRef"]["fieldPath"])


def _selected(
    part: Manifest, source: Source, contents: Contents, credentials: Credentials
) -> Mapping[str, bytes]:
    optional = bool(part.get("optional"))
    if source.name == "kube-root-ca.crt" and contents[source] is None:
        # Every cluster publishes its certificate under this name; here it comes from the kubeconfig.
        return {"ca.crt": credentials.ca_certificate}
    found = lookup(contents, source, optional=optional)
    if not part.get("items"):
        return found
    missing = [item["key"] for item in part["items"] if item["key"] not in found]
    if missing and not optional:
        about = "references non-existent secret key"
        if source.kind == "ConfigMap":
            about = "configmap references non-existent config key"
        raise MissingReferenceError(f"{about}: {missing[0]}")
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


def _held(directory: Path) -> dict[str, bytes]:
    files = (path for path in directory.rglob("*") if path.is_file())
    return {str(path.relative_to(directory)): path.read_bytes() for path in files}


def _link(link: Path, target: str) -> None:
    new = link.with_name(f"..new-{link.name}")
    new.unlink(missing_ok=True)
    new.symlink_to(target)
    os.replace(new, link)
