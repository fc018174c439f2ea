"""Style rules with the client deepl as it is on PyPI."""

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import deepl
import pytest

RULES = {"punctuation": {"apostrophe": "use_curly_apostrophes"}}
INSTRUCTION = {"label": "Tone", "prompt": "Use a friendly tone.", "source_language": "en"}


@pytest.fixture
def client(scripted_pod: Any) -> Iterator[deepl.DeepLClient]:
    with closing(deepl.DeepLClient("any", server_url=scripted_pod.url)) as found:
        yield found


def test_a_list_of_style_rules_is_created_changed_and_deleted(client: deepl.DeepLClient) -> None:
    made = client.create_style_rule("Ours", "de", RULES, [INSTRUCTION])
    assert (made.name, made.language, made.version) == ("Ours", "de", 1)
    assert client.update_style_rule_name(made, "Theirs").name == "Theirs"
    changed = client.update_style_rule_configured_rules(made, {"numbers": {"decimals": "use_comma"}})
    assert changed.version == 3
    assert changed.updated_time > made.updated_time
    added = client.create_style_rule_custom_instruction(made, "Length", "Be brief.")
    assert added.id is not None
    client.update_style_rule_custom_instruction(made, added.id, "Length", "Be very brief.")
    assert client.get_style_rule_custom_instruction(made, added.id).prompt == "Be very brief."
    found = client.get_style_rule(made)
    assert found.custom_instructions is not None
    assert [each.prompt for each in found.custom_instructions] == ["Use a friendly tone.", "Be very brief."]
    client.delete_style_rule_custom_instruction(made, added.id)
    assert made.style_id in [each.style_id for each in client.get_all_style_rules(detailed=True)]
    client.delete_style_rule(made)
    assert made.style_id not in [each.style_id for each in client.get_all_style_rules()]
    with pytest.raises(deepl.DeepLException, match="not found"):
        client.get_style_rule(made)


def test_lists_come_in_pages_and_are_no_glossaries(client: deepl.DeepLClient) -> None:
    made = [client.create_style_rule(f"Page {number}", "fr") for number in range(3)]
    listed = client.get_all_style_rules(page=0, page_size=25)
    assert [each.style_id for each in listed][-3:] == [each.style_id for each in made]
    assert [each.style_id for each in client.get_all_style_rules(page=1, page_size=1)] == [listed[1].style_id]
    assert not {each.style_id for each in made} & {
        each.glossary_id for each in client.list_multilingual_glossaries()
    }
    with pytest.raises(deepl.GlossaryNotFoundException):
        client.get_multilingual_glossary(made[0].style_id)
    for each in made:
        client.delete_style_rule(each)


def test_its_instructions_reach_the_model(start_served: Any) -> None:
    for family, outcome in (("translategemma", "do not support instructions"), ("hy-mt2", None)):
        pod = start_served("--prompt-family", family)
        pod.wait_for("/readyz")
        with closing(deepl.DeepLClient("any", server_url=pod.url)) as client:
            made = client.create_style_rule("Ours", "de", RULES, [INSTRUCTION])
            requested = {"source_lang": "EN", "target_lang": "DE", "style_rule": made}
            if outcome is None:
                assert str(client.translate_text("abc", **requested)) == "cba"
            else:
                with pytest.raises(deepl.DeepLException, match=outcome):
                    client.translate_text("abc", **requested)
            with pytest.raises(deepl.DeepLException, match="the style rules are for de"):
                client.translate_text("abc", source_lang="EN", target_lang="FR", style_rule=made.style_id)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"language": "xx"}, "'language' not supported"),
        ({"language": "de-AT"}, "'language' not supported"),
        ({"configured_rules": {"punctuation": "x"}}, "configured_rules.punctuation"),
        ({"configured_rules": {"a": {"b": ["c"]}}}, "configured_rules"),
        ({"custom_instructions": [{"label": "a", "prompt": "b"}] * 11}, "at most 10"),
        ({"custom_instructions": [{"label": "a", "prompt": "b" * 301}]}, "at most 300"),
        ({"custom_instructions": [{"label": "a"}]}, "'prompt' not specified"),
    ],
)
def test_lists_that_cannot_be_kept_are_refused(
    client: deepl.DeepLClient, fields: dict[str, Any], message: str
) -> None:
    with pytest.raises(deepl.DeepLException, match=message):
        client.create_style_rule(**{"name": "Ours", "language": "de", **fields})


def test_unknown_lists_are_refused(client: deepl.DeepLClient) -> None:
    unknown = "7ff9bfd6-cd85-4190-8503-d6215a321519"
    for style_rule, message in ((unknown, "not found"), ("x", "glossary_id")):
        with pytest.raises(deepl.DeepLException, match=message):
            client.translate_text("Hello", source_lang="EN", target_lang="DE", style_rule=style_rule)
