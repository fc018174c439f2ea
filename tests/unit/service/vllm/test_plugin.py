"""The plugin of vLLM: one kernel for any number of sequences."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib.metadata import entry_points
from types import ModuleType, SimpleNamespace

import pytest

from dragoman_service.engine.protocol import Decoding
from dragoman_service.engine.vllm import plugin
from dragoman_service.engine.vllm.engine import sampling_params


@dataclass
class Parameter:
    """Of a Triton kernel."""

    name: str
    do_not_specialize: bool = False


def given(monkeypatch: pytest.MonkeyPatch, kernel: object) -> None:
    module = ModuleType(plugin.SAMPLER_KERNELS)
    module._topk_topp_kernel = kernel  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, plugin.SAMPLER_KERNELS, module)


def test_vllm_finds_the_plugin() -> None:
    (found,) = entry_points(group="vllm.general_plugins", name="dragoman")
    assert found.load() is plugin.register


def test_the_kernel_is_not_specialized_on_the_number_of_sequences(monkeypatch: pytest.MonkeyPatch) -> None:
    parameters = [Parameter("LOGITS"), Parameter("BATCH_SIZE"), Parameter("VOCAB_SIZE")]
    given(monkeypatch, SimpleNamespace(params=parameters))
    plugin.register()
    assert [each.name for each in parameters if each.do_not_specialize] == ["BATCH_SIZE"]


def test_a_function_that_is_no_kernel_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    given(monkeypatch, lambda: None)
    plugin.register()


def test_a_release_without_the_module_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugin, "SAMPLER_KERNELS", "vllm_without_it.ops")
    plugin.register()


@pytest.mark.vllm
@pytest.mark.filterwarnings("ignore")
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("decoding", "top_k"),
    [
        (Decoding(temperature=0.7, top_p=0.9), 999),
        (Decoding(temperature=0.7, top_p=0.9, top_k=20), 20),
        (Decoding(temperature=0.7), 0),
        (Decoding(), 0),
    ],
)
def test_top_p_alone_also_has_a_top_k(decoding: Decoding, top_k: int) -> None:
    assert sampling_params(decoding, 10, 1000, (), ()).top_k == top_k
