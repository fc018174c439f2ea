"""YAML of files that are reloaded while a process runs: any text gives a value or a ValueError."""

from __future__ import annotations

from typing import Any

import yaml

MAX_DEPTH = 64
"""libyaml's composer is recursive and crashes the process at about 20,000 levels."""

LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""libyaml, if PyYAML was built with it, takes a tenth of the time."""


def read_yaml(text: str) -> Any:
    """The value of a YAML text; None for an empty one.

    Raises:
        ValueError: It is not YAML, is nested more than `MAX_DEPTH` deep, or has an invalid value. The message has the
            line if it is known.
    """
    try:
        _check_depth(text)
        return yaml.load(text, Loader=LOADER)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        raise ValueError(f"no YAML{f', line {mark.line + 1}' if mark else ''}") from None
    except (ArithmeticError, AttributeError, LookupError, RecursionError, ValueError) as error:
        # Errors of PyYAML's constructors, such as for `!!bool maybe` and `!!timestamp x`.
        raise ValueError(f"no YAML that can be read: {error}") from None


def _check_depth(text: str) -> None:
    depth = 0
    for event in yaml.parse(text, Loader=LOADER):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                raise ValueError(f"it is nested more than {MAX_DEPTH} deep")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
