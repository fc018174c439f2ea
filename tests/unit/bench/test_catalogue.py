import shlex
from pathlib import Path

import pytest
import yaml

from dragoman_bench.arms.common import arm_options
from dragoman_bench.arms.routed_pod import MAX_IN_FLIGHT, fleet_of, router_command
from dragoman_bench.catalogue import BY_NAME_ALONE, LADDER, PEERS, Arm, arms_named
from dragoman_bench.errors import BenchError
from dragoman_bench.fleet import groups
from dragoman_bench.plan import RunPlan
from dragoman_router.fleet.static import read
from dragoman_router.settings import read_settings as read_router_settings
from dragoman_service.engine.vllm.arguments import gpu_arguments
from dragoman_service.settings import read_settings

PLAN = RunPlan(Path("/models/m"), "Translate: {text}", "cuda", 0.3, 2048, None, 60.0, 8 * 10**9)


def command(name: str, plan: RunPlan = PLAN) -> list[str]:
    (arm,) = arms_named([name])
    return arm.command(plan, 8123)


def test_the_seeds_settings_are_the_arms() -> None:
    single = arm_options(command("b0-queues")[3:])
    double = arm_options(command("b1-two-workers")[3:])
    batched = arm_options(command("b2-static-batch")[3:])
    assert (single.workers, single.batch) == (1, 1)
    assert (double.workers, double.engine["gpu_memory_utilization"]) == (2, 0.3)
    assert (batched.workers, batched.batch, batched.batch_wait_s) == (1, 16, 0.05)
    async_64 = arm_options(command("b3-async-64")[3:]).engine
    assert (async_64["max_num_seqs"], async_64["max_num_batched_tokens"]) == (64, 16384)
    assert async_64["enable_chunked_prefill"] is True


@pytest.mark.parametrize("kv_cache_bytes", [None, 8 * 10**9])
def test_the_pod_accepts_its_command_line(kv_cache_bytes: int | None) -> None:
    plan = RunPlan(Path("/models/m"), "Translate: {text}", "cuda", 0.3, 2048, None, 60.0, kv_cache_bytes)
    settings = read_settings(command("final", plan)[4:])
    assert (settings.max_num_seqs, settings.max_num_batched_tokens) == (16, 8192)
    assert settings.gpu_memory_utilization == 0.3
    assert settings.engine_args.get("kv_cache_memory_bytes") == kv_cache_bytes


def test_peers_differ_in_nothing_but_the_server() -> None:
    bare = arm_options(command("async-llm")[3:]).engine
    served = shlex.join(command("vllm-serve"))
    pod = read_settings(command("pod")[4:])
    for name, value in bare.items():
        assert f"--{name.replace('_', '-')} {value}" in served
        assert getattr(pod, name) == value or pod.engine_args[name] == value


def test_the_tuned_peer_has_the_graphs_of_the_pod() -> None:
    tuned = command("vllm-serve-tuned")
    at = tuned.index("--cudagraph-capture-sizes") + 1
    own = gpu_arguments({"max_num_batched_tokens": 8192})["cudagraph_capture_sizes"]
    assert tuned[at : at + len(own)] == [str(size) for size in own]
    assert [*tuned[: at - 1], *tuned[at + len(own) :]] == command("vllm-serve")


def test_the_routed_pod_is_the_pod() -> None:
    routed = command("routed")
    port = routed[routed.index("--pod-port") + 1]
    assert routed[routed.index("--") + 1 :] == [port if part == "8123" else part for part in command("pod")]
    assert routed[routed.index("--port") + 1] == "8123"


def test_the_routers_file_lists_the_pod_for_every_pair() -> None:
    ((deployment, replicas),) = read(Path(fleet_of(8123)))
    assert not deployment.languages
    assert deployment.max_in_flight == MAX_IN_FLIGHT
    assert [(replica.host, replica.port) for replica in replicas] == [("127.0.0.1", 8123)]


def test_the_router_accepts_its_command_line() -> None:
    fleet = fleet_of(8123)
    settings = read_router_settings(router_command(8080, fleet)[4:])
    assert (settings.port, settings.static) == (8080, Path(fleet))


def test_as_many_arms_start_together_as_memory_has_space_for() -> None:
    names = [[arm.name for arm in group] for group in groups(LADDER, 0.3)]
    assert names == [
        ["b0-queues", "b1-two-workers"],
        ["b2-static-batch", "b3-async-64", "b3-async-16"],
        ["final", "sized"],
    ]
    assert [len(group) for group in groups(LADDER, 0.9)] == [1] * len(LADDER)


def test_names_are_unique() -> None:
    arms: tuple[Arm, ...] = (*LADDER, *PEERS, *BY_NAME_ALONE)
    assert len({arm.name for arm in arms}) == len(arms)


def test_settings_are_arms() -> None:
    settings = read_settings(command("pod-32-4096")[4:])
    assert (settings.max_num_seqs, settings.max_num_batched_tokens) == (32, 4096)
    with pytest.raises(BenchError, match="no arm 'pod-x'"):
        arms_named(["pod", "pod-x"])


def test_the_example_manifest_is_the_final_arm() -> None:
    example = Path(__file__).parents[3] / "examples" / "seeds-final.yaml"
    engine = yaml.safe_load(example.read_text())["spec"]["engine"]
    settings = read_settings(command("final")[4:])
    assert engine["maxNumSeqs"] == settings.max_num_seqs
    assert engine["maxNumBatchedTokens"] == settings.max_num_batched_tokens
    assert engine["gpuMemoryUtilization"] == settings.gpu_memory_utilization
