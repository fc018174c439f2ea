"""The limit of open files: each connection is one, and login shells of many distributions start with 1,024."""

from __future__ import annotations

import resource

ENOUGH_FILES = 65_536
"""For any process of this project with its default settings, and for those that it starts."""


def raise_file_limit(needed: int = ENOUGH_FILES) -> int:
    """Raise the soft limit of open files as far as is needed and the hard limit allows.

    Args:
        needed: Files that may be open at the same time.

    Returns:
        The hard limit if it is lower than `needed`, else `needed`.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return wanted
