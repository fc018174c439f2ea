"""Software bills of materials of what the images install (`make sbom`)."""

import importlib.util
import json
import subprocess
from pathlib import Path
from urllib.parse import quote

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
REQUIREMENTS = {
    "operator": ["operator"],
    "router": ["router"],
    "engine-cpu": ["engine-cpu", "torch-cpu"],
    "engine-gpu": ["engine-gpu"],
}
"""The files from which each image installs."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        importlib.util.find_spec("cyclonedx_py") is None, reason="no cyclonedx-bom: make test installs it"
    ),
]


def locked(image: str) -> dict[str, bool]:
    """Each package that an image installs, as a package URL, and whether its files have hashes."""
    found = {}
    for name in REQUIREMENTS[image]:
        text = (ROOT / f"requirements/{name}.txt").read_text().replace("\\\n", " ")
        for line in filter(None, (line.partition("#")[0].strip() for line in text.splitlines())):
            required = Requirement(line.partition(" --hash")[0])
            (pin,) = required.specifier
            found[f"pkg:pypi/{canonicalize_name(required.name)}@{quote(pin.version)}"] = "--hash" in line
    return found


def test_bills_list_exactly_the_locked_packages(tmp_path: Path) -> None:
    command = ["make", "--silent", "--old-file=.venv/.audit", f"SBOM={tmp_path}", "sbom"]
    subprocess.run(command, cwd=ROOT, check=True, timeout=100)
    assert {path.name.removesuffix(".cdx.json") for path in tmp_path.iterdir()} == set(REQUIREMENTS)
    for image in REQUIREMENTS:
        bill = json.loads((tmp_path / f"{image}.cdx.json").read_text())
        assert bill["bomFormat"] == "CycloneDX"
        listed = {
            each["purl"]: any("hashes" in reference for reference in each["externalReferences"])
            for each in bill["components"]
        }
        assert listed == locked(image)
        assert len(bill["components"]) == len(listed)
