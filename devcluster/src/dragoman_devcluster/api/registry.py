"""Which kinds are served now: the built-in ones and those that CustomResourceDefinitions add."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from dragoman_devcluster.api.builtin_schema import model_schema
from dragoman_devcluster.api.kinds import BUILT_IN, Kind


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

    def of_kind(self, api_version: str, name: str) -> Kind | None:
        """The kind that `apiVersion` and `kind` of an object name."""
        found = (kind for kind in self._kinds.values() if kind.name == name)
        return next((kind for kind in found if kind.api_version == api_version), None)

    def replace_custom(self, group: str, plural: str, kinds: Iterable[Kind]) -> None:
        """Serve these versions of a custom resource and no others; none at all removes it."""
        for at in [at for at in self._kinds if at[0] == group and at[2] == plural]:
            del self._kinds[at]
        for kind in kinds:
            self._kinds[kind.group, kind.version, kind.plural] = kind
        self.revision += 1

    def groups(self) -> dict[str, list[str]]:
        """Every group but the core one, with its versions, in the order of their definition."""
        found: dict[str, list[str]] = {}
        for group, version, _ in self._kinds:
            if group and version not in found.setdefault(group, []):
                found[group].append(version)
        return found
