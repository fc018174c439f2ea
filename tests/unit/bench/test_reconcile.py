"""`dragoman bench reconcile`: the calls of an audit log, and the table."""

import json
from typing import Any

from dragoman_bench.reconcile.audit import calls, counts, policy, without_leases
from dragoman_bench.reconcile.objects import manifest
from dragoman_operator.api.v1alpha1 import parse


def line(second: int, verb: str, about: dict[str, str] | None, code: int = 200) -> str:
    event: dict[str, Any] = {
        "verb": verb,
        "requestReceivedTimestamp": f"1970-01-01T00:00:{second:02}.5Z",
        "requestURI": "/apis",
        "responseStatus": {"code": code},
    }
    return json.dumps(event | ({"objectRef": about} if about else {})) + "\n"


def test_calls_of_a_time_by_verb_resource_and_refusal() -> None:
    status = {"resource": "translationdeployments", "subresource": "status"}
    log = [
        line(1, "get", {"resource": "services"}),
        line(2, "get", {"resource": "services"}, 404),
        line(2, "patch", status),
        line(3, "patch", status),
        line(3, "get", None),
        line(3, "update", {"resource": "leases"}),
        line(5, "get", {"resource": "services"}),
        line(3, "get", {"resource": "services"})[:-9],
    ]
    found = without_leases(calls(log, since=2.0, until=4.0))
    assert counts(found) == {
        "patch translationdeployments/status": 2,
        "get services (404)": 1,
        "get /apis": 1,
    }


def test_policy_logs_one_user_alone() -> None:
    rules = policy("system:serviceaccount:ns:operator")["rules"]
    assert rules == [
        {"level": "Metadata", "users": ["system:serviceaccount:ns:operator"]},
        {"level": "None"},
    ]


def test_objects_are_valid_and_every_second_one_is_scaled() -> None:
    specs = [
        parse({**manifest(number), "metadata": {"name": "a", "namespace": "b", "uid": "c"}}).spec
        for number in (0, 1)
    ]
    assert [spec.autoscaling is not None for spec in specs] == [False, True]
