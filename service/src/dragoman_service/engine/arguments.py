"""Engine arguments by name: those of typed flags and those of `--engine-args`."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping
from typing import Any

from dragoman_service.errors import SettingsError


def merged(typed: Mapping[str, Any], extra: Mapping[str, Any], known: Collection[str]) -> dict[str, Any]:
    """Engine arguments of typed flags, None where one is not set, and `extra` ones of `--engine-args`.

    Raises:
        SettingsError: An extra argument is unknown (with the nearest known name), or was set by a flag too.
    """
    for name in extra:
        if name not in known:
            nearest = difflib.get_close_matches(name, known, n=1)
            raise SettingsError(
                f"--engine-args: the engine has no argument {name!r}"
                + (f"; did you mean {nearest[0]!r}?" if nearest else "")
            )
        if typed.get(name) is not None:
            raise SettingsError(f"--engine-args: {name!r} is set twice, there and by a flag of its own")
    return {name: value for name, value in typed.items() if value is not None} | dict(extra)
