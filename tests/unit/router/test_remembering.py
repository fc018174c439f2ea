"""What is remembered of requests is short."""

from __future__ import annotations

from dragoman_router.routing.deployments import Deployment
from dragoman_router.routing.pairs import REMEMBERED_TARGETS, PairIndex


def test_no_long_list_of_targets_is_remembered() -> None:
    index = PairIndex()
    index.put(Deployment("default/a"))
    index.find("en", tuple(f"a{letter}" for letter in "abcdefghijklmnopqrstuvwxyz"))
    assert not index._matches
    index.find("en", ("de",) * REMEMBERED_TARGETS)
    assert len(index._matches) == 1
