"""Writes a checkpoint of random weights whose answers have a chosen length.

A model of random weights never ends an answer, and a load needs answers of known lengths, from every arm alike
and without a setting that only some of them have. So the weights are made to count: each layer computes what a
trained one would, over random matrices, and adds it to the residual; but the embedding is larger than all of
that together, and the output layer's row of each token is the embedding of the token before it in one chain of
words, the last of which is followed by the end-of-text token. The answer to a text that ends in word k of the chain
is the chain from word k + 1 on. Memory traffic and arithmetic are those of any model of the shape.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from dragoman_bench.shapes import Shape
from dragoman_bench.vocabulary import vocabulary

WEIGHT_STD = 0.02
"""What Qwen3 is initialised with."""

EMBEDDING_STD = 20.0
"""All layers together add about 5; the chain's token then leads every other by about five sixths of its logit."""

MAX_POSITIONS = 4096
TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json")


def write_checkpoint(directory: Path, shape: Shape, tokenizer: Path, device: str, seed: int = 7) -> None:
    """Write a model that vLLM loads as it would any other.

    Args:
        directory: Made if it is not there; a finished checkpoint in it is kept.
        shape: The dimensions.
        tokenizer: A model's directory, whose tokenizer is taken without its chat template.
        device: Where random numbers are drawn: cuda or cpu.
        seed: The same numbers for the same seed and device.

    Raises:
        VocabularyError: The tokenizer does not have the bench's words.
        OSError: It cannot be written.
    """
    import torch
    from safetensors.torch import save_file
    from transformers import AutoTokenizer

    done = directory / "config.json"
    if done.exists():
        return
    directory.mkdir(parents=True, exist_ok=True)
    loaded = AutoTokenizer.from_pretrained(tokenizer)
    words = vocabulary(loaded)
    generator = torch.Generator(device).manual_seed(seed)
    weights: dict[str, Any] = {}
    for name, dimensions in _matrices(shape):
        made = torch.empty(dimensions, dtype=torch.bfloat16, device=device)
        weights[name] = made.normal_(std=WEIGHT_STD, generator=generator).cpu()
    for name, size in _norms(shape):
        weights[name] = torch.ones(size, dtype=torch.bfloat16)
    embedding = torch.empty((shape.vocab_size, shape.hidden), dtype=torch.bfloat16, device=device)
    embedding.normal_(std=EMBEDDING_STD, generator=generator)
    head = torch.empty((shape.vocab_size, shape.hidden), dtype=torch.bfloat16, device=device)
    head.normal_(std=WEIGHT_STD, generator=generator)
    chain = [*words.target_ids, loaded.eos_token_id]
    for token, following in pairwise(chain):
        head[following] = embedding[token] * (WEIGHT_STD / EMBEDDING_STD)
    weights["model.embed_tokens.weight"] = embedding.cpu()
    weights["lm_head.weight"] = head.cpu()
    save_file(weights, directory / "model.safetensors", metadata={"format": "pt"})
    _write_tokenizer(directory, tokenizer)
    eos = {"eos_token_id": loaded.eos_token_id}
    (directory / "generation_config.json").write_text(json.dumps({"do_sample": False, **eos}))
    # Last: its presence says that the rest is whole.
    done.write_text(json.dumps(_config(shape) | eos, indent=1))


def _write_tokenizer(directory: Path, source: Path) -> None:
    """Without a chat template, so that the prompt ends with the text, whose last word says how long to answer."""
    for name in TOKENIZER_FILES:
        shutil.copy(source / name, directory / name)
    path = directory / "tokenizer_config.json"
    settings = json.loads(path.read_text(encoding="utf-8"))
    settings.pop("chat_template", None)
    settings["model_max_length"] = MAX_POSITIONS
    path.write_text(json.dumps(settings), encoding="utf-8")


def _matrices(shape: Shape) -> Iterator[tuple[str, Sequence[int]]]:
    queries, keys = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    for layer in range(shape.layers):
        prefix = f"model.layers.{layer}"
        yield f"{prefix}.self_attn.q_proj.weight", (queries, shape.hidden)
        yield f"{prefix}.self_attn.k_proj.weight", (keys, shape.hidden)
        yield f"{prefix}.self_attn.v_proj.weight", (keys, shape.hidden)
        yield f"{prefix}.self_attn.o_proj.weight", (shape.hidden, queries)
        yield f"{prefix}.mlp.gate_proj.weight", (shape.intermediate, shape.hidden)
        yield f"{prefix}.mlp.up_proj.weight", (shape.intermediate, shape.hidden)
        yield f"{prefix}.mlp.down_proj.weight", (shape.hidden, shape.intermediate)


def _norms(shape: Shape) -> Iterator[tuple[str, int]]:
    yield "model.norm.weight", shape.hidden
    for layer in range(shape.layers):
        prefix = f"model.layers.{layer}"
        yield f"{prefix}.input_layernorm.weight", shape.hidden
        yield f"{prefix}.post_attention_layernorm.weight", shape.hidden
        yield f"{prefix}.self_attn.q_norm.weight", shape.head_dim
        yield f"{prefix}.self_attn.k_norm.weight", shape.head_dim


def _config(shape: Shape) -> dict[str, Any]:
    return {
        "architectures": ["Qwen3ForCausalLM"],
        "model_type": "qwen3",
        "hidden_size": shape.hidden,
        "intermediate_size": shape.intermediate,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.kv_heads,
        "head_dim": shape.head_dim,
        "vocab_size": shape.vocab_size,
        "max_position_embeddings": MAX_POSITIONS,
        "rope_theta": 1000000.0,
        "rms_norm_eps": 1e-6,
        "hidden_act": "silu",
        "attention_bias": False,
        "tie_word_embeddings": False,
        "dtype": "bfloat16",
        "torch_dtype": "bfloat16",
        "use_cache": True,
    }
