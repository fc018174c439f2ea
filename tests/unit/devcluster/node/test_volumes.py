"""What a volume shows of ConfigMaps and Secrets, and how it changes."""

from pathlib import Path

import pytest

from dragoman_devcluster.errors import PodRefusedError
from dragoman_devcluster.node.volumes import CURRENT, can_change, mounted_at, put


def shown(place: Path) -> dict[str, str]:
    names = sorted(entry.name for entry in place.iterdir() if not entry.name.startswith(".."))
    return {name: (place / name).read_text() for name in names if (place / name).is_file()}


def test_files_are_swapped_and_those_that_are_gone_go(tmp_path: Path) -> None:
    put(tmp_path / "v", {"a": b"1", "b": b"1"})
    assert shown(tmp_path / "v") == {"a": "1", "b": "1"}
    put(tmp_path / "v", {"b": b"2", "c": b"2"})
    assert shown(tmp_path / "v") == {"b": "2", "c": "2"}
    put(tmp_path / "v", {})
    assert shown(tmp_path / "v") == {}


def test_former_files_are_removed(tmp_path: Path) -> None:
    for number in range(3):
        put(tmp_path, {"token": str(number).encode()})
    assert [path.read_text() for path in tmp_path.glob("..*/token") if path.parent.name != CURRENT] == ["2"]


def test_paths_inside(tmp_path: Path) -> None:
    put(tmp_path, {"deep/er/a": b"1", "deep/b": b"1"})
    assert (tmp_path / "deep/er/a").read_text() == "1"
    put(tmp_path, {"deep/b": b"2"})
    assert not (tmp_path / "deep/er").exists()
    assert (tmp_path / "deep/b").read_text() == "2"


def test_nothing_is_done_where_nothing_changed(tmp_path: Path) -> None:
    put(tmp_path, {"a": b"1"})
    before = (tmp_path / CURRENT).readlink()
    put(tmp_path, {"a": b"1"})
    assert (tmp_path / CURRENT).readlink() == before
    put(tmp_path, {"a": b"2"})
    assert (tmp_path / CURRENT).readlink() != before


def test_sub_paths_are_refused(tmp_path: Path) -> None:
    mount = {"name": "v", "mountPath": "/v", "subPath": "a"}
    with pytest.raises(PodRefusedError, match="subPath"):
        mounted_at({"volumeMounts": [mount]}, {"v": tmp_path})


@pytest.mark.parametrize(
    ("volume", "changes"),
    [
        ({"name": "v", "configMap": {"name": "terms"}}, True),
        ({"name": "v", "secret": {"secretName": "s"}}, True),
        ({"name": "v", "emptyDir": {}}, False),
        ({"name": "v"}, False),
    ],
    ids=str,
)
def test_what_can_change(volume: dict[str, object], changes: bool) -> None:
    assert can_change(volume) == changes
