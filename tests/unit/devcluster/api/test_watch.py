"""Watches that end, one after the other, deliver every change once."""

import asyncio
import json
import time

from dragoman_devcluster.api.kinds import BUILT_IN
from dragoman_devcluster.api.objects import Object
from dragoman_devcluster.api.request import Options
from dragoman_devcluster.api.store import Key, Store
from dragoman_devcluster.api.watch import Watch, lines

CONFIG_MAP = next(kind for kind in BUILT_IN if kind.plural == "configmaps")
A = Key(CONFIG_MAP.resource, "default", "a")
WATCH = Watch(CONFIG_MAP, "", lambda _: True, lambda obj: obj)
TIMEOUT_S = 0.2


async def events_of_a_watch(store: Store, version: str) -> list[Object]:
    options = Options(resource_version=version, timeout_s=TIMEOUT_S, bookmarks=True)
    return [json.loads(line) async for line in lines(store, WATCH, options)]


async def test_a_change_at_the_end_of_a_watch_is_in_the_next_one(store: Store) -> None:
    """The loop is late: the time of the watch is over, and the change is stored before the watch continues."""
    store.put(A, {"metadata": {"name": "a", "namespace": "default"}})
    version = str(store.version)
    loop = asyncio.get_running_loop()
    end_s = loop.time() + TIMEOUT_S
    loop.call_at(end_s - 0.1, time.sleep, 0.3)
    loop.call_at(end_s + 0.1, store.remove, A)

    first = await events_of_a_watch(store, version)
    seen = first[-1]["object"]["metadata"]["resourceVersion"] if first else version
    events = [*first, *await events_of_a_watch(store, seen)]
    assert [event["type"] for event in events if event["type"] != "BOOKMARK"] == ["DELETED"]
