"""`dragoman models`: models for each prompt family, with their licences, languages and sizes."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence

from dragoman_contract.models import CUSTOM_FAMILY, DEFAULT_MAX_NUM_SEQS, FAMILIES, PROMPT_FAMILIES, Family

BF16_BYTES, FP8_BYTES = 2, 1

INTRODUCTION = """# Models

`spec.model.promptFamily` of a TranslationDeployment names the prompt format that its model was trained with. This
page lists models for each format, with their licences, languages and sizes. `dragoman models` prints the same list.

Licences and languages are summaries of the publishers' pages; each section has the link. The summaries are no legal
advice: read the licence before you serve a model.

| `promptFamily` | publisher | licence | use is prohibited |
|---|---|---|---|"""

NOTES = f"""
The operator does not enforce the restrictions in the last column. It adds them to the message of the condition
`Degraded` of a TranslationDeployment. A restriction alone does not make `Degraded` `True`.

**Memory.** The tables below have the approximate size of the weights: the number of parameters in the model's name
(7B: 7 billion) times two bytes for bf16, or one byte for fp8. A GPU needs more memory than that: for the KV cache,
activations, CUDA graphs, and layers that stay in bf16. `engine.tensorParallelSize` divides the weights among several
GPUs.

**`engine.maxNumSeqs`.** Start with {DEFAULT_MAX_NUM_SEQS}, the default. The right value depends on the load, not on the
model. [Tuning](../how-to/tuning.md) describes how to measure it."""


KNOWN = tuple(name for name in PROMPT_FAMILIES if name != CUSTOM_FAMILY)


def main(argv: list[str]) -> int:
    """Print the models; 0."""
    parser = argparse.ArgumentParser(prog="dragoman models", description=__doc__)
    add_arguments(parser)
    options = parser.parse_args(argv)
    if unknown := set(options.family).difference(KNOWN):
        parser.error(f"no prompt family {min(unknown)!r}; there are {', '.join(KNOWN)}")
    chosen = [family for family in FAMILIES if not options.family or family.name in options.family]
    if options.json:
        json.dump([*map(document, chosen)], sys.stdout, indent=2, ensure_ascii=False)
        print()
    elif options.markdown:
        sys.stdout.write(markdown(chosen))
    else:
        print("\n\n".join(map(plain, chosen)))
    return 0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's flags."""
    parser.add_argument(
        "family", nargs="*", metavar="FAMILY", help=f"one of {', '.join(KNOWN)}; default: all"
    )
    formats = parser.add_mutually_exclusive_group()
    formats.add_argument("--markdown", action="store_true", help="as docs/reference/models.md")
    formats.add_argument("--json", action="store_true", help="for programs")


def document(family: Family) -> dict[str, object]:
    """A family as JSON has it."""
    return {
        "promptFamily": family.name,
        "publisher": family.publisher,
        "licence": family.licence._asdict(),
        "languages": family.languages,
        "source": family.source,
        "models": [
            {
                "uri": model.uri,
                "billionParameters": model.billion_parameters,
                "weightsGiB": {
                    "bf16": model.weights_gib(BF16_BYTES),
                    "fp8": model.weights_gib(FP8_BYTES),
                },
            }
            for model in family.models
        ],
    }


def plain(family: Family) -> str:
    """A family for a terminal."""
    lines = [
        f"{family.name} ({family.publisher})",
        f"  licence    {family.licence.name}: {family.licence.terms}",
    ]
    if family.licence.forbidden:
        lines.append(f"  forbidden  use {family.licence.forbidden}")
    lines.append(f"  languages  {family.languages}")
    width = max(len(model.uri) for model in family.models)
    lines += [
        f"  {model.uri:<{width}}  {model.billion_parameters:>4g} B"
        f"  weights {model.weights_gib(BF16_BYTES):>5} GiB in bf16, {model.weights_gib(FP8_BYTES):>4} in fp8"
        for model in family.models
    ]
    return "\n".join(lines)


def markdown(families: Sequence[Family]) -> str:
    """The page docs/reference/models.md."""
    return "\n".join(_page(families)) + "\n"


def _page(families: Sequence[Family]) -> Iterator[str]:
    yield INTRODUCTION
    for family in families:
        name = f"[`{family.name}`](#{_anchor(family.name)})"
        forbidden = family.licence.forbidden or "–"
        yield f"| {name} | {family.publisher} | {family.licence.name} | {forbidden} |"
    yield NOTES
    for family in families:
        yield ""
        yield f"## {family.name}"
        yield ""
        if family.licence.forbidden:
            yield f"**Models of this family may not be used {family.licence.forbidden}.**"
        yield f"Licence: {family.licence.name}. {family.licence.terms}"
        yield ""
        yield f"Languages: {family.languages}."
        yield ""
        yield f"Source: <{family.source}>"
        yield ""
        yield "| `spec.model.uri` | parameters | weights in bf16 | weights in fp8 |"
        yield "|---|---|---|---|"
        for model in family.models:
            yield (
                f"| `{model.uri}` | {model.billion_parameters:g} B | {model.weights_gib(BF16_BYTES)} GiB |"
                f" {model.weights_gib(FP8_BYTES)} GiB |"
            )


def _anchor(heading: str) -> str:
    """The fragment that GitHub makes of a heading."""
    return heading.lower().replace(".", "")
