"""What the outputs of a request cost a pod's HTTP process with vLLM, with and without output coalescing.

Messages of vLLM's engine process are decoded and processed as AsyncLLM does, without an engine and without sockets.

    python bench/overhead/output_tokens.py [--tokens 85] [--in-flight 512]
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Any

from vllm.sampling_params import RequestOutputKind, SamplingParams
from vllm.v1.engine import EngineCoreOutput, EngineCoreOutputs, EngineCoreRequest, FinishReason
from vllm.v1.engine.output_processor import OutputProcessor, RequestOutputCollector
from vllm.v1.metrics.stats import IterationStats
from vllm.v1.serial_utils import MsgpackDecoder, MsgpackEncoder

from dragoman_service.engine.vllm.coalescing import TokenBuffer

REPETITIONS = 7
SLICE = 128
"""Outputs that AsyncLLM processes at once."""
PROMPT_TOKENS = 60


def processor(names: list[str]) -> Any:
    """vLLM's output processor with these requests in flight."""
    made = OutputProcessor(None, log_stats=True)
    kind = RequestOutputKind.FINAL_ONLY
    for name in names:
        request = EngineCoreRequest(
            request_id=name,
            prompt_token_ids=list(range(PROMPT_TOKENS)),
            mm_features=None,
            sampling_params=SamplingParams(max_tokens=2048, detokenize=False, output_kind=kind),
            pooling_params=None,
            arrival_time=time.time(),
            lora_request=None,
            cache_salt=None,
            data_parallel_rank=None,
        )
        request.external_req_id = name
        made.add_request(request, None, None, 0, RequestOutputCollector(kind, name))
    return made


def cpu_ms(in_flight: int, tokens: int, *, coalesced: bool) -> float:
    """Milliseconds for one request."""
    names = [f"{number:032x}" for number in range(in_flight)]
    outputs, buffer, encoder = processor(names), TokenBuffer(lambda _: coalesced), MsgpackEncoder()
    messages = []
    for number in range(tokens):
        finish = FinishReason.STOP if number == tokens - 1 else None
        step = buffer.forwarded([EngineCoreOutput(name, [5], finish_reason=finish) for name in names])
        messages.append(
            [bytes(each) for each in encoder.encode(EngineCoreOutputs(outputs=step, timestamp=1.0))]
        )
    decoder = MsgpackDecoder(EngineCoreOutputs)
    began_s = time.process_time()
    for message in messages:
        step = decoder.decode(message)
        statistics_of_step = IterationStats() if step.outputs else None
        for start in range(0, len(step.outputs), SLICE):
            outputs.process_outputs(step.outputs[start : start + SLICE], step.timestamp, statistics_of_step)
    return 1000 * (time.process_time() - began_s) / in_flight


def main() -> None:
    """Measure and print medians."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--tokens", type=int, default=85, help="of each output (85)")
    parser.add_argument("--in-flight", type=int, default=512)
    options = parser.parse_args()
    for coalesced in (False, True):
        found = [cpu_ms(options.in_flight, options.tokens, coalesced=coalesced) for _ in range(REPETITIONS)]
        print(f"{'coalesced' if coalesced else 'each token':10} {statistics.median(found):.3f} ms a request")


if __name__ == "__main__":
    main()
