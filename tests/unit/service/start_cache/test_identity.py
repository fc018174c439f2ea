"""The key of a start cache: equal for pods that can share, different for all others."""

from pathlib import Path
from typing import Any

import pytest

from dragoman_service.settings import Settings
from dragoman_service.start_cache.identity import cpu_facts, facts_of, key_of

GPU = {"driver": "580.1", "gpus": [("NVIDIA H200", 150_754_820_096, [9, 0])]}


@pytest.fixture
def model(tmp_path: Path) -> Path:
    (tmp_path / "config.json").write_text('{"hidden_size": 8}')
    (tmp_path / "model.safetensors").write_bytes(b"\0" * (2 << 20))
    return tmp_path


def key(model: Path, hardware: dict[str, Any] = GPU, **changed: Any) -> str:
    settings = Settings(**{"model": str(model), "max_num_seqs": 32, **changed})
    return key_of(facts_of(settings, hardware))


def test_what_only_http_uses_does_not_matter(model: Path) -> None:
    assert key(model) == key(model, port=9000, served_name="other", log_level="debug", cache_dir=model)


def test_how_weights_are_read_does_not_matter(model: Path) -> None:
    assert key(model) == key(model, engine_args={"load_format": "fastsafetensors"})


@pytest.mark.parametrize(
    "changed",
    [
        {"max_num_seqs": 64},
        {"max_num_batched_tokens": 8192},
        {"gpu_memory_utilization": 0.5},
        {"kv_cache_memory_bytes": 1},
        {"tensor_parallel_size": 2},
        {"dtype": "bfloat16"},
        {"quantization": "fp8"},
        {"revision": "main"},
        {"trust_remote_code": True},
        {"engine_args": {"enforce_eager": True}},
        {"device": "cpu"},
    ],
)
def test_each_engine_setting_makes_another_key(model: Path, changed: dict[str, Any]) -> None:
    assert key(model, **changed) != key(model)


@pytest.mark.parametrize(
    "hardware",
    [
        {"driver": "570.1", "gpus": GPU["gpus"]},
        {"driver": "580.1", "gpus": [("NVIDIA H100", 150_754_820_096, [9, 0])]},
        {"driver": "580.1", "gpus": [("NVIDIA H200", 80_000_000_000, [9, 0])]},
        {},
    ],
)
def test_another_gpu_makes_another_key(model: Path, hardware: dict[str, Any]) -> None:
    assert key(model, hardware) != key(model)


def test_another_configuration_or_size_of_the_weights_makes_another_key(model: Path) -> None:
    first = key(model)
    (model / "config.json").write_text('{"hidden_size": 9}')
    second = key(model)
    (model / "model.safetensors").write_bytes(b"\0" * (3 << 20))
    assert len({first, second, key(model)}) == 3


def test_a_processor_is_known_by_what_compilers_use() -> None:
    first = "processor\t: 0\nmodel name\t: Xeon\ncpu MHz\t: 2000.1\nflags\t\t: avx2 amx\n\nprocessor\t: 1\n"
    assert cpu_facts(first) == {"model name": "Xeon", "flags": "avx2 amx"}
    assert cpu_facts("processor : 0\nBogoMIPS : 1\nFeatures : sve2\nCPU part : 0xd4f\n") == {
        "Features": "sve2",
        "CPU part": "0xd4f",
    }
