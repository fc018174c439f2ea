"""The verbs over HTTP, without a socket."""

import base64
from collections.abc import Callable
from typing import Any

import pytest
from starlette.testclient import TestClient

from dragoman_devcluster.api.app import create_app
from dragoman_devcluster.api.store import Store

CONFIG = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGET = {"apiVersion": "example.com/v1", "kind": "Widget"}
WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"


def config(name: str = "a", **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def pod(name: str = "p", **spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "labels": {"app": "x"}},
        "spec": {"containers": [{"name": "c", "image": "i"}], **spec},
    }


def deployment(name: str = "web", **spec: Any) -> dict[str, Any]:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i:1"}]}}
    kind = {"apiVersion": "apps/v1", "kind": "Deployment"}
    return {
        **kind,
        "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template, **spec},
    }


class TestObjects:
    def test_create_read_update_delete(self, api: Any) -> None:
        made = api("POST", CONFIG, config(x="1"))
        assert (made["kind"], made["apiVersion"], made["metadata"]["namespace"]) == (
            "ConfigMap",
            "v1",
            "default",
        )
        assert made["metadata"]["creationTimestamp"] == "2026-01-02T03:04:05Z"
        assert api("GET", f"{CONFIG}/a") == made
        changed = api("PUT", f"{CONFIG}/a", {**made, "data": {"x": "2"}})
        assert changed["metadata"]["uid"] == made["metadata"]["uid"]
        assert api("DELETE", f"{CONFIG}/a")["details"]["uid"] == made["metadata"]["uid"]
        gone = api("GET", f"{CONFIG}/a", code=404)
        assert gone["message"] == 'configmaps "a" not found'
        assert gone["details"] == {"name": "a", "kind": "configmaps"}

    def test_an_update_without_change_is_no_write(self, api: Any) -> None:
        made = api("POST", CONFIG, config(x="1"))
        assert api("PUT", f"{CONFIG}/a", made) == made
        assert api("PATCH", f"{CONFIG}/a", {"data": {"x": "1"}}) == made

    def test_a_name_that_is_taken(self, api: Any) -> None:
        api("POST", CONFIG, config())
        assert api("POST", CONFIG, config(), code=409)["message"] == 'configmaps "a" already exists'

    def test_generated_names_differ(self, api: Any) -> None:
        body = {"metadata": {"generateName": "a-"}}
        names = {api("POST", CONFIG, body)["metadata"]["name"] for _ in range(5)}
        assert len(names) == 5
        assert all(name.startswith("a-") and len(name) == 7 for name in names)

    def test_a_dry_run_stores_nothing(self, api: Any) -> None:
        assert api("POST", CONFIG, config(x="1"), dryRun="All")["data"] == {"x": "1"}
        api("GET", f"{CONFIG}/a", code=404)

    def test_namespaces_have_to_be_there(self, api: Any) -> None:
        refused = api("POST", "/api/v1/namespaces/nowhere/configmaps", config(), code=404)
        assert refused["message"] == 'namespaces "nowhere" not found'

    def test_a_terminating_namespace_refuses_objects_and_waits_for_its_finalizer(self, api: Any) -> None:
        space = "/api/v1/namespaces"
        api("POST", space, {"metadata": {"name": "n"}})
        assert api("DELETE", f"{space}/n")["status"]["phase"] == "Terminating"
        refused = api("POST", f"{space}/n/configmaps", config(), code=403)
        assert "namespace n is being terminated" in refused["message"]
        live = api("GET", f"{space}/n")
        api("PUT", f"{space}/n/finalize", {**live, "spec": {"finalizers": []}})
        api("GET", f"{space}/n", code=404)

    def test_lists_select(self, api: Any) -> None:
        api("POST", PODS, pod("a"))
        api("POST", PODS, {**pod("b"), "metadata": {"name": "b"}})
        listed = api("GET", PODS, labelSelector="app=x")
        assert listed["kind"] == "PodList"
        assert [item["metadata"]["name"] for item in listed["items"]] == ["a"]
        listed = api("GET", "/api/v1/pods", fieldSelector="metadata.name=b")
        assert [item["metadata"]["name"] for item in listed["items"]] == ["b"]

    def test_collections_are_deleted_by_selector(self, api: Any) -> None:
        api("POST", PODS, pod("a"))
        api("POST", PODS, {**pod("b"), "metadata": {"name": "b"}})
        api("DELETE", PODS, labelSelector="app=x")
        assert [item["metadata"]["name"] for item in api("GET", PODS)["items"]] == ["b"]


class TestDeletion:
    def test_dependents_are_deleted_in_the_background(self, api: Any) -> None:
        api("POST", CONFIG, config())
        refused = api("DELETE", f"{CONFIG}/a", {"propagationPolicy": "Orphan"}, code=400)
        assert "supports Background, not Orphan" in refused["message"]
        api("DELETE", f"{CONFIG}/a", {"propagationPolicy": "Background"})

    def test_a_pod_on_a_node_is_removed_by_the_node(self, api: Any) -> None:
        api("POST", PODS, pod(nodeName="one", terminationGracePeriodSeconds=60))
        marked = api("DELETE", f"{PODS}/p")["metadata"]
        assert (marked["deletionTimestamp"], marked["deletionGracePeriodSeconds"]) == (
            "2026-01-02T03:05:05Z",
            60,
        )
        assert api("DELETE", f"{PODS}/p", gracePeriodSeconds=5)["metadata"]["deletionGracePeriodSeconds"] == 5
        api("DELETE", f"{PODS}/p", {"gracePeriodSeconds": 0})
        api("GET", f"{PODS}/p", code=404)

    def test_a_pod_without_a_node_goes_at_once(self, api: Any) -> None:
        api("POST", PODS, pod())
        api("DELETE", f"{PODS}/p")
        api("GET", f"{PODS}/p", code=404)


class TestBuiltIns:
    def test_generation_counts_changes_of_the_spec_only(self, api: Any) -> None:
        api("POST", DEPLOYMENTS, deployment())
        assert (
            api("PATCH", f"{DEPLOYMENTS}/web", {"metadata": {"labels": {"x": "y"}}})["metadata"]["generation"]
            == 1
        )
        assert api("PATCH", f"{DEPLOYMENTS}/web", {"spec": {"replicas": 3}})["metadata"]["generation"] == 2
        status = api(
            "PATCH", f"{DEPLOYMENTS}/web/status", {"status": {"replicas": 3}, "spec": {"replicas": 9}}
        )
        assert (status["metadata"]["generation"], status["spec"]["replicas"]) == (2, 3)
        assert status["status"] == {"replicas": 3}
        assert api("PATCH", f"{DEPLOYMENTS}/web", {"status": {"replicas": 7}})["status"] == {"replicas": 3}

    def test_a_selector_has_to_fit_and_to_stay(self, api: Any) -> None:
        wrong = deployment(selector={"matchLabels": {"a": "c"}})
        assert "does not match template `labels`" in api("POST", DEPLOYMENTS, wrong, code=422)["message"]
        api("POST", DEPLOYMENTS, deployment())
        change = {
            "spec": {
                "selector": {"matchLabels": {"a": "c"}},
                "template": {"metadata": {"labels": {"a": "c"}}},
            }
        }
        assert "field is immutable" in api("PATCH", f"{DEPLOYMENTS}/web", change, code=422)["message"]

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (
                {"paused": True},
                "spec.paused: Forbidden: the embedded API does not support paused Deployments",
            ),
            (
                {"strategy": {"type": "Recreate"}},
                "spec.strategy.type: Invalid value: 'Recreate' is not one of ['RollingUpdate']",
            ),
        ],
    )
    def test_what_no_controller_does_is_refused(self, api: Any, change: Any, message: str) -> None:
        assert message in api("POST", DEPLOYMENTS, deployment(**change), code=422)["message"]

    def test_services_get_addresses_that_stay_theirs(self, api: Any) -> None:
        services = "/api/v1/namespaces/default/services"
        ports = [{"port": 80}]
        first = api("POST", services, {"metadata": {"name": "a"}, "spec": {"ports": ports}})["spec"]
        second = api("POST", services, {"metadata": {"name": "b"}, "spec": {"ports": ports}})["spec"]
        headless = api(
            "POST", services, {"metadata": {"name": "c"}, "spec": {"clusterIP": "None", "ports": ports}}
        )
        assert first["clusterIP"].startswith("127.")
        assert first["clusterIP"] != second["clusterIP"]
        assert first["ports"] == [{"port": 80, "protocol": "TCP", "targetPort": 80}]
        assert headless["spec"]["clusterIPs"] == ["None"]
        without = {"metadata": {"name": "a"}, "spec": {"ports": [{"port": 81}]}}
        assert api("PUT", f"{services}/a", without)["spec"]["clusterIP"] == first["clusterIP"]

    def test_plain_secrets_are_encoded(self, api: Any) -> None:
        made = api(
            "POST",
            "/api/v1/namespaces/default/secrets",
            {"metadata": {"name": "s"}, "stringData": {"a": "b"}},
        )
        assert (made["data"], made["type"]) == ({"a": base64.b64encode(b"b").decode()}, "Opaque")
        assert "stringData" not in made


def test_events_are_forgotten_after_an_hour(api: Any, clock: Any) -> None:
    events = "/api/v1/namespaces/default/events"
    about = {"kind": "Pod", "name": "p", "namespace": "default"}
    api("POST", events, {"metadata": {"name": "old"}, "involvedObject": about})
    clock.pass_s(3601)
    api("POST", events, {"metadata": {"name": "new"}, "involvedObject": about})
    assert [event["metadata"]["name"] for event in api("GET", events)["items"]] == ["new"]


class TestSubresources:
    def test_binding_happens_once(self, api: Any) -> None:
        api("POST", PODS, pod())
        binding = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "one"}}
        api("POST", f"{PODS}/p/binding", binding)
        assert api("GET", f"{PODS}/p")["spec"]["nodeName"] == "one"
        assert (
            'already assigned to node "one"' in api("POST", f"{PODS}/p/binding", binding, code=409)["message"]
        )

    def test_subresources_that_are_not_there(self, api: Any) -> None:
        api("POST", PODS, pod())
        refused = api("POST", f"{PODS}/p/exec", {}, code=404)
        assert refused["message"] == "the embedded API does not serve pods/exec"
        assert api("DELETE", f"{PODS}/p/status", code=405)["reason"] == "MethodNotAllowed"


class TestPatches:
    def test_json_patch(self, api: Any) -> None:
        api("POST", CONFIG, config(x="1"))
        change = [
            {"op": "test", "path": "/data/x", "value": "1"},
            {"op": "replace", "path": "/data/x", "value": "2"},
        ]
        assert api("JSON", f"{CONFIG}/a", change)["data"] == {"x": "2"}
        assert api("JSON", f"{CONFIG}/a", change, code=422)["reason"] == "Invalid"

    def test_a_patch_with_an_old_version_conflicts(self, api: Any) -> None:
        made = api("POST", CONFIG, config(x="1"))
        version = made["metadata"]["resourceVersion"]
        api("PATCH", f"{CONFIG}/a", {"data": {"x": "2"}})
        api("PATCH", f"{CONFIG}/a", {"metadata": {"resourceVersion": version}, "data": {"x": "3"}}, code=409)

    def test_apply_needs_a_manager_and_known_fields(self, api: Any) -> None:
        assert "fieldManager: Required value" in api("APPLY", f"{CONFIG}/a", config(), code=422)["message"]
        refused = api("APPLY", f"{DEPLOYMENTS}/web", deployment(extra=1), code=500, fieldManager="us")
        assert refused["message"] == (
            "failed to create typed patch object (default/web; apps/v1, Kind=Deployment): .spec.extra: "
            "field not declared in schema"
        )

    def test_applying_equal_quantities_is_no_write(self, api: Any) -> None:
        body = deployment()
        body["spec"]["template"]["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "1000m"}}
        made = api("APPLY", f"{DEPLOYMENTS}/web", body, code=201, fieldManager="us")
        assert api("APPLY", f"{DEPLOYMENTS}/web", body, fieldManager="us") == made

    def test_other_formats_are_refused(self, api: Any, make_crd: Callable[..., Any]) -> None:
        api("POST", CRDS, make_crd())
        api("POST", WIDGETS, {**WIDGET, "metadata": {"name": "w"}})
        refused = api("STRATEGIC", f"{WIDGETS}/w", {}, code=415)
        assert "application/merge-patch+json" in refused["message"]
        answer = api.client.post(CONFIG, content=b"x", headers={"content-type": "text/plain"})
        assert answer.status_code == 415


class TestCustomResources:
    def test_an_update_has_to_name_its_version(self, api: Any, make_crd: Callable[..., Any]) -> None:
        api("POST", CRDS, make_crd())
        api("POST", WIDGETS, {**WIDGET, "metadata": {"name": "w"}})
        refused = api("PUT", f"{WIDGETS}/w", {**WIDGET, "metadata": {"name": "w"}}, code=422)
        assert "must be specified for an update" in refused["message"]

    def test_bad_definitions(self, api: Any, make_crd: Callable[..., Any]) -> None:
        wrong = make_crd()
        wrong["metadata"]["name"] = "gadgets.example.com"
        assert 'must be spec.names.plural+"."+spec.group' in api("POST", CRDS, wrong, code=422)["message"]
        wrong = make_crd(**{"x-kubernetes-validations": [{"rule": "self.color =="}]})
        assert "compilation failed" in api("POST", CRDS, wrong, code=422)["message"]
        wrong = make_crd({"size": {"type": "number of things"}})
        assert "properties.size.type: Invalid value" in api("POST", CRDS, wrong, code=422)["message"]

    def test_a_definition_takes_its_objects_with_it(self, api: Any, make_crd: Callable[..., Any]) -> None:
        api("POST", CRDS, make_crd())
        api("POST", WIDGETS, {**WIDGET, "metadata": {"name": "free"}})
        api("POST", WIDGETS, {**WIDGET, "metadata": {"name": "held", "finalizers": ["a/b"]}})
        api("DELETE", f"{CRDS}/widgets.example.com")
        assert [item["metadata"]["name"] for item in api("GET", WIDGETS)["items"]] == ["held"]
        api("PATCH", f"{WIDGETS}/held", {"metadata": {"finalizers": None}})
        api("GET", f"{CRDS}/widgets.example.com", code=404)
        api("GET", WIDGETS, code=404)

    def test_a_definition_takes_several_objects_with_it(self, api: Any, make_crd: Callable[..., Any]) -> None:
        api("POST", CRDS, make_crd())
        for name in ("a", "b", "c"):
            api("POST", WIDGETS, {**WIDGET, "metadata": {"name": name}})
        api("DELETE", f"{CRDS}/widgets.example.com")
        api("GET", f"{CRDS}/widgets.example.com", code=404)

    def test_discovery_and_documents_follow_definitions(self, api: Any, make_crd: Callable[..., Any]) -> None:
        before = api("GET", "/openapi/v3")["paths"]
        api("POST", CRDS, make_crd())
        assert "apis/example.com/v1" in api("GET", "/openapi/v3")["paths"].keys() - before.keys()
        document = api("GET", "/openapi/v3/apis/example.com/v1")
        assert "com.example.v1.Widget" in document["components"]["schemas"]
        listed = api("GET", "/apis/example.com/v1")["resources"]
        assert [item["name"] for item in listed] == ["widgets", "widgets/status", "widgets/scale"]
        assert "example.com" in {group["name"] for group in api("GET", "/apis")["groups"]}


class TestAccess:
    def test_everyone_needs_the_token(self, store: Store) -> None:
        with TestClient(create_app(store, token="secret")) as client:
            assert client.get("/readyz").text == "ok"
            assert client.get(CONFIG).json()["reason"] == "Unauthorized"
            assert client.get(CONFIG, headers={"authorization": "Bearer wrong"}).status_code == 401
            given = {"authorization": "Bearer secret"}
            assert client.get(CONFIG, headers=given).status_code == 200
            client.post(
                "/api/v1/namespaces/default/serviceaccounts", json={"metadata": {"name": "s"}}, headers=given
            )
            request = client.post(
                "/api/v1/namespaces/default/serviceaccounts/s/token", json={"spec": {}}, headers=given
            )
            token = {"authorization": f"Bearer {request.json()['status']['token']}"}
            assert client.get(CONFIG, headers=token).status_code == 200


@pytest.mark.parametrize(
    "path",
    ["/api/v2", "/apis/none/v1/things", "/api/v1/things", "/nothing", "/apis/apps/v1/deployments/x/y/z"],
)
def test_unknown_paths(api: Any, path: str) -> None:
    assert api("GET", path, code=404)["message"] == "the server could not find the requested resource"
