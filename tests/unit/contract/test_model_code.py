"""Which arguments of vLLM run code."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman_contract.model_code import WITHOUT_CODE, code_arguments


@pytest.mark.parametrize(
    "arguments",
    [
        {"trust_remote_code": True},
        {"load_format": "pt"},
        {"load-format": "npcache"},
        {"load_format": "of_a_plugin"},
        {"worker_cls": "mine.Worker"},
        {"scheduler-cls": "mine.Scheduler"},
        {"distributed_executor_backend": "mine.Executor"},
        {"logits_processors": ["mine.Processor"]},
        {"compilation_config": {"backend": "mine.compile"}},
        {"kv_transfer_config": {"kv_connector_module_path": "mine.connector"}},
    ],
)
def test_arguments_that_run_code(arguments: dict[str, Any]) -> None:
    assert code_arguments(arguments | {"enforce_eager": True}) == list(arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        {name: values[0] for name, values in WITHOUT_CODE.items()},
        {"load_format": "runai_streamer", "distributed_executor_backend": "mp"},
        {
            "compilation_config": {"mode": 3, "backend": "inductor"},
            "kv_transfer_config": {"kv_role": "kv_both"},
        },
        {"enable_prefix_caching": False, "seed": 1},
    ],
)
def test_arguments_that_run_none(arguments: dict[str, Any]) -> None:
    assert code_arguments(arguments) == []
