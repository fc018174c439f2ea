"""What an engine of `dragoman translate --model` says, for the user of that command."""

import re
from pathlib import Path

import pytest

from dragoman.engine import PHRASES, for_this_command
from dragoman_service.engine.vllm.failures import reason
from dragoman_service.engine.vllm.start_report import Failure
from dragoman_service.settings import Settings

SERVICE = Path(__file__).parents[3] / "service/src/dragoman_service"


@pytest.mark.parametrize(
    ("of_a_pod", "of_the_command"),
    [
        ("lower maxModelLen to at most 512", "lower DRAGOMAN_MAX_MODEL_LEN to at most 512"),
        ("raise gpuMemoryUtilization", "raise DRAGOMAN_GPU_MEMORY_UTILIZATION"),
        ("lower engine.maxNumSeqs", "lower DRAGOMAN_MAX_NUM_SEQS"),
        ("--engine-args: no argument x", "DRAGOMAN_ENGINE_ARGS: no argument x"),
        ("--prompt-family: no x; --device cpu", "--prompt-family: no x; --device cpu"),
        ("check spec.model.uri", "check --model"),
    ],
)
def test_settings_of_a_spec_become_those_of_the_command(of_a_pod: str, of_the_command: str) -> None:
    assert for_this_command(of_a_pod) == of_the_command


def test_a_machine_without_a_gpu_is_told_the_flag() -> None:
    said = for_this_command(reason(Failure((("RuntimeError", "No CUDA GPUs are available"),)), "m"))
    assert said == "no usable GPU on this machine: --device cpu uses none"


def test_every_phrase_is_one_of_the_service() -> None:
    # Sentences there are divided among literals.
    code = re.sub(r'"\s+f?"', "", "\n".join(file.read_text() for file in SERVICE.rglob("*.py")))
    assert [phrase for phrase in PHRASES if phrase not in code] == []


def test_every_variable_is_a_setting() -> None:
    named = re.findall(r"DRAGOMAN_(\w+)", " ".join(PHRASES.values()))
    assert named
    assert {name.lower() for name in named} <= Settings.model_fields.keys()
