"""Strings of a spec reach the engine as written, though a kubelet expands ``$(NAME)`` and ``$$`` in a container."""

from typing import Any

import pytest
from tests.support.deployments import DEFAULTS, make_td

from dragoman_devcluster.node.command import expand
from dragoman_operator.resources.pod import command_line, pod_template

STRINGS = [
    "$$",
    "$(HOME)",
    "$$(HOME)",
    "$$$",
    "a$",
    "$(",
    "$(no name)",
    "100 $ or $HOME",
    "$é",
    "$(HOME",
    "\\$\\$x",
]


def started(template: dict[str, Any], kind: str) -> tuple[list[str], dict[str, str]]:
    """Arguments and variables of the container as a kubelet starts it."""
    (container,) = template["spec"][kind]
    variables: dict[str, str] = {}
    for variable in container["env"]:
        if "value" in variable:
            variables[variable["name"]] = expand(variable["value"], variables)
    return [expand(word, variables) for word in container["args"]], variables


@pytest.mark.parametrize("text", STRINGS)
@pytest.mark.parametrize("uri", ["pvc://claim/{}", "file:///models/{}", "s3://bucket/{}"])
def test_every_string_arrives_as_written(text: str, uri: str) -> None:
    td = make_td(
        model={
            "uri": uri.format("$$" if " " in text or "é" in text else text),
            "promptFamily": "custom",
            "promptTemplate": text + "{text} {target}" + text,
        },
        engine={"extraArgs": {"served": text, "nested": {text: [text]}}},
        podTemplate={"env": [{"name": "DRAGOMAN_X", "value": text}]},
    )
    template = pod_template(td, DEFAULTS.cpu)
    arguments, variables = started(template, "containers")
    assert arguments == command_line(td)
    assert arguments[arguments.index("--prompt-template") + 1] == f"{text}{{text}} {{target}}{text}"
    assert variables["DRAGOMAN_X"] == text
    if uri.startswith("s3"):
        arguments, variables = started(template, "initContainers")
        assert arguments[arguments.index("--model") + 1] == td.spec.model.uri
        assert variables["DRAGOMAN_X"] == text
