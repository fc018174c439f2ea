"""`dragoman images`: what an installation needs."""

import io
from pathlib import Path
from typing import Any

import pytest

from dragoman_operator.inventory import inventory, main

OPERATOR = {
    "kind": "Deployment",
    "spec": {
        "template": {
            "spec": {
                "containers": [
                    {
                        "image": "r.example/operator@sha256:0",
                        "args": ["operator", "--cpu-image=r.example/cpu:2", "--cuda-image=r.example/cuda:2"],
                    }
                ]
            }
        }
    },
}
TEST = {"kind": "Pod", "spec": {"initContainers": [{"image": "a"}], "containers": [{"image": "b"}]}}


def td(uri: str, device: str = "cpu", **fields: Any) -> dict[str, Any]:
    revision = {"revision": fields.pop("revision")} if "revision" in fields else {}
    resources = {"resources": {"limits": {"nvidia.com/gpu": 1}}} if device == "cuda" else {}
    return {
        "kind": "TranslationDeployment",
        "metadata": {"name": "demo"},
        "spec": {
            "model": {"uri": uri, "promptFamily": "chatml-generic", **revision},
            "engine": {"device": device},
            **resources,
            **fields,
        },
    }


def test_a_chart_alone_has_both_images_of_engines() -> None:
    assert inventory([OPERATOR, TEST, {"kind": "Service", "spec": {}}]) == [
        "image a",
        "image b",
        "image r.example/cpu:2",
        "image r.example/cuda:2",
        "image r.example/operator@sha256:0",
    ]


def test_objects_name_their_images_and_models() -> None:
    objects = [
        td("hf://org/name", "cuda", revision="abc"),
        td("oci://r.example/model:1", image="r.example/mine:1"),
        td("s3://bucket/name", image="r.example/mine:1"),
        td("file:///opt/m", image="r.example/mine:1"),
    ]
    assert inventory([OPERATOR, *objects]) == [
        "image r.example/cuda:2",
        "image r.example/mine:1",
        "image r.example/model:1",
        "image r.example/operator@sha256:0",
        "model file:///opt/m",
        "model hf://org/name abc",
        "model s3://bucket/name",
    ]


def test_files_and_standard_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "object.yaml"
    file.write_text(
        "kind: TranslationDeployment\nmetadata: {name: a}\nspec:\n"
        "  model: {uri: hf://a/b, promptFamily: chatml-generic}\n  engine: {device: cpu}\n"
    )
    monkeypatch.setattr("sys.stdin", io.StringIO("kind: Pod\nspec: {containers: [{image: a}]}\n---\n"))
    assert main(["-", str(file)]) == 0
    assert capsys.readouterr().out == "image a\nimage dragoman-engine:0.1.0-cpu\nmodel hf://a/b\n"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("kind: TranslationDeployment\nmetadata: {name: a}\nspec: {model: {uri: x}}\n", "spec.model"),
        ("a: [", "while parsing"),
    ],
)
def test_a_file_that_cannot_be_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, sentence: str
) -> None:
    file = tmp_path / "object.yaml"
    file.write_text(text)
    assert main([str(file)]) == 1
    assert sentence in capsys.readouterr().err
    assert main([str(tmp_path / "none.yaml")]) == 1
