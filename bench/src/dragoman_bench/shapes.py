"""Models by their shape: what a benchmark of speed needs of a model without its weights."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True)
class Shape:
    """The dimensions of a Qwen3; `vocab_size` may exceed the tokenizer's, as it does in most models.

    Source: https://huggingface.co/Qwen/Qwen3-1.7B/blob/main/config.json (the second of `SHAPES`)
    """

    layers: int
    hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    head_dim: int
    vocab_size: int

    @property
    def parameters(self) -> int:
        """Weights in all, the output layer apart from the embedding."""
        attention = self.hidden * self.head_dim * (2 * self.heads + 2 * self.kv_heads)
        return (
            self.layers * (attention + 3 * self.hidden * self.intermediate)
            + 2 * self.vocab_size * self.hidden
        )


SHAPES = MappingProxyType(
    {
        "tiny": Shape(4, 256, 768, 4, 4, 64, 4096),
        "qwen3-1.7b": Shape(28, 2048, 6144, 16, 8, 128, 151_936),
        "qwen3-4b": Shape(36, 2560, 9728, 32, 8, 128, 151_936),
    }
)
"""By the name that `--shape` takes; `tiny` has the demo model's dimensions."""
