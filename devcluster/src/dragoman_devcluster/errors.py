"""Errors of the local cluster; those of its API are in `dragoman_kube.errors`."""

from __future__ import annotations


class LocalClusterError(Exception):
    """Root of the local cluster's errors; the message names the cause and what to change."""


class PodRefusedError(LocalClusterError):
    """This node cannot run the pod as written; the message is shown in the container's state."""


class MissingReferenceError(LocalClusterError):
    """Something a volume or a variable refers to does not exist yet."""


class StartFailedError(LocalClusterError):
    """The cluster, or a part of it, did not start."""


class AlreadyRunningError(LocalClusterError):
    """Another supervisor holds the state directory."""
