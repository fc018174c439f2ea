"""The operator's permissions, each with its reason. What is not listed here must not be granted."""

import itertools

import pytest

TD = "translationdeployments"
READ = {"get", "list", "watch"}
APPLY = {"create", "patch"}  # server-side apply needs both where the object may not exist

REASONS = {
    ("dragoman.io", TD): (
        {"list", "watch"},
        "watched; its spec is written through the scale subresource alone, and no finalizer is set",
    ),
    ("dragoman.io", f"{TD}/status"): ({"patch"}, "conditions, counts, url"),
    ("dragoman.io", f"{TD}/scale"): ({"patch"}, "autoscaling.mode Internal writes spec.replicas"),
    ("dragoman.io", f"{TD}/finalizers"): (
        {"update"},
        "children block their owner's deletion; the admission plugin OwnerReferencesPermissionEnforcement, on by "
        "default in OpenShift, asks for this",
    ),
    ("apps", "deployments"): (READ | APPLY, "the engine pods; goes with its owner"),
    ("apps", "replicasets"): ({"list", "watch"}, "the version that worked, to go back to; never written"),
    ("", "services"): (READ | APPLY, "goes with its owner"),
    ("", "serviceaccounts"): (READ | APPLY, "without a token; goes with its owner"),
    ("", "secrets"): (
        {"create"},
        "by which pods of one object recognise each other; never read; goes with its owner",
    ),
    ("policy", "poddisruptionbudgets"): (READ | APPLY, "goes with its owner"),
    ("networking.k8s.io", "networkpolicies"): (
        READ | APPLY | {"delete"},
        "spec.networkPolicy.enabled false takes it away while its owner stays",
    ),
    ("", "pods"): ({"list", "watch"}, "why a pod does not start, for the status"),
    ("autoscaling", "horizontalpodautoscalers"): (
        READ | APPLY | {"delete"},
        "spec.autoscaling.mode HPA; another mode takes it away while its owner stays",
    ),
    ("", "events"): (
        {"list", "watch"} | APPLY,
        "what happened, for kubectl describe; a repeated one is counted up; why a kubelet cannot mount a volume, "
        "which no pod's status says",
    ),
}
OPTIONAL = {
    ("keda.enabled", "keda.sh", "scaledobjects"): ({"get", "delete"} | APPLY, "mode KEDA; not watched"),
    ("keda.enabled", "keda.sh", "triggerauthentications"): (
        {"get", "delete"} | APPLY,
        "mode KEDA with a token",
    ),
    ("prometheus.readSecrets", "", "secrets"): (
        {"get"},
        "autoscaling.prometheus.tokenSecretRef; no list, so that only a name that is known is read",
    ),
}
LEASE = {
    ("create", None): "no name to restrict: the server checks creation before it knows one",
    ("get", "release-dragoman"): "who acts",
    ("update", "release-dragoman"): "take and renew",
}


def verbs_by_resource(rules):
    granted: dict[tuple[str, str], set[str]] = {}
    for rule in rules:
        assert set(rule) <= {"apiGroups", "resources", "verbs"}
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                granted.setdefault((group, resource), set()).update(rule["verbs"])
    return granted


def expected():
    return {resource: verbs for resource, (verbs, _) in REASONS.items()}


def test_cluster_role_grants_exactly_what_is_explained(render):
    role = render(rbac={"userRoles": False}).one("ClusterRole")
    assert verbs_by_resource(role["rules"]) == expected()


def test_what_is_optional_is_granted_for_its_value_alone(render):
    values = {"rbac": {"userRoles": False}, "keda": {"enabled": True}, "prometheus": {"readSecrets": True}}
    granted = verbs_by_resource(render(**values).one("ClusterRole")["rules"])
    added = {
        (value, *resource): granted[resource] - expected().get(resource, set())
        for resource in granted
        for value in {name for name, *rest in OPTIONAL if tuple(rest) == resource}
    }
    assert added == {name: verbs for name, (verbs, _) in OPTIONAL.items()}
    for value in ("keda", "prometheus"):
        less = verbs_by_resource(render(**{**values, value: {}}).one("ClusterRole")["rules"])
        missing = {(group, resource) for name, group, resource in OPTIONAL if name.startswith(value)}
        assert {resource for resource in granted if granted[resource] != less.get(resource)} == missing


@pytest.mark.parametrize(
    ("watched", "needed"), [([], False), (["team-a"], True), (["dragoman-system"], False)]
)
def test_routers_are_listed_in_the_releases_namespace(render, watched, needed):
    names = {role["metadata"]["name"] for role in render(watchNamespaces=watched).all("Role")}
    assert ("release-dragoman-routers" in names) == needed


def test_pods_are_patched_only_if_configured(render):
    role = render(rbac={"userRoles": False, "patchPods": True}).one("ClusterRole")
    assert verbs_by_resource(role["rules"]) == expected() | {("", "pods"): {"list", "watch", "patch"}}


def test_watched_namespaces_get_the_same_rules_and_the_cluster_none(render):
    rendered = render(watchNamespaces=["team-a", "team-b"], rbac={"userRoles": False})
    assert {"ClusterRole", "ClusterRoleBinding"}.isdisjoint(rendered.kinds)
    roles = [role for role in rendered.all("Role") if role["metadata"]["name"] == "release-dragoman"]
    assert [role["metadata"]["namespace"] for role in roles] == ["team-a", "team-b"]
    assert [verbs_by_resource(role["rules"]) for role in roles] == [expected()] * 2


@pytest.mark.parametrize("watched", [[], ["team-a"], ["dragoman-system"]], ids=str)
def test_the_lease_is_in_the_releases_namespace_and_the_only_one(render, watched):
    lease = render(watchNamespaces=watched).named("Role", "release-dragoman-lease")
    assert lease["metadata"]["namespace"] == "dragoman-system"
    granted = {
        (verb, name)
        for rule in lease["rules"]
        for verb in rule["verbs"]
        for name in rule.get("resourceNames", [None])
    }
    assert granted == set(LEASE)
    assert all(
        (rule["apiGroups"], rule["resources"]) == (["coordination.k8s.io"], ["leases"])
        for rule in lease["rules"]
    )


@pytest.mark.parametrize("watched", [[], ["team-a", "team-b"]], ids=str)
def test_every_binding_gives_one_existing_role_to_the_operator_alone(render, watched):
    rendered = render(watchNamespaces=watched)
    account = rendered.one("ServiceAccount")["metadata"]
    assert rendered.pod["serviceAccountName"] == account["name"]
    bindings = rendered.all("RoleBinding") + rendered.all("ClusterRoleBinding")
    bound = set()
    for binding in bindings:
        assert binding["subjects"] == [
            {"kind": "ServiceAccount", "name": account["name"], "namespace": account["namespace"]}
        ]
        role = binding["roleRef"]
        bound.add((role["kind"], binding["metadata"].get("namespace"), role["name"]))
    roles = rendered.all("Role") + rendered.all("ClusterRole")
    own = {
        (role["kind"], role["metadata"].get("namespace"), role["metadata"]["name"])
        for role in roles
        if not any("aggregate-to" in label for label in role["metadata"]["labels"])
    }
    assert bound == own


@pytest.mark.parametrize(
    ("values", "managed"),
    [({}, 1), ({"watchNamespaces": ["a", "b"]}, 2)],
    ids=["cluster", "namespaced"],
)
def test_no_role_grants_wildcards_reads_of_secrets_or_exec(render, values, managed):
    rendered = render(**values)
    rules = [
        rule for kind in ("Role", "ClusterRole") for role in rendered.all(kind) for rule in role["rules"]
    ]
    assert [rule["verbs"] for rule in rules if "secrets" in rule["resources"]] == [["create"]] * managed
    granted = {item for rule in rules for key in ("apiGroups", "resources", "verbs") for item in rule[key]}
    forbidden = {
        "*",
        "pods/exec",
        "pods/attach",
        "roles",
        "clusterroles",
        "impersonate",
        "escalate",
        "bind",
    }
    assert granted.isdisjoint(forbidden)


def test_users_roles_take_translation_deployments_in(render):
    rendered = render()
    prefix = "rbac.authorization.k8s.io/aggregate-to-"
    taken_in = {
        label.removeprefix(prefix): verbs_by_resource(role["rules"])
        for role in rendered.all("ClusterRole")
        for label in role["metadata"]["labels"]
        if label.startswith(prefix)
    }
    assert taken_in == {
        "view": {
            ("dragoman.io", TD): READ,
            ("dragoman.io", f"{TD}/status"): {"get"},
            ("dragoman.io", f"{TD}/scale"): {"get"},
        },
        "edit": {
            ("dragoman.io", TD): {"create", "update", "patch", "delete", "deletecollection"},
            ("dragoman.io", f"{TD}/scale"): {"update", "patch"},
        },
        "admin": {
            ("dragoman.io", f"{TD}/status"): {"patch"},
            ("dragoman.io", f"{TD}/finalizers"): {"update"},
        },
    }


WRITE = {"create", "delete", "deletecollection", "patch", "update"}
ADMIN = {
    **{("", name): READ | WRITE for name in ("services", "serviceaccounts", "secrets", "pods", "events")},
    **{("apps", name): READ | WRITE for name in ("deployments", "replicasets")},
    ("policy", "poddisruptionbudgets"): READ | WRITE,
    ("networking.k8s.io", "networkpolicies"): READ | WRITE,
    ("autoscaling", "horizontalpodautoscalers"): READ | WRITE,
    ("coordination.k8s.io", "leases"): READ | WRITE,
    ("discovery.k8s.io", "endpointslices"): READ,
}
"""Of Kubernetes' role admin, what matters here.

Source: https://github.com/kubernetes/kubernetes/blob/v1.34.0/plugin/pkg/auth/authorizer/rbac/bootstrappolicy/testdata/cluster-roles.yaml
"""


def test_an_admin_of_a_namespace_can_install_into_it(render):
    """An admin may grant only rights of their own, and has none outside of the namespace."""
    held = dict(ADMIN)
    for role in render().all("ClusterRole"):
        if any("aggregate-to-" in label for label in role["metadata"]["labels"]):
            for resource, verbs in verbs_by_resource(role["rules"]).items():
                held[resource] = held.get(resource, set()) | verbs
    rendered = render(
        watchNamespaces=["dragoman-system"],
        crds={"install": False},
        rbac={"userRoles": False, "patchPods": True},
        prometheus={"readSecrets": True},
        router={"enabled": True},
    )
    assert {item["metadata"]["namespace"] for item in rendered.objects} == {"dragoman-system"}
    for role in rendered.all("Role"):
        rules = [
            {name: value for name, value in rule.items() if name != "resourceNames"} for rule in role["rules"]
        ]
        for resource, verbs in verbs_by_resource(rules).items():
            assert verbs <= held[resource], resource


def test_roles_can_be_left_to_someone_else(render):
    rendered = render(rbac={"create": False, "userRoles": False})
    assert {"Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"}.isdisjoint(rendered.kinds)


def documented(root, heading):
    """Verbs by resource in the table of docs/how-to/install.md below the line `heading`."""
    lines = (root / "docs/how-to/install.md").read_text().splitlines()
    table = itertools.takewhile(lambda line: line.startswith("|"), lines[lines.index(heading) + 2 :])
    rows = [[cell.strip() for cell in row.split("|")[1:3]] for row in list(table)[2:]]
    found: dict[str, set[str]] = {}
    for resources, verbs in rows:
        for resource in resources.split(", "):
            found.setdefault(resource, set()).update(verbs.split(", "))
    return found


def by_resource(*roles):
    granted: dict[str, set[str]] = {}
    for role in roles:
        for rule in role["rules"]:
            for resource in rule["resources"]:
                granted.setdefault(resource, set()).update(rule["verbs"])
    return granted


def test_the_documented_tables_are_the_roles(render, root):
    rendered = render(
        rbac={"userRoles": False, "patchPods": True},
        watchNamespaces=["team"],
        keda={"enabled": True},
        prometheus={"readSecrets": True},
        router={"enabled": True},
    )
    roles = {role["metadata"]["name"].removeprefix("release-dragoman"): role for role in rendered.all("Role")}
    managed = "In every namespace that it manages (a ClusterRole, or Roles with `watchNamespaces`):"
    assert documented(root, managed) == by_resource(roles.pop(""))
    own = by_resource(roles.pop("-lease"), roles.pop("-routers"))
    assert documented(root, "In its own namespace:") == own
    router = by_resource(roles.pop("-router"))
    assert documented(root, "A router, in every namespace that it serves:") == router
    assert roles == {}
