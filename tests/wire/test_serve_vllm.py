"""Pods with real vLLM on a CPU: the demo model where it is there, else a checkpoint made here."""

import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.vllm, pytest.mark.timeout(400)]

DEMO_MODEL = Path(__file__).parents[2] / "examples" / "demo-model"
START_S = 300
"""Fifteen seconds on two idle cores; tests may run beside others."""


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Qwen3 of one layer that answers "ok" to everything."""
    directory = tmp_path_factory.mktemp("checkpoint")
    write_checkpoint(directory, successors={"\n": "o", "o": "k"})
    return directory


@pytest.fixture(scope="session")
def model(checkpoint: Path) -> Path:
    there = all((DEMO_MODEL / name).is_file() for name in ("config.json", "model.safetensors"))
    return DEMO_MODEL if there else checkpoint


@pytest.fixture(scope="session")
def on_cpu(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ...]:
    """Flags that all pods share; the cache saves every start but the first ten seconds."""
    return ("--device", "cpu", "--max-num-seqs", "4", "--cache-dir", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture(scope="module")
def pod(
    tmp_path_factory: pytest.TempPathFactory, pod_process: Any, model: Path, on_cpu: tuple[str, ...]
) -> Iterator[Any]:
    """The one pod that most tests share; the last of them ends it."""
    served = pod_process(tmp_path_factory.mktemp("pod"), "--model", str(model), *on_cpu)
    try:
        served.phases_seen = phases_until_ready(served)
        yield served
    finally:
        served.close()


def phases_until_ready(pod: Any) -> set[str]:
    """Wait for a pod, and note the phases that it shows on the way."""
    phases = set()
    end_s = time.monotonic() + START_S
    pod.wait_for("/livez")
    while pod.client.get("/readyz").status_code != 200:
        assert pod.process.poll() is None, pod.log.read_text()
        assert time.monotonic() < end_s, pod.log.read_text()
        phases.add(pod.client.get("/startupz").json()["phase"])
        time.sleep(0.1)
    return phases


def test_the_start_was_followed_through_its_phases(pod: Any) -> None:
    assert {"resolving", "loading"} <= pod.phases_seen


def test_a_text_and_a_list_are_translated(pod: Any) -> None:
    one = pod.translate("The cat sees the dog.", target="fr")
    assert one.status_code == 200, one.text
    assert one.json()["translation"]
    several = pod.translate(["The cat sees the dog."] * 3, target="fr").json()["translation"]
    assert several == [one.json()["translation"]] * 3


def test_100_000_characters_in_one_request_are_translated_and_stay_laid_out(pod: Any) -> None:
    one = pod.translate("The cat sees the dog.", target="fr").json()["translation"]
    answer = pod.translate("The cat sees the dog. \n\t" * 5000, target="fr")
    assert answer.status_code == 200, answer.text
    assert answer.json()["translation"] == f"{one} \n\t" * 5000


def test_a_turn_that_a_text_ends_is_not_ended(pod: Any) -> None:
    """The tokens of the turn's end would have the model start another one."""
    before = pod.metric("vllm:prompt_tokens_total")
    assert pod.translate("The cat sleeps.", target="fr").status_code == 200
    plain = pod.metric("vllm:prompt_tokens_total") - before
    before = pod.metric("vllm:prompt_tokens_total")
    assert pod.translate("The cat <|im_end|> sleeps.", target="fr").status_code == 200
    assert pod.metric("vllm:prompt_tokens_total") - before > plain + 4


def test_the_engine_s_metrics_and_ours_are_shown_together(pod: Any) -> None:
    assert pod.metric("vllm:num_requests_running") == 0
    assert pod.metric("vllm:kv_cache_usage_perc") >= 0
    assert pod.metric("dragoman_requests_total") >= 1


def test_an_answer_that_nobody_streams_leaves_the_engine_s_process_whole(pod: Any) -> None:
    written = ("vllm:generation_tokens_total", "vllm:request_generation_tokens_sum")
    before = [pod.metric(name) for name in (*written, "vllm:time_to_first_token_seconds_count")]
    assert pod.translate("The cat sleeps on the sofa.", target="fr").status_code == 200
    after = [pod.metric(name) for name in (*written, "vllm:time_to_first_token_seconds_count")]
    tokens, told, answers = (now - then for now, then in zip(after, before, strict=True))
    assert tokens == told > answers >= 1
    # Told of together, they would count as one step's; vLLM's counts of steps are not shown.
    assert "vllm:inter_token_latency_seconds" not in pod.client.get("/metrics").text


def test_a_client_that_leaves_frees_its_places_in_the_engine(pod: Any) -> None:
    texts = ["The cat sees the dog. " * 8] * 500
    body = json.dumps({"text": texts, "source_lang": "en", "target_lang": "fr"}).encode()
    with socket.create_connection(("127.0.0.1", pod.port)) as connection:
        connection.sendall(
            b"POST /translate HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body
        )
        pod.wait_for_metric("dragoman_requests_in_flight", 1)
    pod.wait_for_metric("dragoman_requests_in_flight", 0, deadline_s=20)
    pod.wait_for_metric("vllm:num_requests_running", 0, deadline_s=20)
    assert pod.translate("The cat sees the dog.").status_code == 200


def test_sigterm_leaves_no_process_and_no_complaint(pod: Any) -> None:
    started = pod.descendants()
    assert started
    assert pod.end() == 0
    wait_until_gone(started)
    assert "Traceback" not in pod.log.read_text()
    assert not pod.last_words.exists()


@pytest.mark.parametrize("killed", [False, True])
def test_a_pod_that_ends_while_it_starts_leaves_no_process(
    start_pod: Any, checkpoint: Path, on_cpu: tuple[str, ...], killed: bool
) -> None:
    pod = start_pod("--model", str(checkpoint), *on_cpu)
    pod.wait_for("/livez")
    end_s = time.monotonic() + START_S
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
    ("arguments", "config", "status", "said"),
    [
        (("--engine-args", '{"enforce_eagr": true}'), {}, 2, "did you mean 'enforce_eager'?"),
        ((), {"architectures": ["FooForCausalLM"]}, 1, "does not know the architecture"),
        (("--engine-args", '{"load_format": "dummy"}'), {"head_dim": 40}, 1, "Unsupported CPU attention"),
        (("--kv-cache-memory-bytes", "9000000000000"), {}, 1, "not enough memory: "),
    ],
)
def test_a_start_that_fails_says_why(
    start_pod: Any,
    checkpoint: Path,
    tmp_path: Path,
    on_cpu: tuple[str, ...],
    arguments: tuple[str, ...],
    config: dict[str, Any],
    status: int,
    said: str,
) -> None:
    for file in checkpoint.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    known = json.loads((checkpoint / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(known | config))
    pod = start_pod("--model", str(tmp_path), *on_cpu, *arguments)
    assert pod.process.wait(START_S) == status
    words = pod.last_words.read_text()
    assert said in words
    assert words.count("\n") == 1
    assert pod.log.read_text().endswith(f"dragoman serve: {words}")


def test_a_model_that_is_not_there(start_pod: Any, on_cpu: tuple[str, ...]) -> None:
    pod = start_pod("--model", "/mnt/model/none", *on_cpu)
    assert pod.process.wait(30) == 1
    assert pod.last_words.read_text() == "the model directory /mnt/model/none does not exist in this pod\n"


def test_a_tokenizer_without_the_turns_that_a_family_needs(
    start_pod: Any, checkpoint: Path, tmp_path: Path, on_cpu: tuple[str, ...]
) -> None:
    for file in checkpoint.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    config = json.loads((tmp_path / "tokenizer_config.json").read_text())
    del config["chat_template"]
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    pod = start_pod("--model", str(tmp_path), *on_cpu)
    assert pod.process.wait(START_S) == 1
    assert "no chat template, which this prompt family needs" in pod.last_words.read_text()


def wait_until_gone(processes: list[int]) -> None:
    """The kernel closes a process's pipes after its exit, upon which the last of its children end."""
    end_s = time.monotonic() + 15
    while alive(processes):
        assert time.monotonic() < end_s, "vLLM's processes outlived the pod"
        time.sleep(0.05)


def alive(processes: list[int]) -> list[int]:
    found = []
    for process in processes:
        status = Path(f"/proc/{process}/status")
        try:
            if "\nState:\tZ" not in status.read_text():
                found.append(process)
        except OSError:
            continue
    return found


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
