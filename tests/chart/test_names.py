"""Names that YAML would read as something else than a string, and names of releases of every length and alphabet."""

import re
from typing import Any

import pytest

NAMES = ["2024", "on", "1" * 53]


def named(name: str, *, watched: bool, own_account: bool) -> dict[str, Any]:
    """Values that have the name everywhere."""
    return {
        "watchNamespaces": [name] if watched else [],
        "replicas": 2,
        "imagePullSecrets": [{"name": name}],
        "commonLabels": {"common": name},
        "podLabels": {"pod": name},
        "podAnnotations": {"pod": name},
        "priorityClassName": name,
        "serviceAccount": {"create": own_account, "name": name, "annotations": {"account": name}},
        "prometheus": {"tokenSecret": {"name": name, "key": name}},
        "monitoring": {"enabled": True, "labels": {"monitor": name}, "runbooks": name},
        "networkPolicy": {"restrictEgress": True},
        "nodeSelector": {"node": name},
        "router": {
            "enabled": True,
            "keysSecret": name,
            "tlsSecret": name,
            "clientsFrom": [{"podSelector": {"matchLabels": {"client": name}}}],
            "service": {"annotations": {"service": name}},
            "ingress": {"enabled": True, "className": name, "hosts": [name], "tlsSecret": name},
            "httpRoute": {"enabled": True, "parentRefs": [{"name": name}], "hostnames": [name]},
            "state": {"existingSecret": name},
            "podLabels": {"pod": name},
        },
    }


def renamed(found: Any, old: str, new: str) -> Any:
    """The same with another name in all texts."""
    if isinstance(found, dict):
        return {key: renamed(value, old, new) for key, value in found.items()}
    if isinstance(found, list):
        return [renamed(each, old, new) for each in found]
    # The name of the pod of `helm test` has a digest of its content.
    return re.sub("-test-[0-9a-f]{8}$", "-test", found.replace(old, new)) if isinstance(found, str) else found


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("others", [True, False], ids=["watched", "all-namespaces"])
def test_names_like_numbers_or_booleans_remain_strings(render_as: Any, name: str, others: bool) -> None:
    word = "q" + "x" * (len(name) - 1)
    expected, found = (
        render_as(each, **named(each, watched=others, own_account=others)) for each in (word, name)
    )
    assert [renamed(each, word, name) for each in found.objects] == [
        renamed(each, word, name) for each in expected.objects
    ]


LABEL_1035 = r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?"
"""Of Services: Kubernetes 1.34 is the first that takes a first digit (KEP 5311)."""
SUBDOMAIN = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
LABEL_VALUE = r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?"

RELEASES = [
    *("x" * length for length in (1, 36, 37, 40, 41, 42, 43, 44, 45, 50, 51, 52, 53)),
    *("a-" * 20 + "b" * length for length in (1, 2, 12, 13)),
    *(
        "7",
        "2024",
        "1" * 53,
        "2-dragoman",
        "a.b",
        "a.b.dragoman",
        "7.x",
        "x" * 40 + ".y",
        "dragoman-" + "x" * 44,
    ),
]
"""Names that Helm takes: at most 53 characters."""


def named_objects(render_release: Any, release: str, **values: Any) -> set[tuple[str, str]]:
    """Kind and name of all objects, which follow the rules of Kubernetes."""
    rendered = render_release(
        release,
        replicas=2,
        monitoring={"enabled": True},
        router={
            "enabled": True,
            "service": {"type": "LoadBalancer"},
            "ingress": {"enabled": True},
            "httpRoute": {"enabled": True, "parentRefs": [{"name": "public"}]},
        },
        **values,
    )
    for item in rendered.objects:
        name = item["metadata"]["name"]
        pattern = LABEL_1035 if item["kind"] == "Service" else SUBDOMAIN
        assert re.fullmatch(pattern, name), (item["kind"], name)
        assert len(name) <= (63 if item["kind"] in ("Service", "Deployment") else 253), name
        for value in item["metadata"]["labels"].values():
            assert re.fullmatch(LABEL_VALUE, value), value
    return {(item["kind"], item["metadata"]["name"]) for item in rendered.objects}


@pytest.mark.parametrize("release", RELEASES)
def test_names_of_a_release_are_those_of_kubernetes(render_release: Any, release: str) -> None:
    found = named_objects(render_release, release)
    assert len(found) == len(named_objects(render_release, "release"))


@pytest.mark.parametrize(
    "pair", [("x" * 52 + "1", "x" * 52 + "2"), ("a.b", "a-b"), ("7", "r7"), ("x" * 42, "x" * 43)], ids=str
)
def test_two_releases_have_no_object_in_common(render_release: Any, pair: tuple[str, str]) -> None:
    first, second = (named_objects(render_release, release, crds={"install": False}) for release in pair)
    assert first & second == set()


@pytest.mark.parametrize(
    ("values", "name"),
    [
        ({}, "release-dragoman"),
        ({"nameOverride": "mt"}, "release-mt"),
        ({"nameOverride": "release"}, "release"),
        ({"fullnameOverride": "translator"}, "translator"),
        ({"fullnameOverride": "translator", "nameOverride": "mt"}, "translator"),
    ],
    ids=str,
)
def test_names_can_be_replaced_and_labels_stay(
    render: Any, render_release: Any, values: dict[str, Any], name: str
) -> None:
    assert ("Deployment", f"{name}-router") in named_objects(render_release, "release", **values)
    before, after = (render(**each).one("Deployment") for each in ({}, values))
    assert after["metadata"]["name"] == name
    assert f"--lease-name={name}" in after["spec"]["template"]["spec"]["containers"][0]["args"]
    assert after["spec"]["selector"] == before["spec"]["selector"]
