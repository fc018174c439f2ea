"""Train the demo model: `python -m training.train --output .`.

Writes config, generation config, tokenizer and weights into the output folder, several times while
training, so that a usable model is there early. Two CPU cores and 4 GiB of memory are enough; with
`--device cuda` a GPU does the same steps.
"""

import argparse
import copy
import json
import math
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

import torch
from tokenizers import Tokenizer
from torch import Tensor
from transformers import Qwen3Config, Qwen3ForCausalLM

from . import tokenizer as tokenizers_
from .generate import DIRECTIONS, Parallel, training_texts
from .prompt import END, PADDING, prompt

Example = tuple[list[int], int]  # token ids of prompt and answer, and how many belong to the prompt
Batch = tuple[Tensor, Tensor]  # ids and labels, both [sequences, longest]; labels are -100 off the answer

TOKENS_PER_BATCH = 4096
WARMUP_STEPS = 60
WEIGHT_DECAY = 0.05
EXPORTS = 6


def configuration(vocabulary: int, end: int, padding: int) -> Qwen3Config:
    """The shape of the network: 4 layers of width 256."""
    return Qwen3Config(
        vocab_size=vocabulary,
        hidden_size=256,
        intermediate_size=768,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=4,
        head_dim=64,
        max_position_embeddings=tokenizers_.MAX_LENGTH,
        tie_word_embeddings=True,
        attention_dropout=0.0,
        bos_token_id=None,
        eos_token_id=end,
        pad_token_id=padding,
    )


def examples(texts: list[Parallel], tokenizer: Tokenizer, seed: int, directions: int) -> list[Example]:
    """Tokenised examples: every text in `directions` of the five directions, drawn at random."""
    rng = Random(seed)
    found = []
    for text in texts:
        for source, target in rng.sample(DIRECTIONS, directions):
            question = tokenizer.encode(prompt(source, target, text.texts[source])).ids
            answer = tokenizer.encode(text.texts[target] + END).ids
            found.append((question + answer, len(question)))
    return found


def batches(pool: list[Example], padding: int, rng: Random) -> Iterator[Batch]:
    """One pass over the examples in batches of similar length, in random order."""
    order = sorted(range(len(pool)), key=lambda index: (len(pool[index][0]), rng.random()))
    groups: list[list[Example]] = [[]]
    for index in order:
        example = pool[index]
        if (len(groups[-1]) + 1) * len(example[0]) > TOKENS_PER_BATCH:
            groups.append([])
        groups[-1].append(example)
    rng.shuffle(groups)
    for group in groups:
        longest = max(len(ids) for ids, _ in group)
        ids = torch.full((len(group), longest), padding)
        labels = torch.full((len(group), longest), -100)
        for row, (tokens, start) in enumerate(group):
            ids[row, : len(tokens)] = torch.tensor(tokens)
            labels[row, start : len(tokens)] = torch.tensor(tokens[start:])
        yield ids, labels


def loss_of(model: Qwen3ForCausalLM, ids: Tensor, labels: Tensor) -> Tensor:
    """Mean cross-entropy over the answers; padding stands on the right, so causality alone masks it."""
    with torch.autocast(ids.device.type, dtype=torch.bfloat16):
        hidden = model.model(input_ids=ids, use_cache=False).last_hidden_state[:, :-1]
        wanted = labels[:, 1:]
        answered = wanted != -100
        logits = model.lm_head(hidden[answered])
    return torch.nn.functional.cross_entropy(logits.float(), wanted[answered])


def optimizers(model: Qwen3ForCausalLM, rate: float) -> list[torch.optim.Optimizer]:
    """Muon for the matrices inside the layers, AdamW for embeddings and norms."""
    inner = [weight for name, weight in model.named_parameters() if weight.ndim == 2 and "layers" in name]
    outer = [weight for name, weight in model.named_parameters() if weight.ndim != 2 or "layers" not in name]
    return [
        torch.optim.Muon(inner, lr=rate, weight_decay=WEIGHT_DECAY, adjust_lr_fn="match_rms_adamw"),
        torch.optim.AdamW(outer, lr=rate, betas=(0.9, 0.98), weight_decay=0.0),
    ]


def export(model: Qwen3ForCausalLM, folder: Path) -> None:
    """Write weights in bfloat16 with their configuration files."""
    copy.deepcopy(model).cpu().bfloat16().save_pretrained(folder)
    settings = {
        "do_sample": False,
        "temperature": 0.0,
        "eos_token_id": model.config.eos_token_id,
        "pad_token_id": model.config.pad_token_id,
    }
    (folder / "generation_config.json").write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")


def main() -> None:
    """Generate the texts, train the tokenizer, then the model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True, help="folder for the model's files")
    parser.add_argument("--texts", type=int, default=100_000, help="training texts (default 100000)")
    parser.add_argument("--directions", type=int, default=2, help="directions per text, 1 to 5 (default 2)")
    parser.add_argument("--passes", type=int, default=1, help="passes over the data (default 1)")
    parser.add_argument("--rate", type=float, default=4e-3, help="highest learning rate (default 0.004)")
    parser.add_argument("--seed", type=int, default=7, help="seed of texts, weights and order (default 7)")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="where to train")
    parser.add_argument("--threads", type=int, default=2, help="CPU threads (default 2)")
    options = parser.parse_args()

    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    options.output.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    texts = training_texts(options.texts, options.seed)
    print(f"{len(texts)} texts in {time.monotonic() - began:.0f} s", flush=True)
    tokenizer = tokenizers_.train(texts[:20_000])
    tokenizers_.save(tokenizer, options.output)
    pool = examples(texts, tokenizer, options.seed, options.directions)
    vocabulary = tokenizer.get_vocab()
    end, padding = vocabulary[END], vocabulary[PADDING]
    rng = Random(options.seed)
    plan = [batch for _ in range(options.passes) for batch in batches(pool, padding, rng)]
    model = Qwen3ForCausalLM(configuration(len(vocabulary), end, padding))
    model.set_attn_implementation("eager")  # on a CPU the quickest for sequences this short
    model.to(options.device)
    size = sum(weight.numel() for weight in model.parameters())
    print(f"{size:,} parameters, {len(pool)} examples, {len(plan)} steps", flush=True)

    steppers = optimizers(model, options.rate)
    began, shown = time.monotonic(), 0.0
    for step, (ids, labels) in enumerate(plan, start=1):
        warm = min(1.0, step / WARMUP_STEPS)
        cosine = 0.5 * (1 + math.cos(math.pi * step / len(plan)))
        loss = loss_of(model, ids.to(options.device), labels.to(options.device))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for stepper in steppers:
            for group in stepper.param_groups:
                group["lr"] = options.rate * warm * max(cosine, 0.01)
            stepper.step()
            stepper.zero_grad()
        shown = loss.item() if step == 1 else 0.98 * shown + 0.02 * loss.item()
        if step % 50 == 0 or step == len(plan):
            spent = time.monotonic() - began
            left = spent / step * (len(plan) - step)
            print(f"step {step}/{len(plan)}  loss {shown:.4f}  {spent:.0f} s, {left:.0f} s to go", flush=True)
        if step % max(1, len(plan) // EXPORTS) == 0 or step == len(plan):
            export(model, options.output)


if __name__ == "__main__":
    main()
