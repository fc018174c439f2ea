"""The core: from texts and a pair of languages to translations that were checked. It knows neither HTTP nor vLLM."""

from dragoman_service.core.checks_process import GuardProcess
from dragoman_service.core.observer import Observer, Origin, Priority, Silent
from dragoman_service.core.opening import most_at_once, translator_of
from dragoman_service.core.translator import MOST_SIDE_BY_SIDE, Translator

__all__ = [
    "MOST_SIDE_BY_SIDE",
    "GuardProcess",
    "Observer",
    "Origin",
    "Priority",
    "Silent",
    "Translator",
    "most_at_once",
    "translator_of",
]
