"""Why a model cannot be downloaded, in one sentence with what to do."""

from __future__ import annotations

import re
from collections.abc import Callable

from dragoman_service.errors import ModelLoadError

MAX_CHARS = 600
"""A termination message may have 4,096 bytes, a condition's is read by a person."""


class ChecksumError(ModelLoadError):
    """A downloaded file is not the one that the store lists."""


class IncompleteModelError(ModelLoadError):
    """A directory or a store has no complete model."""


class NoSpaceError(ModelLoadError):
    """The cache volume is too small."""


class StoppedError(Exception):
    """Another file of the same download failed."""


Reason = Callable[[re.Match[str], str], str]

DOWNLOAD_REASONS: tuple[tuple[str, Reason], ...] = (
    (
        r"GatedRepo|trying to access a gated repo|Access to model .* is restricted",
        lambda _, model: (
            f"the model {model} is gated on Hugging Face: accept its terms there, and set tokenSecretRef to "
            "a Secret with a token that may read it"
        ),
    ),
    (
        r"\b(401|403) (?:Client Error|Unauthorized|Forbidden)",
        lambda found, model: (
            f"Hugging Face refuses access to {model} ({found[1]}): set tokenSecretRef to a Secret with a "
            "token that may read it, and check the name"
        ),
    ),
    (
        r"RevisionNotFound",
        lambda _, model: f"the model {model} has no such revision on Hugging Face: check spec.model.revision",
    ),
    (
        r"RepositoryNotFound|is not a local folder and is not a valid model identifier",
        lambda _, model: (
            f"there is no directory {model} in this pod and no such model on Hugging Face: check the uri; "
            "if the model is private, set tokenSecretRef"
        ),
    ),
    (
        r"HFValidationError|Repo id must",
        lambda _, model: f"{model} is neither a directory in this pod nor a Hugging Face id (org/name)",
    ),
    (
        r"No space left on device|File too large|Disk quota exceeded",
        lambda _, model: f"no space is left for {model}: give the cache volume more room",
    ),
    (
        r"OfflineMode|LocalEntryNotFound|ConnectError|(?:Connect|Read|Pool)Timeout\b|ReadError|RemoteProtocolError"
        r"|ConnectionError|MaxRetryError"
        r"|Name or service not known|Temporary failure in name resolution|couldn't connect to",
        lambda _, model: (
            f"there is no directory {model} in this pod, its cache does not hold the model, and Hugging Face "
            "cannot be reached: check the uri, network policies and proxies, or use a volume (pvc://)"
        ),
    ),
)
"""Phrases of the messages of huggingface_hub, transformers and vLLM, and what they mean."""

_S3_REASONS: tuple[tuple[str, Reason], ...] = (
    (
        r"NoCredentialsError|PartialCredentialsError",
        lambda _, uri: (
            f"there are no credentials for {uri}: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in podTemplate.env"
        ),
    ),
    (
        r"\((AccessDenied|403|InvalidAccessKeyId|SignatureDoesNotMatch|ExpiredToken|InvalidToken)\)",
        lambda found, uri: (
            f"the store refuses access to {uri} ({found[1]}): check the credentials in podTemplate.env, and that they "
            "may list the bucket and get its objects"
        ),
    ),
    (
        r"\(NoSuchBucket\)",
        lambda _, uri: f"there is no bucket of {uri}: check spec.model.uri, AWS_ENDPOINT_URL and AWS_REGION",
    ),
    (
        r"EndpointConnectionError|ConnectTimeoutError|ConnectionClosedError|ReadTimeoutError|ConnectionError",
        lambda _, uri: (
            f"the store of {uri} cannot be reached and the cache does not hold the model: check AWS_ENDPOINT_URL, "
            "network policies and proxies"
        ),
    ),
)


def reason(error: BaseException, model: str) -> str:
    """One sentence about a failed download of `model`, which is named as in the settings."""
    if isinstance(error, ModelLoadError):
        return str(error)
    chain: list[BaseException] = []
    at: BaseException | None = error
    while at is not None and len(chain) < 10:
        chain.append(at)
        at = at.__cause__ or (None if at.__suppress_context__ else at.__context__)
    reported = "\n".join(f"{type(each).__name__}: {each}" for each in chain)
    known = _S3_REASONS + DOWNLOAD_REASONS if model.startswith("s3://") else DOWNLOAD_REASONS
    for pattern, sentence in known:
        if found := re.search(pattern, reported, re.DOTALL):
            return sentence(found, model)
    message = without_queries(" ".join(str(error).split())) or type(error).__name__
    return f"the model {model} cannot be downloaded: {message}"[:MAX_CHARS]


def without_queries(text: str) -> str:
    """`text` without the queries of its URLs: those of a store may be signed, and give access for hours."""
    return re.sub(r"(\bhttps?://[^\s?'\"<>]*)\?[^\s'\"<>]*", r"\1", text)
