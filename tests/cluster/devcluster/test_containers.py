"""Containers on the local cluster's node: processes that start, fail, are probed and end as a kubelet has it."""

import asyncio
import json

import pytest

from dragoman_devcluster.state import born

pytestmark = pytest.mark.cluster


def script(source, **fields):
    return {"name": "main", "image": "none", "command": ["python", "-S", "-c", source], **fields}


def status_of(pod):
    return (pod.status.container_statuses or [None])[0]


def log_of(cluster, workloads, pod, container="main", suffix=".log"):
    return (cluster.dir / "logs" / workloads.namespace / pod / (container + suffix)).read_text()


async def until_status(workloads, pod, holds, **kwargs):
    read = await workloads.until(
        lambda: workloads.pod(pod),
        lambda found: status_of(found) is not None and holds(status_of(found)),
        **kwargs,
    )
    return status_of(read)


async def until_log(cluster, workloads, pod, text):
    path = cluster.dir / "logs" / workloads.namespace / pod / "main.log"

    async def read():
        return path.read_text() if path.exists() else ""

    # Unbuffered, a line and its end are written one after the other.
    return await workloads.until(read, lambda log: text in log and log.endswith("\n"))


async def make_claim(workloads, cluster):
    """A claim `data`: volumes and mounts (at /data) for a pod, and the directory behind it."""
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    body = {"metadata": {"name": "data"}, "spec": spec}
    await workloads.core.create_namespaced_persistent_volume_claim(workloads.namespace, body)
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    directory = cluster.dir / "volumes" / workloads.namespace / "data"
    return volumes, [{"name": "data", "mountPath": "/data"}], directory


async def test_crash_loop_has_its_reason(workloads, cluster):
    await workloads.run(
        "broken",
        script(
            "import sys; print('no such model'); sys.exit(3)",
            terminationMessagePolicy="FallbackToLogsOnError",
        ),
    )
    status = await until_status(
        workloads, "broken", lambda s: s.state.waiting and s.state.waiting.reason == "CrashLoopBackOff"
    )
    ended = status.last_state.terminated
    assert (ended.exit_code, ended.reason, ended.message) == (3, "Error", "no such model\n")
    assert "back-off" in status.state.waiting.message
    assert not status.ready
    await until_status(workloads, "broken", lambda s: s.restart_count >= 3)
    assert (await workloads.pod("broken")).status.phase == "Running"
    assert log_of(cluster, workloads, "broken", suffix=".previous.log") == "no such model\n"
    message = "Back-off restarting failed container main"
    await workloads.until(lambda: workloads.events("BackOff"), lambda events: message in events)


async def test_termination_message_comes_from_its_file(workloads):
    source = "import os, sys; open(os.environ['WHY'], 'w').write('x' * 5000); print('noise'); sys.exit(1)"
    env = [{"name": "WHY", "value": "/dev/termination-log"}]
    await workloads.run("broken", script(source, env=env), restartPolicy="Never")
    pod = await workloads.until(lambda: workloads.pod("broken"), lambda found: found.status.phase == "Failed")
    assert status_of(pod).state.terminated.message == "x" * 4096


async def test_a_pod_that_runs_once_succeeds(workloads):
    await workloads.run("once", script("print('done')"), restartPolicy="Never")
    pod = await workloads.until(
        lambda: workloads.pod("once"), lambda found: found.status.phase == "Succeeded"
    )
    assert status_of(pod).state.terminated.reason == "Completed"
    assert {c.type: c.reason for c in pod.status.conditions}["Ready"] == "PodCompleted"


async def test_a_program_that_is_not_there(workloads):
    await workloads.run(
        "absent", {"name": "main", "image": "none", "command": ["/no/such/program"]}, restartPolicy="Never"
    )
    pod = await workloads.until(lambda: workloads.pod("absent"), lambda found: found.status.phase == "Failed")
    assert status_of(pod).state.terminated.reason == "StartError"
    assert "/no/such/program" in status_of(pod).state.terminated.message


async def test_an_image_without_command_is_refused(workloads):
    await workloads.run("image", {"name": "main", "image": "nginx"})
    status = await until_status(workloads, "image", lambda s: s.state.waiting and s.state.waiting.message)
    assert status.state.waiting.reason == "CreateContainerConfigError"
    assert "has no command" in status.state.waiting.message


async def test_an_image_volume_is_refused(workloads):
    volumes = [{"name": "model", "image": {"reference": "example/model:1", "pullPolicy": "IfNotPresent"}}]
    await workloads.run(
        "image", script("pass", volumeMounts=[{"name": "model", "mountPath": "/mnt/model"}]), volumes=volumes
    )
    status = await until_status(workloads, "image", lambda s: s.state.waiting and s.state.waiting.message)
    assert "volume 'model' of type image" in status.state.waiting.message


@pytest.mark.parametrize(
    ("spec", "named"),
    [({"readinessGates": [{"conditionType": "example.org/gate"}]}, "readinessGates"), ({}, "envFrom")],
)
async def test_what_the_node_does_not_know_is_refused(workloads, spec, named):
    container = script("pass", envFrom=[{"configMapRef": {"name": "settings"}}])
    await workloads.run("refused", container, **spec)
    status = await until_status(workloads, "refused", lambda s: s.state.waiting and s.state.waiting.message)
    assert status.state.waiting.reason == "CreateContainerConfigError"
    assert named in status.state.waiting.message


async def test_init_containers_run_one_after_another_until_each_succeeds(workloads, cluster):
    fields = {"args": ["/data/file"], "volumeMounts": [{"name": "data", "mountPath": "/data"}]}
    first = (
        "import pathlib, sys; file = pathlib.Path(sys.argv[1]); tried = file.exists(); file.write_text('first ');"
        "sys.exit(0 if tried else 3)"
    )
    second = "import sys; open(sys.argv[1], 'a').write('second')"
    main = "import sys, time; print(open(sys.argv[1]).read(), flush=True); time.sleep(60)"
    init = [script(first, **fields, name="first"), script(second, **fields, name="second")]
    volumes = [{"name": "data", "emptyDir": {}}]
    await workloads.run("init", script(main, **fields), initContainers=init, volumes=volumes)
    assert await until_log(cluster, workloads, "init", "second") == "first second\n"
    pod = await workloads.pod("init")
    first, second = pod.status.init_container_statuses
    assert (first.restart_count, first.ready, first.last_state.terminated.exit_code) == (1, True, 3)
    assert (second.restart_count, second.state.terminated.reason) == (0, "Completed")
    assert {condition.type: condition.status for condition in pod.status.conditions}["Initialized"] == "True"


async def test_a_pod_waits_for_an_init_container_that_fails(workloads):
    failing = script("import sys; sys.exit('no model')", terminationMessagePolicy="FallbackToLogsOnError")
    await workloads.run("failing", script("pass"), initContainers=[{**failing, "name": "first"}])
    pod = await workloads.until(
        lambda: workloads.pod("failing"),
        lambda pod: (
            pod.status.init_container_statuses and pod.status.init_container_statuses[0].restart_count
        ),
    )
    (first,) = pod.status.init_container_statuses
    assert first.last_state.terminated.message == "no model\n"
    assert not first.ready
    assert status_of(pod).state.waiting.reason == "PodInitializing"
    assert pod.status.phase == "Pending"


async def test_waits_for_a_secret(workloads, cluster):
    reference = {"secretKeyRef": {"name": "hf", "key": "token"}}
    container = script(
        "import os, time; print(os.environ['TOKEN'], flush=True); time.sleep(60)",
        env=[{"name": "TOKEN", "valueFrom": reference}],
    )
    await workloads.run("gated", container)
    status = await until_status(workloads, "gated", lambda s: s.state.waiting and s.state.waiting.message)
    assert (status.state.waiting.reason, status.state.waiting.message) == (
        "CreateContainerConfigError",
        'secret "hf" not found',
    )
    await workloads.core.create_namespaced_secret(
        workloads.namespace, {"metadata": {"name": "hf"}, "stringData": {"token": "t0ken"}}
    )
    assert await until_log(cluster, workloads, "gated", "t0ken") == "t0ken\n"


async def test_environment_and_volumes(workloads, cluster):
    core, namespace = workloads.core, workloads.namespace
    settings = {"metadata": {"name": "settings"}, "data": {"LEVEL": "high", "file.txt": "content"}}
    await core.create_namespaced_config_map(namespace, settings)
    claimed, _, claim_directory = await make_claim(workloads, cluster)
    source = """
import json, os, pathlib, sys
pathlib.Path(os.environ["CACHE"], "weights").write_text("kept")
names = ("LEVEL", "NAME", "GREETING", "IP", "DRAGOMAN_HOST", "TMPDIR", "KUBECONFIG")
print(json.dumps({**{n: os.environ.get(n) for n in names}, "args": sys.argv[1:],
  "config": pathlib.Path(sys.argv[1]).read_text(), "cwd": os.getcwd(),
  "example": os.path.isdir(sys.argv[3].removeprefix("file://"))}))
"""
    container = script(
        source,
        args=[
            "/etc/settings/file.txt",
            "--cache=/var/cache/x",
            "file:///opt/dragoman/examples",
            "$(NAME)",
            "$$(NAME)",
        ],
        workingDir="/var/cache",
        env=[
            {"name": "NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "GREETING", "value": "hello $(NAME)"},
            {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
            {"name": "CACHE", "value": "/var/cache"},
            {"name": "LEVEL", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "LEVEL"}}},
        ],
        volumeMounts=[
            {"name": "settings", "mountPath": "/etc/settings"},
            {"name": "data", "mountPath": "/var/cache"},
            {"name": "tmp", "mountPath": "/tmp"},
        ],
    )
    volumes = [
        {"name": "settings", "configMap": {"name": "settings"}},
        *claimed,
        {"name": "tmp", "emptyDir": {}},
    ]
    await workloads.run(
        "tell", container, volumes=volumes, restartPolicy="Never", automountServiceAccountToken=False
    )
    pod = await workloads.until(
        lambda: workloads.pod("tell"), lambda found: found.status.phase in ("Succeeded", "Failed")
    )
    reported = json.loads(log_of(cluster, workloads, "tell"))
    assert reported["GREETING"] == "hello tell"
    assert reported["LEVEL"] == "high"
    assert reported["config"] == "content"
    assert reported["IP"] == reported["DRAGOMAN_HOST"] == pod.status.pod_ip
    assert reported["KUBECONFIG"] is None
    assert reported["TMPDIR"].endswith("volumes/tmp")
    assert reported["cwd"] == str(claim_directory)
    assert reported["args"][1:] == [f"--cache={claim_directory}/x", reported["args"][2], "tell", "$(NAME)"]
    assert reported["example"]
    assert (claim_directory / "weights").read_text() == "kept"
    bound = await core.read_namespaced_persistent_volume_claim("data", namespace)
    assert bound.status.phase == "Bound"


SHOW_CHANGES = """
import pathlib, sys, time
last = None
while True:
    files = map(pathlib.Path, sys.argv[1:])
    now = " ".join(file.read_text() if file.exists() else "-" for file in files)
    if now != last:
        print(now, flush=True)
    last = now
    time.sleep(0.05)
"""


async def test_volumes_follow_their_config_maps(workloads, cluster):
    core, namespace = workloads.core, workloads.namespace
    await core.create_namespaced_config_map(
        namespace, {"metadata": {"name": "terms"}, "data": {"a": "1", "b": "1"}}
    )
    items = [{"key": "a", "path": "renamed"}]
    volumes = [
        {"name": "terms", "configMap": {"name": "terms", "items": items}},
        {"name": "later", "configMap": {"name": "later", "optional": True}},
    ]
    mounts = [
        {"name": "terms", "mountPath": "/terms", "readOnly": True},
        {"name": "later", "mountPath": "/later"},
    ]
    paths = ["/terms/renamed", "/later/c"]
    await workloads.run("reader", script(SHOW_CHANGES, args=paths, volumeMounts=mounts), volumes=volumes)
    await until_log(cluster, workloads, "reader", "1 -\n")
    await core.patch_namespaced_config_map("terms", namespace, {"data": {"a": "2", "b": "2"}})
    await until_log(cluster, workloads, "reader", "2 -\n")
    await core.create_namespaced_config_map(namespace, {"metadata": {"name": "later"}, "data": {"c": "now"}})
    await until_log(cluster, workloads, "reader", "2 now\n")
    await core.delete_namespaced_config_map("terms", namespace)
    gone = 'MountVolume.SetUp failed for volume "terms" : configmap "terms" not found'
    await workloads.until(lambda: workloads.events("FailedMount"), lambda messages: gone in messages)
    assert log_of(cluster, workloads, "reader") == "1 -\n2 -\n2 now\n"


async def test_waits_for_a_key_of_a_config_map(workloads, cluster):
    core, namespace = workloads.core, workloads.namespace
    await core.create_namespaced_config_map(
        namespace, {"metadata": {"name": "terms"}, "data": {"other": "1"}}
    )
    items = [{"key": "a", "path": "a"}]
    volumes = [{"name": "terms", "configMap": {"name": "terms", "items": items}}]
    mounts = [{"name": "terms", "mountPath": "/terms"}]
    await workloads.run(
        "reader", script(SHOW_CHANGES, args=["/terms/a"], volumeMounts=mounts), volumes=volumes
    )
    why = 'MountVolume.SetUp failed for volume "terms" : configmap references non-existent config key: a'
    await workloads.until(lambda: workloads.events("FailedMount"), lambda messages: why in messages)
    status = {c.type: c.status for c in (await workloads.pod("reader")).status.conditions}
    assert status["PodReadyToStartContainers"] == "False"
    await core.patch_namespaced_config_map("terms", namespace, {"data": {"a": "1"}})
    await until_log(cluster, workloads, "reader", "1\n")


async def test_readiness_follows_its_probe(workloads, server, cluster):
    volumes, mounts, data = await make_claim(workloads, cluster)
    exists = "import os, sys; sys.exit(not os.path.exists(os.environ['FLAG']))"
    command = {"command": ["python", "-S", "-c", exists]}
    probe = {"exec": command, "periodSeconds": 1, "failureThreshold": 1, "timeoutSeconds": 5}
    env = [{"name": "FLAG", "value": "/data/flag"}]
    await workloads.run("web", server(readinessProbe=probe, env=env, volumeMounts=mounts), volumes=volumes)
    status = await until_status(workloads, "web", lambda s: s.state.running)
    assert status.started
    assert not status.ready
    (data / "flag").touch()
    await until_status(workloads, "web", lambda s: s.ready)
    (data / "flag").unlink()
    await until_status(workloads, "web", lambda s: not s.ready)
    assert (await workloads.pod("web")).status.container_statuses[0].restart_count == 0
    await workloads.until(lambda: workloads.events("Unhealthy"), bool)


async def test_liveness_failure_restarts(workloads, cluster):
    source = "import signal, sys, time; signal.signal(signal.SIGTERM, lambda *_: sys.exit(0)); time.sleep(60)"
    probe = {
        "exec": {"command": ["python", "-S", "-c", "import sys; sys.exit(1)"]},
        "periodSeconds": 1,
        "failureThreshold": 2,
        "timeoutSeconds": 5,
    }
    await workloads.run("sick", script(source, livenessProbe=probe))
    status = await until_status(workloads, "sick", lambda s: s.restart_count >= 1)
    assert status.last_state.terminated.reason in ("Completed", "Error")
    message = "Container main failed liveness probe, will be restarted"
    await workloads.until(lambda: workloads.events("Killing"), lambda events: message in events)


async def test_startup_probe_holds_the_others_back(workloads, server):
    startup = {"httpGet": {"path": "/", "port": "http"}, "periodSeconds": 1, "failureThreshold": 30}
    liveness = {"httpGet": {"path": "/", "port": "http"}, "periodSeconds": 1, "failureThreshold": 1}
    slow = server(startupProbe=startup, livenessProbe=liveness)
    slow["command"][-1] = "import time; time.sleep(2.5)\n" + slow["command"][-1]
    await workloads.run("slow", slow)
    running = await until_status(workloads, "slow", lambda s: s.state.running)
    assert not running.started
    ready = await until_status(workloads, "slow", lambda s: s.ready)
    assert (ready.started, ready.restart_count) == (True, 0)


async def test_startup_that_never_succeeds_is_restarted(workloads):
    startup = {"httpGet": {"path": "/", "port": 8000}, "periodSeconds": 1, "failureThreshold": 1}
    await workloads.run("never", script("import time; time.sleep(60)", startupProbe=startup))
    await until_status(workloads, "never", lambda s: s.restart_count >= 1)


async def test_graceful_end(workloads, cluster):
    source = """
import signal, sys, time
def end(*_):
    print("terminating", flush=True); time.sleep(0.3); print("ended", flush=True); sys.exit(0)
signal.signal(signal.SIGTERM, end)
print("up", flush=True)
time.sleep(60)
"""
    hook = {
        "preStop": {
            "exec": {
                "command": ["python", "-S", "-c", "import os; open(os.environ['LOG'], 'w').write('hook')"]
            }
        }
    }
    env = [{"name": "LOG", "value": "/data/hook"}]
    volumes, mounts, data = await make_claim(workloads, cluster)
    await workloads.run(
        "polite", script(source, env=env, lifecycle=hook, volumeMounts=mounts), volumes=volumes
    )
    await until_log(cluster, workloads, "polite", "up")
    await workloads.core.delete_namespaced_pod("polite", workloads.namespace)
    terminating = await workloads.pod("polite")
    assert terminating.metadata.deletion_grace_period_seconds == 5
    await workloads.until_gone(lambda: workloads.pod("polite"), timeout_s=5)
    assert log_of(cluster, workloads, "polite") == "up\nterminating\nended\n"
    assert (data / "hook").read_text() == "hook"


async def test_a_hook_that_is_not_there_leaves_a_graceful_end(workloads, cluster):
    source = """
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(print("ended", flush=True)))
print("up", flush=True)
time.sleep(60)
"""
    hook = {"preStop": {"exec": {"command": ["/no/such/program"]}}}
    await workloads.run("hooked", script(source, lifecycle=hook))
    await until_log(cluster, workloads, "hooked", "up")
    await workloads.core.delete_namespaced_pod("hooked", workloads.namespace)
    await workloads.until_gone(lambda: workloads.pod("hooked"), timeout_s=15)
    assert log_of(cluster, workloads, "hooked") == "up\nended\n"


async def test_process_that_outlasts_its_grace_period_is_killed_with_its_children(
    workloads, cluster, tmp_path
):
    source = """
import signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
quiet = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)"
child = subprocess.Popen([sys.executable, "-S", "-c", quiet])
print("child", child.pid, flush=True)
time.sleep(60)
"""
    await workloads.run("stubborn", script(source), terminationGracePeriodSeconds=1)
    child = int((await until_log(cluster, workloads, "stubborn", "child")).split()[1])
    started = asyncio.get_running_loop().time()
    await workloads.core.delete_namespaced_pod("stubborn", workloads.namespace)
    await workloads.until_gone(lambda: workloads.pod("stubborn"), timeout_s=10)
    assert asyncio.get_running_loop().time() - started >= 0.9

    async def child_lives():
        return born(child) is not None

    await workloads.until(child_lives, lambda lives: not lives)
