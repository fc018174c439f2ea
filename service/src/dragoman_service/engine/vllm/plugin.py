"""What vLLM calls in each of its processes before it loads a model: an entry point of `vllm.general_plugins`.

Source: https://docs.vllm.ai/en/latest/design/plugin_system/
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from importlib import import_module
from typing import Any

SAMPLER = "vllm.v1.sample.ops.topk_topp_sampler"
KERNELS = "vllm.v1.sample.ops.topk_topp_triton"
OWN_WARM_UP = "register_top_k_top_p_warmups"
"""Of releases that compile all variants of the kernel during the start."""

Apply = Callable[..., Any]


def register() -> None:
    """Have one compilation of the kernel for `top_k` and `top_p` serve all requests.

    vLLM 0.26 compiles it during the start, for `max_num_seqs` sequences with both limits. Triton compiles it again for
    the first number of sequences that is no multiple of 16, and for the first step with only one of the limits. All
    requests of the pod wait meanwhile, 8 s on an H200.

    Releases with a warm-up of their own, and CPUs without Triton, are left as they are.

    Source: https://github.com/vllm-project/vllm/pull/45601
    """
    with suppress(ImportError, AttributeError):
        sampler: Any = import_module(SAMPLER)
        parameters = import_module(KERNELS)._topk_topp_kernel.params
        if hasattr(sampler, OWN_WARM_UP):
            return
        sampler.apply_top_k_top_p_triton = with_both_limits(sampler.apply_top_k_top_p_triton)
        for parameter in parameters:
            # It only bounds a loop.
            if parameter.name == "BATCH_SIZE":
                parameter.do_not_specialize = True


def with_both_limits(apply: Apply) -> Apply:
    """Wrap vLLM's function that applies `top_k` and `top_p`, so that it always gets both.

    Args:
        apply: Takes logits of shape (sequences, vocabulary), the `top_k` of each sequence, and the `top_p` of each; one
            of the latter is None if no sequence has that limit.
    """

    @wraps(apply)
    def apply_both(logits: Any, top_k: Any, top_p: Any, *others: Any, **more: Any) -> Any:
        # The kernel skips rows whose top_k is the vocabulary, or whose top_p is 1.
        if top_k is None and top_p is not None:
            top_k = top_p.new_full(top_p.shape, logits.shape[1])
        elif top_p is None and top_k is not None:
            top_p = logits.new_ones(top_k.shape)
        return apply(logits, top_k, top_p, *others, **more)

    return apply_both
