"""Watches: what changed, one JSON line each, from a resourceVersion on."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from dragoman_devcluster.api.errors import ApiError
from dragoman_devcluster.api.kinds import Kind
from dragoman_devcluster.api.objects import Object
from dragoman_devcluster.api.request import Options
from dragoman_devcluster.api.selectors import Predicate
from dragoman_devcluster.api.store import Event, Store

BOOKMARK_S = 60.0
"""Interval of bookmarks, for watches that request them. Source: k8s.io/apiserver's cacher."""

DEFAULT_TIMEOUT_S = 1800.0
"""Default time of a watch. Source: kube-apiserver --min-request-timeout."""

_DISAPPEARED = "DELETED"

Render = Callable[[Object], Object]


@dataclass(frozen=True)
class Watch:
    """What is watched: a kind, its namespace ("" for all), a selector, and how objects are shown."""

    kind: Kind
    namespace: str
    selects: Predicate
    render: Render


def visible_change(watch: Watch, event: Event) -> tuple[str, Object] | None:
    """An event as this watcher sees it: objects that enter or leave its selection are added or deleted."""
    if watch.namespace and event.key.namespace != watch.namespace:
        return None
    before = event.previous is not None and watch.selects(event.previous)
    after = event.type != _DISAPPEARED and watch.selects(event.value)
    if after:
        return ("MODIFIED" if before else "ADDED"), event.value
    return (_DISAPPEARED, event.value) if before else None


async def lines(store: Store, watch: Watch, options: Options) -> AsyncIterator[bytes]:
    """The lines of a watch until its time is over. Nothing is polled: the store wakes the watcher."""
    deadline = asyncio.get_running_loop().time() + (options.timeout_s or DEFAULT_TIMEOUT_S)
    with store.subscribe(watch.kind.resource) as events:
        try:
            backlog = _backlog(store, watch, options)
        except ApiError as expired:
            yield _line("ERROR", expired.status())
            return
        version = store.version
        # What is queued while the backlog is sent comes after it.
        for kind, obj in backlog:
            yield _line(kind, watch.render(obj))
        if options.send_initial_events and options.bookmarks:
            yield _bookmark(watch, version, initial=True)
        while (left_s := deadline - asyncio.get_running_loop().time()) > 0:
            wait_s = min(left_s, BOOKMARK_S) if options.bookmarks else left_s
            try:
                event = await asyncio.wait_for(events.get(), wait_s)
            except TimeoutError:
                # A change may be stored between the timeout and here: a bookmark must not have its version.
                if options.bookmarks and events.empty():
                    yield _bookmark(watch, store.version)
                continue
            change = visible_change(watch, event)
            if change is not None:
                yield _line(change[0], watch.render(change[1]))


def _backlog(store: Store, watch: Watch, options: Options) -> list[tuple[str, Object]]:
    """The first events of a watch: the state, or the changes since its version."""
    if options.resource_version in ("", "0") or options.send_initial_events:
        found = store.listed(watch.kind.resource, watch.namespace)
        return [("ADDED", obj) for obj in found if watch.selects(obj)]
    changes = (
        visible_change(watch, event)
        for event in store.since(watch.kind.resource, int(options.resource_version))
    )
    return [change for change in changes if change is not None]


def _line(kind: str, obj: Object) -> bytes:
    return json.dumps({"type": kind, "object": obj}, separators=(",", ":")).encode() + b"\n"


def _bookmark(watch: Watch, version: int, *, initial: bool = False) -> bytes:
    meta: Object = {"resourceVersion": str(version), "creationTimestamp": None}
    if initial:
        meta["annotations"] = {"k8s.io/initial-events-end": "true"}
    return _line("BOOKMARK", watch.render({"metadata": meta}))
