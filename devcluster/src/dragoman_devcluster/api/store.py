"""Objects and their history: SQLite on disk, a copy in memory, one resourceVersion for all.

Reads come from memory, writes go through to disk before a watcher receives them, and the event log outlives a
restart, so that a watch resumes where it stopped. Everything runs on one event loop; nothing here awaits.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from dragoman_devcluster.api.errors import ApiError
from dragoman_devcluster.api.objects import Object

HISTORY_EVENTS = 10_000
"""How many changes a watch may be behind; a kube-apiserver keeps five minutes of them."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS objects (
    resource TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL,
    PRIMARY KEY (resource, namespace, name)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS events (
    version INTEGER PRIMARY KEY, type TEXT NOT NULL, resource TEXT NOT NULL, namespace TEXT NOT NULL,
    name TEXT NOT NULL, value TEXT NOT NULL, previous TEXT
);
"""


class Key(NamedTuple):
    """Where an object lives: its storage resource (`deployments.apps`), namespace ("" if none), name."""

    resource: str
    namespace: str
    name: str


@dataclass(frozen=True)
class Event:
    """One change: `type` is ADDED, MODIFIED or DELETED; `previous` is the object before it."""

    version: int
    type: str
    key: Key
    value: Object
    previous: Object | None


class Store:
    """Every object of the cluster. `directory` holds the database; `history` bounds the event log."""

    def __init__(self, directory: Path, history: int = HISTORY_EVENTS) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        # One caller at a time, whichever thread runs its event loop.
        self._database = sqlite3.connect(
            directory / "store.sqlite3", isolation_level=None, check_same_thread=False
        )
        self._database.execute("PRAGMA journal_mode=WAL")
        # The operating system's crash may lose the last writes, a killed process loses none.
        self._database.execute("PRAGMA synchronous=OFF")
        self._database.executescript(_SCHEMA)
        self._history_limit = history
        self._objects: dict[str, dict[tuple[str, str], Object]] = {}
        self._history: deque[Event] = deque()
        self.version = 1
        self._subscribers: dict[asyncio.Queue[Event], str] = {}
        self._observers: list[Callable[[Event], None]] = []
        self._load()

    def _load(self) -> None:
        for resource, namespace, name, value in self._database.execute("SELECT * FROM objects"):
            self._objects.setdefault(resource, {})[namespace, name] = json.loads(value)
        rows = self._database.execute("SELECT * FROM events ORDER BY version")
        for version, kind, resource, namespace, name, value, previous in rows:
            key = Key(resource, namespace, name)
            before = json.loads(previous) if previous else None
            self._history.append(Event(version, kind, key, json.loads(value), before))
        if self._history:
            self.version = self._history[-1].version

    def close(self) -> None:
        """Close the database; the store is not to be used again."""
        self._database.close()

    def observe(self, observer: Callable[[Event], None]) -> None:
        """Call `observer` with every change from now on, before any watcher sees it."""
        self._observers.append(observer)

    def get(self, key: Key) -> Object | None:
        """One object, shared with all callers (copy before changing), or None."""
        return self._objects.get(key.resource, {}).get((key.namespace, key.name))

    def listed(self, resource: str, namespace: str = "") -> list[Object]:
        """The objects of a resource, of one namespace or ("") of all, ordered by namespace and name."""
        found = self._objects.get(resource, {})
        return [found[at] for at in sorted(found) if not namespace or at[0] == namespace]

    def put(self, key: Key, value: Object) -> Object:
        """Store an object under a new resourceVersion, which is written into `value`; returns `value`."""
        previous = self.get(key)
        self.version += 1
        value["metadata"]["resourceVersion"] = str(self.version)
        self._objects.setdefault(key.resource, {})[key.namespace, key.name] = value
        self._record(Event(self.version, "MODIFIED" if previous else "ADDED", key, value, previous))
        return value

    def remove(self, key: Key, final: Object | None = None) -> Object | None:
        """Forget an object; returns its last state under the resourceVersion of the deletion, or None.

        `final` is that state where it is not the stored one.
        """
        previous = self.get(key)
        if previous is None:
            return None
        del self._objects[key.resource][key.namespace, key.name]
        self.version += 1
        final = final or previous
        last = {**final, "metadata": {**final["metadata"], "resourceVersion": str(self.version)}}
        self._record(Event(self.version, "DELETED", key, last, previous))
        return last

    def _record(self, event: Event) -> None:
        value = json.dumps(event.value)
        previous = json.dumps(event.previous) if event.previous else None
        at = (event.key.resource, event.key.namespace, event.key.name)
        self._database.execute("BEGIN")
        if event.type == "DELETED":
            self._database.execute("DELETE FROM objects WHERE resource=? AND namespace=? AND name=?", at)
        else:
            self._database.execute("INSERT OR REPLACE INTO objects VALUES (?,?,?,?)", (*at, value))
        self._database.execute(
            "INSERT INTO events VALUES (?,?,?,?,?,?,?)", (event.version, event.type, *at, value, previous)
        )
        self._history.append(event)
        # Compacting in steps of a tenth keeps it off most writes.
        if len(self._history) > self._history_limit * 1.1:
            self._compact()
        self._database.execute("COMMIT")
        for observer in self._observers:
            observer(event)
        for events, resource in self._subscribers.items():
            if resource == event.key.resource:
                events.put_nowait(event)

    def _compact(self) -> None:
        while len(self._history) > self._history_limit:
            self._history.popleft()
        self._database.execute("DELETE FROM events WHERE version < ?", (self._history[0].version,))

    def since(self, resource: str, version: int) -> list[Event]:
        """The events of a resource after `version`; ApiError (Expired) where history does not reach back."""
        oldest = self._history[0].version - 1 if self._history else 1
        if version < oldest:
            raise ApiError("Expired", f"too old resource version: {version} ({oldest})")
        found: list[Event] = []
        for event in reversed(self._history):
            if event.version <= version:
                break
            if event.key.resource == resource:
                found.append(event)
        return found[::-1]

    @contextmanager
    def subscribe(self, resource: str) -> Iterator[asyncio.Queue[Event]]:
        """A queue that receives every event of a resource from now on, while the context is open."""
        events: asyncio.Queue[Event] = asyncio.Queue()
        self._subscribers[events] = resource
        try:
            yield events
        finally:
            del self._subscribers[events]
