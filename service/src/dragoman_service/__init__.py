"""The engine pod: one process that loads a model into vLLM and answers translation requests over HTTP.

`AsyncVLLMTranslationProvider` is the same without HTTP, for use as a library.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dragoman_service.provider import AsyncVLLMTranslationProvider

__all__ = ["AsyncVLLMTranslationProvider"]


def __getattr__(name: str) -> Any:
    """Import what is exported on first use: nothing is loaded by importing a part of this package."""
    if name == "AsyncVLLMTranslationProvider":
        from dragoman_service.provider import AsyncVLLMTranslationProvider

        return AsyncVLLMTranslationProvider
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
