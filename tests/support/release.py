"""A release of the chart on a real cluster, and one TranslationDeployment `demo` in it."""

import threading
import time
from collections.abc import Container, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from tests.support.fresh import GROUP, PLURAL, VERSION, Fresh, until
from tests.support.load import Load

ROOT = Path(__file__).parents[2]
SYSTEM, OBJECTS, RELEASE = "dragoman-test-system", "dragoman-test", "dragoman"
ENGINE = "app.kubernetes.io/component=engine,dragoman.io/deployment=demo"
ROUTER = "app.kubernetes.io/name=dragoman,app.kubernetes.io/component=router"
OPERATOR = "app.kubernetes.io/name=dragoman,app.kubernetes.io/component=operator"
START_S = 600.0
"""Maximum time from a change to a ready engine: on few cores vLLM compiles its kernels for minutes."""
LINES: list[str] = []
"""What the tests measured or could not do, for the summary."""


@contextmanager
def timed(what: str) -> Iterator[None]:
    """Note how long a step took."""
    began = time.monotonic()
    yield
    LINES.append(f"{what}: {time.monotonic() - began:.0f} s")


@dataclass(frozen=True)
class World:
    """The release, and one TranslationDeployment `demo`.

    Args:
        fresh: The cluster.
        url: Of the router.
        values: Flags of helm that set the images.
        engine: `vllm` or `scripted`.
        prometheus: URL of a Prometheus in the cluster; empty: there is none.
    """

    fresh: Fresh
    url: str
    values: list[str]
    engine: str
    prometheus: str

    def install(self) -> None:
        """`helm install` with the router."""
        keda = [f"--set=keda.enabled=true,prometheus.url={self.prometheus}"] if self.prometheus else []
        with timed("helm install"):
            self.fresh.helm(
                "install", RELEASE, str(ROOT / "charts/dragoman"), f"--namespace={SYSTEM}", "--wait",
                "--timeout=5m", "--set=router.enabled=true", *keda, *self.values,
            )  # fmt: skip

    def create(self, name: str, **changes: Any) -> None:
        """Create an object after examples/demo.yaml, with one replica."""
        spec = yaml.safe_load((ROOT / "examples/demo.yaml").read_text())["spec"]
        del spec["autoscaling"]
        # Two of them and a rollout fit a node with two cores; they use what is idle.
        spec |= {"replicas": 1, "resources": {"requests": {"cpu": "250m"}}}
        if self.engine == "scripted":
            spec["podTemplate"] = {"env": [{"name": "DRAGOMAN_ENGINE", "value": "scripted"}]}
        self.fresh.create(OBJECTS, name, **(spec | changes))

    def edit(self, **spec: Any) -> None:
        """Merge into the object's spec."""
        self.fresh.edit(OBJECTS, "demo", **spec)

    def annotate(self, value: str) -> None:
        """Change what the operator writes to the Service, and wait for it; no pod is replaced."""
        name = "example.org/step"
        self.edit(service={"annotations": {name: value}})
        with timed(f"the operator writes an annotation: {value}"):
            until(
                lambda: (
                    (self.fresh.core.read_namespaced_service("demo", OBJECTS).metadata.annotations or {}).get(
                        name
                    )
                    == value
                ),
                "the Service is annotated",
                60,
            )

    def scale(self, replicas: int) -> None:
        """`kubectl scale`."""
        self.fresh.objects.patch_namespaced_custom_object_scale(
            GROUP, VERSION, OBJECTS, PLURAL, "demo", {"spec": {"replicas": replicas}}
        )

    def status(self) -> dict[str, Any]:
        """The object's status."""
        return dict(self.fresh.read(OBJECTS, "demo").get("status", {}))

    def engines(self) -> dict[str, Any]:
        """Its pods, by their uid."""
        return self.fresh.pods(OBJECTS, ENGINE)

    def until_complete(self, replicas: int, what: str) -> None:
        """Wait until so many pods serve what the spec says."""
        with timed(what):
            until(
                lambda: self.fresh.is_complete(OBJECTS, "demo", replicas) and len(self.engines()) == replicas,
                f"{what}: {replicas} replicas are complete",
                START_S,
            )

    def until_replicas(self, replicas: int, what: str) -> None:
        """Wait until an autoscaler has decided for so many, and they are ready."""
        with timed(f"{what}, decided"):
            until(lambda: self.status().get("desiredReplicas") == replicas, f"{what}: decided", START_S)
        with timed(f"{what}, ready"):
            until(
                lambda: self.status().get("readyReplicas") == replicas and len(self.engines()) == replicas,
                f"{what}: ready",
                START_S,
            )

    def restart(self, selector: str) -> None:
        """`kubectl rollout restart` of the release's Deployments with these labels, and wait until it is done."""
        before = self.fresh.pods(SYSTEM, selector)
        deployments: Any = self.fresh.apps.list_namespaced_deployment(SYSTEM, label_selector=selector)
        for found in deployments.items:
            template = {"metadata": {"annotations": {"kubectl.kubernetes.io/restartedAt": str(time.time())}}}
            self.fresh.apps.patch_namespaced_deployment(
                found.metadata.name, SYSTEM, {"spec": {"template": template}}
            )
        self.until_replaced(SYSTEM, selector, before, len(before))

    def until_replaced(
        self, namespace: str, selector: str, before: Container[str], replicas: int, timeout_s: float = 180
    ) -> None:
        """Wait until so many pods are ready, and none of those before is left."""

        def replaced() -> bool:
            now = self.fresh.pods(namespace, selector)
            return len(now) == replicas and all(
                uid not in before and is_ready(pod) for uid, pod in now.items()
            )

        until(replaced, f"other pods are ready: {selector}", timeout_s)

    @contextmanager
    def under_load(self, in_flight: int) -> Iterator[Load]:
        """So many requests at once through the router, none of which may fail."""
        load, stop = Load(self.url), threading.Event()
        with ThreadPoolExecutor(1) as thread:
            sending = thread.submit(load.run, in_flight, stop.is_set)
            try:
                until(lambda: load.answered or load.failed or sending.done(), "a request is answered", 60)
                yield load
            finally:
                stop.set()
                sending.result()
        LINES.append(f"  {load.answered} requests meanwhile, {len(load.failed)} failed")
        assert not load.failed, f"{len(load.failed)} requests failed, such as {load.failed[:3]}"


def is_ready(pod: Any) -> bool:
    """Whether a pod is ready."""
    return any(each.type == "Ready" and each.status == "True" for each in pod.status.conditions or ())
