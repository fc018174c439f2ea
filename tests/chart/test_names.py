"""Names that YAML would read as something else than a string."""

from typing import Any

import pytest

NAMES = ["2024", "on", "1" * 53]
"""The longest leaves no room for the chart's name in the names of objects."""


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
    return found.replace(old, new) if isinstance(found, str) else found


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("others", [True, False], ids=["watched", "all-namespaces"])
def test_names_like_numbers_or_booleans_remain_strings(render_as: Any, name: str, others: bool) -> None:
    word = "q" + "x" * (len(name) - 1)
    expected, found = (
        render_as(each, **named(each, watched=others, own_account=others)) for each in (word, name)
    )
    assert found.objects == tuple(renamed(each, word, name) for each in expected.objects)
