"""Requests of engine pods, and limits of their volumes."""

from typing import Any

import pytest
from tests.support.deployments import make_td

from dragoman_kube.quantity import parse
from dragoman_operator.resources.pod import pod_template
from dragoman_operator.resources.sizes import cache_limit, requests, shm_limit


def gpus(count: int, **groups: Any) -> dict[str, Any]:
    engine = {"device": "cuda", "tensorParallelSize": count}
    return {"engine": engine, "resources": {"limits": {"nvidia.com/gpu": count}}, **groups}


@pytest.mark.parametrize(
    ("spec", "cpu", "memory_mi"),
    [
        ({}, "1", 768 + 768),
        ({"engine": {"kvCacheMemory": "2Gi"}}, "1", 768 + 768 + 2048),
        ({"translation": {"cacheSize": "256Mi"}}, "1", 768 + 768 + 256),
        (gpus(1), "2", 768 + 2048),
        (gpus(2), "4", 768 + 3 * 2048),
        (gpus(8), "10", 768 + 9 * 2048),
        (
            {"engine": {"device": "cuda"}, "resources": {"limits": {"nvidia.com/mig-1g.10gb": 1}}},
            "1",
            768 + 2048,
        ),
    ],
)
def test_requests_come_from_the_engine(spec: dict[str, Any], cpu: str, memory_mi: int) -> None:
    assert requests(make_td(**spec).spec) == {"cpu": cpu, "memory": f"{memory_mi}Mi"}


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ({"requests": {"cpu": "500m"}}, {"cpu": "500m", "memory": "1536Mi"}),
        ({"requests": {"cpu": 4, "memory": "8Gi"}}, {"cpu": 4, "memory": "8Gi"}),
        ({"limits": {"memory": "1Gi"}}, {"cpu": "1"}),
        ({"limits": {"cpu": 2, "memory": "4Gi"}}, {}),
    ],
)
def test_those_of_the_spec_win(resources: Any, expected: dict[str, Any]) -> None:
    assert requests(make_td(resources=resources).spec) == expected


def test_kv_cache_of_a_gpu_is_not_in_the_memory_of_the_node() -> None:
    spec = gpus(1)
    spec["engine"]["kvCacheMemory"] = "40Gi"
    assert requests(make_td(**spec).spec) == requests(make_td(**gpus(1)).spec)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, "256Gi"),
        (gpus(4), "1024Gi"),
        ({"model": {"uri": "file:///model"}}, "32Gi"),
        ({"model": {"cache": {"sizeLimit": "50Gi"}}}, "50Gi"),
    ],
)
def test_cache_holds_what_fits_into_the_gpus(spec: dict[str, Any], expected: str) -> None:
    assert cache_limit(make_td(**spec).spec) == expected


def test_shared_memory_has_room_for_each_gpu() -> None:
    assert [shm_limit(make_td(**gpus(count)).spec) for count in (1, 4)] == ["2Gi", "5Gi"]


@pytest.mark.parametrize("spec", [{}, gpus(2), {"resources": {"limits": {"memory": "1Gi"}}}])
def test_no_pod_is_best_effort_and_every_directory_of_the_node_has_a_limit(spec: dict[str, Any]) -> None:
    pod = pod_template(make_td(**spec), "image")["spec"]
    resources = pod["containers"][0]["resources"]
    for name in ("cpu", "memory"):
        assert any(name in amounts for amounts in resources.values())
    directories = [volume["emptyDir"] for volume in pod["volumes"] if "emptyDir" in volume]
    assert len(directories) == 3
    assert all(parse(directory["sizeLimit"]) > 0 for directory in directories)
