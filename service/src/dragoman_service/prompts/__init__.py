"""Prompt families as data: the words, and the sampling, that each family of models was trained with.

Strings are the publishers' own; licences are in the docstrings where they matter.
"""

from __future__ import annotations

from types import MappingProxyType

from dragoman_service.errors import PromptTemplateError
from dragoman_service.prompts import (
    alma,
    chatml_generic,
    gemma,
    hunyuan_mt,
    hy_mt1_5,
    hy_mt2,
    seed_x,
    tower,
    translategemma,
)
from dragoman_service.prompts.custom import custom_family
from dragoman_service.prompts.family import PromptFamily

CUSTOM = "custom"

FAMILIES = MappingProxyType(
    {
        family.name: family
        for family in (
            chatml_generic.FAMILY,
            hunyuan_mt.FAMILY,
            hy_mt2.FAMILY,
            hy_mt1_5.FAMILY,
            seed_x.FAMILY,
            translategemma.FAMILY,
            tower.TOWER_PLUS,
            tower.TOWER_INSTRUCT,
            alma.FAMILY,
            gemma.FAMILY,
        )
    }
)
"""Families by name; `custom` is made from its template instead."""


def prompt_family(name: str, template: str | None = None) -> PromptFamily:
    """The family of a name in `PROMPT_FAMILIES`; `template` is that of a custom family.

    Raises:
        PromptTemplateError: No such family, or a template that cannot be used.
    """
    if name == CUSTOM:
        if template is None:
            raise PromptTemplateError("prompt family custom needs a template")
        return custom_family(template)
    if name not in FAMILIES:
        raise PromptTemplateError(f"no prompt family {name!r}; there are {', '.join(FAMILIES)}, {CUSTOM}")
    return FAMILIES[name]
