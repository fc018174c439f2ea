"""The operator, and the router, behind a gate that lets through what the chart's roles grant, and counts what it used.

A real API server enforces the roles itself (test_helm_install.py runs there too); the gate finds a missing
grant on any API, and also a grant that nothing needs.
"""

import asyncio
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
import pytest
import yaml
from aiohttp import web
from kubernetes import client

ROOT = Path(__file__).parents[3]
HELM = Path(sys.executable).parent / "helm"
HOP_HEADERS = {"host", "content-length", "transfer-encoding", "connection"}

NOT_ASKED_OF_ANY_SERVER = {("update", "dragoman.io", "translationdeployments/finalizers")}
"""Looked up by the admission plugin OwnerReferencesPermissionEnforcement, not requested."""

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(120)]


class Ask(NamedTuple):
    """One request, as RBAC sees it."""

    verb: str
    group: str
    resource: str
    """With its subresource: `translationdeployments/status`."""
    namespace: str = ""
    name: str = ""


def request_of(method: str, path: str, query: Mapping[str, str]) -> Ask | None:
    """What a request asks for; None where it is about no resource (discovery, which everyone may read).

    Source: https://kubernetes.io/docs/reference/access-authn-authz/authorization/#determine-the-request-verb
    """
    parts = [part for part in path.split("/") if part]
    if parts[:1] == ["api"]:
        group, rest = "", parts[2:]
    elif parts[:1] == ["apis"]:
        group, rest = "".join(parts[1:2]), parts[3:]
    else:
        return None
    namespace = ""
    if rest[:1] == ["namespaces"] and len(rest) > 2:
        namespace, rest = rest[1], rest[2:]
    if not rest:
        return None
    plural, name, *sub = [*rest, ""] if len(rest) == 1 else rest
    if name:
        verb = {"GET": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete", "POST": "create"}[method]
    elif method == "GET":
        verb = "watch" if query.get("watch") in {"1", "true"} else "list"
    else:
        verb = {"POST": "create", "DELETE": "deletecollection"}[method]
    return Ask(verb, group, "/".join([plural, *sub]), namespace, name)


class Grant(NamedTuple):
    """One verb on one resource, as a role's rule gives it."""

    verb: str
    group: str
    resource: str
    namespace: str | None
    """None: everywhere."""
    name: str | None
    """None: any."""

    def covers(self, ask: Ask) -> bool:
        return (
            (self.verb, self.group, self.resource) == (ask.verb, ask.group, ask.resource)
            and self.namespace in (None, ask.namespace)
            and self.name in (None, ask.name)
        )


def grants(objects: Iterable[Mapping[str, Any]], account: str) -> set[Grant]:
    """Everything that the bindings among `objects` give to a ServiceAccount."""
    objects = list(objects)
    rules = {
        (item["kind"], item["metadata"].get("namespace"), item["metadata"]["name"]): item["rules"]
        for item in objects
        if item["kind"] in {"Role", "ClusterRole"}
    }
    given = set()
    for binding in objects:
        if binding["kind"] not in {"RoleBinding", "ClusterRoleBinding"}:
            continue
        assert [subject["name"] for subject in binding["subjects"]] == [account]
        namespace = binding["metadata"].get("namespace")
        role = binding["roleRef"]
        for rule in rules[role["kind"], namespace if role["kind"] == "Role" else None, role["name"]]:
            given |= {
                Grant(verb, group, resource, namespace, name)
                for verb in rule["verbs"]
                for group in rule["apiGroups"]
                for resource in rule["resources"]
                for name in rule.get("resourceNames", [None])
            }
    return given


@dataclass
class Gate:
    """Stands before an API server and forwards what is granted; the rest gets a 403, as from the server."""

    api: client.Configuration
    given: set[Grant]
    refused: set[Ask] = field(default_factory=set)
    used: set[Grant] = field(default_factory=set)

    def admit(self, ask: Ask) -> bool:
        covering = {grant for grant in self.given if grant.covers(ask)}
        self.used |= covering
        if not covering:
            self.refused.add(ask)
        return bool(covering)

    async def forward(self, http: aiohttp.ClientSession, request: web.Request) -> web.StreamResponse:
        ask = request_of(request.method, request.path, request.query)
        if ask is not None and not self.admit(ask):
            status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden"}
            return web.json_response({**status, "code": 403, "message": f"gate: {ask}"}, status=403)
        headers = {name: value for name, value in request.headers.items() if name.lower() not in HOP_HEADERS}
        if token := self.api.get_api_key_with_prefix("BearerToken"):
            headers["Authorization"] = token
        async with http.request(
            request.method,
            f"{self.api.host}{request.raw_path}",
            headers=headers,
            data=await request.read()
            or None,  # an empty body would get a media type, which a real server refuses
            allow_redirects=False,
        ) as answer:
            if answer.status == 201 and ask is not None and request.method == "PATCH":
                # An apply that creates needs both; the server asks for the second once it knows.
                self.admit(ask._replace(verb="create", name=""))
            response = web.StreamResponse(status=answer.status)
            response.content_type = answer.content_type
            with suppress(ConnectionError):  # a watching client may disconnect at any time
                await response.prepare(request)
                async for chunk in answer.content.iter_any():
                    await response.write(chunk)
                await response.write_eof()
            return response


@asynccontextmanager
async def opened(gate: Gate) -> AsyncIterator[str]:
    """The gate on a loopback port; yields its URL. It asks as the cluster's administrator."""
    secure = ssl.create_default_context(cafile=gate.api.ssl_ca_cert)
    if gate.api.cert_file:
        secure.load_cert_chain(gate.api.cert_file, gate.api.key_file)
    connector = aiohttp.TCPConnector(ssl=secure, limit=0)
    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout, auto_decompress=False) as http:
        app = web.Application(client_max_size=16 * 1024 * 1024)
        app.router.add_route("*", "/{path:.*}", partial(gate.forward, http))
        runner = web.AppRunner(app, shutdown_timeout=1)
        await runner.setup()
        try:
            site = web.TCPSite(runner, "127.0.0.1", 0)
            await site.start()
            host, port = runner.addresses[0][:2]
            yield f"http://{host}:{port}"
        finally:
            await runner.cleanup()


def rendered(namespace: str, values: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The chart's objects for a release in `namespace`."""
    command = [str(HELM), "template", "gated", str(ROOT / "charts/dragoman"), "--namespace", namespace]
    done = subprocess.run(
        [*command, "--values", "-"], input=yaml.safe_dump(values), capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return [document for document in yaml.safe_load_all(done.stdout) if document]


@asynccontextmanager
async def running(url: str, arguments: list[str], directory: Path) -> AsyncIterator[None]:
    """A part of Dragoman against the API at `url`, as its pod would run it."""
    kubeconfig, log = directory / "kubeconfig", directory / "log"
    named = {"cluster": "gate", "user": "gate"}
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "gate", "cluster": {"server": url}}],
        "users": [{"name": "gate", "user": {"token": "none"}}],
        "contexts": [{"name": "gate", "context": named}],
        "current-context": "gate",
    }
    kubeconfig.write_text(yaml.safe_dump(content))
    command = [sys.executable, "-m", "dragoman", *arguments, "--host=127.0.0.1"]
    environment = {"KUBECONFIG": str(kubeconfig), "PATH": "/usr/bin:/bin"}
    with log.open("wb") as out:
        process = await asyncio.create_subprocess_exec(*command, env=environment, stdout=out, stderr=out)
        try:
            yield
        finally:
            process.terminate()
            async with asyncio.timeout(30):
                assert await process.wait() == 0, log.read_text()


def play(fresh: Any, namespace: str, until: Any) -> None:
    """One object's life, with everything that makes the operator write."""
    fresh.create(namespace, "demo")
    until(lambda: fresh.deployment(namespace, "demo"), "the Deployment is there")
    fresh.core.delete_namespaced_service("demo", namespace)
    until(lambda: service(fresh, namespace), "the Service is back")

    def policies() -> list[Any]:
        found: list[Any] = client.NetworkingV1Api(fresh.api).list_namespaced_network_policy(namespace).items
        return found

    until(policies, "the NetworkPolicy is there")
    for api, kind in (
        (fresh.core, "service_account"),
        (fresh.core, "service"),
        (client.NetworkingV1Api(fresh.api), "network_policy"),
        (client.PolicyV1Api(fresh.api), "pod_disruption_budget"),
    ):
        edit_child(api, kind, "demo", namespace, until)
    # With surge Never, the versions for a rollback are read.
    fresh.edit(namespace, "demo", networkPolicy={"enabled": False}, rollout={"surge": "Never"})
    until(lambda: not policies(), "the NetworkPolicy is gone")
    for replicas in (1, 0, 1, 0):
        fresh.edit(namespace, "demo", replicas=replicas)
        until(lambda: seen(fresh, namespace), "the operator has seen it")
    fresh.create(namespace, "terms", glossary={"configMapKeyRef": {"name": "none"}}, replicas=1)
    play_autoscaling(fresh, namespace, until)
    until(
        lambda: 'configmap "none" not found' in condition(fresh, namespace, "Degraded", "terms"),
        "the kubelet's event was read",
    )
    fresh.edit(namespace, "terms", replicas=0)
    events = fresh.core.list_namespaced_event
    until(
        lambda: any((event.count or 1) > 1 for event in ours(events(namespace).items)),
        "an event is counted up",
    )


def play_autoscaling(fresh: Any, namespace: str, until: Any) -> None:
    """Through all modes: a Secret is read, an HPA and a ScaledObject come and go, a pod is chosen to leave."""
    fresh.core.create_namespaced_secret(
        namespace, {"metadata": {"name": "prom"}, "stringData": {"token": "x"}}
    )
    prometheus = {"url": "http://127.0.0.1:9", "tokenSecretRef": {"name": "prom"}}
    fresh.create(namespace, "scaled", autoscaling=scaling("Internal", prometheus=prometheus), replicas=2)
    until(
        lambda: "127.0.0.1:9" in condition(fresh, namespace, "MetricsAvailable"),
        "the token was read, and the Prometheus queried",
    )
    fresh.edit(namespace, "scaled", replicas=3)
    until(lambda: fresh.read(namespace, "scaled")["spec"]["replicas"] == 2, "spec.replicas is maxReplicas")
    fresh.edit(namespace, "scaled", autoscaling={"mode": "HPA", "minReplicas": 1}, replicas=1)
    until(lambda: fresh.deployment(namespace, "scaled").spec.replicas == 1, "one pod was chosen to leave")
    hpas = client.AutoscalingV2Api(fresh.api)
    until(lambda: hpas.list_namespaced_horizontal_pod_autoscaler(namespace).items, "the HPA is there")
    edit_child(hpas, "horizontal_pod_autoscaler", "scaled", namespace, until)
    fresh.edit(namespace, "scaled", autoscaling={"mode": "KEDA"})
    until(lambda: not hpas.list_namespaced_horizontal_pod_autoscaler(namespace).items, "the HPA is gone")
    until(lambda: scaled_objects(fresh, namespace), "the ScaledObject is there")
    # Another URL and Secret: KEDA's kinds are not watched, and both are applied again.
    edited = {"url": "http://127.0.0.1:10", "tokenSecretRef": {"name": "other"}}
    fresh.edit(namespace, "scaled", autoscaling={"mode": "KEDA", "prometheus": edited})
    until(lambda: "127.0.0.1:10" in str(scaled_objects(fresh, namespace)), "the ScaledObject is edited")
    fresh.edit(namespace, "scaled", autoscaling=None, replicas=0)
    until(lambda: not scaled_objects(fresh, namespace), "the ScaledObject is gone")


def edit_child(api: Any, kind: str, name: str, namespace: str, until: Any) -> None:
    """Remove a label of a child, which the operator reads and applies again."""
    label = "app.kubernetes.io/managed-by"
    read = getattr(api, f"read_namespaced_{kind}")
    patched = {"metadata": {"labels": {label: None}}}
    getattr(api, f"patch_namespaced_{kind}")(name, namespace, patched)
    until(lambda: label in read(name, namespace).metadata.labels, f"the label of the {kind} is back")


def scaling(mode: str, **fields: Any) -> dict[str, Any]:
    return {"mode": mode, "minReplicas": 0, "maxReplicas": 2, **fields}


def condition(fresh: Any, namespace: str, name: str, of: str = "scaled") -> str:
    conditions = fresh.read(namespace, of).get("status", {}).get("conditions", [])
    return next((found["message"] for found in conditions if found["type"] == name), "")


def scaled_objects(fresh: Any, namespace: str) -> list[Any]:
    found: list[Any] = fresh.objects.list_namespaced_custom_object(
        "keda.sh", "v1alpha1", namespace, "scaledobjects"
    )["items"]
    return found


def keda_definitions() -> list[dict[str, Any]]:
    """KEDA's kinds, as far as an API server needs them."""
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    made = []
    for kind in ("ScaledObject", "TriggerAuthentication"):
        plural = f"{kind.lower()}s"
        version = {
            "name": "v1alpha1",
            "served": True,
            "storage": True,
            "schema": {"openAPIV3Schema": anything},
        }
        names = {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"}
        spec = {"group": "keda.sh", "scope": "Namespaced", "names": names, "versions": [version]}
        made.append(
            {
                "apiVersion": "apiextensions.k8s.io/v1",
                "kind": "CustomResourceDefinition",
                "metadata": {"name": f"{plural}.keda.sh"},
                "spec": spec,
            }
        )
    return made


def define(fresh: Any, until: Any, objects: Iterable[dict[str, Any]]) -> None:
    """The chart's kind, and KEDA's, once for all tests; a kube-apiserver serves them a moment after it has them."""
    if not fresh.definitions.list_custom_resource_definition().items:
        (definition,) = (item for item in objects if item["kind"] == "CustomResourceDefinition")
        for each in (definition, *keda_definitions()):
            fresh.definitions.create_custom_resource_definition(each)
            until(partial(fresh.serves, each["spec"]), f"{each['metadata']['name']} is served")


def service(fresh: Any, namespace: str) -> bool:
    return any(item.metadata.name == "demo" for item in fresh.core.list_namespaced_service(namespace).items)


def seen(fresh: Any, namespace: str) -> bool:
    found = fresh.read(namespace, "demo")
    return bool(found.get("status", {}).get("observedGeneration") == found["metadata"]["generation"])


def ours(events: Iterable[Any]) -> list[Any]:
    return [event for event in events if event.involved_object.kind == "TranslationDeployment"]


@pytest.mark.parametrize(("scope", "patches"), [("cluster", True), ("namespaces", False)])
async def test_operator_gets_what_it_asks_for_and_asks_for_all_it_gets(
    fresh, until, tmp_path, scope, patches
):
    system, namespace = f"{scope}-system", f"{scope}-demo"
    watched = {"watchNamespaces": [namespace]} if scope == "namespaces" else {}
    rights = {"keda": {"enabled": True}, "prometheus": {"readSecrets": True}, "rbac": {"patchPods": patches}}
    objects = rendered(system, {**watched, **rights})
    await asyncio.to_thread(define, fresh, until, objects)
    for name in (system, namespace):
        fresh.make_namespace(name)
    (pod,) = (item["spec"]["template"]["spec"] for item in objects if item["kind"] == "Deployment")
    gate = Gate(fresh.api.configuration, grants(objects, pod["serviceAccountName"]))
    arguments = [*pod["containers"][0]["args"], "--health-port=0", "--metrics-port=0"]
    async with opened(gate) as url, running(url, arguments, tmp_path):
        try:
            await asyncio.to_thread(play, fresh, namespace, until)
        finally:
            assert not gate.refused
    unused = {(grant.verb, grant.group, grant.resource) for grant in gate.given - gate.used}
    assert unused == NOT_ASKED_OF_ANY_SERVER


async def test_router_gets_what_it_asks_for_and_asks_for_all_it_gets(fresh, until, tmp_path):
    system = "router-system"
    fresh.make_namespace(system)
    objects = rendered(system, {"router": {"enabled": True, "drain": {"lameDuckSeconds": 0}}})
    await asyncio.to_thread(define, fresh, until, objects)
    objects = [item for item in objects if "-router" in item["metadata"]["name"]]
    (pod,) = (item["spec"]["template"]["spec"] for item in objects if item["kind"] == "Deployment")
    gate = Gate(fresh.api.configuration, grants(objects, pod["serviceAccountName"]))
    arguments = [*pod["containers"][0]["args"], "--port=0", "--admin-port=0"]
    async with opened(gate) as url, running(url, arguments, tmp_path), asyncio.timeout(60):
        await asyncio.to_thread(until, lambda: gate.used == gate.given, "everything granted was used")
        assert not gate.refused
