"""Ownership of fields, from create to apply."""

from typing import Any

from dragoman_kube.objects import as_applied


def entry(manager: str, operation: str, fields: dict[str, Any], **more: str) -> dict[str, Any]:
    return {"manager": manager, "operation": operation, "fieldsV1": fields, **more}


def found(*entries: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"managedFields": list(entries)}}


def test_update_becomes_apply_and_others_stay() -> None:
    theirs = entry("kubectl", "Update", {"f:spec": {"f:replicas": {}}})
    status = entry("dragoman", "Update", {"f:status": {}}, subresource="status")
    ours = entry("dragoman", "Update", {"f:metadata": {}})
    assert as_applied(found(theirs, ours, status), "dragoman") == [
        {**ours, "operation": "Apply"},
        theirs,
        status,
    ]


def test_two_entries_become_one_with_all_fields() -> None:
    one = entry("dragoman", "Apply", {"f:spec": {"f:a": {}, "f:b": {".": {}}}})
    two = entry("dragoman", "Update", {"f:spec": {"f:b": {"f:c": {}}}, "f:metadata": {}})
    (merged,) = as_applied(found(one, two), "dragoman") or []
    assert merged["fieldsV1"] == {"f:spec": {"f:a": {}, "f:b": {".": {}, "f:c": {}}}, "f:metadata": {}}


def test_applied_object_and_one_of_another_manager_need_no_change() -> None:
    assert as_applied(found(entry("dragoman", "Apply", {})), "dragoman") is None
    assert as_applied(found(entry("kubectl", "Update", {})), "dragoman") is None
    assert as_applied({"metadata": {}}, "dragoman") is None
