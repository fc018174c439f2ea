"""The translator that a pod's settings ask for."""

from __future__ import annotations

from dragoman_protocols.errors import SettingsError
from dragoman_protocols.languages import Pair, language
from dragoman_protocols.translation import Split
from dragoman_service.core.checks_process import GuardProcess
from dragoman_service.core.glossary_file import GlossaryFile
from dragoman_service.core.observer import Observer
from dragoman_service.core.translator import MOST_SIDE_BY_SIDE, Translator
from dragoman_service.engine.protocol import Engine
from dragoman_service.prompts import prompt_family
from dragoman_service.prompts.wishes import Wishes
from dragoman_service.settings import Settings

ROUNDS_AHEAD = 2
"""Generations of one request in the engine for each sequence that it runs: enough to keep it busy, and whoever
comes next waits for one round of them rather than for a whole document."""

ANY_PAIR = Pair(language("en"), language("de"))


def most_at_once(settings: Settings) -> int:
    """Generations of one request that the engine holds at once."""
    sequences = settings.max_num_seqs
    return min(MOST_SIDE_BY_SIDE, ROUNDS_AHEAD * sequences) if sequences else MOST_SIDE_BY_SIDE


def translator_of(
    settings: Settings, engine: Engine, observer: Observer, guards: GuardProcess | None = None
) -> Translator:
    """The core of a pod.

    Args:
        settings: The pod's.
        engine: What generates; need not be loaded.
        observer: Told of what happens.
        guards: A process for them, if there is one.

    Raises:
        PromptTemplateError: The prompt family cannot be used.
        SettingsError: The glossary cannot be read, or the family cannot be told of one.
    """
    family = prompt_family(settings.prompt_family, settings.prompt_template)
    if settings.glossary is not None and family.lacking(ANY_PAIR, Wishes(terms=(("a", "b"),))):
        raise SettingsError(
            f"--glossary: models of family {family.name} cannot be told of terms; leave it out, or use another model"
        )
    return Translator(
        engine,
        family,
        settings.languages,
        settings.request_timeout_s,
        split=Split(settings.split) if settings.split else None,
        side_by_side=most_at_once(settings),
        glossary=GlossaryFile(settings.glossary) if settings.glossary else None,
        cache_bytes=settings.cache_bytes,
        observer=observer,
        guards=guards,
    )
