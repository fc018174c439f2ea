"""Writes a checkpoint of random weights whose answers have a chosen length.

A model of random weights never ends an answer, and a load needs answers of known lengths, from every arm alike
and without a setting that only some of them have. So the weights are made to count: each layer computes what a
trained one would, over random matrices, and adds it to the residual; but the embedding is larger than all of
that together, and the output layer's row of each token is the embedding of the token before it in one chain of
words, the last of which is followed by the end-of-text token. The answer to a text that ends in word k of the chain
is the chain from word k + 1 on. Memory traffic and arithmetic are those of any model of the shape.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from dragoman_bench.vocabulary import vocabulary

WEIGHT_STD = 0.02
"""Qwen3 is initialised with it."""

EMBEDDING_STD = 20.0
"""All layers together add about 5; the chain's token then leads every other by about five sixths of its logit."""

MAX_POSITIONS = 4096


class Shape(NamedTuple):
    """The dimensions of a Qwen3, named as in its configuration; `vocab_size` may exceed the tokenizer's."""

    num_hidden_layers: int
    hidden_size: int
    intermediate_size: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    vocab_size: int


SHAPES = MappingProxyType(
    {
        "tiny": Shape(4, 256, 768, 4, 4, 64, 4096),
        "qwen3-1.7b": Shape(28, 2048, 6144, 16, 8, 128, 151_936),
        "qwen3-4b": Shape(36, 2560, 9728, 32, 8, 128, 151_936),
        "qwen3-8b": Shape(36, 4096, 12_288, 32, 8, 128, 151_936),
    }
)
"""By the name that `--shape` takes; `tiny` has the demo model's dimensions.

Source: https://huggingface.co/Qwen/Qwen3-1.7B/blob/main/config.json
"""


def write_checkpoint(directory: Path, shape: Shape, tokenizer: Path, device: str, seed: int = 7) -> None:
    """Write a model that vLLM loads as it would any other.

    Args:
        directory: Is made; a checkpoint that is there is kept.
        shape: The dimensions.
        tokenizer: A model's directory, whose tokenizer is taken without its chat template, so that the prompt ends
            with the text, whose last word says how long to answer.
        device: Where random numbers are drawn: cuda or cpu.
        seed: The same numbers for the same seed and device.

    Raises:
        VocabularyError: The tokenizer does not have the bench's words.
        OSError: It cannot be written.
    """
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, Qwen3Config

    if directory.exists():
        return
    loaded = AutoTokenizer.from_pretrained(tokenizer)
    chain = [*vocabulary(loaded).target_ids, loaded.eos_token_id]
    loaded.chat_template = None
    loaded.model_max_length = MAX_POSITIONS
    config = Qwen3Config(
        **shape._asdict(),
        max_position_embeddings=MAX_POSITIONS,
        rope_theta=1_000_000.0,
        initializer_range=WEIGHT_STD,
        tie_word_embeddings=False,
        bos_token_id=None,
        eos_token_id=loaded.eos_token_id,
    )
    torch.manual_seed(seed)
    with torch.device(device), torch.no_grad():
        model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
        embedding, head = model.model.embed_tokens.weight, model.lm_head.weight
        embedding.normal_(std=EMBEDDING_STD)
        head[chain[1:]] = embedding[chain[:-1]] * (WEIGHT_STD / EMBEDDING_STD)
    model.cpu()
    if device == "cuda":
        torch.cuda.empty_cache()  # The engines get all of the GPU's memory.
    # Under its name once it is complete.
    unfinished = directory.with_suffix(".tmp")
    shutil.rmtree(unfinished, ignore_errors=True)
    model.save_pretrained(unfinished)
    loaded.save_pretrained(unfinished)
    os.replace(unfinished, directory)
