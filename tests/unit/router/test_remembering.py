"""What is remembered of requests is short."""

from __future__ import annotations

import pytest

from dragoman_protocols.errors import InvalidFieldError
from dragoman_router.dialects.asking import _tag, tag
from dragoman_router.routing.deployments import Deployment
from dragoman_router.routing.pairs import REMEMBERED_TARGETS, PairIndex


def test_no_long_code_is_remembered() -> None:
    """4,096 of them could be as long as bodies are."""
    before = _tag.cache_info().currsize
    assert tag("de" + " " * 1_000_000, "target") == tag(" de", "target")
    assert _tag.cache_info().currsize <= before + 1
    with pytest.raises(InvalidFieldError):
        tag("en" + "-aaaaaaaa" * 4, "target")


def test_no_long_list_of_targets_is_remembered() -> None:
    index = PairIndex()
    index.put(Deployment("default/a"))
    index.find("en", tuple(f"a{letter}" for letter in "abcdefghijklmnopqrstuvwxyz"))
    assert not index._matches
    index.find("en", ("de",) * REMEMBERED_TARGETS)
    assert len(index._matches) == 1
