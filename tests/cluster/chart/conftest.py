"""Clusters in which nothing is installed yet: the chart brings the CRD, and its operator may watch everything."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from kubernetes import config
from tests.support.fresh import Fresh
from tests.support.fresh import until as wait_until

from dragoman_devcluster.lifecycle import bring_up, take_down
from dragoman_devcluster.options import ClusterOptions


@pytest.fixture
def until() -> Callable[..., Any]:
    """Wait until a question has a true answer."""
    return wait_until


@pytest.fixture(scope="module")
def fresh(api_kind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fresh]:
    directory = tmp_path_factory.mktemp(f"{api_kind}-chart") / "cluster"
    bring_up(
        ClusterOptions(dir=directory, api=api_kind, gpus=0, stop_grace_s=1, preload="tests.support.preloaded")
    )
    try:
        kubeconfig = directory / "kubeconfig"
        with config.new_client_from_config(config_file=str(kubeconfig), persist_config=False) as api:
            yield Fresh(kubeconfig, api)
    finally:
        take_down(directory)
