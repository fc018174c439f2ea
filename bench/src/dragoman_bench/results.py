"""The file of results: written anew after every point, so that what was measured survives what fails."""

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
        self._by_name: dict[str, dict[str, Any]] = {}
        self._write()

    def arm(self, arm: Arm, command: list[str]) -> None:
        """Note that an arm is about to be measured."""
        # The interpreter's path says nothing, and names somebody's machine.
        entry: dict[str, Any] = {
            "arm": arm.name,
            "title": arm.title,
            "published": arm.published,
            "command": ["python", *command[1:]],
            "start_s": None,
            "failed": None,
            "points": [],
        }
        self._by_name[arm.name] = entry
        self.document["arms"].append(entry)
        self._write()

    def started(self, arm: Arm, start_s: float) -> None:
        """Note how long an arm took to get ready."""
        self._by_name[arm.name]["start_s"] = start_s
        self._write()

    def point(self, arm: Arm, point: dict[str, Any]) -> None:
        """Note a point."""
        self._by_name[arm.name]["points"].append(point)
        self._write()

    def failed(self, arm: Arm, reason: str) -> None:
        """Note why an arm has no more points."""
        self._by_name[arm.name]["failed"] = reason
        self._write()

    @property
    def failures(self) -> list[str]:
        """Why arms failed, one sentence each."""
        return [f"{entry['arm']}: {entry['failed']}" for entry in self.document["arms"] if entry["failed"]]

    def _write(self) -> None:
        path = self.directory / RESULTS
        unfinished = path.with_suffix(".tmp")
        unfinished.write_text(json.dumps(self.document, indent=1), encoding="utf-8")
        os.replace(unfinished, path)
