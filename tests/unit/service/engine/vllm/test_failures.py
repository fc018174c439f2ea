import pytest

from dragoman_service.engine.vllm.failures import reason
from dragoman_service.engine.vllm.start_report import Failure

VALUE = "ValueError"


@pytest.mark.parametrize(
    ("kind", "message", "sentence"),
    [
        ("GatedRepoError", "403 Client Error.\nAccess to model org/m is restricted", "gated on Hugging Face"),
        ("OSError", "You are trying to access a gated repo.\nMake sure", "set tokenSecretRef"),
        (
            "HfHubHTTPError",
            "401 Client Error: Unauthorized for url: https://…",
            "refuses access to org/m (401)",
        ),
        ("RevisionNotFoundError", "404 Client Error", "no such revision"),
        ("RepositoryNotFoundError", "404 Client Error", "no such model on Hugging Face"),
        ("HFValidationError", "Repo id must be in the form", "neither a directory in this pod nor"),
        ("ConnectError", "[Errno -2] Name or service not known", "cannot be reached"),
        ("LocalEntryNotFoundError", "offline", "cannot be reached"),
        ("OSError", "[Errno 28] No space left on device", "give the cache volume more room"),
        (
            VALUE,
            "Model architectures ['FooForCausalLM'] are not supported for now. Supported architectures: …",
            "vLLM does not know the architecture 'FooForCausalLM'",
        ),
        (
            VALUE,
            "The checkpoint you are trying to load has model type `foo9` but Transformers does not recognize",
            "transformers does not know the model type foo9",
        ),
        (VALUE, "Unknown quantization method: fp9. Must be one of [", "vLLM has no quantization 'fp9' here"),
        (VALUE, "Invalid quantization method: fp9", "vLLM has no quantization 'fp9' here"),
        (
            VALUE,
            "Free memory on device cuda:0 (7.55/79.1 GiB) on startup is less than desired GPU memory "
            "utilization (0.9, 71.19 GiB). Decrease",
            "7.55 of 79.1 GiB are free and gpuMemoryUtilization 0.9 asks for 71.19 GiB",
        ),
        (
            VALUE,
            "Available memory on node 0 (3.2/9.71 GiB) on startup is less than desired CPU memory utilization "
            "(0.92, 8.94 GiB). On the CPU backend,",
            "3.2 of 9.71 GiB are free and 8.94 GiB are required",
        ),
        (
            VALUE,
            "Available memory on node 0 (8.5/9.7 GiB) on kv cache allocation is less than requested memory for "
            "kv (186.26 GiB). Decrease",
            "8.5 of 9.7 GiB are free and 186.26 GiB are required",
        ),
        (VALUE, "No available memory for the cache blocks. Try", "the weights leave no memory"),
        (
            VALUE,
            "To serve at least one request with the model's max seq len (4096), (2.5 GiB KV cache is needed, "
            "which is larger than the available KV cache memory (0.5 GiB). Based on the available memory, the "
            "estimated maximum model length is 800. Try",
            "a sequence of 4096 tokens needs 2.5 GiB of KV cache and 0.5 GiB are free: lower maxModelLen to at "
            "most 800",
        ),
        ("OutOfMemoryError", "CUDA out of memory. Tried to allocate", "the GPU ran out of memory"),
        (
            "ValidationError",
            "1 validation error for ModelConfig\n  Value error, User-specified max_model_len (99999) is greater "
            "than the derived max_model_len (max_position_embeddings=2048.0 or model_max_length=None",
            "maxModelLen 99999 is over the model's own 2048 tokens",
        ),
        ("RuntimeError", "No CUDA GPUs are available", "no usable GPU in this pod"),
    ],
)
def test_known_failures_have_a_sentence_with_what_to_do(kind: str, message: str, sentence: str) -> None:
    assert sentence in reason(Failure(((kind, message),)), "org/m")


def test_the_cause_is_found_under_what_wraps_it() -> None:
    failed = Failure(
        (
            ("RuntimeError", "Engine core initialization failed. See root cause above."),
            ("OutOfMemoryError", "CUDA out of memory."),
        )
    )
    assert reason(failed, "org/m").startswith("the GPU ran out of memory")


def test_a_validation_error_is_reported_without_its_frame() -> None:
    message = (
        "1 validation error for CacheConfig\nblock_size\n  Input should be 16 [type=literal_error, input_value=7]\n"
        "    For further information visit https://errors.pydantic.dev"
    )
    assert reason(Failure((("ValidationError", message),)), "org/m") == (
        "the engine could not load org/m: ValidationError: block_size Input should be 16"
    )


def test_an_end_without_a_reason_is_reported_as_such() -> None:
    failed = Failure((("RuntimeError", "Engine core initialization failed. See root cause above. {}"),))
    assert "ended without saying why" in reason(failed, "org/m")


def test_an_endless_message_is_cut() -> None:
    assert len(reason(Failure((("X", "word " * 1000),)), "org/m")) < 700
