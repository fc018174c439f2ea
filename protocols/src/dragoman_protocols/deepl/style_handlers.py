"""The requests at the paths of DeepL's style rules, over the store of glossaries."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dragoman_protocols.deepl import styles, types
from dragoman_protocols.deepl.glossary_handlers import NO_CONTENT, nothing, stored
from dragoman_protocols.endpoints import Endpoint
from dragoman_protocols.glossaries.store import GlossaryStore
from dragoman_protocols.glossaries.styles import Instruction, Rule, Style
from dragoman_protocols.glossaries.values import StoredGlossary
from dragoman_protocols.messages import Answer, Request, json_answer


async def create(store: GlossaryStore, _: Request, new: StoredGlossary) -> Answer:
    """Create a list of style rules."""
    await store.add(new)
    return json_answer(styles.style_json(new), 201)


async def list_all(store: GlossaryStore, _: Request, page: tuple[slice, bool]) -> Answer:
    """List the lists of style rules."""
    part, detailed = page
    found = [each for each in await store.all() if each.style is not None]
    return json_answer({"style_rules": [styles.style_json(each, detailed=detailed) for each in found[part]]})


async def describe(store: GlossaryStore, request: Request, _: None) -> Answer:
    """Get a list of style rules."""
    return json_answer(styles.style_json(await store.get(_id(request))))


async def rename(store: GlossaryStore, request: Request, name: str) -> Answer:
    """Rename a list of style rules."""
    return json_answer(styles.style_json(await store.change(_id(request), styles.renamed(name))))


async def delete(store: GlossaryStore, request: Request, _: None) -> Answer:
    """Delete a list of style rules."""
    await store.remove(_id(request))
    return NO_CONTENT


async def replace_rules(store: GlossaryStore, request: Request, rules: tuple[Rule, ...]) -> Answer:
    """Replace the configured rules of a list."""
    change = styles.changed(lambda style: replace(style, rules=rules))
    return json_answer(styles.style_json(await store.change(_id(request), change)))


async def add_instruction(store: GlossaryStore, request: Request, new: Instruction) -> Answer:
    """Add a custom instruction to a list."""
    await store.change(_id(request), styles.changed(lambda style: styles.with_instruction(style, new)))
    return json_answer(styles.instruction_json(new), 201)


async def describe_instruction(store: GlossaryStore, request: Request, _: None) -> Answer:
    """Get a custom instruction of a list."""
    style = styles.style_of(await store.get(_id(request)))
    return json_answer(styles.instruction_json(styles.instruction_of(style, _instruction_id(request))))


async def replace_instruction(store: GlossaryStore, request: Request, new: Instruction) -> Answer:
    """Replace a custom instruction of a list."""
    new = replace(new, instruction_id=_instruction_id(request))

    def change(style: Style) -> Style:
        styles.instruction_of(style, new.instruction_id)
        return styles.with_instruction(style, new)

    await store.change(_id(request), styles.changed(change))
    return json_answer(styles.instruction_json(new))


async def delete_instruction(store: GlossaryStore, request: Request, _: None) -> Answer:
    """Delete a custom instruction of a list."""
    gone = _instruction_id(request)
    await store.change(_id(request), styles.changed(lambda style: styles.without_instruction(style, gone)))
    return NO_CONTENT


def _id(request: Request) -> str:
    return request.variables["style_id"]


def _instruction_id(request: Request) -> str:
    return request.variables["instruction_id"]


def _endpoints() -> Iterator[Endpoint]:
    every, one = "/v3/style_rules", "/v3/style_rules/{style_id}"
    instructions = f"{one}/custom_instructions"
    instruction = f"{instructions}/{{instruction_id}}"
    yield stored("POST", every, styles.read_new, create, types.StyleShape)
    yield stored("GET", every, styles.read_page, list_all, types.PageShape)
    yield stored("GET", one, nothing, describe)
    yield stored("PATCH", one, styles.read_name, rename, types.NameShape)
    yield stored("DELETE", one, nothing, delete)
    yield stored("PUT", f"{one}/configured_rules", styles.read_rules, replace_rules, types.RulesShape)
    yield stored("POST", instructions, styles.read_instruction, add_instruction, types.InstructionShape)
    yield stored("GET", instruction, nothing, describe_instruction)
    yield stored("PUT", instruction, styles.read_instruction, replace_instruction, types.InstructionShape)
    yield stored("DELETE", instruction, nothing, delete_instruction)


ENDPOINTS = tuple(_endpoints())
