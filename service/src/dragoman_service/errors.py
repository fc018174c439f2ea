"""Why an engine pod cannot start."""

from __future__ import annotations


class StartError(Exception):
    """The pod cannot start; the message is the sentence for the termination log."""


class SettingsError(StartError):
    """A flag or an environment variable is wrong."""


class PromptTemplateError(StartError):
    """The prompt family or its template cannot be used."""


class ModelLoadError(StartError):
    """The engine could not load the model."""
