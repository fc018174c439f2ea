"""The builders as fixtures, for the tests of the controller."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.support import deployments

from dragoman_operator.api.v1alpha1 import TranslationDeployment
from dragoman_operator.resources.children import Defaults


@pytest.fixture
def defaults() -> Defaults:
    return deployments.DEFAULTS


@pytest.fixture
def make_td() -> Callable[..., TranslationDeployment]:
    return deployments.make_td


@pytest.fixture
def make_pod() -> Callable[..., dict[str, Any]]:
    return deployments.make_pod


@pytest.fixture
def make_body() -> Callable[..., dict[str, Any]]:
    return deployments.make_body
