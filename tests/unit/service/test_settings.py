from pathlib import Path

import pytest

from dragoman_contract.languages import Languages
from dragoman_service.errors import SettingsError
from dragoman_service.settings import Settings, read_settings, termination_log


def test_every_flag_of_the_contract_is_read() -> None:
    settings = read_settings(
        [
            *("--model", "org/name", "--revision", "abc", "--served-name", "european"),
            *("--prompt-family", "custom", "--prompt-template", "{text}"),
            *("--languages", '[{"source":"en","targets":["de","fr"]}]', "--device", "cpu"),
            *("--max-num-seqs", "8", "--max-num-batched-tokens", "512", "--max-model-len", "1024"),
            *("--gpu-memory-utilization", "0.5", "--tensor-parallel-size", "2"),
            *("--quantization", "fp8", "--dtype", "bfloat16"),
            *("--engine-args", '{"enforce_eager": false, "compilation_config": {"mode": 0}}'),
            *("--engine", "vllm", "--host", "127.0.0.1", "--port", "9000"),
            *("--request-timeout-s", "12.5", "--drain-timeout-s", "0"),
            *("--termination-log", "/t", "--cache-dir", "/c"),
        ]
    )
    read = settings.model_dump()
    wanted = {
        "model": "org/name",
        "revision": "abc",
        "served_name": "european",
        "prompt_family": "custom",
        "prompt_template": "{text}",
        "languages": ({"source": "en", "targets": ("de", "fr")},),
        "engine": "vllm",
        "device": "cpu",
        "max_num_seqs": 8,
        "max_num_batched_tokens": 512,
        "max_model_len": 1024,
        "gpu_memory_utilization": 0.5,
        "kv_cache_memory_bytes": None,
        "tensor_parallel_size": 2,
        "quantization": "fp8",
        "dtype": "bfloat16",
        "engine_args": {"enforce_eager": False, "compilation_config": {"mode": 0}},
        "host": "127.0.0.1",
        "port": 9000,
        "request_timeout_s": 12.5,
        "drain_timeout_s": 0.0,
        "max_body_bytes": 1024 * 1024,
        "max_texts": 1024,
        "termination_log": Path("/t"),
        "cache_dir": Path("/c"),
        "log_level": "info",
    }
    assert {name: read[name] for name in wanted} == wanted


def test_the_environment_is_read_and_flags_win(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_MODEL", "from/environment")
    monkeypatch.setenv("DRAGOMAN_PORT", "7000")
    monkeypatch.setenv("DRAGOMAN_LANGUAGES", '[{"source":"*","targets":["de"]}]')
    settings = read_settings(["--port", "7001"])
    assert (settings.model, settings.port) == ("from/environment", 7001)
    assert settings.languages == (Languages(source="*", targets=("de",)),)


def test_an_injected_service_variable_is_not_taken_for_a_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_SERVICE_HOST", "10.0.0.1")
    assert read_settings(["--model", "m"]).model == "m"


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--model", "m", "--portt", "1"], "no option --portt; did you mean --port?"),
        (["--model", "m", "--zzzzzzzz=1"], "no option --zzzzzzzz"),
        (["--port", "8000"], "--model is required"),
        (["--model", "m", "--port", "high"], "--port: input should be a valid integer"),
        (["--model", "m", "--prompt-family", "x"], "no prompt family 'x'; there are chatml-generic,"),
        (["--model", "m", "--prompt-family", "custom"], "set both or neither"),
        (["--model", "m", "--prompt-template", "{text}"], "set both or neither"),
        (["--model", "m", "--engine-args", "{no"], "engine_args"),
        (["--model", "m", "--languages", '[{"source":"e","targets":["de"]}]'], "--languages[0][source]:"),
        (["--model", "m", "--device", "cpu", "--sleep-after-s", "60"], "sleep-after-s needs device cuda"),
        (["--model", "m", "--sleep-after-s", "0"], "--sleep-after-s: input should be greater than 0"),
        (["--model", "m", "--device", "tpu"], "--device: input should be 'cuda' or 'cpu'"),
        (["--model", "m", "--max-num-seqs", "8", "--max-num-batched-tokens", "4"], "at least max-num-seqs"),
        (["--model", "m", "--gpu-memory-utilization", "1.5"], "less than or equal to 1"),
        (
            ["--model", "m", "--gpu-memory-utilization", "0.5", "--kv-cache-memory-bytes", "5"],
            "not both",
        ),
    ],
)
def test_what_is_wrong_is_named(argv: list[str], message: str) -> None:
    with pytest.raises(SettingsError) as refused:
        read_settings(argv)
    assert message in str(refused.value)


def test_settings_cannot_change() -> None:
    settings = read_settings(["--model", "m"])
    with pytest.raises(ValueError, match="frozen"):
        settings.port = 1  # type: ignore[misc]


def test_the_served_name_is_the_model_unless_it_is_set() -> None:
    assert Settings(model="org/m").name == "org/m"
    assert Settings(model="org/m", served_name="european").name == "european"


@pytest.mark.parametrize("argv", [["--termination-log", "/x"], ["--termination-log=/x"]])
def test_the_termination_log_is_found_although_the_rest_is_wrong(argv: list[str]) -> None:
    assert termination_log(["--portt", "1", *argv]) == Path("/x")


def test_the_termination_log_is_found_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_TERMINATION_LOG", "/y")
    assert termination_log(["--termination-log"]) == Path("/y")
