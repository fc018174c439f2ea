"""What the Prometheus operator gets of the chart."""

import yaml

KINDS = {"PodMonitor", "PrometheusRule"}


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


def test_the_cluster_gets_the_rules_that_promtool_tests(render, chart):
    file = yaml.safe_load((chart / "files/monitoring/rules.yaml").read_text())
    assert render(monitoring={"enabled": True}).one("PrometheusRule")["spec"] == file


def test_alerts_link_to_the_runbooks_where_they_are_served(render):
    rendered = render(monitoring={"enabled": True, "runbooks": "https://wiki.example/runbooks"})
    rules = [rule for group in rendered.one("PrometheusRule")["spec"]["groups"] for rule in group["rules"]]
    links = [rule["annotations"]["runbook_url"] for rule in rules if "alert" in rule]
    assert links
    assert all(link.startswith("https://wiki.example/runbooks#dragoman") for link in links)
