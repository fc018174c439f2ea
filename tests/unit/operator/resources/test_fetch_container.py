"""The init container that downloads the model: when there is one, and what it is given."""

import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic_settings import BaseSettings
from tests.support.deployments import make_observed, make_td

from dragoman_operator.api.v1alpha1 import TranslationDeployment
from dragoman_operator.observed.snapshot import TEMPLATE_HASH
from dragoman_operator.resources.pod import deployment, pod_template, source_digest
from dragoman_operator.rollout import SURGE, Version, version_to_keep
from dragoman_system.command_line import read_command_line

TOKEN = {"name": "hf", "key": "token"}


def spec_of(td: TranslationDeployment) -> dict[str, Any]:
    spec: dict[str, Any] = pod_template(td, "engine:1")["spec"]
    return spec


def model(uri: str, **fields: Any) -> dict[str, Any]:
    return {"uri": uri, "promptFamily": "chatml-generic", **fields}


def names(container: dict[str, Any]) -> set[str]:
    return {variable["name"] for variable in container["env"]}


def option(container: dict[str, Any], name: str) -> str | None:
    arguments: list[str] = container["args"]
    return arguments[arguments.index(name) + 1] if name in arguments else None


@pytest.mark.parametrize("uri", ["hf://org/name", "s3://bucket/team/name"])
def test_models_of_stores_are_downloaded_before_the_engine_starts(uri: str) -> None:
    td = make_td(model=model(uri, tokenSecretRef=TOKEN, trustRemoteCode=True))
    spec = spec_of(td)
    (fetch,), (engine,) = spec["initContainers"], spec["containers"]
    assert fetch["args"][:3] == ["fetch", "--model", uri]
    assert option(fetch, "--to") == option(engine, "--model")
    assert option(fetch, "--trust-remote-code") == "true"
    assert option(engine, "--revision") is None
    assert names(fetch) - names(engine) == {"HF_TOKEN"}
    assert fetch["securityContext"] == engine["securityContext"]
    assert {mount["name"] for mount in fetch["volumeMounts"]} == {"tmp", "cache"}


@pytest.mark.parametrize("uri", ["pvc://claim/name", "oci://registry/name:1", "file:///opt/model"])
def test_other_models_are_there_already(uri: str) -> None:
    assert "initContainers" not in spec_of(make_td(model=model(uri)))


def test_vllm_itself_reads_formats_of_its_own() -> None:
    td = make_td(
        model=model("s3://bucket/name", tokenSecretRef=TOKEN),
        engine={"device": "cpu", "extraArgs": {"load-format": "runai_streamer"}},
    )
    spec = spec_of(td)
    assert "initContainers" not in spec
    (engine,) = spec["containers"]
    assert option(engine, "--model") == "s3://bucket/name"
    assert "HF_TOKEN" in names(engine)


def test_each_uri_and_revision_has_a_link_of_its_own() -> None:
    models = [
        model("hf://org/name"),
        model("hf://org/name", revision="v2"),
        model("hf://org/na-me"),
        model("s3://org/name"),
    ]
    links = [option(spec_of(make_td(model=each))["containers"][0], "--model") for each in models]
    assert len(set(links)) == 4
    assert all(link and link.startswith("/var/cache/dragoman/models/org-na") for link in links)


def test_the_download_adds_nothing_to_what_the_pod_requests() -> None:
    limits = {"nvidia.com/gpu": 1, "cpu": "4", "memory": "16Gi"}
    td = make_td(
        model=model("hf://org/name"),
        engine={"device": "cuda"},
        resources={"limits": limits, "requests": limits},
    )
    spec = spec_of(td)
    resources = spec["initContainers"][0]["resources"]
    assert resources["limits"] == resources["requests"] == {"cpu": "4", "memory": "16Gi"}
    assert spec["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == "1"


def test_the_deadline_of_a_rollout_allows_for_the_download() -> None:
    def deadline(uri: str) -> int:
        td = make_td(model=model(uri), rollout={"startTimeout": "10m"})
        made: int = deployment(td, 1, SURGE, {})["spec"]["progressDeadlineSeconds"]
        return made

    assert (deadline("hf://org/name"), deadline("file:///m")) == (1500, 900)


def test_an_operator_that_adds_it_replaces_no_running_pods() -> None:
    td = make_td(model=model("hf://org/name"))
    template = pod_template(td, "engine:1")
    former = copy.deepcopy(template)
    del former["spec"]["initContainers"]
    labels = {TEMPLATE_HASH: "old"}
    former["metadata"]["labels"] = {**former["metadata"]["labels"], **labels}
    replica_set = {"metadata": {"labels": labels}, "spec": {"template": former}}
    version = Version(template, source_digest(td, "engine:1"))
    status = {"rollout": {"lastReadyTemplateHash": "old", "lastReadySource": version.source}}
    observed = replace(make_observed(td), status=status, replica_sets=(replica_set,))
    kept = version_to_keep(version, observed)
    assert kept is not None
    assert "initContainers" not in kept.template["spec"]
    changed = make_td(model=model("hf://org/name", revision="v2"))
    version = Version(pod_template(changed, "engine:1"), source_digest(changed, "engine:1"))
    assert version_to_keep(version, observed) is None


def test_the_command_reads_every_argument() -> None:
    fetch = pytest.importorskip("dragoman_service.fetch.__main__")
    (container,) = spec_of(make_td(model=model("hf://org/name", revision="v2", trustRemoteCode=True)))[
        "initContainers"
    ]
    _, *flags = container["args"]
    settings: type[BaseSettings] = fetch.Settings
    read = read_command_line(settings, flags)
    assert {flag.removeprefix("--").replace("-", "_") for flag in flags[::2]} == read.model_fields_set - {
        "host"
    }
    assert read.model_dump()["cache_dir"] == Path("/var/cache/dragoman")
