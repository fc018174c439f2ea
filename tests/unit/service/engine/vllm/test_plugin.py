"""The plugin of vLLM: one compilation of the sampling kernel serves all requests."""

import sys
from dataclasses import dataclass
from importlib.metadata import entry_points
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from dragoman_service.engine.vllm import plugin


@dataclass
class Parameter:
    """Of a Triton kernel."""

    name: str
    do_not_specialize: bool = False


@pytest.fixture
def parameters() -> list[Parameter]:
    """Of the kernel."""
    return [Parameter("LOGITS"), Parameter("BATCH_SIZE"), Parameter("VOCAB_SIZE")]


@pytest.fixture
def sampler(monkeypatch: pytest.MonkeyPatch, parameters: list[Parameter]) -> Any:
    """vLLM's module of the sampler, with a kernel."""
    sampler, kernels = ModuleType(plugin.SAMPLER), ModuleType(plugin.KERNELS)
    kernels._topk_topp_kernel = SimpleNamespace(params=parameters)  # type: ignore[attr-defined]
    sampler.apply_top_k_top_p_triton = lambda *arguments: arguments  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, plugin.SAMPLER, sampler)
    monkeypatch.setitem(sys.modules, plugin.KERNELS, kernels)
    return sampler


def specialized(parameters: list[Parameter]) -> list[str]:
    """Names of those that Triton compiles the kernel anew for."""
    return [each.name for each in parameters if not each.do_not_specialize]


def test_the_plugin_is_an_entry_point_of_vllm() -> None:
    (found,) = entry_points(group="vllm.general_plugins", name="dragoman")
    assert found.load() is plugin.register


def test_the_kernel_is_not_specialized_on_the_number_of_sequences(
    sampler: Any, parameters: list[Parameter]
) -> None:
    plugin.register()
    assert specialized(parameters) == ["LOGITS", "VOCAB_SIZE"]
    assert sampler.apply_top_k_top_p_triton("logits", None, None) == ("logits", None, None)


def test_releases_with_their_own_warm_up_are_left_alone(sampler: Any, parameters: list[Parameter]) -> None:
    setattr(sampler, plugin.OWN_WARM_UP, lambda: None)
    apply = sampler.apply_top_k_top_p_triton
    plugin.register()
    assert specialized(parameters) == ["LOGITS", "BATCH_SIZE", "VOCAB_SIZE"]
    assert sampler.apply_top_k_top_p_triton is apply


def test_a_sampler_without_triton_is_left_alone(sampler: Any, parameters: list[Parameter]) -> None:
    del sampler.apply_top_k_top_p_triton
    plugin.register()
    assert specialized(parameters) == ["LOGITS", "BATCH_SIZE", "VOCAB_SIZE"]


def test_a_function_that_is_no_kernel_is_left_alone(sampler: Any) -> None:
    apply = sampler.apply_top_k_top_p_triton
    sys.modules[plugin.KERNELS]._topk_topp_kernel = lambda: None  # type: ignore[attr-defined]
    plugin.register()
    assert sampler.apply_top_k_top_p_triton is apply


def test_a_release_without_the_module_is_left_alone(
    sampler: Any, parameters: list[Parameter], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, plugin.KERNELS, None)
    apply = sampler.apply_top_k_top_p_triton
    plugin.register()
    assert specialized(parameters) == ["LOGITS", "BATCH_SIZE", "VOCAB_SIZE"]
    assert sampler.apply_top_k_top_p_triton is apply


@pytest.mark.vllm
@pytest.mark.filterwarnings("ignore")
@pytest.mark.timeout(600)
def test_a_missing_limit_becomes_one_that_limits_nothing() -> None:
    import torch
    from vllm.v1.sample.ops.topk_topp_sampler import apply_top_k_top_p_pytorch

    limited = plugin.with_both_limits(apply_top_k_top_p_pytorch)
    logits = torch.randn((3, 50), generator=torch.Generator().manual_seed(1))
    top_k, top_p = torch.tensor([3, 50, 7], dtype=torch.int32), torch.tensor([0.5, 1.0, 0.9])
    for limits in ((top_k, None), (None, top_p), (top_k, top_p), (None, None)):
        expected = apply_top_k_top_p_pytorch(logits.clone(), *limits)
        assert torch.equal(limited(logits.clone(), *limits), expected)
