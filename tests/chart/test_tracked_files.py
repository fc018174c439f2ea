"""What git tracks: no builds, and nothing large but what is named here."""

import subprocess

MOST_BYTES = 1 << 20
LARGE = {"examples/demo-model/model.safetensors"}
BUILDS = (
    ".whl",
    ".egg",
    ".so",
    ".a",
    ".o",
    ".dll",
    ".exe",
    ".jar",
    ".pyc",
    ".zip",
    ".tar",
    ".tgz",
    ".xz",
    ".bz2",
    ".zst",
)
ARCHIVES = ("bench/traces/",)
"""Folders whose files may be compressed."""


def test_no_build_archive_or_large_file_is_tracked(root):
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, text=True, check=True)
    tracked = [name for name in listed.stdout.split("\0") if name and (root / name).is_file()]
    assert tracked
    builds = [name for name in tracked if name.lower().endswith(BUILDS)]
    archives = [name for name in tracked if name.endswith(".gz") and not name.startswith(ARCHIVES)]
    large = [name for name in tracked if (root / name).stat().st_size > MOST_BYTES and name not in LARGE]
    assert builds + archives + large == []
