import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.http_server import Handler, serving

from dragoman import status
from dragoman.exits import DONE, FAILED, UNREACHABLE, USAGE


class Api(Handler):
    """An API server with the objects of `server.objects`; 403 for all namespaces where `server.bounded`."""

    def do_GET(self) -> None:
        self.server.paths.append(self.path.partition("?")[0])
        namespaced = "/namespaces/" in self.path
        if self.server.bounded and not namespaced:
            self.respond(403, {"kind": "Status", "message": "not in all namespaces", "reason": "Forbidden"})
        elif self.server.objects is None:
            self.respond(404, {"kind": "Status", "message": "no such kind", "reason": "NotFound"})
        else:
            self.respond(200, {"metadata": {"resourceVersion": "1"}, "items": self.server.objects})


def kubeconfig(directory: Path, port: int) -> str:
    file = directory / "kubeconfig"
    cluster = {"name": "c", "cluster": {"server": f"http://127.0.0.1:{port}"}}
    context = {"name": "x", "context": {"cluster": "c", "user": "u"}}
    fields = {"current-context": "x", "clusters": [cluster], "contexts": [context]}
    file.write_text(
        json.dumps({"apiVersion": "v1", "kind": "Config", "users": [{"name": "u", "user": {}}], **fields})
    )
    return str(file)


@pytest.fixture
def api() -> Iterator[Any]:
    with serving(Api, objects=[], bounded=False, paths=[]) as server:
        yield server


def run(api: Any, directory: Path, *arguments: str) -> int:
    return status.main(["--kubeconfig", kubeconfig(directory, api.server_port), *arguments])


def named(name: str, namespace: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": namespace}, "spec": {"replicas": 2}}


def test_the_fleet_is_one_table(api: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    api.objects = [named("french", "b"), named("german", "a")]
    assert run(api, tmp_path) == DONE
    title, first, second = (line.split() for line in capsys.readouterr().out.splitlines())
    assert title[:3] == ["NAMESPACE", "NAME", "READY"]
    assert first[:3] == ["a", "german", "0/2"]
    assert second[:3] == ["b", "french", "0/2"]


def test_a_cluster_without_objects_says_so(
    api: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(api, tmp_path) == DONE
    assert capsys.readouterr().out.startswith("no TranslationDeployments")


def test_a_name_is_found_in_any_namespace(
    api: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    api.objects = [named("french", "b")]
    assert run(api, tmp_path, "french") == DONE
    assert capsys.readouterr().out.startswith("b/french: 0 of 2 replicas are ready\n")


def test_a_name_of_several_objects_is_not_guessed(
    api: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    api.objects = [named("french", "b"), named("french", "a")]
    assert run(api, tmp_path, "french") == FAILED
    assert "in several namespaces: a, b" in capsys.readouterr().err
    assert run(api, tmp_path, "a/french") == DONE


def test_a_name_that_is_not_there(api: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(api, tmp_path, "french") == FAILED
    assert "no TranslationDeployment french" in capsys.readouterr().err


def test_rights_in_one_namespace_suffice(
    api: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    api.bounded = True
    assert run(api, tmp_path) == FAILED
    assert "name it with --namespace" in capsys.readouterr().err
    assert run(api, tmp_path, "--namespace", "team") == DONE
    assert api.paths[-1] == "/apis/dragoman.io/v1alpha1/namespaces/team/translationdeployments"


def test_a_cluster_without_dragoman(api: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    api.objects = None
    assert run(api, tmp_path) == FAILED
    assert "Dragoman is not installed in this cluster" in capsys.readouterr().err


def test_a_cluster_that_does_not_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert status.main(["--kubeconfig", kubeconfig(tmp_path, 1)]) == UNREACHABLE
    assert status.main(["--kubeconfig", "/nowhere"]) == USAGE
    assert "read /nowhere" in capsys.readouterr().err


def test_kubectls_plugin_is_the_same_command(
    api: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    api.objects = [named("french", "b")]
    arguments = ["--kubeconfig", kubeconfig(tmp_path, api.server_port), "nothing"]
    monkeypatch.setattr("sys.argv", ["kubectl-translations", *arguments])
    assert status.plugin() == FAILED
    assert capsys.readouterr().err.startswith("kubectl translations: ")


def test_watching_in_a_pipe_prints_changes_alone(
    api: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    api.objects = [named("french", "b")]
    waits = 0

    async def next_look(_: float) -> None:
        nonlocal waits
        waits += 1
        if waits == 2:
            api.objects = [named("german", "b")]
        if waits == 4:
            raise KeyboardInterrupt

    monkeypatch.setattr("dragoman.status.asyncio.sleep", next_look)
    assert run(api, tmp_path, "--watch") == DONE
    out = capsys.readouterr().out
    assert (out.count("NAMESPACE"), out.count("french"), out.count("german")) == (2, 1, 1)


def test_watching_in_a_pipe_goes_on_after_errors_and_prints_each_once(
    api: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    states = iter([None, None, [named("german", "b")], None])
    api.objects = [named("french", "b")]

    async def next_look(_: float) -> None:
        try:
            api.objects = next(states)
        except StopIteration:
            raise KeyboardInterrupt from None

    monkeypatch.setattr("dragoman.status.asyncio.sleep", next_look)
    assert run(api, tmp_path, "--watch") == DONE
    out, err = capsys.readouterr()
    assert (out.count("french"), out.count("german")) == (1, 1)
    assert err.count("no such kind") == 2
