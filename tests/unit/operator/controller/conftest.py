"""A cluster in memory, with the operator's reconciler over it."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from tests.support.operator_world import World


@pytest.fixture
async def make_world() -> AsyncIterator[Callable[..., World]]:
    """Makes the operator's reconciler over a cluster in memory with these objects."""
    made: list[World] = []

    def make(*objects: dict[str, Any], **more: Any) -> World:
        made.append(World(*objects, **more))
        return made[-1]

    yield make
    for world in made:
        await world.aclose()
