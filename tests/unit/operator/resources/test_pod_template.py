"""What `podTemplate` adds to the pods, and what of the operator's it replaces."""

from typing import Any

import pytest
from tests.support.deployments import DEFAULTS, make_td, version_of

from dragoman_operator.resources.children import Defaults
from dragoman_operator.resources.pod import pod_template


def pod(**fields: Any) -> dict[str, Any]:
    spec: dict[str, Any] = pod_template(make_td(podTemplate=fields), DEFAULTS.cpu)["spec"]
    return spec


def test_settings_apply_as_if_the_spec_had_them() -> None:
    plain, settings = make_td(), Defaults("cuda", "cpu", image_pull_secrets=("a", "b"), platform_users=True)
    same = make_td(imagePullSecrets=[{"name": "a"}, {"name": "b"}], podTemplate={"securityContext": {}})
    own = make_td(imagePullSecrets=[{"name": "c"}], podTemplate={"securityContext": {"runAsUser": 5}})
    assert settings.completed(plain).pod_fields == same.pod_fields
    assert settings.completed(own) == own
    assert DEFAULTS.completed(plain) is plain


def test_settings_reach_the_pods() -> None:
    settings = Defaults("cuda", "cpu", image_pull_secrets=("a",), platform_users=True)
    found = version_of(make_td(), settings).template["spec"]
    assert found["imagePullSecrets"] == [{"name": "a"}]
    assert not USERS & found["securityContext"].keys()


def by(key: str, found: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    assert len({each[key] for each in found}) == len(found)
    return {each[key]: each for each in found}


CA = {"name": "ca", "configMap": {"name": "company-ca"}}
MOUNT = {"name": "ca", "mountPath": "/etc/company", "readOnly": True}


def test_volumes_and_mounts_are_those_of_both_containers() -> None:
    plain, found = pod(), pod(volumes=[CA], volumeMounts=[MOUNT])
    assert found["volumes"] == [*plain["volumes"], CA]
    for kind in ("initContainers", "containers"):
        (before,), (after,) = plain[kind], found[kind]
        assert after["volumeMounts"] == [*before["volumeMounts"], MOUNT]


def test_a_volume_of_the_same_name_and_a_mount_of_the_same_path_replace_the_operators() -> None:
    shm = {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "64Gi"}}
    fast = {"name": "fast", "mountPath": "/tmp"}
    found = pod(volumes=[shm, {"name": "fast", "emptyDir": {}}], volumeMounts=[fast])
    assert by("name", found["volumes"])["shm"] == shm
    for kind in ("initContainers", "containers"):
        assert by("mountPath", found[kind][0]["volumeMounts"])["/tmp"] == fast


USERS = {"runAsUser", "runAsGroup", "fsGroup", "fsGroupChangePolicy"}


@pytest.mark.parametrize(
    "given", [{}, {"runAsUser": 1000660001}, {"fsGroup": 2000, "supplementalGroups": [1]}], ids=str
)
def test_user_and_groups_are_those_of_the_spec_or_left_to_the_platform(given: dict[str, Any]) -> None:
    assert pod()["securityContext"].keys() >= USERS
    restricted = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    assert pod(securityContext=given)["securityContext"] == restricted | given
