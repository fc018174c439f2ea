"""The file of results: written after every step, so that what was measured survives a failure."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from dragoman_bench.catalogue import Arm

RESULTS = "results.json"


class Results:
    """Results of one run.

    Args:
        directory: Where the file is; is made.
        head: What the results begin with: kind, machine, model.
    """

    def __init__(self, directory: Path, head: dict[str, Any]) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self.document = dict(head)
        self.write()

    def write(self, **more: Any) -> None:
        """Add members, and write everything."""
        self.document.update(more)
        path = self.directory / RESULTS
        unfinished = path.with_suffix(".tmp")
        unfinished.write_text(json.dumps(self.document, indent=1) + "\n", encoding="utf-8")
        os.replace(unfinished, path)


class ArmResults(Results):
    """Results of a ladder or a comparison: a list of arms, each with its points."""

    def __init__(self, directory: Path, head: dict[str, Any]) -> None:
        super().__init__(directory, {**head, "arms": []})

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
        self.write()

    def note(self, arm: Arm, **values: Any) -> None:
        """Set fields of an arm's entry: `start_s`, seconds until it was ready; `failed`, why it has no more points."""
        self._entry(arm).update(values)
        self.write()

    def point(self, arm: Arm, point: dict[str, Any]) -> None:
        """Add a point."""
        self._entry(arm)["points"].append(point)
        self.write()

    def _entry(self, arm: Arm) -> dict[str, Any]:
        return next(entry for entry in self.document["arms"] if entry["arm"] == arm.name)
