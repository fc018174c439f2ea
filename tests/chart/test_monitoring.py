"""What the Prometheus operator gets of the chart."""

KINDS = {"PodMonitor"}


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
