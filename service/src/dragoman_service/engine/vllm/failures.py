"""Why an engine did not start, in one sentence with what to do.

vLLM, transformers and huggingface_hub raise general exceptions with long messages, whose cause is recognised by
phrases. The first sentence of any other message is passed on.
"""

from __future__ import annotations

import re

from dragoman_service.download.errors import DOWNLOAD_REASONS, MAX_CHARS, Reason, without_queries
from dragoman_service.engine.vllm.start_report import Failure

_REASONS: tuple[tuple[str, Reason], ...] = (
    *DOWNLOAD_REASONS,
    (
        r"Model architectures \[?(?P<names>[^\]]*?)\]? (?:are not supported|failed to be inspected)",
        lambda found, _: (
            f"vLLM does not know the architecture {found['names']}: use a model that the vLLM of this image "
            "supports, or a newer image"
        ),
    ),
    (
        r"model type `(?P<kind>[^`]+)`",
        lambda found, _: (
            f"transformers does not know the model type {found['kind']}: use a model that this image "
            "supports, or a newer image"
        ),
    ),
    (
        r"Unknown quantization method:? ?'?(?P<name>[\w-]+)|quantization method (?P<other>[\w-]+) is not supp"
        r"|Invalid quantization(?: method)?: (?P<third>[\w-]+)",
        lambda found, _: (
            f"vLLM has no quantization {next(filter(None, found.groups()))!r} here: leave engine.quantization "
            "out, or use one that this device supports"
        ),
    ),
    (
        r"Free memory on device \S* ?\((?P<free>[\d.]+)/(?P<all>[\d.]+) GiB\).*?"
        r"\((?P<share>[\d.]+), (?P<wanted>[\d.]+) GiB\)",
        lambda found, _: (
            f"not enough GPU memory: {found['free']} of {found['all']} GiB are free and "
            f"gpuMemoryUtilization {found['share']} asks for {found['wanted']} GiB; lower it, or free the GPU"
        ),
    ),
    (
        r"Available memory on node \d+ \((?P<free>[\d.]+)/(?P<all>[\d.]+) GiB\).*?"
        r"(?P<wanted>[\d.]+)(?:/[\d.]+)? GiB\)",
        lambda found, _: (
            f"not enough memory: {found['free']} of {found['all']} GiB are free and {found['wanted']} GiB are "
            "required; lower gpuMemoryUtilization or kvCacheMemory, or give the pod more memory"
        ),
    ),
    (
        r"No available memory for the cache blocks",
        lambda _, __: (
            "the weights leave no memory for the KV cache: raise gpuMemoryUtilization, set a "
            "quantization, or use a larger GPU"
        ),
    ),
    (
        r"max seq len \((?P<len>\d+)\).*?\(?(?P<wanted>[\d.]+) GiB KV cache.*?\((?P<free>[\d.]+) GiB\)"
        r"(?:.*?estimated maximum model length is (?P<most>\d+))?",
        lambda found, _: (
            f"a sequence of {found['len']} tokens needs {found['wanted']} GiB of KV cache and "
            f"{found['free']} GiB are free: lower maxModelLen"
            + (f" to at most {found['most']}" if found["most"] else "")
            + ", or raise gpuMemoryUtilization"
        ),
    ),
    (
        r"OutOfMemoryError|CUDA out of memory",
        lambda _, __: (
            "the GPU ran out of memory while the model was loaded: use a smaller model, a quantization, "
            "more tensorParallelSize, or a larger GPU"
        ),
    ),
    (
        r"max_model_len \((?P<requested>\d+)\) is greater than the derived max_model_len \([^=]*=(?P<most>\d+)",
        lambda found, _: (
            f"maxModelLen {found['requested']} is over the model's own {found['most']} tokens: lower it"
        ),
    ),
    (
        r"(?:No CUDA GPUs are available|Failed to infer device type|CUDA driver|no NVIDIA driver)",
        lambda _, __: (
            "no usable GPU in this pod: request nvidia.com/gpu, or set device: cpu with a CPU image"
        ),
    ),
    (
        r"MemoryError|Cannot allocate memory",
        lambda _, __: "the pod ran out of memory while the model was loaded: raise its memory limit",
    ),
)

_WRAPPERS = re.compile(r"Engine core initialization failed|WorkerProc initialization failed|root cause above")


def reason(failed: Failure, model: str) -> str:
    """One sentence about the failed start of a model, named as in the settings."""
    reported = "\n".join(f"{kind}: {message}" for kind, message in failed.chain)
    for pattern, sentence in _REASONS:
        found = re.search(pattern, reported, re.DOTALL)
        if found:
            return sentence(found, model)
    plain = [(kind, message) for kind, message in failed.chain if message and not _WRAPPERS.search(message)]
    if not plain:
        return f"the engine could not load {model}: its process ended without saying why; see the pod's log"
    kind, message = plain[0]
    return f"the engine could not load {model}: {kind}: {_first_sentences(without_queries(message))}"


def _first_sentences(message: str) -> str:
    # pydantic puts a header before each complaint, and a link after it.
    lines = [line.strip() for line in message.splitlines()]
    if lines and re.match(r"\d+ validation errors? for", lines[0]):
        lines = lines[1:]
    joined = " ".join(line for line in lines if line and not line.startswith("For further information"))
    joined = re.sub(r" \[type=.*", "", joined)
    return joined if len(joined) <= MAX_CHARS else joined[:MAX_CHARS].rsplit(" ", 1)[0] + " …"
