"""What a container becomes on this machine: command line, variables, paths, back-off, probes, last words."""

import sys
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_devcluster.errors import MissingReferenceError, PodRefusedError, StartFailedError
from dragoman_devcluster.node.command import PathMap, command_line, expand
from dragoman_devcluster.node.environment import read, variables_of
from dragoman_devcluster.node.launch import inherited
from dragoman_devcluster.node.pod_status import should_restart, termination_message
from dragoman_devcluster.node.probes import Target, attempt, results
from dragoman_devcluster.options import Backoff
from dragoman_kube.kinds import CONFIG_MAP, SECRET
from dragoman_kube.objects import Key

PATHS = PathMap(
    mounts={"/mnt/model": Path("/here/model"), "/mnt": Path("/here/mnt"), "/tmp": Path("/here/tmp")},
    files={"/dev/termination-log": Path("/here/why")},
    checkout=Path("/home/me/dragoman"),
)

POD = {
    "metadata": {"name": "web-1", "namespace": "default", "uid": "u", "labels": {"app": "web"}},
    "spec": {"nodeName": "local"},
    "status": {"podIP": "127.64.0.1", "hostIP": "127.0.0.1"},
}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("/mnt/model", "/here/model"),
        ("/mnt/model/weights", "/here/model/weights"),
        ("/mnt/models", "/here/mnt/models"),
        ("/mntx", "/mntx"),
        ("file:///mnt/model/x", "file:///here/model/x"),
        ("/dev/termination-log", "/here/why"),
        ("/dev/termination-log/x", "/dev/termination-log/x"),
        ("/opt/dragoman/examples/demo-model", "/home/me/dragoman/examples/demo-model"),
        ("file:///opt/dragoman/examples", "file:///home/me/dragoman/examples"),
        ("/opt/dragomans", "/opt/dragomans"),
        ("--cache-dir=/tmp/x", "--cache-dir=/here/tmp/x"),
        ("read /tmp", "read /tmp"),
        ("org/name", "org/name"),
        ("", ""),
    ],
)
def test_paths(value, expected):
    assert PATHS.rewrite(value) == expected


def test_the_longest_mount_wins_whatever_the_order():
    turned = PathMap(dict(reversed(list(PATHS.mounts.items()))), PATHS.files, PATHS.checkout)
    assert turned.rewrite("/mnt/model/x") == "/here/model/x"


def test_a_mount_may_replace_the_checkout():
    paths = PathMap({"/opt/dragoman": Path("/other")}, {}, Path("/checkout"))
    assert paths.rewrite("/opt/dragoman/examples") == "/other/examples"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$(A)-$(A)", "1-1"),
        ("$(B)", "$(B)"),
        ("$$(A)", "$(A)"),
        ("$A", "$A"),
        ("$$$(A)", "$1"),
        ("$(A", "$(A"),
        ("$(A $(A)", "$(A $(A)"),
        ("$(no $$ name)$$", "$(no $$ name)$"),
        ("$($$", "$($"),
        ("a $", "a $"),
        ("$()", "$()"),
        ("$(1)", "one"),
        ("$\n$(A)", "$\n1"),
    ],
)
def test_variable_references(text, expected):
    assert expand(text, {"A": "1", "1": "one"}) == expected


def test_programs_of_the_running_python():
    container = {"name": "c", "command": ["dragoman"], "args": ["serve", "--host", "$(IP)"]}
    expected = [sys.executable, "-m", "dragoman", "serve", "--host", "127.0.0.9"]
    assert command_line(container, {"IP": "127.0.0.9"}, str) == expected
    assert command_line({"name": "c", "command": ["python", "-V"]}, {}, str) == [sys.executable, "-V"]
    assert command_line({"name": "c", "command": ["sleep", "1"]}, {}, str) == ["sleep", "1"]


def test_the_running_python_is_found_even_below_a_mounted_path():
    python = Path(sys.executable)
    paths = PathMap({str(python.parents[1]): Path("/elsewhere")}, {}, Path("/checkout"))
    container = {"name": "c", "command": ["python", str(python.parents[1] / "script.py")]}
    assert command_line(container, {}, paths.rewrite) == [sys.executable, "/elsewhere/script.py"]


def test_no_command_is_refused():
    with pytest.raises(PodRefusedError, match="has no command"):
        command_line({"name": "c", "args": ["serve"]}, {}, str)


class Client:
    """An API that holds these objects, by kind and name."""

    def __init__(self, objects):
        self.objects = objects

    async def get(self, kind, key):
        return self.objects.get((kind.name, key.name))


async def variables(*env, objects=None, **fields):
    client: Any = Client(objects or {})
    return await variables_of({"name": "c", "env": list(env), **fields}, POD, client)


def by(field, **reference):
    return {"name": "X", "valueFrom": {field: reference}}


async def test_plain_and_expanded_values():
    first, second = {"name": "A", "value": "1"}, {"name": "B", "value": "$(A)$(C)"}
    assert await variables(first, second, {"name": "E"}) == {"A": "1", "B": "1$(C)", "E": ""}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("metadata.name", "web-1"),
        ("metadata.namespace", "default"),
        ("metadata.labels['app']", "web"),
        ("metadata.annotations['none']", ""),
        ("spec.nodeName", "local"),
        ("spec.serviceAccountName", "default"),
        ("status.podIP", "127.64.0.1"),
        ("status.hostIP", "127.0.0.1"),
    ],
)
async def test_fields(path, value):
    assert await variables(by("fieldRef", fieldPath=path)) == {"X": value}


async def test_unknown_references_are_refused():
    with pytest.raises(PodRefusedError, match="is none of"):
        await variables(by("fieldRef", fieldPath="status.phase"))
    with pytest.raises(PodRefusedError, match="resourceFieldRef"):
        await variables(by("resourceFieldRef", resource="limits.cpu"))
    with pytest.raises(PodRefusedError, match="envFrom"):
        await variables(envFrom=[{"configMapRef": {"name": "s"}}])


async def test_keys_of_secrets():
    objects = {("Secret", "hf"): {"data": {"token": "dA=="}}, ("Secret", "empty"): {}}
    assert await variables(by("secretKeyRef", name="hf", key="token"), objects=objects) == {"X": "t"}
    with pytest.raises(MissingReferenceError, match='secret "none" not found'):
        await variables(by("secretKeyRef", name="none", key="token"), objects=objects)
    with pytest.raises(MissingReferenceError, match='couldn\'t find key token in secret "empty"'):
        await variables(by("secretKeyRef", name="empty", key="token"), objects=objects)
    for name in ("none", "empty"):
        optional = by("secretKeyRef", name=name, key="token", optional=True)
        assert await variables(optional, objects=objects) == {}


async def test_data_of_secrets_and_config_maps():
    objects: Any = {
        ("Secret", "s"): {"data": {"a": "YQ=="}},
        ("ConfigMap", "c"): {"data": {"a": "ä"}, "binaryData": {"b": "Yg=="}},
    }
    client: Any = Client(objects)
    assert await read(client, SECRET, Key("n", "s"), optional=False) == {"a": b"a"}
    found = await read(client, CONFIG_MAP, Key("n", "c"), optional=False)
    assert found == {"a": "ä".encode(), "b": b"b"}


def test_nothing_of_the_supervisor_reaches_a_container():
    environment = {
        "PATH": "/bin",
        "KUBECONFIG": "x",
        "DRAGOMAN_HOST": "y",
        "HF_TOKEN": "z",
        "CUDA_HOME": "/cuda",
    }
    assert inherited(environment) == {"PATH": "/bin", "CUDA_HOME": "/cuda"}


def test_back_off_doubles_to_its_limit():
    backoff, delays, last = Backoff(), [], None
    for _ in range(8):
        last = backoff.next_delay_s(last, ran_s=1.0)
        delays.append(last)
    assert delays == [0, 10, 20, 40, 80, 160, 300, 300]
    assert backoff.next_delay_s(300, ran_s=600) == 0


@pytest.mark.parametrize(
    ("policy", "code", "again"),
    [
        ("Always", 0, True),
        ("Always", 1, True),
        ("OnFailure", 0, False),
        ("OnFailure", 1, True),
        ("Never", 1, False),
    ],
)
def test_restart_policies(policy, code, again):
    assert should_restart(policy, code) is again


@given(st.lists(st.booleans(), min_size=1, max_size=40), st.integers(1, 4), st.integers(1, 4))
async def test_verdict_needs_a_streak(outcomes, successes, failures):
    probe = {
        "exec": {"command": ["true"]},
        "timeoutSeconds": 10,
        "periodSeconds": 0,
        "successThreshold": successes,
        "failureThreshold": failures,
    }
    codes = iter(outcomes)

    async def execute(_command):
        return (0 if next(codes) else 1), "wrong"

    target = Target({}, "127.64.0.1", cast(Any, None), execute)
    index = 0
    async for failure, verdict in results(probe, target):
        succeeded = outcomes[index]
        needed = successes if succeeded else failures
        enough = outcomes[max(0, index + 1 - needed) : index + 1] == [succeeded] * needed
        assert (failure, verdict) == (None if succeeded else "wrong", succeeded if enough else None)
        index += 1
        if index == len(outcomes):
            break


async def test_a_command_that_cannot_be_started_fails_its_probe():
    async def execute(_command):
        raise StartFailedError("cannot start '/no/such'")

    target = Target({}, "127.64.0.1", cast(Any, None), execute)
    assert await attempt({"exec": {"command": ["/no/such"]}}, target, 10) == "cannot start '/no/such'"


def test_last_words(tmp_path):
    file, log = tmp_path / "why", tmp_path / "log"
    log.write_text("\n".join(f"line {number}" for number in range(1000)))
    assert termination_message(file, log, use_log=False) == ""
    from_log = termination_message(file, log, use_log=True)
    assert from_log.endswith("line 999")
    assert len(from_log) <= 2048
    assert len(from_log.splitlines()) <= 80
    file.write_text("no such model")
    assert termination_message(file, log, use_log=True) == "no such model"
    file.write_bytes(b"\xff" + b"x" * 5000)
    assert termination_message(file, log, use_log=True) == "\ufffd" + "x" * 4095
