"""Each alert is raised by made series, and by none of those beside them; each has what a responder needs."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

ROOT = Path(__file__).parents[2]
RULES = ROOT / "charts/dragoman/files/monitoring/rules.yaml"
RUNBOOKS = ROOT / "docs/how-to/runbooks.md"
GROUPS = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
ALERTS = {rule["alert"]: rule for group in GROUPS for rule in group["rules"] if "alert" in rule}
HOURS = "x400"
"""More minutes than the longest window."""

needs_promtool = pytest.mark.skipif(
    shutil.which("promtool") is None, reason="no promtool on PATH (Debian: apt install prometheus)"
)


class Case(NamedTuple):
    """Series that raise an alert once, and others that do not.

    Args:
        at: Time of the evaluation.
        labels: Of the alert, beside its name and severity.
        summary: With the labels and the value filled in.
        series: With their values, one a minute.
    """

    at: str
    labels: dict[str, str]
    summary: str
    series: dict[str, str]


def of_object(name: str) -> dict[str, str]:
    return {"deployment_namespace": "team", "deployment": name}


def replicas(name: str, state: str) -> str:
    return f'dragoman_deployment_replicas{{deployment_namespace="team",deployment="{name}",state="{state}"}}'


def condition(name: str, kind: str, status: str, reason: str) -> str:
    labels = (
        f'deployment_namespace="team",deployment="{name}",type="{kind}",status="{status}",reason="{reason}"'
    )
    return f"dragoman_deployment_condition{{{labels}}}"


def requests(name: str, status: int) -> str:
    return f'dragoman_router_requests_total{{deployment="team/{name}",api="native",status="{status}"}}'


def errors(name: str, code: str, status: int) -> str:
    deployment = f"team/{name}" if name else ""
    return f'dragoman_router_errors_total{{deployment="{deployment}",code="{code}",status="{status}"}}'


def durations(name: str, suffix: str) -> str:
    return f'dragoman_router_request_duration_seconds_{suffix}deployment="team/{name}"}}'


def changes(name: str, direction: str) -> str:
    labels = f'deployment_namespace="team",deployment="{name}",direction="{direction}",rule="ScaleUp"'
    return f"dragoman_scaling_changes_total{{{labels}}}"


def pod(metric: str, name: str, *labels: str) -> str:
    found = ",".join((*labels, 'namespace="team"', f'pod="{name}"'))
    return f"{metric}{{{found}}}"


def failing(failed: str, good: str) -> dict[str, str]:
    """A deployment with failures of a replica and of the router; beside it callers' errors."""
    return {
        requests("bad", 200): good,
        requests("bad", 502): failed,
        errors("bad", "no_replica", 503): failed,
        requests("good", 200): good,
        requests("good", 400): failed,
        errors("good", "key_refused", 403): failed,
        errors("", "malformed_request", 400): failed,
    }


def slow(fast: str) -> dict[str, str]:
    """A deployment with requests over 5 s; beside it one without."""
    return {
        durations("bad", 'bucket{le="5.0",'): fast,
        durations("bad", "count{"): f"0+100{HOURS}",
        durations("good", 'bucket{le="5.0",'): f"0+100{HOURS}",
        durations("good", "count{"): f"0+100{HOURS}",
    }


BAD = {"deployment": "team/bad"}
MODEL = 'model_name="demo"'
CASES: dict[str, Case] = {
    "DragomanNoReadyReplicas": Case(
        "12m",
        of_object("bad") | {"state": "ready"},
        "team/bad has no ready replica",
        {
            replicas("bad", "ready"): "0x20",
            replicas("bad", "desired"): "2x20",
            replicas("zero", "ready"): "0x20",
            replicas("zero", "desired"): "0x20",
            replicas("some", "ready"): "1x20",
            replicas("some", "desired"): "2x20",
            replicas("starting", "ready"): "0x8 1x12",
            replicas("starting", "desired"): "1x20",
        },
    ),
    "DragomanDegraded": Case(
        "6m",
        of_object("bad") | {"type": "Degraded", "status": "True", "reason": "OOMKilled"},
        "team/bad is degraded (OOMKilled)",
        {
            condition("bad", "Degraded", "True", "OOMKilled"): "1x9",
            condition("good", "Degraded", "False", "AsExpected"): "1x9",
            condition("good", "Available", "True", "Ready"): "1x9",
            condition("short", "Degraded", "True", "Evicted"): "1x2 stale",
        },
    ),
    "DragomanFailuresFast": Case(
        "65m", BAD, "10% of the requests of team/bad fail", failing("0+5x70", "0+90x70")
    ),
    "DragomanFailuresSlow": Case(
        "365m", BAD, "4% of the requests of team/bad fail", failing(f"0+2{HOURS}", f"0+96{HOURS}")
    ),
    "DragomanLatencyFast": Case(
        "65m", BAD, "20% of the requests of team/bad take longer than 5 s", slow(f"0+80{HOURS}")
    ),
    "DragomanLatencySlow": Case(
        "365m", BAD, "10% of the requests of team/bad take longer than 5 s", slow(f"0+90{HOURS}")
    ),
    "DragomanRouterErrors": Case(
        "25m",
        {},
        "routers fail 5% of the requests themselves",
        {
            requests("any", 200): "0+100x30",
            errors("", "glossaries_unavailable", 503): "0+3x30",
            "dragoman_router_internal_errors_total": "0+2x30",
            errors("", "malformed_request", 400): "0+50x30",
            errors("any", "no_replica", 503): "0+1x30",
        },
    ),
    "DragomanRequestsQueued": Case(
        "12m",
        BAD,
        "7 requests are queued for team/bad",
        {
            'dragoman_router_requests_queued{deployment="team/bad",pod="a"}': "0x1 7x20",
            'dragoman_router_requests_queued{deployment="team/bad",pod="b"}': "0x20",
            'dragoman_router_requests_queued{deployment="team/bursts",pod="a"}': "9x5 0x1 9x20",
            'dragoman_router_requests_queued{deployment="team/idle",pod="a"}': "0x20",
        },
    ),
    "DragomanRouterFileInvalid": Case(
        "7m",
        {"namespace": "team", "file": "certificates"},
        "routers in team cannot use their certificates",
        {
            pod("dragoman_router_config_last_reload_successful", "a", 'file="certificates"'): "1 0x9",
            pod("dragoman_router_config_last_reload_successful", "b", 'file="certificates"'): "1x10",
            pod("dragoman_router_config_last_reload_successful", "a", 'file="keys"'): "1x10",
        },
    ),
    "DragomanKvCacheFull": Case(
        "12m",
        {"namespace": "team", "pod": "bad"},
        "the KV cache of team/bad is full",
        {
            pod("vllm:kv_cache_usage_perc", "bad"): "0.97x20",
            pod("vllm:num_requests_waiting", "bad"): "3x20",
            pod("vllm:kv_cache_usage_perc", "full-and-enough"): "0.99x20",
            pod("vllm:num_requests_waiting", "full-and-enough"): "0x20",
            pod("vllm:kv_cache_usage_perc", "busy"): "0.9x20",
            pod("vllm:num_requests_waiting", "busy"): "9x20",
        },
    ),
    "DragomanEngineStalled": Case(
        "8m",
        {"namespace": "team", "pod": "bad"},
        "the engine of team/bad made no step for 1m 40s",
        {
            pod("dragoman_engine_stalled_seconds", "bad", MODEL): "0 40 100 0x9",
            pod("dragoman_engine_stalled_seconds", "slow", MODEL): "0 40 50 0x9",
        },
    ),
    "DragomanModelNotLoaded": Case(
        "1m",
        {"namespace": "team", "pod": "bad", "phase": "downloading"},
        "team/bad has not loaded its model for half an hour (downloading)",
        {
            pod("dragoman_phase", "bad", 'phase="downloading"'): "1x5",
            pod("dragoman_phase", "bad", 'phase="ready"'): "0x5",
            pod("dragoman_start_seconds", "bad"): "1900x5",
            pod("dragoman_phase", "new", 'phase="downloading"'): "1x5",
            pod("dragoman_start_seconds", "new"): "90x5",
            pod("dragoman_phase", "took-long", 'phase="downloading"'): "0x5",
            pod("dragoman_phase", "took-long", 'phase="ready"'): "1x5",
            pod("dragoman_start_seconds", "took-long"): "4000x5",
        },
    ),
    "DragomanQualityFindings": Case(
        "70m",
        {"namespace": "team", "model_name": "bad"},
        "bad in team has 10% findings by segment",
        {
            pod("dragoman_guard_findings_total", "a", 'model_name="bad"', 'guard="repetition"'): "0+6x90",
            pod("dragoman_guard_findings_total", "a", 'model_name="bad"', 'guard="numbers"'): "0+4x90",
            pod("dragoman_segments_total", "a", 'model_name="bad"'): "0+100x90",
            pod("dragoman_guard_findings_total", "b", 'model_name="good"', 'guard="numbers"'): "0+1x90",
            pod("dragoman_segments_total", "b", 'model_name="good"'): "0+100x90",
        },
    ),
    "DragomanScalingThrashing": Case(
        "60m",
        of_object("bad"),
        "team/bad is scaled up and down repeatedly",
        {
            changes("bad", "up"): "0+1x5 5x9 5+1x5 10x60",
            changes("bad", "down"): "0+1x5 5x9 5+1x5 10x60",
            changes("rising", "up"): "0+1x60",
            changes("rising", "down"): "0x30 1x30",
        },
    ),
    "DragomanMetricsMissing": Case(
        "6m",
        of_object("bad"),
        "team/bad is not scaled: its metrics are missing",
        {
            'dragoman_scaling_metrics_available{deployment_namespace="team",deployment="bad"}': "0x9",
            'dragoman_scaling_metrics_available{deployment_namespace="team",deployment="good"}': "1x9",
        },
    ),
    "DragomanOperatorWithoutLeader": Case(
        "5m",
        {"namespace": "bad"},
        "no operator holds the Lease",
        {
            'dragoman_operator_leader{namespace="bad",pod="a"}': "1 0x9",
            'dragoman_operator_leader{namespace="bad",pod="b"}': "0x10",
            'dragoman_operator_leader{namespace="good",pod="a"}': "1x10",
            'dragoman_operator_leader{namespace="good",pod="b"}': "0x10",
        },
    ),
}
ALSO_RAISED = {"DragomanFailuresFast": "DragomanFailuresSlow", "DragomanLatencyFast": "DragomanLatencySlow"}
"""What raises the first raises the second, whose windows have no older samples."""


def promtool(*arguments: str) -> None:
    done = subprocess.run(["promtool", *arguments], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


def raised(name: str, case: Case) -> list[dict[str, Any]]:
    """An alert as promtool expects it."""
    rule = ALERTS[name]
    annotations = rule["annotations"] | {"summary": case.summary}
    return [{"exp_labels": case.labels | rule["labels"], "exp_annotations": annotations}]


def run_case(tmp_path: Path, name: str, case: Case, expected: dict[str, list[dict[str, Any]]]) -> None:
    inputs = [{"series": series, "values": values} for series, values in case.series.items()]
    checks = [
        {"eval_time": case.at, "alertname": alert, "exp_alerts": alerts} for alert, alerts in expected.items()
    ]
    test = {"interval": "1m", "input_series": inputs, "alert_rule_test": checks}
    file = tmp_path / "test.yaml"
    file.write_text(
        yaml.safe_dump({"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": [test]})
    )
    promtool("test", "rules", str(file))


@needs_promtool
def test_promtool_accepts_the_rules() -> None:
    promtool("check", "rules", str(RULES))


def test_each_alert_has_a_case() -> None:
    assert set(CASES) == set(ALERTS)


@needs_promtool
@pytest.mark.parametrize("name", CASES)
def test_an_alert_is_raised_by_its_series_alone(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    silent = set(ALERTS) - {name, ALSO_RAISED.get(name), "DragomanOperatorWithoutLeader"}
    run_case(tmp_path, name, case, {name: raised(name, case)} | {other: [] for other in silent})


@needs_promtool
def test_no_operator_that_is_scraped_is_no_leader(tmp_path: Path) -> None:
    case = CASES["DragomanOperatorWithoutLeader"]._replace(series={"up": "1x10"}, labels={})
    name = "DragomanOperatorWithoutLeader"
    run_case(tmp_path, name, case, {name: raised(name, case)})


@pytest.mark.parametrize("name", ALERTS)
def test_an_alert_has_what_a_responder_needs(name: str) -> None:
    rule = ALERTS[name]
    assert rule["labels"]["severity"] in ("critical", "warning")
    assert set(rule["annotations"]) == {"summary", "description", "runbook_url"}
    assert rule["annotations"]["description"].endswith(".")
    assert rule["annotations"]["runbook_url"] == f"docs/how-to/runbooks.md#{name.lower()}"


def test_each_alert_has_its_section_and_the_reverse() -> None:
    sections = re.split(r"^## ", RUNBOOKS.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    assert [section.partition("\n")[0] for section in sections] == list(ALERTS)
    for section in sections:
        parts = [part in section for part in ("**It means**", "**Look**", "**Do**")]
        assert all(parts), section
