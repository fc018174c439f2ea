"""The file of results: written after every point, so that what was measured survives a failure."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from dragoman_bench.catalogue import Arm

RESULTS = "results.json"


class Results:
    """Results of one run."""

    def __init__(self, directory: Path, head: dict[str, Any]) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self.document: dict[str, Any] = {**head, "arms": []}
        self._write()

    def arm(self, arm: Arm, command: list[str]) -> None:
        """An arm is about to be measured.

        Args:
            arm: Has no entry yet.
            command: Its command line, without paths of the machine.
        """
        self.document["arms"].append(
            {
                "arm": arm.name,
                "title": arm.title,
                "published": arm.published,
                "command": command,
                "start_s": None,
                "failed": None,
                "points": [],
            }
        )
        self._write()

    def note(self, arm: Arm, **values: Any) -> None:
        """Set fields of an arm's entry: `start_s`, seconds until it was ready; `failed`, why it has no more points."""
        self._entry(arm).update(values)
        self._write()

    def point(self, arm: Arm, point: dict[str, Any]) -> None:
        """Add a point."""
        self._entry(arm)["points"].append(point)
        self._write()

    def _entry(self, arm: Arm) -> dict[str, Any]:
        return next(entry for entry in self.document["arms"] if entry["arm"] == arm.name)

    def _write(self) -> None:
        path = self.directory / RESULTS
        unfinished = path.with_suffix(".tmp")
        unfinished.write_text(json.dumps(self.document, indent=1), encoding="utf-8")
        os.replace(unfinished, path)
