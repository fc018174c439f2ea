"""What vLLM calls in each of its processes before it loads a model: an entry point of `vllm.general_plugins`.

Source: https://docs.vllm.ai/en/latest/design/plugin_system/
"""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module

SAMPLER_KERNELS = "vllm.v1.sample.ops.topk_topp_triton"


def register() -> None:
    """Have Triton compile the kernel for `top_k` and `top_p` once, for any number of sequences.

    vLLM compiles it during the start, for a step of `max_num_seqs`. Triton compiles a variant of its own for numbers
    that are no multiple of 16: without this, all requests of the pod wait about 8 s for the first such step that
    samples, as retries do. The number only bounds a loop.

    Releases that have the kernel elsewhere, and CPUs without Triton, are left as they are.

    Source: https://github.com/vllm-project/vllm/pull/45601
    """
    with suppress(ImportError, AttributeError):
        for parameter in import_module(SAMPLER_KERNELS)._topk_topp_kernel.params:
            if parameter.name == "BATCH_SIZE":
                parameter.do_not_specialize = True
