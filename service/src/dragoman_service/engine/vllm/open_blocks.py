"""A shortcut around vLLM's allocation of KV cache slots, for steps that need no new block.

vLLM requests a slot for each running sequence at each step (`KVCacheManager`). A sequence gets its slots in blocks,
of 16 tokens on a GPU. So in 14 of 16 steps there is nothing to allocate, and no block has become full that could be
kept as a prefix. vLLM takes a third of the time of a step to find that out.

With async scheduling, the token that fills a block may not be known yet when its slot is allocated. vLLM then keeps the
block as a prefix at a later call; with the shortcut, that call comes up to a block later.

Source: `KVCacheManager.allocate_slots`, https://docs.vllm.ai/en/latest/api/vllm/v1/core/kv_cache_manager/
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Allocate = Callable[..., Any]

NO_LOOKAHEAD = {"num_lookahead_tokens": 0}
"""The named arguments for a sequence that runs, without speculative decoding. For one that begins there are more."""


def has_open_block(computed_tokens: int, block_size: int) -> bool:
    """Whether the next token has a slot in the last block of a sequence, and leaves a slot free in it.

    Args:
        computed_tokens: Of the sequence; its blocks have slots for all of them.
        block_size: Tokens of a block.
    """
    return 0 < computed_tokens % block_size < block_size - 1


def with_shortcut(allocate: Allocate, no_blocks: Any, block_size: int) -> Allocate:
    """`KVCacheManager.allocate_slots` with the shortcut.

    Args:
        allocate: The method of a manager.
        no_blocks: What it returns where no block is added.
        block_size: Tokens of a block.
    """

    def allocate_slots(request: Any, num_new_tokens: int, *others: Any, **more: Any) -> Any:
        if (
            num_new_tokens == 1
            and not others
            and more == NO_LOOKAHEAD
            and has_open_block(request.num_computed_tokens, block_size)
        ):
            return no_blocks
        return allocate(request, num_new_tokens, *others, **more)

    return allocate_slots


def block_size_of(scheduler: Any) -> int | None:
    """The tokens of a block of a scheduler; None where the shortcut does not apply.

    It applies to models with full attention in all layers: sliding windows also free blocks at each step. It does not
    apply with a KV connector, which may follow every allocation.
    """
    from vllm.v1.kv_cache_interface import FullAttentionSpec

    groups = scheduler.kv_cache_config.kv_cache_groups
    if scheduler.connector is not None or len(groups) != 1:
        return None
    spec = groups[0].kv_cache_spec
    is_plain = type(spec) is FullAttentionSpec and spec.block_size == scheduler.block_size
    return int(spec.block_size) if is_plain else None
