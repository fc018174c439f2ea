"""Lists of style rules as values."""

import json

from dragoman_protocols.deepl import styles
from dragoman_protocols.deepl.fields import Fields
from dragoman_protocols.glossaries.store import MemoryStore
from dragoman_protocols.glossaries.values import read, written
from dragoman_protocols.translation import TranslationRequest
from dragoman_service.http.glossaries import GlossaryTerms

FIELDS = {
    "name": "Ours",
    "language": "de",
    "configured_rules": {
        "punctuation": {"apostrophe": "use_curly_apostrophes", "spaced_dashes": "use_en_dash", "off": None},
        "numbers": {"decimals": "use_comma"},
    },
    "custom_instructions": [
        {"label": "Tone", "prompt": "Use a friendly tone.", "source_language": "EN"},
        {"label": "Length", "prompt": "Be brief."},
    ],
}
RULES = (
    "Punctuation: apostrophe: use curly apostrophes; spaced dashes: use en dash.",
    "Numbers: decimals: use comma.",
)


def test_rules_become_instructions_and_those_for_another_source_are_left_out() -> None:
    style = styles.style_of(styles.read_new(Fields(FIELDS)))
    assert style.prompts("en") == ("Use a friendly tone.", "Be brief.", *RULES)
    assert style.prompts("fr") == style.prompts(None) == ("Be brief.", *RULES)


def test_a_list_is_kept_and_described_as_it_was_sent() -> None:
    made = styles.read_new(Fields(FIELDS))
    kept = read(written(made))
    assert kept == made
    described = styles.style_json(kept)
    assert described["configured_rules"]["numbers"] == {"decimals": "use_comma"}
    assert [each["label"] for each in described["custom_instructions"]] == ["Tone", "Length"]
    assert "custom_instructions" not in styles.style_json(kept.outline, detailed=False)
    assert json.dumps(described)


async def test_a_translation_gets_the_instructions_beside_the_terms_of_a_glossary() -> None:
    store = MemoryStore()
    made = styles.read_new(Fields(FIELDS))
    await store.add(made)
    request = TranslationRequest(("The cat sleeps.",), "de-AT", "en-GB", instructions=("Be kind.",))
    found = await GlossaryTerms(store).added(request, (made.glossary_id,), None)
    assert found.instructions == ("Be kind.", "Use a friendly tone.", "Be brief.", *RULES)
    assert found.terms == ()
