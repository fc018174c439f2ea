"""Which replica has a document."""

from random import Random
from typing import Any

import pytest

from dragoman_contract.routing import new_document_id
from dragoman_protocols.errors import UnknownDocumentError
from dragoman_router.fleet.fleet import Fleet
from dragoman_router.fleet.manifests import replicas_of_slices
from dragoman_router.fleet.queue import QueueLimits
from dragoman_router.http.documents import owner
from dragoman_router.routing.deployments import Deployment, Replica


def replica(name: str, **fields: Any) -> Replica:
    return Replica(name=name, host="10.0.0.7", port=8000, uid=f"uid of {name}", **fields)


def fleet(**replicas: Replica) -> Fleet:
    """One deployment for each replica."""
    made = Fleet(QueueLimits(1, 1, 1), Random(1))
    for name, each in replicas.items():
        made.put(Deployment(f"default/{name}"))
        made.set_replicas(f"default/{name}", [each])
    return made


@pytest.mark.parametrize("state", [{}, {"ready": False}, {"ready": False, "terminating": True}])
async def test_a_replica_has_its_documents_whatever_its_state(state: Any) -> None:
    has = replica("b", **state)
    document_id = new_document_id(has.tag)
    known = fleet(a=replica("a"), b=has)
    backend, endpoint = owner(known, document_id.hex.upper(), None, None)
    assert (backend.deployment.key, endpoint.replica) == ("default/b", has)
    backend.refused(endpoint)
    assert endpoint.health.ejected
    assert owner(known, str(document_id), "default/b", ("default/*",)) == (backend, endpoint)


async def test_a_replica_that_is_gone_has_none() -> None:
    document_id = str(new_document_id(replica("a").tag))
    known = fleet(a=replica("a"), b=replica("b"))
    for wanted, deployment in ((document_id, "default/b"), (str(new_document_id(None)), None), (None, None)):
        with pytest.raises(UnknownDocumentError):
            owner(known, wanted, deployment, None)
    assert owner(known, document_id, None, None)
    with pytest.raises(UnknownDocumentError):
        owner(known, document_id, None, ("other/*",))
    known.set_replicas("default/a", [replica("its successor at the same address")])
    with pytest.raises(UnknownDocumentError):
        owner(known, document_id, None, None)


def test_every_router_calls_a_replica_the_same_as_long_as_it_lives() -> None:
    def listed_as(uid: str, **conditions: bool) -> Replica:
        pod = {"kind": "Pod", "name": "pod-1", "uid": uid}
        endpoint = {"addresses": ["10.0.0.7"], "targetRef": pod, "conditions": conditions}
        (found,) = replicas_of_slices([{"ports": [{"name": "http", "port": 8000}], "endpoints": [endpoint]}])
        return found

    leaving = listed_as("1-2-3", ready=False, terminating=True)
    assert listed_as("1-2-3").tag == leaving.tag != listed_as("4-5-6").tag
    listed = [Replica(name="10.0.0.7:8000", host="10.0.0.7", port=port) for port in (8000, 8000, 8001)]
    assert listed[0].tag == listed[1].tag != listed[2].tag
