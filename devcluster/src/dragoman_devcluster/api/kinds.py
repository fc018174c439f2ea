"""The kinds that are served: what a kind is, the built-in ones, and those that CustomResourceDefinitions add."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace

from dragoman_devcluster.api.builtin_schema import model_schema
from dragoman_devcluster.api.objects import Json, Object
from dragoman_devcluster.api.store import Key


@dataclass(frozen=True)
class ScalePaths:
    """Where the scale subresource finds its numbers, as key paths from the object's root."""

    replicas: tuple[str, ...]
    ready: tuple[str, ...]
    selector: tuple[str, ...] | None = None
    """Where a serialised selector is (custom resources); None: `spec.selector` as an object."""


@dataclass(frozen=True)
class Column:
    """One printed column: `path` finds its value, `priority` above 0 shows it with `-o wide`.

    `path` is a JSONPath without braces, or (built-in kinds) a function of the object.
    """

    name: str
    type: str
    path: str | Callable[[Object], Json]
    format: str = ""
    description: str = ""
    priority: int = 0


@dataclass(frozen=True)
class Kind:
    """One served version of one resource. Immutable; a changed CRD makes a new one."""

    group: str
    version: str
    name: str
    plural: str
    namespaced: bool = True
    model: str = ""
    """The class in `kubernetes.client` that describes it; empty for custom resources."""
    singular: str = ""
    list_kind: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    has_status: bool = False
    has_generation: bool = False
    scale: ScalePaths | None = None
    columns: tuple[Column, ...] = ()
    schema: Object = field(default_factory=dict, compare=False, repr=False)
    custom: bool = False

    @property
    def api_version(self) -> str:
        """`apps/v1`, or `v1` in the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def resource(self) -> str:
        """The name that storage uses, one for all versions: `deployments.apps`, `pods`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def listed_as(self) -> str:
        """The kind of a list of these."""
        return self.list_kind or f"{self.name}List"

    @property
    def called(self) -> str:
        """The lower-case singular name."""
        return self.singular or self.name.lower()

    def key(self, namespace: str, name: str) -> Key:
        """Where an object of this kind is stored."""
        return Key(self.resource, namespace if self.namespaced else "", name)


_WORKLOAD = ScalePaths(("spec", "replicas"), ("status", "replicas"))


def _kind(api: str, model: str, plural: str, short: str = "", **rest: object) -> Kind:
    group, _, version = api.rpartition("/")
    name = str(rest.pop("name", model.removeprefix("V1").removeprefix("V2")))
    return Kind(group, version, name, plural, model=model, short_names=tuple(short.split()), **rest)  # type: ignore[arg-type]


_ALL = ("all",)

BUILT_IN: tuple[Kind, ...] = (
    _kind("v1", "V1Namespace", "namespaces", "ns", namespaced=False, has_status=True),
    _kind("v1", "V1Node", "nodes", "no", namespaced=False, has_status=True),
    _kind("v1", "V1Pod", "pods", "po", has_status=True, has_generation=True, categories=_ALL),
    _kind("v1", "V1Service", "services", "svc", has_status=True, categories=_ALL),
    _kind("v1", "V1ConfigMap", "configmaps", "cm"),
    _kind("v1", "V1Secret", "secrets"),
    _kind("v1", "V1ServiceAccount", "serviceaccounts", "sa"),
    _kind("v1", "CoreV1Event", "events", "ev", name="Event"),
    _kind("v1", "V1PersistentVolumeClaim", "persistentvolumeclaims", "pvc", has_status=True),
    _kind(
        "apps/v1", "V1Deployment", "deployments", "deploy",
        has_status=True, has_generation=True, categories=_ALL, scale=_WORKLOAD,
    ),
    _kind(
        "apps/v1", "V1ReplicaSet", "replicasets", "rs",
        has_status=True, has_generation=True, categories=_ALL, scale=_WORKLOAD,
    ),
    _kind(
        "policy/v1", "V1PodDisruptionBudget", "poddisruptionbudgets", "pdb",
        has_status=True, has_generation=True,
    ),
    _kind("networking.k8s.io/v1", "V1NetworkPolicy", "networkpolicies", "netpol", has_generation=True),
    _kind("discovery.k8s.io/v1", "V1EndpointSlice", "endpointslices"),
    _kind("coordination.k8s.io/v1", "V1Lease", "leases"),
    _kind("rbac.authorization.k8s.io/v1", "V1Role", "roles"),
    _kind("rbac.authorization.k8s.io/v1", "V1RoleBinding", "rolebindings"),
    _kind("rbac.authorization.k8s.io/v1", "V1ClusterRole", "clusterroles", namespaced=False),
    _kind("rbac.authorization.k8s.io/v1", "V1ClusterRoleBinding", "clusterrolebindings", namespaced=False),
    _kind(
        "autoscaling/v2", "V2HorizontalPodAutoscaler", "horizontalpodautoscalers", "hpa",
        has_status=True, categories=_ALL,
    ),
    _kind(
        "apiextensions.k8s.io/v1", "V1CustomResourceDefinition", "customresourcedefinitions", "crd crds",
        namespaced=False, has_status=True, has_generation=True, categories=("api-extensions",),
    ),
)  # fmt: skip
"""What this API serves without any CustomResourceDefinition."""


class Registry:
    """A lookup of kinds by group, version and plural name. `revision` grows with every change."""

    def __init__(self, built_in: Iterable[Kind] = BUILT_IN) -> None:
        self._kinds = {
            (kind.group, kind.version, kind.plural): replace(kind, schema=model_schema(kind.model))
            for kind in built_in
        }
        self.revision = 0

    def __iter__(self) -> Iterator[Kind]:
        return iter(list(self._kinds.values()))

    def find(self, group: str, version: str, plural: str) -> Kind | None:
        """The kind served at a group, version and plural name."""
        return self._kinds.get((group, version, plural))

    def add(self, kind: Kind) -> None:
        """Serve a custom resource, in place of the definition that it had."""
        self.remove(kind)
        self._kinds[kind.group, kind.version, kind.plural] = kind

    def remove(self, kind: Kind) -> None:
        """Do not serve a custom resource any longer."""
        for at in [at for at in self._kinds if (at[0], at[2]) == (kind.group, kind.plural)]:
            del self._kinds[at]
        self.revision += 1

    def groups(self) -> dict[str, list[str]]:
        """Every group but the core one, with its versions, in the order of their definition."""
        found: dict[str, list[str]] = {}
        for group, version, _ in self._kinds:
            if group and version not in found.setdefault(group, []):
                found[group].append(version)
        return found
