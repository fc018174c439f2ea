"""HPA and KEDA: their metrics and targets."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.deployments import make_td

from dragoman_operator.api.v1alpha1 import TranslationDeployment
from dragoman_operator.metric_definitions import DEPLOYMENT_REPLICAS, SCALING_REQUESTS
from dragoman_operator.resources.children import (
    HPA_KV_USAGE,
    HPA_LOAD,
    horizontal_pod_autoscaler,
    scaled_object,
    trigger_authentication,
)

ADAPTER = Path(__file__).parents[4] / "charts/dragoman/files/prometheus-adapter.yaml"
TARGET = {"apiVersion": "dragoman.io/v1alpha1", "kind": "TranslationDeployment", "name": "demo"}


def scaling(mode: str, **fields: Any) -> dict[str, Any]:
    return {"mode": mode, "minReplicas": 1, "maxReplicas": 4, **fields}


def test_other_modes_have_neither() -> None:
    for mode in ("Off", "Internal", "External"):
        td = make_td(autoscaling=scaling(mode))
        assert (
            horizontal_pod_autoscaler(td)
            is trigger_authentication(td)
            is scaled_object(td, "http://p")
            is None
        )
    assert horizontal_pod_autoscaler(make_td()) is scaled_object(make_td(), "http://p") is None


def test_hpa_scales_the_object_by_averages_of_the_pods() -> None:
    td = make_td(autoscaling=scaling("HPA", scaleDownStabilizationWindow="1m"))
    spec = (horizontal_pod_autoscaler(td) or {})["spec"]
    assert spec["scaleTargetRef"] == TARGET
    assert (spec["minReplicas"], spec["maxReplicas"]) == (1, 4)
    assert spec["behavior"] == {"scaleDown": {"stabilizationWindowSeconds": 60}}
    metrics = [metric["pods"] for metric in spec["metrics"]]
    assert [(metric["metric"]["name"], metric["target"]["averageValue"]) for metric in metrics] == [
        (HPA_LOAD, "6400m"),
        (HPA_KV_USAGE, "800m"),
    ]


def test_rules_for_the_adapter_give_the_metrics_of_the_hpa() -> None:
    rules = yaml.safe_load(ADAPTER.read_text())["rules"]["custom"]
    assert [rule["name"]["as"] for rule in rules] == [HPA_LOAD, HPA_KV_USAGE]


def queries(td: TranslationDeployment) -> list[str]:
    triggers = (scaled_object(td, "http://own:9090") or {})["spec"]["triggers"]
    return [trigger["metadata"]["query"] for trigger in triggers]


def test_keda_does_not_count_an_empty_result_as_idle() -> None:
    spec = (scaled_object(make_td(autoscaling=scaling("KEDA", minReplicas=0)), "http://own:9090") or {})[
        "spec"
    ]
    assert spec["scaleTargetRef"] == TARGET
    assert (spec["minReplicaCount"], spec["maxReplicaCount"], spec["cooldownPeriod"]) == (0, 4, 900)
    assert spec["initialCooldownPeriod"] == 900
    for trigger in spec["triggers"]:
        assert trigger["metadata"]["ignoreNullValues"] == "false"
        assert trigger["metadata"]["serverAddress"] == "http://own:9090"
    assert [trigger["metadata"]["threshold"] for trigger in spec["triggers"]] == ["6.4", "0.8", "6.4"]
    assert 'model_name="demo"' in spec["triggers"][0]["metadata"]["query"]
    assert 'state="queued_at_routers"' in spec["triggers"][2]["metadata"]["query"]


def test_keda_has_no_trigger_for_zero_where_zero_is_not_allowed() -> None:
    td = make_td(autoscaling=scaling("KEDA"))
    assert len(queries(td)) == 2
    assert (scaled_object(td, "http://p") or {})["spec"]["pollingInterval"] == 15


def test_keda_polls_often_where_a_request_may_wait_for_it() -> None:
    td = make_td(autoscaling=scaling("KEDA", minReplicas=0))
    assert (scaled_object(td, "http://p") or {})["spec"]["pollingInterval"] == 5


def test_keda_without_a_prometheus_is_not_made() -> None:
    assert scaled_object(make_td(autoscaling=scaling("KEDA")), "") is None


def test_keda_signs_in_with_the_same_secret() -> None:
    prometheus = {"url": "http://mine:9090", "tokenSecretRef": {"name": "prom", "key": "t"}}
    td = make_td(autoscaling=scaling("KEDA", prometheus=prometheus))
    made = trigger_authentication(td) or {}
    assert made["spec"]["secretTargetRef"] == [{"parameter": "bearerToken", "name": "prom", "key": "t"}]
    trigger = (scaled_object(td, "http://own:9090") or {})["spec"]["triggers"][0]
    assert trigger["authenticationRef"] == {"name": made["metadata"]["name"]}
    assert trigger["metadata"]["authModes"] == "bearer"
    assert trigger["metadata"]["serverAddress"] == "http://mine:9090"


@pytest.mark.parametrize(
    ("named", "sent"), [({}, "X-Scope-OrgID=mt,X-Other=1"), ({"url": "http://mine:9090"}, None)], ids=str
)
def test_keda_sends_the_headers_of_the_operators_prometheus(named: dict[str, str], sent: str | None) -> None:
    td = make_td(autoscaling=scaling("KEDA", prometheus=named))
    made = scaled_object(td, "http://own:9090", (("X-Scope-OrgID", "mt"), ("X-Other", "1"))) or {}
    assert {each["metadata"].get("customHeaders") for each in made["spec"]["triggers"]} == {sent}


def engines() -> dict[str, float]:
    """Two pods, and a namesake elsewhere."""
    series: dict[str, float] = {}
    for namespace, pod, running, waiting in (
        ("default", "a", 3, 1),
        ("default", "b", 5, 7),
        ("other", "c", 9, 9),
    ):
        labels = f'namespace="{namespace}",model_name="demo",pod="{pod}",engine="0"'
        series[f"vllm:num_requests_running{{{labels}}}"] = running
        series[f"vllm:num_requests_waiting{{{labels}}}"] = waiting
    ours = 'namespace="default",model_name="demo"'
    series[f'vllm:kv_cache_usage_perc{{{ours},pod="a"}}'] = 0.25
    series[f'vllm:kv_cache_usage_perc{{{ours},pod="b"}}'] = 0.75
    return series


def operators(desired: int, ready: int, queued: int) -> dict[str, float]:
    """The operator's series, from two Prometheus targets."""
    ours = 'deployment_namespace="default",deployment="demo"'
    other = 'deployment_namespace="default",deployment="other"'
    return {
        **{f'{DEPLOYMENT_REPLICAS.name}{{{ours},state="desired",pod="{pod}"}}': desired for pod in "xy"},
        **{f'{DEPLOYMENT_REPLICAS.name}{{{ours},state="ready",pod="{pod}"}}': ready for pod in "xy"},
        f'{DEPLOYMENT_REPLICAS.name}{{{other},state="desired"}}': 9,
        f'{DEPLOYMENT_REPLICAS.name}{{{other},state="ready"}}': 9,
        f'{SCALING_REQUESTS.name}{{{ours},state="queued_at_routers"}}': queued,
    }


def scraped_twice() -> dict[str, float]:
    """The engines' series, of a ServiceMonitor and of a scrape configuration."""
    return {one.replace("}", f',job="{job}"}}'): value for one, value in engines().items() for job in "xy"}


SCRAPED = {
    "engines": (engines(), (8, 0.5, None)),
    "engines, scraped twice": (scraped_twice(), (8, 0.5, None)),
    "everything": (engines() | operators(2, 2, 2), (8, 0.5, 2)),
    "zero": (operators(0, 0, 0), (0, 0, 0)),
    "queued at zero": (operators(0, 0, 3), (0, 0, 3)),
    "the first one starts": (operators(1, 0, 3), (0, 0, 3)),
    "a replica is not scraped": (operators(1, 1, 3), (None, None, 3)),
    "none of several is ready": (operators(3, 0, 3), (None, None, 3)),
    "nothing": ({}, (None, None, None)),
}
"""What a Prometheus has, and what the queries then return; None is an error to KEDA, which keeps the replicas."""


@pytest.mark.skipif(
    shutil.which("promtool") is None, reason="no promtool on PATH (Debian: apt install prometheus)"
)
def test_each_query_gives_one_series_or_none(tmp_path: Path) -> None:
    td = make_td(autoscaling=scaling("KEDA", minReplicas=0))
    tests = [
        {
            "name": name,
            "interval": "15s",
            "input_series": [{"series": one, "values": f"{value}x9"} for one, value in series.items()],
            "promql_expr_test": [
                {
                    "expr": query,
                    "eval_time": "1m",
                    "exp_samples": [] if value is None else [{"labels": "{}", "value": value}],
                }
                for query, value in zip(queries(td), values, strict=True)
            ],
        }
        for name, (series, values) in SCRAPED.items()
    ]
    file = tmp_path / "queries.yaml"
    file.write_text(yaml.safe_dump({"tests": tests}))
    done = subprocess.run(
        ["promtool", "test", "rules", str(file)], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stdout + done.stderr
