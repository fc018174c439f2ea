"""Progress and results of the tuning bench, written as they come."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from tuning.figures import table


class Report:
    """Progress, and the results of the finished parts."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self._began_s = time.monotonic()
        file = directory / "results.json"
        self.document: dict[str, Any] = (
            json.loads(file.read_text()) if file.exists() else {"tuned": None, "grid": {}}
        )

    def say(self, message: str) -> None:
        """One line, to the terminal and the log."""
        line = f"{time.monotonic() - self._began_s:6.1f} s  {message}"
        print(line, flush=True)
        with (self._directory / "progress.log").open("a") as log:
            log.write(f"{line}\n")

    def write(self) -> str:
        """Write the results; the table."""
        (self._directory / "results.json").write_text(json.dumps(self.document, indent=1) + "\n")
        phases = (self.document["tuned"] or {}).get("phases", [])
        grid = {
            int(size): {int(in_flight): found["tokens_per_s"] for in_flight, found in rows.items()}
            for size, rows in self.document["grid"].items()
        }
        text = table(phases, grid)
        (self._directory / "table.md").write_text(f"{text}\n")
        return text
