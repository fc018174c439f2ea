"""`/v3/languages`: the languages of each resource, with what is supported for them.

Source: https://developers.deepl.com/docs/languages/using-the-languages-api
"""

from __future__ import annotations

from typing import Any

from dragoman_protocols.deepl import codes
from dragoman_protocols.deepl.errors import missing, unsupported
from dragoman_protocols.deepl.fields import bounded_fields
from dragoman_protocols.messages import Answer, Request, json_answer
from dragoman_protocols.offer import Offer, name_in
from dragoman_protocols.site import Site

BOTH, SOURCE, TARGET = ("source", "target"), ("source",), ("target",)

FEATURES = {"auto_detection": SOURCE, "formality": TARGET, "glossary": BOTH, "style_rules": TARGET}
"""Of translations, with the side of a pair that has to support them."""

RESOURCES: dict[str, dict[str, tuple[str, ...]]] = {
    "translate_text": FEATURES | {"tag_handling": BOTH},
    "translate_document": FEATURES,
    "glossary": {},
    "style_rules": {},
}
"""What is served, with its features."""

NOT_SERVED = ("voice", "write", "translation_memory")
"""Resources of DeepL that no language is listed for."""

STABLE = {"status": "stable"}


def respond_languages(request: Request, site: Site) -> Answer:
    """The languages of a resource."""
    fields = bounded_fields(request)
    resource = fields.choice("resource", (*RESOURCES, *NOT_SERVED))
    if resource is None:
        raise missing("resource")
    if any(each not in ("beta", "external") for each in fields.names("include")):
        raise unsupported("include")
    return json_answer(listed(site.offer, resource) if resource in RESOURCES else [])


def respond_resources(request: Request, _: Site) -> Answer:
    """The resources, with the features that languages may have for them."""
    bounded_fields(request)
    return json_answer(
        [
            {
                "name": name,
                "features": [
                    {"name": feature, **{f"needs_{side}_support": True for side in sides}}
                    for feature, sides in features.items()
                ],
            }
            for name, features in RESOURCES.items()
        ]
    )


def listed(offer: Offer, resource: str) -> list[dict[str, Any]]:
    """The languages of one of `RESOURCES`; those of glossaries and style rules have no variants."""
    sources, targets = codes.source_tags(offer), codes.target_tags(offer)
    if resource in ("glossary", "style_rules"):
        targets = {codes.primary_code(tag) for tag in targets}
    if resource == "style_rules":
        sources = set()
    return [
        {
            "lang": tag,
            "name": name_in(tag, "en"),
            "usable_as_source": tag in sources,
            "usable_as_target": tag in targets,
            "features": {
                feature: STABLE
                for feature, sides in RESOURCES[resource].items()
                if ("source" in sides and tag in sources) or ("target" in sides and tag in targets)
                if feature != "formality" or codes.has_formality(tag)
            },
            "status": "stable",
        }
        for tag in sorted(sources | targets, key=str.lower)
    ]
