"""The metrics that an engine pod exports beside those of vLLM.

The label `model_name`, which most have as well, is not listed.
"""

from __future__ import annotations

from dragoman_contract.metrics import Section
from dragoman_contract.reports import RUNNING_LABEL, SPEED_METRIC, SUM_LABEL

_requests = Section("Requests")

REQUESTS = _requests.counter(
    "dragoman_requests_total",
    "Requests. `outcome` is `ok`, `disconnected` (by the client) or an [error "
    "code](engine-pod.md#errors-and-limits).",
    "api",
    "source",
    "target",
    "outcome",
)
REQUEST_SECONDS = _requests.histogram(
    "dragoman_request_seconds",
    "Time from the last byte of a request to the end of its response, for the outcome `ok`.",
    "api",
    "source",
    "target",
)
REQUESTS_IN_FLIGHT = _requests.gauge("dragoman_requests_in_flight", "Admitted requests that are unfinished.")
ADMITTED_TOKENS = _requests.gauge("dragoman_admitted_tokens", "Estimated tokens of the requests in flight.")
SERVICE_TOKENS_PER_SECOND = _requests.gauge(
    "dragoman_service_tokens_per_second",
    "Throughput of the pod, in estimated tokens per second. It is measured only while requests wait; "
    "otherwise the gauge keeps its value. 0 before the first measurement.",
)
ADMISSION_REFUSALS = _requests.counter(
    "dragoman_admission_refusals_total",
    "Refused requests. `reason`: `not_ready`, `draining`, or a [reason of admission "
    "control](engine-pod.md#admission-and-overload).",
    "reason",
)
CLIENTS_STALLED = _requests.counter(
    "dragoman_clients_stalled_total",
    "Clients that were disconnected because they did not read their response.",
)
DEFECTS = _requests.counter(
    "dragoman_defects_total", "Requests that ended in an unexpected exception. The log has the tracebacks."
)

_texts = Section("Texts and segments")

TEXTS = _texts.counter("dragoman_texts_total", "Translated texts.")
SEGMENTS = _texts.counter(
    "dragoman_segments_total", "Segments that the engine translated.", "source", "target"
)
SEGMENT_SECONDS = _texts.histogram(
    "dragoman_segment_seconds",
    "Time of a segment in the engine and its queue, with retries.",
    "source",
    "target",
)
PROMPT_TOKENS = _texts.counter(
    "dragoman_prompt_tokens_total", "Prompt tokens of segments.", "source", "target"
)
OUTPUT_TOKENS = _texts.counter(
    "dragoman_output_tokens_total", "Output tokens of segments.", "source", "target"
)
GUARD_FINDINGS = _texts.counter(
    "dragoman_guard_findings_total",
    "Failed [quality checks](../explanation/text.md#checks) of segments. `guard`: name of the check.",
    "guard",
)
SEGMENT_RETRIES = _texts.counter(
    "dragoman_segment_retries_total", "Segments that were generated again after a failed check."
)
SOURCE_KEPT_SEGMENTS = _texts.counter(
    "dragoman_source_kept_segments_total",
    "Segments that were returned as source text (warning [`source_kept`](../explanation/text.md#with-flag)).",
)
REUSED_SEGMENTS = _texts.counter(
    "dragoman_reused_segments_total",
    "Segments that needed no generation. `how`: `cache` (from the pod's cache of translated segments), "
    "`memory` (from the [translation memory](api.md#a-translation-memory) in the request), `in_flight` (an "
    "equal segment was being generated).",
    "how",
)
GLOSSARY_TERMS = _texts.gauge(
    "dragoman_glossary_terms", "Terms of the deployment's glossary. Only with `--glossary`."
)
GLOSSARY_STALE = _texts.gauge(
    "dragoman_glossary_stale",
    "1 while the glossary file is invalid and its last valid content is used. Only with `--glossary`.",
)

_pod = Section("Engine and pod")

PHASE = _pod.gauge(
    "dragoman_phase", "1 for the current [phase](engine-pod.md#the-start) of the pod, 0 for others.", "phase"
)
START_SECONDS = _pod.gauge(
    "dragoman_start_seconds", "Duration of the start of the pod. During the start: the time so far."
)
ENGINE_STALLED_SECONDS = _pod.gauge(
    "dragoman_engine_stalled_seconds", "Time since the last step of vLLM, while generations run."
)
EVENT_LOOP_LAG_SECONDS = _pod.gauge(
    "dragoman_event_loop_lag_seconds", "Maximum delay of a timer of the HTTP process in the last 15 s."
)
ENGINE_ASLEEP = _pod.gauge(
    "dragoman_engine_asleep",
    "1 while the engine [sleeps](../how-to/sleep.md#a-sleeping-replica). Only with `--sleep-after-s`.",
)
ENGINE_WAKES = _pod.counter(
    "dragoman_engine_wakes_total", "How often the engine woke. Only with `--sleep-after-s`."
)
ENGINE_WAKE_SECONDS = _pod.histogram(
    "dragoman_engine_wake_seconds", "Time to wake the engine. Only with `--sleep-after-s`."
)
ENGINE_TURN_WAIT_SECONDS = _pod.histogram(
    "dragoman_engine_turn_wait_seconds",
    "Time that the pod waited for its turn on a [shared "
    "GPU](../how-to/sleep.md#several-deployments-on-one-gpu). Only with `--turns-url`.",
)
START_CACHE = _pod.counter(
    "dragoman_start_cache_total",
    "Attempts to copy compiled kernels from a ready pod, by [outcome](../explanation/starts.md).",
    "outcome",
)
START_CACHE_SERVED = _pod.counter(
    "dragoman_start_cache_served_total", "Copies of compiled kernels that other pods took from this pod."
)
GENERATION_SUMS = _pod.counter(
    SPEED_METRIC,
    "Internal data for [`dragoman simulate`](../how-to/simulation.md).",
    RUNNING_LABEL,
    SUM_LABEL,
)
GPU_UTILIZATION_RATIO = _pod.gauge(
    "dragoman_gpu_utilization_ratio",
    "Fraction of time in which a kernel ran, from NVML. Not for GPUs in MIG mode.",
    "gpu",
)
GPU_MEMORY_USED_BYTES = _pod.gauge("dragoman_gpu_memory_used_bytes", "Used GPU memory, from NVML.", "gpu")
GPU_MEMORY_BYTES = _pod.gauge("dragoman_gpu_memory_bytes", "Total GPU memory, from NVML.", "gpu")
VLLM_FALLBACK = _pod.gauge(
    "dragoman_vllm_fallback",
    "1 for each [internal part of vLLM](engine-pod.md#dependencies-on-vllm-internals) that is missing in the "
    "installed vLLM and that the pod replaces by a fallback.",
    "feature",
)
CUDA_GRAPHS_DEFERRED = _pod.gauge(
    "dragoman_cuda_graphs_deferred",
    "1 while the pod has [CUDA graphs](../explanation/starts.md#cuda-graphs) left to capture.",
)
