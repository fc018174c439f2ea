from collections.abc import Callable
from typing import Any

import pytest

from dragoman_service.settings import Settings


@pytest.fixture(autouse=True)
def _bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in Settings.model_fields:
        monkeypatch.delenv(f"DRAGOMAN_{name.upper()}", raising=False)


@pytest.fixture
def make_settings() -> Callable[..., Settings]:
    def make(**fields: Any) -> Settings:
        return Settings(**({"model": "org/model", "engine": "scripted"} | fields))

    return make
