"""The tokenizer: byte-level BPE, so that no input is unknown, trained on the grammar's own texts.

Text is cut into words with their leading space, single digits and single signs before pairs are
merged. The fixed wording of the prompt is cut into long pieces, which keeps prompts short.
"""

import json
from collections.abc import Iterator
from pathlib import Path

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

from .generate import DIRECTIONS, Parallel
from .prompt import CHAT_TEMPLATE, END, PADDING, START, user_turn

VOCABULARY = 4096
MAX_LENGTH = 1024

# The zero-width joiner belongs to Nepali words (गर्‍यो).
_WORDS = r" ?[\p{L}\p{M}\x{200D}]+| ?\p{N}| ?[^\s\p{L}\p{N}]|\s+"
_PROMPT = r"Translate the following text from|\.?\n\p{L}+:|(?:user|assistant)\n"


def _lines(texts: list[Parallel]) -> Iterator[str]:
    for found in texts:
        for source, target in DIRECTIONS:
            yield user_turn(source, target, found.texts[source])
            yield found.texts[target]
        yield "user\n"
        yield "assistant\n"


def train(texts: list[Parallel]) -> Tokenizer:
    """Learn the merges from parallel texts."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(f"{_PROMPT}|{_WORDS}"), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=[PADDING, START, END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(_lines(texts), trainer)
    return tokenizer


def save(tokenizer: Tokenizer, folder: Path) -> None:
    """Write tokenizer.json and tokenizer_config.json, with the chat template inside the latter."""
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": None,
        "eos_token": END,
        "pad_token": PADDING,
        "unk_token": None,
        "add_bos_token": False,
        "add_prefix_space": False,
        "clean_up_tokenization_spaces": False,
        "model_max_length": MAX_LENGTH,
        "chat_template": CHAT_TEMPLATE,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")
