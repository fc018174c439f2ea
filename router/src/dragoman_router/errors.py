"""Why a router cannot start, or cannot reach what it depends on; errors of requests are in `dragoman_protocols`."""

from __future__ import annotations


class RouterError(Exception):
    """Base of all errors of this package."""


class SettingsError(RouterError):
    """A setting, or a file that it names, cannot be used."""


class ClusterError(RouterError):
    """The Kubernetes API cannot be reached, or an object cannot be read."""


class StateError(RouterError):
    """Redis did not answer, or with an error."""


class StateRefusedError(StateError):
    """Redis refused a command: out of memory, a missing permission, a wrong password."""
