"""Messages of errors are for clients, who know neither flags nor specs."""

import ast
import re
from pathlib import Path

from dragoman_protocols import errors

ROOT = Path(__file__).parents[3]
SHOWN = {each.__name__ for each in errors.causes()}


def test_messages_to_clients_name_no_flags_and_no_fields_of_a_spec() -> None:
    found = 0
    named = []
    for part in ("protocols", "http", "service", "router"):
        for file in (ROOT / part / "src").rglob("*.py"):
            for call in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if not isinstance(call, ast.Call) or ast.unparse(call.func).split(".")[-1] not in SHOWN:
                    continue
                for literal in (each for part in call.args for each in ast.walk(part)):
                    if isinstance(literal, ast.Constant) and isinstance(literal.value, str):
                        found += 1
                        if re.search(r"(?<!\w)--[a-z]|\bspec\.[a-z]", literal.value):
                            named.append(f"{file.name}:{literal.lineno}: {literal.value}")
    assert found > 100
    assert named == []
