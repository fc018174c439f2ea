"""What the project relies on, held against every API server there is."""

import asyncio
import json
import re
from typing import Any

import httpx
import pytest
from kubernetes.aio import watch
from kubernetes.aio.client import AppsV1Api, CoreV1Api, CustomObjectsApi

from .conftest import Server

WIDGET = {"apiVersion": "example.com/v1", "kind": "Widget"}


def widget(name: str = "w", **spec: Any) -> dict[str, Any]:
    return {**WIDGET, "metadata": {"name": name}, "spec": spec}


def config(name: str = "c", **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


ENGINE: dict[str, Any] = {
    "name": "engine",
    "image": "registry.example/engine:1",
    "args": ["serve"],
    "env": [
        {"name": "A", "value": "1"},
        {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
    ],
    "ports": [{"name": "http", "containerPort": 8000}],
    "resources": {
        "limits": {"cpu": "2", "memory": "1024Mi", "nvidia.com/gpu": "1"},
        "requests": {"cpu": "500m"},
    },
    "startupProbe": {"httpGet": {"path": "/startupz", "port": "http"}, "failureThreshold": 60},
    "livenessProbe": {"tcpSocket": {"port": 8000}},
    "securityContext": {"readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}},
    "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
}


def deployment(name: str = "web", **spec: Any) -> dict[str, Any]:
    pod = {
        "containers": [ENGINE],
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        "automountServiceAccountToken": False,
        "volumes": [{"name": "tmp", "emptyDir": {}}, {"name": "shm", "emptyDir": {"medium": "Memory"}}],
    }
    template = {"metadata": {"labels": {"app": name}}, "spec": pod}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": name}}, "template": template, **spec},
    }


def endpoint_slice(kind: str, *addresses: str) -> dict[str, Any]:
    endpoints = [{"addresses": [address]} for address in addresses]
    ports = [{"name": "http", "port": 8000}]
    body = {"metadata": {"name": "s"}, "addressType": kind, "ports": ports, "endpoints": endpoints}
    return {"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", **body}


class TestBuiltIns:
    def test_an_applied_deployment_reads_back_the_same_everywhere(
        self, server: Server, namespace: str
    ) -> None:
        path = f"/apis/apps/v1/namespaces/{namespace}/deployments/web"
        made = server.call("APPLY", path, deployment(), fieldManager="us")
        container = made["spec"]["template"]["spec"]["containers"][0]
        assert container["resources"] == {
            "limits": {"cpu": "2", "memory": "1Gi", "nvidia.com/gpu": "1"},
            "requests": {"cpu": "500m"},
        }
        assert container["startupProbe"] == {
            "httpGet": {"path": "/startupz", "port": "http", "scheme": "HTTP"},
            "failureThreshold": 60, "periodSeconds": 10, "successThreshold": 1, "timeoutSeconds": 1,
        }  # fmt: skip
        assert container["env"][1]["valueFrom"]["fieldRef"] == {
            "apiVersion": "v1",
            "fieldPath": "status.podIP",
        }
        assert container["ports"] == [{"name": "http", "containerPort": 8000, "protocol": "TCP"}]
        assert {
            key: made["spec"][key] for key in ("strategy", "revisionHistoryLimit", "progressDeadlineSeconds")
        } == {
            "strategy": {
                "type": "RollingUpdate",
                "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"},
            },
            "revisionHistoryLimit": 10,
            "progressDeadlineSeconds": 600,
        }
        spec = {
            key: made["spec"]["template"]["spec"][key]
            for key in ("restartPolicy", "terminationGracePeriodSeconds")
        }
        assert spec == {"restartPolicy": "Always", "terminationGracePeriodSeconds": 30}
        assert server.call("APPLY", path, deployment(), fieldManager="us") == made

    def test_scale_is_applied_as_the_owner_of_replicas(self, server: Server, namespace: str) -> None:
        path = f"/apis/apps/v1/namespaces/{namespace}/deployments/web"
        server.call("APPLY", path, deployment(), fieldManager="us")
        server.call("MERGE", f"{path}/scale", {"spec": {"replicas": 5}}, fieldManager="kubectl")
        scale: dict[str, Any] = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "web"}}
        scale["spec"] = {"replicas": 7}
        refused = server.refused(409, "APPLY", f"{path}/scale", scale, fieldManager="scaler")
        assert 'conflict with "kubectl" with subresource "scale"' in refused["message"]
        made = server.call("APPLY", f"{path}/scale", scale, fieldManager="scaler", force="true")
        assert (made["kind"], made["spec"]) == ("Scale", {"replicas": 7})
        found = server.call("GET", path)
        assert found["spec"]["replicas"] == 7
        (entry,) = [one for one in found["metadata"]["managedFields"] if one["manager"] == "scaler"]
        assert (entry["operation"], entry["subresource"]) == ("Apply", "scale")
        assert entry["fieldsV1"] == {"f:spec": {"f:replicas": {}}}

    def test_apply_conflicts_prunes_and_forces(self, server: Server, namespace: str) -> None:
        path = f"/apis/apps/v1/namespaces/{namespace}/deployments/web"
        server.call("APPLY", path, deployment(minReadySeconds=3), fieldManager="us")
        server.call("MERGE", f"{path}/scale", {"spec": {"replicas": 5}}, fieldManager="kubectl")
        refused = server.refused(409, "APPLY", path, deployment(), fieldManager="us")
        assert refused["message"] == (
            'Apply failed with 1 conflict: conflict with "kubectl" with subresource "scale" using apps/v1: '
            ".spec.replicas"
        )
        changed = deployment()
        changed["spec"]["template"]["spec"]["containers"] = [
            {**ENGINE, "env": ENGINE["env"][:1], "image": "i:2"}
        ]
        made = server.call("APPLY", path, changed, fieldManager="us", force="true")
        assert made["metadata"]["generation"] == 3
        assert made["spec"]["replicas"] == 2
        assert "minReadySeconds" not in made["spec"]
        container = made["spec"]["template"]["spec"]["containers"][0]
        assert (container["image"], [item["name"] for item in container["env"]]) == ("i:2", ["A"])

    @pytest.mark.parametrize(
        ("change", "field"),
        [
            ({"replicas": -1}, "spec.replicas"),
            ({"selector": {"matchLabels": {"app": "other"}}}, "spec.template.metadata.labels"),
        ],
    )
    def test_bad_deployments(self, server: Server, namespace: str, change: Any, field: str) -> None:
        path = f"/apis/apps/v1/namespaces/{namespace}/deployments"
        refused = server.refused(422, "POST", path, deployment(**change))
        assert refused["message"].startswith(f'Deployment.apps "web" is invalid: {field}: Invalid value: ')

    def test_an_unknown_field_is_dropped_or_refused(self, server: Server, namespace: str) -> None:
        path = f"/api/v1/namespaces/{namespace}/configmaps"
        assert "extra" not in server.call("POST", path, {**config(), "extra": 1})
        refused = server.refused(400, "POST", path, {**config("d"), "extra": 1}, fieldValidation="Strict")
        assert refused["message"] == (
            'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: unknown field "extra"'
        )

    def test_pods_bind_run_and_terminate_gracefully(self, server: Server, namespace: str) -> None:
        path = f"/api/v1/namespaces/{namespace}/pods"
        body = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        made = server.call("POST", path, body)
        assert made["status"]["phase"] == "Pending"
        binding = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "one"}}
        server.call("POST", f"{path}/p/binding", binding)
        bound = server.call("GET", f"{path}/p")
        assert bound["spec"]["nodeName"] == "one"
        assert [item["type"] for item in bound["status"]["conditions"]] == ["PodScheduled"]
        running = {"status": {"phase": "Running", "podIP": "10.1.2.3", "podIPs": [{"ip": "10.1.2.3"}]}}
        assert server.call("STRATEGIC", f"{path}/p/status", running)["status"]["phase"] == "Running"
        left = server.call("DELETE", f"{path}/p")
        assert left["metadata"]["deletionGracePeriodSeconds"] == 30
        assert server.call("DELETE", f"{path}/p", gracePeriodSeconds=0)["metadata"]["name"] == "p"
        assert server.refused(404, "GET", f"{path}/p")["message"] == 'pods "p" not found'

    def test_services_keep_their_address(self, server: Server, namespace: str) -> None:
        path = f"/api/v1/namespaces/{namespace}/services"
        spec = {"selector": {"a": "b"}, "ports": [{"name": "http", "port": 80, "targetPort": "http"}]}
        body = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": spec}
        made = server.call("APPLY", f"{path}/s", body, fieldManager="us")["spec"]
        again = server.call("APPLY", f"{path}/s", body, fieldManager="us")["spec"]
        assert made == again
        rest = {key: value for key, value in made.items() if not key.startswith("clusterIP")}
        assert rest == {
            **spec,
            "type": "ClusterIP",
            "sessionAffinity": "None",
            "internalTrafficPolicy": "Cluster",
            "ipFamilies": ["IPv4"],
            "ipFamilyPolicy": "SingleStack",
            "ports": [{"name": "http", "port": 80, "targetPort": "http", "protocol": "TCP"}],
        }

    def test_a_loopback_address_is_a_name(self, server: Server, namespace: str) -> None:
        path = f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices"
        made = server.call("POST", path, endpoint_slice("FQDN", "127.64.0.1"))
        assert made["endpoints"][0]["addresses"] == ["127.64.0.1"]
        emptied = server.call("MERGE", f"{path}/s", {"endpoints": []})
        assert not emptied.get("endpoints")

    def test_finalizers_and_preconditions(self, server: Server, namespace: str) -> None:
        path = f"/api/v1/namespaces/{namespace}/configmaps"
        body = config()
        body["metadata"]["finalizers"] = ["example.com/hold"]
        server.call("POST", path, body)
        server.refused(409, "DELETE", f"{path}/c", {"preconditions": {"uid": "other"}})
        marked = server.call("DELETE", f"{path}/c")
        assert marked["metadata"]["deletionTimestamp"]
        added = {"metadata": {"finalizers": ["example.com/hold", "example.com/more"]}}
        assert "no new finalizers" in server.refused(422, "MERGE", f"{path}/c", added)["message"]
        server.call("MERGE", f"{path}/c", {"metadata": {"finalizers": None}})
        server.refused(404, "GET", f"{path}/c")


class TestCustomResources:
    def test_defaults_and_pruning(self, server: Server, widgets: str) -> None:
        body = {**widget(color="red", foo=1, pairs=[{"source": "en"}], free={"x": None}), "status": {"a": 1}}
        made = server.call("POST", widgets, body)
        assert made["spec"] == {
            "color": "red",
            "size": 2,
            "pairs": [{"source": "en", "n": 1}],
            "nested": {"a": 3},
            "free": {"x": None},
        }
        assert made["metadata"]["generation"] == 1
        found = server.call("GET", f"{widgets}/w")
        assert found["status"] == {"observedGeneration": -1}
        assert not any("f:status" in entry["fieldsV1"] for entry in found["metadata"]["managedFields"])

    @pytest.mark.parametrize(
        ("spec", "field", "reason"),
        [
            ({"color": "R1"}, "spec.color", "Invalid"),
            ({"color": "red", "size": 0}, "spec.size", "Invalid"),
            ({"color": "red", "size": 10}, "spec.size", "Invalid"),
            ({"color": "red", "size": 7}, "spec", "Invalid"),
            ({"color": "red", "pairs": [{"source": "a"}, {"source": "a"}]}, "spec.pairs[1]", "Duplicate"),
            ({"size": 3}, "spec.color", "Required"),
            ({"color": "toolong"}, "spec.color", "TooLong"),
            ({"color": "red", "kind": "c"}, "spec.kind", "NotSupported"),
            ({"color": "red", "size": "1"}, "spec.size", "TypeInvalid"),
            ({"color": "red", "either": True}, "spec.either", "TypeInvalid"),
        ],
    )
    def test_refusals_name_the_field(
        self, server: Server, widgets: str, spec: Any, field: str, reason: str
    ) -> None:
        refused = server.refused(422, "POST", widgets, widget(**spec))
        first, *unchecked = refused["details"]["causes"]
        assert (first["field"], first["reason"]) == (field, f"FieldValue{reason}")
        # Rules are not checked on what breaks the schema in this way.
        assert bool(unchecked) == (reason not in ("Invalid", "Duplicate"))
        assert refused["message"].startswith('Widget.example.com "w" is invalid: ')

    def test_status_and_scale_are_apart_from_the_spec(self, server: Server, widgets: str) -> None:
        server.call("POST", widgets, widget(color="red", replicas=1))
        change = {
            "status": {"replicas": 3, "selector": "a=b"},
            "spec": {"size": 9},
            "metadata": {"labels": {"a": "b"}},
        }
        made = server.call("MERGE", f"{widgets}/w/status", change)
        assert (made["spec"]["size"], made["status"]["replicas"], made["metadata"]["generation"]) == (2, 3, 1)
        assert "labels" not in made["metadata"]
        made = server.call("MERGE", f"{widgets}/w", {"status": {"replicas": 8}, "spec": {"size": 4}})
        assert (made["status"]["replicas"], made["metadata"]["generation"]) == (3, 2)
        scale = server.call("MERGE", f"{widgets}/w/scale", {"spec": {"replicas": 6}})
        assert (scale["spec"], scale["status"]) == ({"replicas": 6}, {"replicas": 3, "selector": "a=b"})
        assert server.call("GET", f"{widgets}/w")["metadata"]["generation"] == 3

    def test_appliers_share_lists_by_key(self, server: Server, widgets: str) -> None:
        server.call(
            "APPLY", f"{widgets}/a", widget("a", color="red", pairs=[{"source": "en"}]), fieldManager="us"
        )
        made = server.call(
            "APPLY", f"{widgets}/a", widget("a", color="red", pairs=[{"source": "de"}]), fieldManager="them"
        )
        assert [pair["source"] for pair in made["spec"]["pairs"]] == ["en", "de"]
        made = server.call("APPLY", f"{widgets}/a", widget("a", color="red"), fieldManager="us")
        assert [pair["source"] for pair in made["spec"]["pairs"]] == ["de"]
        refused = server.refused(409, "APPLY", f"{widgets}/a", widget("a", color="blue"), fieldManager="us")
        assert refused["message"] == 'Apply failed with 1 conflict: conflict with "them": .spec.color'
        refused = server.refused(
            500, "APPLY", f"{widgets}/a", widget("a", color="red", foo=1), fieldManager="us"
        )
        assert refused["message"].endswith(".spec.foo: field not declared in schema")

    def test_tables(self, server: Server, widgets: str) -> None:
        server.call("POST", widgets, widget(color="red"))
        server.call(
            "MERGE", f"{widgets}/w/status", {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
        )
        accept = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
        table = server.http.get(widgets, headers=accept).json()
        assert [(column["name"], column["priority"]) for column in table["columnDefinitions"]] == [
            ("Name", 0), ("Size", 0), ("Ready", 0), ("Color", 1),
        ]  # fmt: skip
        assert [row["cells"] for row in table["rows"]] == [["w", 2, "True", "red"]]

    def test_rules_that_do_not_compile(self, server: Server, widgets: str) -> None:
        definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        path = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/x-kubernetes-validations"
        change = [{"op": "replace", "path": path, "value": [{"rule": "self.size >"}]}]
        refused = server.refused(422, "JSON", f"{definitions}/widgets.example.com", change)
        assert "compilation failed" in refused["message"]


class TestWatches:
    def lines(self, server: Server, path: str, **query: Any) -> list[dict[str, Any]]:
        """The events of a watch of one second."""
        found = []
        with server.http.stream("GET", path, params={"watch": "1", "timeoutSeconds": 1, **query}) as answer:
            found += [json.loads(line) for line in answer.iter_lines() if line]
        return found

    def changes(self, lines: list[dict[str, Any]]) -> list[tuple[str, str]]:
        return [(line["type"], line["object"]["metadata"]["name"]) for line in lines]

    def test_it_begins_with_what_is_there(self, server: Server, namespace: str) -> None:
        path = f"/api/v1/namespaces/{namespace}/configmaps"
        server.call("POST", path, config("a"))
        assert self.changes(self.lines(server, path)) == [("ADDED", "a")]

    def test_it_resumes_and_follows_its_selector(self, server: Server, namespace: str) -> None:
        path = f"/api/v1/namespaces/{namespace}/configmaps"
        start = server.call("GET", path)["metadata"]["resourceVersion"]
        server.call("POST", path, config("a"))
        server.call("MERGE", f"{path}/a", {"metadata": {"labels": {"x": "y"}}})
        server.call("MERGE", f"{path}/a", {"data": {"k": "v"}})
        server.call("MERGE", f"{path}/a", {"metadata": {"labels": {"x": None}}})
        server.call("DELETE", f"{path}/a")
        everything = self.changes(self.lines(server, path, resourceVersion=start))
        assert [kind for kind, _ in everything] == ["ADDED", "MODIFIED", "MODIFIED", "MODIFIED", "DELETED"]
        selected = self.changes(self.lines(server, path, resourceVersion=start, labelSelector="x=y"))
        assert [kind for kind, _ in selected] == ["ADDED", "MODIFIED", "DELETED"]

    def test_initial_events_end_with_a_bookmark(self, server: Server, namespace: str) -> None:
        path = f"/api/v1/namespaces/{namespace}/configmaps"
        server.call("POST", path, config("a"))
        query = {
            "sendInitialEvents": "true",
            "allowWatchBookmarks": "true",
            "resourceVersionMatch": "NotOlderThan",
        }
        lines = self.lines(server, path, **query)
        if "RequestWatchProgress" in lines[0]["object"].get("message", ""):
            pytest.skip("a kube-apiserver streams lists only over etcd 3.5 and later")
        assert [line["type"] for line in lines[:2]] == ["ADDED", "BOOKMARK"]
        assert lines[1]["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}

    async def test_the_client_library_follows(self, server: Server, namespace: str) -> None:
        async with server.client() as api:
            core: Any = CoreV1Api(api)
            seen: list[tuple[str, str]] = []
            added = asyncio.Event()

            async def follow() -> None:
                async with watch.Watch() as stream:
                    async for event in stream.stream(core.list_namespaced_config_map, namespace):
                        seen.append((event["type"], event["object"].metadata.name))
                        if event["object"].metadata.name == "a":
                            added.set()
                        if event["type"] == "DELETED":
                            closed = stream.resp.connection.protocol.closed
                            break
                # Closing TLS takes a round trip, and the event loop ends with the test.
                await asyncio.wait((closed,))

            following = asyncio.create_task(follow())
            await core.create_namespaced_config_map(namespace, config("a", k="v"))
            async with asyncio.timeout(20):
                # It may begin to follow later than this and still hear of what is there, but not of what is gone.
                await added.wait()
            await core.patch_namespaced_config_map("a", namespace, {"data": {"k": "w"}})
            await core.delete_namespaced_config_map("a", namespace)
            async with asyncio.timeout(20):
                await following
            assert seen[-1] == ("DELETED", "a")


async def test_the_client_library_works_with_every_kind_of_call(
    server: Server, namespace: str, widgets: str
) -> None:
    async with server.client() as api:
        # Any: the library types bodies as its models, and every field as Optional.
        core: Any = CoreV1Api(api)
        apps: Any = AppsV1Api(api)
        custom: Any = CustomObjectsApi(api)
        await apps.create_namespaced_deployment(namespace, deployment())
        scale = await apps.patch_namespaced_deployment_scale("web", namespace, {"spec": {"replicas": 7}})
        assert scale.spec.replicas == 7
        listed = await apps.list_namespaced_deployment(namespace, label_selector="app=web")
        assert [item.spec.replicas for item in listed.items] == [7]
        await custom.create_namespaced_custom_object(
            "example.com", "v1", namespace, "widgets", widget(color="red")
        )
        found = await custom.get_namespaced_custom_object("example.com", "v1", namespace, "widgets", "w")
        assert found["spec"]["size"] == 2
        await core.delete_collection_namespaced_config_map(namespace)
        secret = await core.create_namespaced_secret(
            namespace, {"metadata": {"name": "s"}, "stringData": {"a": "b"}}
        )
        assert secret.data


def test_conflicting_updates(server: Server, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    made = server.call("POST", path, config(a="1"))
    server.call("PUT", f"{path}/c", {**made, "data": {"a": "2"}})
    refused = server.refused(409, "PUT", f"{path}/c", {**made, "data": {"a": "3"}})
    assert refused["message"] == (
        'Operation cannot be fulfilled on configmaps "c": the object has been modified; please apply your changes '
        "to the latest version and try again"
    )


def test_requests_without_the_token_are_refused(server: Server) -> None:
    answer = httpx.get(f"{server.http.base_url}/api/v1/namespaces", verify=False)
    assert answer.status_code in (401, 403)
    assert answer.json()["kind"] == "Status"


def test_the_version(server: Server) -> None:
    assert re.fullmatch(r"v1\.\d+\.\d+.*", server.call("GET", "/version")["gitVersion"])
