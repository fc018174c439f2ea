"""Prompt families, and what the publishers say of their models: licence, languages, size.

Taken from model cards and licence files in November 2026; each family has its own in `source`.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple, get_args

CUSTOM_FAMILY = "custom"
"""The family whose template is in the spec."""

FamilyName = Literal[
    "chatml-generic",
    "hunyuan-mt",
    "hy-mt2",
    "hy-mt1.5",
    "seed-x",
    "translategemma",
    "tower-plus",
    "tower-instruct",
    "alma",
    "gemma",
    "custom",
]
"""Prompt format of a model family."""

PROMPT_FAMILIES: tuple[str, ...] = get_args(FamilyName)
"""The CRD refuses others; the engine pod has their formats."""

DEFAULT_MAX_NUM_SEQS = 32
"""Where to start: the CRD's default. The load decides it, not the model; `spec.tuning` measures it."""
GIB = 1 << 30


class Licence(NamedTuple):
    """A licence in plain words; no legal advice."""

    name: str
    terms: str
    """What it asks for, in one sentence."""
    forbidden: str = ""
    """Where, or for what, the models may not be used at all; empty: nothing known."""


class Model(NamedTuple):
    """An example of a family's models."""

    uri: str
    """As in `spec.model.uri`."""
    billion_parameters: float
    """As in the publisher's name of the model; the exact number may be higher. All experts of a mixture count: they are
    all in memory."""

    def weights_gib(self, bytes_per_parameter: int) -> float:
        """GiB of the weights, rounded up to a tenth."""
        return math.ceil(self.billion_parameters * 1e9 * bytes_per_parameter / GIB * 10) / 10


class Family(NamedTuple):
    """Models that take one prompt format."""

    name: FamilyName
    publisher: str
    licence: Licence
    languages: str
    """How many, and which as BCP-47 tags where the publisher lists them."""
    models: tuple[Model, ...]
    source: str


APACHE = Licence("Apache-2.0", "Free, also for commercial use. Copies must keep the notices.")
TENCENT_TERMS = (
    "Free under Tencent's conditions of use, where use is permitted. Services with more than 100 million monthly "
    "users need a separate licence. The translations may not be used to train other models."
)
OUTSIDE_TERRITORY = "in the European Union, the United Kingdom or South Korea"
GEMMA_TERMS = Licence(
    "Gemma Terms of Use",
    "Free, also for commercial use. Google's prohibited use policy applies; you must pass it on to your users. The "
    "download needs a Hugging Face token of an account that accepted the terms (spec.model.tokenSecretRef).",
)

FAMILIES: tuple[Family, ...] = (
    Family(
        "hy-mt2",
        "Tencent",
        APACHE,
        "33, and 5 minority languages and dialects of China: ar, bn, bo, cs, de, en, es, fa, fr, gu, he, hi, id, it, "
        "ja, kk, km, ko, mn, mr, ms, my, nl, pl, pt, ru, ta, te, th, tl, tr, ug, uk, ur, vi, yue, zh, zh-Hant",
        (
            Model("hf://tencent/Hy-MT2-1.8B", 1.8),
            Model("hf://tencent/Hy-MT2-7B", 7),
            Model("hf://tencent/Hy-MT2-30B-A3B", 30),
        ),
        "https://github.com/Tencent-Hunyuan/Hy-MT2",
    ),
    Family(
        "hy-mt1.5",
        "Tencent",
        Licence("Tencent HY Community License", TENCENT_TERMS, OUTSIDE_TERRITORY),
        "33, and 5 minority languages and dialects of China",
        (Model("hf://tencent/HY-MT1.5-1.8B", 1.8), Model("hf://tencent/HY-MT1.5-7B", 7)),
        "https://github.com/Tencent-Hunyuan/HY-MT",
    ),
    Family(
        "hunyuan-mt",
        "Tencent",
        Licence("Tencent Hunyuan Community License", TENCENT_TERMS, OUTSIDE_TERRITORY),
        "33, including 5 minority languages of China",
        (Model("hf://tencent/Hunyuan-MT-7B", 7),),
        "https://github.com/Tencent-Hunyuan/Hunyuan-MT",
    ),
    Family(
        "seed-x",
        "ByteDance",
        Licence("OpenMDW", "Free, also for commercial use. Copies must keep the licence and the notices."),
        "28: ar, cs, da, de, en, es, fi, fr, hr, hu, id, it, ja, ko, ms, nb, nl, no, pl, pt, ro, ru, sv, th, tr, uk, "
        "vi, zh",
        (
            Model("hf://ByteDance-Seed/Seed-X-PPO-7B", 7),
            Model("hf://ByteDance-Seed/Seed-X-Instruct-7B", 7),
        ),
        "https://huggingface.co/ByteDance-Seed/Seed-X-PPO-7B",
    ),
    Family(
        "translategemma",
        "Google",
        GEMMA_TERMS,
        "55",
        (
            Model("hf://google/translategemma-4b-it", 4),
            Model("hf://google/translategemma-12b-it", 12),
            Model("hf://google/translategemma-27b-it", 27),
        ),
        "https://huggingface.co/google/translategemma-4b-it",
    ),
    Family(
        "gemma",
        "Google",
        GEMMA_TERMS,
        "more than 140. Gemma is a general model, not a translation model",
        (
            Model("hf://google/gemma-3-4b-it", 4),
            Model("hf://google/gemma-3-12b-it", 12),
            Model("hf://google/gemma-3-27b-it", 27),
        ),
        "https://huggingface.co/google/gemma-3-27b-it",
    ),
    Family(
        "tower-plus",
        "Unbabel",
        Licence(
            "CC-BY-NC-SA-4.0",
            "Free for non-commercial use, with attribution. Derived models must have the same licence.",
            "commercially",
        ),
        "22 (nb and nn count as one, zh and zh-Hant as one): cs, da, de, en, es, fi, fr, hi, hu, is, it, ja, ko, nb, "
        "nl, nn, pl, pt, ro, ru, sv, uk, zh, zh-Hant, with regional variants of es and pt",
        (
            Model("hf://Unbabel/Tower-Plus-2B", 2),
            Model("hf://Unbabel/Tower-Plus-9B", 9),
            Model("hf://Unbabel/Tower-Plus-72B", 72),
        ),
        "https://huggingface.co/Unbabel/Tower-Plus-9B",
    ),
    Family(
        "tower-instruct",
        "Unbabel",
        Licence(
            "CC-BY-NC-4.0",
            "Free for non-commercial use, with attribution. The licence of Llama 2 applies too, because the model is "
            "based on it.",
            "commercially",
        ),
        "10: de, en, es, fr, it, ko, nl, pt, ru, zh",
        (
            Model("hf://Unbabel/TowerInstruct-7B-v0.2", 7),
            Model("hf://Unbabel/TowerInstruct-13B-v0.1", 13),
        ),
        "https://huggingface.co/Unbabel/TowerInstruct-7B-v0.2",
    ),
    Family(
        "alma",
        "Johns Hopkins University and Microsoft",
        Licence(
            "MIT",
            "Free, also for commercial use. The licence of Llama 2 applies too, because the model is based on it.",
        ),
        "cs, de, is, ru and zh, each from and into en",
        (Model("hf://haoranxu/ALMA-7B", 7), Model("hf://haoranxu/ALMA-13B", 13)),
        "https://github.com/fe1ixxu/ALMA",
    ),
    Family(
        "chatml-generic",
        "several",
        Licence(
            "Depends on the model",
            "The prompt uses the model's own chat template, so any instruction-tuned chat model works. The example "
            "is EuroLLM (Apache-2.0).",
        ),
        "35 (EuroLLM): ar, bg, ca, cs, da, de, el, en, es, et, fi, fr, ga, gl, hi, hr, hu, it, ja, ko, lt, lv, mt, "
        "nl, no, pl, pt, ro, ru, sk, sl, sv, tr, uk, zh",
        (Model("hf://utter-project/EuroLLM-9B-Instruct", 9),),
        "https://huggingface.co/utter-project/EuroLLM-9B-Instruct",
    ),
)
"""Every prompt family but `custom`."""

_BY_NAME = {family.name: family for family in FAMILIES}


def licence_limit(family: FamilyName) -> str:
    """What the licence of a family's models does not permit, as a sentence; empty where nothing is known."""
    known = _BY_NAME.get(family)
    if known is None or not known.licence.forbidden:
        return ""
    return (
        f"models of the family {known.name} may not be used {known.licence.forbidden} ({known.licence.name})"
    )
