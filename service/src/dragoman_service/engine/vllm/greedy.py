"""A shortcut in vLLM's sampler for steps in which each sequence takes its most probable token.

This module is loaded in vLLM's engine process. Tested with vLLM 0.26.

Source: `vllm/v1/worker/gpu/sample/sampler.py`
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from vllm.sampling_params import SamplingParams
from vllm.v1.worker.gpu.input_batch import get_num_sampled_and_rejected
from vllm.v1.worker.gpu.sample.output import SamplerOutput
from vllm.v1.worker.gpu.sample.sampler import Sampler
from vllm.v1.worker.gpu.sample.states import NO_LOGPROBS


class GreedySampler(Sampler):  # type: ignore[misc]
    """Computes only the maximum of the logits, if no option of a sequence can change its token.

    vLLM's sampler copies the options of all sequences to the GPU in each step, looks up which of them are used, and
    starts kernels that have no effect on these tokens. With a small model, the thread that does this limits the
    throughput (docs/benchmarks.md, "Greedy sampling").
    """

    def __init__(self, max_num_reqs: int, *args: Any, **more: Any) -> None:
        super().__init__(max_num_reqs, *args, **more)
        self._is_plain = np.zeros(max_num_reqs, dtype=bool)
        self._has_staged = True

    def add_request(self, req_idx: int, prompt_len: int, sampling_params: SamplingParams) -> None:
        """Stage the settings of a new sequence."""
        super().add_request(req_idx, prompt_len, sampling_params)
        self._is_plain[req_idx] = sampling_params.temperature == 0.0 and not (
            self.penalties_state.use_penalty[req_idx]
            or self.logit_bias_state.use_logit_bias[req_idx]
            or self.bad_words_state.num_bad_words.np[req_idx]
            or self.sampling_states.num_logprobs[req_idx] != NO_LOGPROBS
            or sampling_params.logprob_token_ids
        )
        self._has_staged = True

    def apply_staged_writes(self) -> None:
        """Copy the settings of new sequences to the GPU."""
        if self._has_staged:
            super().apply_staged_writes()
            self._has_staged = False

    def __call__(self, logits: torch.Tensor, input_batch: Any) -> SamplerOutput:
        """Sample a token for each sequence.

        Args:
            logits: Sequences × entries of the vocabulary; vLLM's sampler may change them.
            input_batch: vLLM's `InputBatch`, the sequences of the step.
        """
        is_plain = self._is_plain[input_batch.idx_mapping_np].all()
        if self.compute_nans or input_batch.num_draft_tokens or not is_plain:
            return super().__call__(logits, input_batch)
        sampled = input_batch.seq_lens.new_ones(input_batch.num_reqs)
        if input_batch.is_prefilling_np.any():
            # Only the last chunk of a prompt has a token.
            sampled, rejected = get_num_sampled_and_rejected(
                sampled,
                input_batch.seq_lens,
                input_batch.cu_num_logits,
                input_batch.idx_mapping,
                self.req_states.prefill_len.gpu,
            )
        else:
            rejected = torch.zeros_like(sampled)
        return SamplerOutput(
            sampled_token_ids=logits.argmax(dim=-1, keepdim=True),
            logprobs_tensors=None,
            num_nans=None,
            num_sampled=sampled,
            num_rejected=rejected,
        )
