"""A real Prometheus, where one is installed."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml

from dragoman_contract.http import ENGINE_PORT
from dragoman_devcluster.ports import free_port

PROMETHEUS = shutil.which("prometheus")


class Prometheus:
    """One that scrapes what a file names, once a second; it keeps its data when it is killed.

    Args:
        directory: For its data, its configuration and its log.
        rules: Files with rules.
    """

    def __init__(self, directory: Path, rules: Sequence[Path] = ()) -> None:
        self._directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        self._address = f"127.0.0.1:{free_port()}"
        self.url = f"http://{self._address}"
        self._targets = directory / "targets.json"
        self._targets.write_text("[]")
        job = {
            "job_name": "pods",
            "file_sd_configs": [{"files": [str(self._targets)], "refresh_interval": "1s"}],
        }
        times = {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"}
        config = {"global": times, "scrape_configs": [job], "rule_files": [str(file) for file in rules]}
        (directory / "prometheus.yml").write_text(yaml.safe_dump(config))
        self._process: subprocess.Popen[bytes] | None = None

    def scrape(self, namespace: str, pods: Mapping[str, str | None]) -> None:
        """Scrape these engine pods, under the labels that a PodMonitor gives them."""
        self.scrape_only(
            {
                f"{address}:{ENGINE_PORT}": {"namespace": namespace, "pod": name}
                for name, address in pods.items()
                if address
            }
        )

    def scrape_only(self, targets: Mapping[str, Mapping[str, str]]) -> None:
        """Scrape these addresses, each with its labels."""
        groups = [{"targets": [address], "labels": labels} for address, labels in targets.items()]
        fresh = self._targets.with_suffix(".new")
        fresh.write_text(json.dumps(groups))
        fresh.rename(self._targets)

    def start(self) -> None:
        """Start it; the address stays."""
        assert PROMETHEUS is not None
        flags = {
            "config.file": self._directory / "prometheus.yml",
            "storage.tsdb.path": self._directory / "data",
            "web.listen-address": self._address,
        }
        with (self._directory / "prometheus.log").open("ab") as log:
            self._process = subprocess.Popen(
                [PROMETHEUS, *(f"--{name}={value}" for name, value in flags.items())], stdout=log, stderr=log
            )

    def kill(self) -> None:
        """End it by SIGKILL."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
