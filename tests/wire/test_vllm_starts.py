"""Starts of vLLM that fail, end, or load a fetched model, on a checkpoint made here; `make test-vllm` runs them."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.support.fetching import fetch
from tests.support.hub import Hub
from tests.support.servers import VLLM_START_S, wait_until_gone

BLOCK_TOKENS = 128
"""Of vLLM's cache on a CPU."""

pytestmark = [pytest.mark.vllm, pytest.mark.vllm_start, pytest.mark.timeout(VLLM_START_S + 120)]


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Qwen3 of one layer that answers "ok" to everything."""
    directory = tmp_path_factory.mktemp("checkpoint")
    write_checkpoint(directory, successors={"\n": "o", "o": "k"})
    return directory


@pytest.fixture(scope="session")
def runs_here(checkpoint: Path) -> None:
    """Skips where vLLM by itself is ended by a signal: its kernels for so small a model crash on some processors."""
    program = (
        "from vllm import LLM, SamplingParams\n"
        f"llm = LLM({str(checkpoint)!r}, enforce_eager=True, max_model_len=512)\n"
        "llm.generate(['o'], SamplingParams(max_tokens=2))\n"
    )
    environment = os.environ | {"VLLM_ENABLE_V1_MULTIPROCESSING": "0", "VLLM_CPU_KVCACHE_SPACE": "1"}
    ended = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, timeout=300)
    if ended.returncode < 0:
        pytest.skip(f"vLLM alone ends by signal {-ended.returncode} with this model on this processor")


@pytest.fixture(scope="session")
def on_cpu(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ...]:
    """Flags that all pods share; the cache saves every start but the first ten seconds."""
    return ("--device", "cpu", "--max-num-seqs", "4", "--cache-dir", str(tmp_path_factory.mktemp("cache")))


@pytest.mark.parametrize("killed", [False, True])
def test_a_pod_that_ends_while_it_starts_leaves_no_process(
    start_pod: Any, checkpoint: Path, on_cpu: tuple[str, ...], killed: bool
) -> None:
    pod = start_pod("--model", str(checkpoint), *on_cpu)
    pod.wait_for("/livez")
    end_s = time.monotonic() + VLLM_START_S
    while pod.client.get("/startupz").json()["phase"] != "loading":
        assert time.monotonic() < end_s
        time.sleep(0.05)
    started = pod.descendants()
    assert started
    if killed:
        pod.process.kill()
        pod.process.wait()
    else:
        assert pod.end() == 0
    wait_until_gone(started)


@pytest.mark.parametrize(
    ("arguments", "config", "status", "message"),
    [
        (("--engine-args", '{"enforce_eagr": true}'), {}, 2, "did you mean 'enforce_eager'?"),
        (("--engine-args", '{"load_format": "pt"}'), {}, 2, "load_format may run code"),
        ((), {"architectures": ["FooForCausalLM"]}, 1, "does not know the architecture"),
        (("--engine-args", '{"load_format": "dummy"}'), {"head_dim": 40}, 1, "Unsupported CPU attention"),
        (("--kv-cache-memory-bytes", "9000000000000"), {}, 1, "not enough memory: "),
    ],
)
def test_a_failed_start_reports_its_reason(
    start_pod: Any,
    checkpoint: Path,
    tmp_path: Path,
    on_cpu: tuple[str, ...],
    arguments: tuple[str, ...],
    config: dict[str, Any],
    status: int,
    message: str,
) -> None:
    for file in checkpoint.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    known = json.loads((checkpoint / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(known | config))
    pod = start_pod("--model", str(tmp_path), *on_cpu, *arguments)
    assert pod.process.wait(VLLM_START_S) == status
    words = pod.last_words.read_text()
    assert message in words
    assert words.count("\n") == 1
    # An import that had begun may still log after it.
    assert f"dragoman serve: {words}" in pod.log.read_text()


def test_a_model_that_is_not_there(start_pod: Any, on_cpu: tuple[str, ...]) -> None:
    pod = start_pod("--model", "/mnt/model/none", *on_cpu)
    assert pod.process.wait(30) == 1
    assert pod.last_words.read_text() == "the model directory /mnt/model/none does not exist in this pod\n"


@pytest.mark.usefixtures("runs_here")
def test_a_fetched_model_translates(
    start_pod: Any, checkpoint: Path, tmp_path: Path, on_cpu: tuple[str, ...]
) -> None:
    cache = tmp_path / "cache"
    with Hub({file.name: file.read_bytes() for file in checkpoint.iterdir()}) as hub:
        status, errors = fetch(cache, "hf://org/open", env={"HF_ENDPOINT": hub.url})
    assert status == 0, errors
    pod = start_pod("--model", str(cache / "models" / "it"), *on_cpu)
    pod.wait_for("/readyz", deadline_s=VLLM_START_S)
    assert pod.translate("Hello").json() == {"translation": "ok"}


@pytest.mark.usefixtures("runs_here")
def test_an_interrupt_from_a_terminal_reaches_all_processes_and_ends_a_pod_as_sigterm_does(
    start_pod: Any, checkpoint: Path, on_cpu: tuple[str, ...]
) -> None:
    pod = start_pod("--model", str(checkpoint), *on_cpu, "--lame-duck-s", "2")
    pod.wait_for("/readyz", deadline_s=VLLM_START_S)
    for pid in pod.descendants():
        os.kill(pid, signal.SIGINT)
    assert pod.end(signal.SIGINT) == 0
    assert "Traceback" not in pod.log.read_text()


@pytest.mark.usefixtures("runs_here")
def test_without_a_prefix_cache_nothing_that_others_sent_is_found_again(
    start_pod: Any, checkpoint: Path, on_cpu: tuple[str, ...]
) -> None:
    """With one it is: `test_what_was_sent_before_is_found_in_the_prefix_cache`."""
    pod = start_pod("--model", str(checkpoint), *on_cpu, "--engine-args", '{"enable_prefix_caching": false}')
    pod.wait_for("/readyz", deadline_s=VLLM_START_S)
    for name in ("Alice", "Bob"):
        assert pod.translate("Our offer is " + "high, " * 100 + name).status_code == 200
    samples = {
        sample.name: sample.value
        for family in text_string_to_metric_families(pod.client.get("/metrics").text)
        for sample in family.samples
    }
    assert samples["vllm:prompt_tokens_total"] > 2 * BLOCK_TOKENS
    assert samples["vllm:prefix_cache_queries_total"] == samples["vllm:prefix_cache_hits_total"] == 0


def test_pickled_weights_are_not_loaded(
    start_pod: Any, checkpoint: Path, tmp_path: Path, on_cpu: tuple[str, ...]
) -> None:
    for file in checkpoint.iterdir():
        name = "pytorch_model.bin" if file.suffix == ".safetensors" else file.name
        (tmp_path / name).write_bytes(file.read_bytes())
    pod = start_pod("--model", str(tmp_path), *on_cpu)
    assert pod.process.wait(VLLM_START_S) == 1
    assert "its pickled weights (pytorch_model.bin) may run code" in pod.last_words.read_text()


def test_a_tokenizer_without_the_turns_that_a_family_needs(
    start_pod: Any, checkpoint: Path, tmp_path: Path, on_cpu: tuple[str, ...]
) -> None:
    for file in checkpoint.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    config = json.loads((tmp_path / "tokenizer_config.json").read_text())
    del config["chat_template"]
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    pod = start_pod("--model", str(tmp_path), *on_cpu)
    assert pod.process.wait(VLLM_START_S) == 1
    assert "no chat template, which this prompt family needs" in pod.last_words.read_text()


def write_checkpoint(directory: Path, successors: dict[str, str]) -> None:
    """Write a Qwen3 whose layer adds nothing, so that a token is followed by its successor in lm_head.

    Args:
        directory: Where to.
        successors: By character, the character that follows it; after all others the output ends.
    """
    import torch
    from safetensors.torch import save_file
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE(vocab={byte: at for at, byte in enumerate(alphabet)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(
        [AddedToken("<|im_start|>", special=True), AddedToken("<|im_end|>", special=True)]
    )
    tokenizer.save(str(directory / "tokenizer.json"))
    end = tokenizer.token_to_id("<|im_end|>")
    turns = (
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    )
    tokenizer_config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": "<|im_end|>",
        "chat_template": turns,
    }
    (directory / "tokenizer_config.json").write_text(json.dumps(tokenizer_config))
    size, heads = 320, 64
    config = {
        "architectures": ["Qwen3ForCausalLM"],
        "model_type": "qwen3",
        "vocab_size": size,
        "hidden_size": size,
        "intermediate_size": heads,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "head_dim": heads,
        "max_position_embeddings": 2048,
        "rms_norm_eps": 1e-6,
        "tie_word_embeddings": False,
        "torch_dtype": "bfloat16",
        "eos_token_id": end,
    }
    (directory / "config.json").write_text(json.dumps(config))
    follows = dict.fromkeys(range(size), end)
    for character, successor in successors.items():
        follows[tokenizer.encode(character).ids[0]] = tokenizer.encode(successor).ids[0]
    head = torch.zeros(size, size)
    for token, successor_token in follows.items():
        head[successor_token, token] = 1
    layer = "model.layers.0."
    weights = {
        "model.embed_tokens.weight": torch.eye(size),
        "lm_head.weight": head,
        "model.norm.weight": torch.ones(size),
        layer + "input_layernorm.weight": torch.ones(size),
        layer + "post_attention_layernorm.weight": torch.ones(size),
        layer + "self_attn.q_proj.weight": torch.zeros(2 * heads, size),
        layer + "self_attn.k_proj.weight": torch.zeros(heads, size),
        layer + "self_attn.v_proj.weight": torch.zeros(heads, size),
        layer + "self_attn.o_proj.weight": torch.zeros(size, 2 * heads),
        layer + "self_attn.q_norm.weight": torch.ones(heads),
        layer + "self_attn.k_norm.weight": torch.ones(heads),
        layer + "mlp.gate_proj.weight": torch.zeros(heads, size),
        layer + "mlp.up_proj.weight": torch.zeros(heads, size),
        layer + "mlp.down_proj.weight": torch.zeros(size, heads),
    }
    stored = {name: tensor.to(torch.bfloat16) for name, tensor in weights.items()}
    save_file(stored, directory / "model.safetensors", metadata={"format": "pt"})
