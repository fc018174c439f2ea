"""Why an engine pod cannot start."""

from __future__ import annotations

from typing import ClassVar


class StartError(Exception):
    """The pod cannot start; the message is the sentence for the termination log."""

    code: ClassVar[str] = "start_failed"


class SettingsError(StartError):
    """A flag or an environment variable is wrong."""

    code = "bad_settings"


class PromptTemplateError(StartError):
    """The prompt family or its template cannot be used."""

    code = "bad_prompt_template"


class ModelLoadError(StartError):
    """The engine could not load the model."""

    code = "model_load_failed"
