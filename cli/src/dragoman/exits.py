"""Exit statuses of the commands."""

from __future__ import annotations

DONE = 0
FAILED = 1
"""Some or all of it was not done."""
USAGE = 2
"""Flags, files or the kubeconfig are not valid, or the cluster has no such service; nothing was translated."""
UNREACHABLE = 3
"""The service or the cluster does not answer."""
INTERRUPTED = 130
"""By SIGINT, as shells have it."""
