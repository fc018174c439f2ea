"""Former names of fields: objects that have them are accepted, and nothing else uses them."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

Fields = Mapping[tuple[str, str], str]
"""New names, by the group of a field and its former name."""

SPEC: Fields = {
    ("admission", "refuseLate"): "deadlineAware",
    ("autoscaling", "scaleDownWindow"): "scaleDownStabilizationWindow",
    ("autoscaling", "targetWait"): "targetQueueTime",
    ("engine", "wedgedAfter"): "stallTimeout",
    ("glossary", "configMapRef"): "configMapKeyRef",
}

SPEC_VALUES: Mapping[tuple[str, str, str], str] = {("translation", "split", "NoLines"): "NoNewlines"}
"""New values, by group, field and former value."""

STATUS: Fields = {
    ("rollout", "failedTemplate"): "failedTemplateDigest",
    ("rollout", "goodTemplate"): "lastReadyTemplateHash",
    ("scaling", "memory"): "state",
    ("tuning", "memory"): "state",
}
"""Without them in the schema the API server would remove them before they are read."""

FILLED_IN: Fields = {("autoscaling", "targetWait"): "2s"}
"""Former defaults: the API server wrote them into objects, no user did."""


def current_spec(spec: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The spec with new names, and a sentence for each former name that a user wrote.

    Where both names are set the new one wins: a former default may be stored in the object.
    """
    found, warnings = _moved(spec, SPEC)
    for (group, field, former), value in SPEC_VALUES.items():
        if isinstance(found.get(group), dict) and found[group].get(field) == former:
            found[group][field] = value
            warnings.append(f"{former} in spec.{group}.{field} is now {value}")
    return found, tuple(warnings)


def current_status(status: Mapping[str, Any]) -> dict[str, Any]:
    """The stored status with new names."""
    return _moved(status, STATUS)[0]


def accept(schema: dict[str, Any], fields: Fields) -> None:
    """Add the former names to the schema of a spec or status, with the rules of the new ones.

    Without defaults: the API server would fill them in, and they would be taken for the user's.
    """
    for (group, former), name in fields.items():
        node = schema["properties"][group]
        described = copy.deepcopy(node["properties"][name])
        described.pop("default", None)
        described["description"] = f"Deprecated: use {name}. Ignored when {name} is set."
        node["properties"][former] = described
        rules = node.setdefault("x-kubernetes-validations", [])
        for rule in list(rules):
            if f"self.{name}" in rule["rule"]:
                message = rule["message"].replace(
                    f"{group}.{name}", f"{group}.{former} is now {group}.{name} and"
                )
                rules.append(
                    {"rule": rule["rule"].replace(f"self.{name}", f"self.{former}"), "message": message}
                )
        if name in node.get("required", ()):
            node["required"].remove(name)
            rule = f"has(self.{name}) || has(self.{former})"
            rules.append({"rule": rule, "message": f"{group}.{name}: Field required"})
        for key in ("required", "x-kubernetes-validations"):
            if not node.get(key):
                node.pop(key, None)


def accept_values(schema: dict[str, Any]) -> None:
    """Add the former values to the enums of a spec's schema."""
    for group, field, former in SPEC_VALUES:
        schema["properties"][group]["properties"][field]["enum"].append(former)


def _moved(fields: Mapping[str, Any], names: Fields) -> tuple[dict[str, Any], list[str]]:
    found = {group: dict(value) if isinstance(value, Mapping) else value for group, value in fields.items()}
    warnings = []
    for (group, former), name in names.items():
        if not isinstance(found.get(group), dict) or former not in found[group]:
            continue
        value = found[group].pop(former)
        found[group].setdefault(name, value)
        if FILLED_IN.get((group, former)) != value:
            warnings.append(f"spec.{group}.{former} is now spec.{group}.{name}")
    return found, warnings
