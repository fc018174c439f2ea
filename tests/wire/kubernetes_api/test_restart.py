"""The embedded API's own death: what is stored and what is watched goes on where it stopped."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from dragoman_devcluster.ports import free_port

from .conftest import administrator, until

CONFIG = "/api/v1/namespaces/default/configmaps"


@contextmanager
def api(directory: Path, port: int) -> Iterator[httpx.Client]:
    """The API in a process that is killed without warning in the end."""
    command = [sys.executable, "-m", "dragoman_devcluster.api", "--dir", str(directory), "--port", str(port)]
    process = subprocess.Popen(command)
    try:

        def ready() -> bool:
            try:
                with administrator(directory / "kubeconfig") as http:
                    return http.get("/readyz").text == "ok"
            except (httpx.HTTPError, FileNotFoundError):
                return False

        until(ready)
        with administrator(directory / "kubeconfig") as http:
            yield http
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()


def test_a_watch_resumes_after_the_api_was_killed(tmp_path: Path) -> None:
    port = free_port()
    with api(tmp_path, port) as http:
        seen = http.get(CONFIG).json()["metadata"]["resourceVersion"]
        made = http.post(CONFIG, json={"metadata": {"name": "a"}, "data": {"k": "1"}}).json()
        http.post(CONFIG, json={"metadata": {"name": "b"}})
        http.delete(f"{CONFIG}/b")
    with api(tmp_path, port) as http:
        assert http.get(f"{CONFIG}/a").json() == made
        patched = http.patch(
            f"{CONFIG}/a", json={"data": {"k": "2"}}, headers={"content-type": "application/merge-patch+json"}
        ).json()
        assert int(patched["metadata"]["resourceVersion"]) > int(made["metadata"]["resourceVersion"])
        query = {"watch": "1", "timeoutSeconds": "1", "resourceVersion": seen}
        lines = [json.loads(line) for line in http.get(CONFIG, params=query).text.splitlines()]
        assert [(line["type"], line["object"]["metadata"]["name"]) for line in lines] == [
            ("ADDED", "a"), ("ADDED", "b"), ("DELETED", "b"), ("MODIFIED", "a"),
        ]  # fmt: skip


def test_what_others_may_not_read_is_theirs_alone(tmp_path: Path) -> None:
    with api(tmp_path, free_port()):
        assert os.stat(tmp_path / "api").st_mode & 0o077 == 0
        assert os.stat(tmp_path / "kubeconfig").st_mode & 0o077 == 0
