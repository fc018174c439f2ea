from collections.abc import Callable
from pathlib import Path

import pytest

from dragoman_service.engine.devices import limited_cpus
from dragoman_service.engine.vllm.process import environment
from dragoman_service.settings import Settings

MakeSettings = Callable[..., Settings]
REPORT = Path("/tmp/logging.json")


def test_vllm_sends_no_telemetry_and_never_forks(make_settings: MakeSettings) -> None:
    added = environment(make_settings(), REPORT, 4, {})
    assert {added["VLLM_NO_USAGE_STATS"], added["DO_NOT_TRACK"], added["HF_HUB_DISABLE_TELEMETRY"]} == {"1"}
    assert added["VLLM_WORKER_MULTIPROC_METHOD"] == "spawn"
    assert added["VLLM_LOGGING_CONFIG_PATH"] == str(REPORT)


def test_caches_go_under_the_cache_directory(make_settings: MakeSettings) -> None:
    added = environment(make_settings(cache_dir=Path("/cache")), REPORT, 4, {})
    assert (added["HF_HOME"], added["VLLM_CACHE_ROOT"]) == ("/cache/huggingface", "/cache/vllm")
    assert not [name for name, value in added.items() if "CACHE" in name and not value.startswith("/cache")]
    assert "HF_HOME" not in environment(make_settings(), REPORT, 4, {})


def test_what_is_set_already_stays(make_settings: MakeSettings) -> None:
    given = {"HF_HOME": "/mine", "VLLM_LOGGING_CONFIG_PATH": "/mine.json"}
    added = environment(make_settings(cache_dir=Path("/cache")), REPORT, 4, given)
    assert not added.keys() & given.keys()


@pytest.mark.parametrize(("cpus", "threads"), [(1, "1"), (2, "1"), (8, "7")])
def test_a_cpu_pod_leaves_one_core_to_http(make_settings: MakeSettings, cpus: int, threads: str) -> None:
    added = environment(make_settings(device="cpu"), REPORT, cpus, {})
    assert (added["OMP_NUM_THREADS"], added["VLLM_CPU_OMP_THREADS_BIND"]) == (threads, "nobind")


@pytest.mark.parametrize(
    ("fields", "one_process"),
    [
        ({"device": "cpu"}, True),
        ({"device": "cuda"}, False),
        ({"device": "cpu", "tensor_parallel_size": 2}, False),
        ({"device": "cpu", "engine_args": {"distributed_executor_backend": "mp"}}, False),
    ],
)
def test_one_process_holds_a_model_on_a_cpu_by_default(
    make_settings: MakeSettings, fields: dict[str, object], one_process: bool
) -> None:
    added = environment(make_settings(**fields), REPORT, 2, {})
    assert (added.get("VLLM_ENABLE_V1_MULTIPROCESSING") == "0") is one_process


@pytest.mark.parametrize(
    ("cpu_max", "cpus"), [("250000 100000", 2), ("50000 100000", 1), ("400000 100000\n", 4)]
)
def test_a_container_s_limit_counts_in_whole_cpus(cpu_max: str, cpus: int) -> None:
    assert limited_cpus(cpu_max) == cpus


@pytest.mark.parametrize("cpu_max", ["max 100000", "", "x y"])
def test_no_limit_is_a_large_number(cpu_max: str) -> None:
    assert limited_cpus(cpu_max) > 1000


def test_vllm_s_own_spans_go_where_the_pod_s_go(make_settings: MakeSettings) -> None:
    added = environment(make_settings(otlp_endpoint="http://otel:4318", served_name="x"), REPORT, 4, {})
    assert added["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"] == "http/protobuf"
    assert added["OTEL_SERVICE_NAME"] == "x"
    assert not [name for name in environment(make_settings(), REPORT, 4, {}) if name.startswith("OTEL")]
