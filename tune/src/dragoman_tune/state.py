"""The trials of a sweep on disk: a line each, so that an interrupted sweep goes on where it was."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from dragoman_tune.errors import StateError
from dragoman_tune.requests import SampleRequest
from dragoman_tune.search import EngineSetting, Trial

TRIALS = "trials.jsonl"


def fingerprint(requests: Sequence[SampleRequest], **settings: Any) -> str:
    """What trials must have in common to be compared.

    Args:
        requests: The sample.
        settings: Everything else that decides what is measured; JSON-serialisable.
    """
    document = json.dumps([[asdict(one) for one in requests], settings], sort_keys=True)
    return hashlib.sha256(document.encode()).hexdigest()[:16]


class State:
    """The trials of one sweep.

    Raises:
        StateError: The directory holds the trials of another sweep, or what is no trial.
    """

    def __init__(self, directory: Path, mark: str) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._path = directory / TRIALS
        self.trials: list[Trial] = []
        if not self._path.exists():
            self._path.write_text(json.dumps({"sweep": mark}) + "\n", encoding="utf-8")
            return
        try:
            # A line that was being written when the sweep was killed is measured again.
            lines = self._path.read_text(encoding="utf-8").splitlines()
            first, *rest = (json.loads(line) for line in lines if line.endswith("}"))
            sweep = first["sweep"]
            self.trials = [Trial(**{**each, "setting": EngineSetting(**each["setting"])}) for each in rest]
        except (ValueError, KeyError, TypeError):
            raise StateError(
                f"{self._path} is no record of a sweep: delete it, or choose another --output"
            ) from None
        if sweep != mark:
            raise StateError(
                f"{self._path} has trials of another model, load, SLO or other flags: choose another --output, or "
                "delete it"
            )

    def add(self, trial: Trial) -> None:
        """Keep a trial."""
        self.trials.append(trial)
        with self._path.open("a", encoding="utf-8") as out:
            out.write(json.dumps(asdict(trial)) + "\n")
