"""A file system that is full after some MiB, mounted where nothing but its own process and its users see it."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_disk(mib: int) -> Iterator[Path]:
    """A directory on a tmpfs of `mib` MiB, in a mount namespace of its own (with one of users, where not root).

    Its path leads through the process that holds the namespace. Skips the test where namespaces are not allowed.
    """
    script = f"mount -t tmpfs -o size={mib}m none /mnt && echo mounted && exec cat"
    holder = subprocess.Popen(
        ["unshare", "--mount", "--map-root-user", "sh", "-c", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout is not None
    if holder.stdout.readline() != "mounted\n":
        _, why = holder.communicate(timeout=10)
        pytest.skip(f"may not mount in a namespace: {why}")
    try:
        yield Path(f"/proc/{holder.pid}/root/mnt")
    finally:
        holder.communicate(timeout=10)
