"""Which arguments of vLLM run code."""

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
        {"compilation_config": {"inductor_passes": {"mine": "mine.run"}}},
        {"kv_transfer_config": {"kv_connector_module_path": "mine.connector"}},
        {"kv_transfer_config": {"kv_connector_extra_config": {"spec_module_path": "mine.spec"}}},
        {"kv_transfer_config": {"kv_connector_extra_config": {"secondary_tiers": [{"module_path": "mine"}]}}},
        {
            "kv_transfer_config": {
                "kv_connector_extra_config": {"backpressure": {"policy_cls": "mine.Policy"}}
            }
        },
        {"kv_transfer_config": {"kv_connector_extra_config": {"policy": "mine.Policy"}}},
        {"ec_manager_config": {"encoder_cache_manager_cls": "mine.Manager"}},
        {"structured_outputs_config": {"reasoning_parser_plugin": "/mine.py"}},
        {"speculative_config": {"model": "mine.Proposer", "num_speculative_tokens": 2}},
        {"speculative_config": {"method": "custom_class", "model": "Proposer"}},
        {"speculative-config": {"model": "org/draft", "draft_load_config": {"load_format": "pt"}}},
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
            "kv_transfer_config": {
                "kv_role": "kv_both",
                "kv_connector_extra_config": {"lmcache.mp.host": "cache.example", "eviction_policy": "arc"},
            },
        },
        {"speculative_config": {"model": "org/Draft-1.5", "draft_load_config": {"load_format": "auto"}}},
        {"speculative_config": {"method": "eagle", "model": "Draft.one", "num_speculative_tokens": 2}},
        {"structured_outputs_config": {"backend": "xgrammar", "reasoning_parser_plugin": ""}},
        {"enable_prefix_caching": False, "seed": 1},
    ],
)
def test_arguments_that_run_none(arguments: dict[str, Any]) -> None:
    assert code_arguments(arguments) == []


def test_nested_arguments_of_any_depth_are_read() -> None:
    nested: Any = {"module_path": "mine"}
    for _ in range(5_000):
        nested = [nested]
    assert code_arguments({"kv_transfer_config": nested}) == ["kv_transfer_config"]
