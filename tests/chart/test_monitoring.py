"""What the Prometheus operator gets of the chart."""

import json
import re
import shutil
import subprocess

import pytest
import yaml

KINDS = {"PodMonitor", "PrometheusRule", "ConfigMap"}


def test_nothing_needs_the_prometheus_operator_by_default(render):
    assert not KINDS & render(router={"enabled": True}).kinds


def test_podmonitors_select_the_pods_and_ports_of_all_parts(render):
    rendered = render(router={"enabled": True}, monitoring={"enabled": True, "labels": {"release": "mine"}})
    deployments = {item["metadata"]["name"]: item["spec"]["template"] for item in rendered.all("Deployment")}
    for name, template in deployments.items():
        monitor = rendered.named("PodMonitor", name)
        assert monitor["metadata"]["labels"]["release"] == "mine"
        assert monitor["spec"]["selector"]["matchLabels"].items() <= template["metadata"]["labels"].items()
        (container,) = template["spec"]["containers"]
        ports = {port["name"] for port in container["ports"]}
        assert {end["port"] for end in monitor["spec"]["podMetricsEndpoints"]} <= ports
    assert {item["metadata"]["name"] for item in rendered.all("PodMonitor")} == {
        *deployments,
        "release-dragoman-engines",
    }


def test_engine_pods_are_scraped_where_objects_are_watched(render):
    def selected(**values):
        rendered = render(monitoring={"enabled": True}, **values)
        return rendered.named("PodMonitor", "release-dragoman-engines")["spec"]["namespaceSelector"]

    assert selected() == {"any": True}
    assert selected(watchNamespaces=["team-a"]) == {"matchNames": ["team-a"]}


def test_operator_is_scraped_as_often_as_engines_where_keda_reads_its_series(render):
    def interval(**values):
        rendered = render(monitoring={"enabled": True, "interval": "40s", "engineInterval": "4s"}, **values)
        (end,) = rendered.named("PodMonitor", "release-dragoman")["spec"]["podMetricsEndpoints"]
        return end["interval"]

    assert interval() == "40s"
    assert interval(keda={"enabled": True}) == "4s"


def test_the_cluster_gets_the_rules_that_promtool_tests(render, chart):
    file = yaml.safe_load((chart / "files/monitoring/rules.yaml").read_text())
    assert render(monitoring={"enabled": True}).one("PrometheusRule")["spec"] == file


def test_alerts_link_to_the_runbooks_where_they_are_served(render):
    rendered = render(monitoring={"enabled": True, "runbooks": "https://wiki.example/runbooks"})
    rules = [rule for group in rendered.one("PrometheusRule")["spec"]["groups"] for rule in group["rules"]]
    links = [rule["annotations"]["runbook_url"] for rule in rules if "alert" in rule]
    assert links
    assert all(link.startswith("https://wiki.example/runbooks#dragoman") for link in links)


def dashboards(render):
    """The dashboards, as Grafana reads them."""
    configs = render(monitoring={"enabled": True}).all("ConfigMap")
    return [json.loads(text) for config in configs for text in config["data"].values()]


def panels(render, kind):
    """The panels of a type."""
    found = [panel for board in dashboards(render) for panel in board["panels"] if panel["type"] == kind]
    assert found
    return found


def test_dashboards_are_json_in_configmaps_that_grafanas_sidecar_loads(render):
    configs = render(monitoring={"enabled": True}).all("ConfigMap")
    assert all(config["metadata"]["labels"]["grafana_dashboard"] == "1" for config in configs)
    boards = dashboards(render)
    assert {board["uid"] for board in boards} == {"dragoman-fleet", "dragoman-deployment", "dragoman-cost"}
    for board in boards:
        panels = board["panels"]
        assert len({panel["id"] for panel in panels}) == len(panels)
        taken = [
            (panel["gridPos"]["x"] + x, panel["gridPos"]["y"] + y)
            for panel in panels
            for x in range(panel["gridPos"]["w"])
            for y in range(panel["gridPos"]["h"])
        ]
        assert len(set(taken)) == len(taken), "panels overlap"
        for panel in panels:
            references = [target["refId"] for target in panel.get("targets", ())]
            assert len(set(references)) == len(references)
            assert panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24, "wider than a dashboard"


def test_tables_have_a_titled_column_for_each_label_and_not_the_time(render):
    for panel in panels(render, "table"):
        (target,), (organize,) = panel["targets"], panel["transformations"]
        (labels,) = re.findall(r"^(?:.*\n?\* )?(?:sum|max) by \(([^)]*)\)", target["expr"])
        titles = organize["options"]["renameByName"]
        assert set(titles) - {"Value"} == set(labels.split(", ")), panel["title"]
        hidden = {name for name, is_hidden in organize["options"]["excludeByName"].items() if is_hidden}
        assert hidden == {"Time", "Value"} - set(titles)
        assert panel["options"]["sortBy"][0]["displayName"] in titles.values()


def test_stats_show_the_present_and_not_series_that_have_ended(render):
    assert all(target["instant"] for panel in panels(render, "stat") for target in panel["targets"])


def test_axes_on_the_right_are_those_of_a_legend(render):
    for panel in panels(render, "timeseries"):
        legends = [target["legendFormat"] for target in panel["targets"]]
        for override in panel["fieldConfig"]["overrides"]:
            pattern = override["matcher"]["options"]
            if not pattern.startswith("/"):
                assert any(re.fullmatch(pattern, legend) for legend in legends), panel["title"]


@pytest.mark.skipif(
    shutil.which("promtool") is None, reason="no promtool on PATH (Debian: apt install prometheus)"
)
def test_the_documented_query_is_the_cost_of_a_million_characters(root, tmp_path):
    """An hour of 3 GPUs at 2 is 6; 1.2 million characters in it make 5 for a million."""
    query = (root / "docs/how-to/install.md").read_text().partition("\n```\n1e6")[2].partition("```")[0]
    series = {
        'dragoman_deployment_gpus{deployment_namespace="team",deployment="demo",pod="operator"}': "3x59",
        'dragoman_deployment_gpus{deployment_namespace="team",deployment="idle",pod="operator"}': "8x59",
        'dragoman_router_characters_total{deployment="team/demo",target="de",key="a",pod="x"}': "0+15000x60",
        'dragoman_router_characters_total{deployment="team/demo",target="fr",key="b",pod="y"}': "0+5000x60",
    }
    expected = [{"labels": '{deployment="team/demo"}', "value": 5}]
    test = {
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "promql_expr_test": [{"expr": f"round(1e6{query})", "eval_time": "61m", "exp_samples": expected}],
    }
    file = tmp_path / "test.yaml"
    file.write_text(yaml.safe_dump({"tests": [test]}))
    done = subprocess.run(
        ["promtool", "test", "rules", str(file)], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stdout + done.stderr
