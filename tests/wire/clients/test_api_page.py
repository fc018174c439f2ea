"""docs/reference/api.md: each curl is run against a pod with the demo model, and prints the documented output."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).parents[3] / "docs/reference/api.md"
EXAMPLE = re.compile(r"^```sh\n(curl .*?)\n```\n```\w*\n(.*?)\n```$", re.MULTILINE | re.DOTALL)
ADDRESS = "localhost:8000"
ANYTHING = "…"

EXAMPLES = EXAMPLE.findall(PAGE.read_text(encoding="utf-8"))


def ids() -> list[str]:
    return [
        f"{number}-{command.split(ADDRESS)[1][:30].strip()}" for number, (command, _) in enumerate(EXAMPLES)
    ]


def test_every_curl_of_the_page_has_its_answer() -> None:
    assert len(EXAMPLES) == PAGE.read_text(encoding="utf-8").count("```sh\ncurl ") >= 9


def fits(message: Any, found: Any) -> bool:
    """Whether an answer matches the page, `…` standing for anything."""
    if message == ANYTHING:
        return True
    if isinstance(message, dict) and isinstance(found, dict):
        return message.keys() == found.keys() and all(
            fits(value, found[name]) for name, value in message.items()
        )
    if isinstance(message, list) and isinstance(found, list):
        return len(message) == len(found) and all(map(fits, message, found))
    return bool(message == found)


@pytest.mark.parametrize(("command", "answer"), EXAMPLES, ids=ids())
def test_each_command_prints_the_documented_output(
    command: str, answer: str, demo_pod: Any, tmp_path: Path
) -> None:
    assert ADDRESS in command
    done = subprocess.run(
        ["bash", "-c", command.replace(ADDRESS, f"127.0.0.1:{demo_pod.port}")],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    try:
        message, found = json.loads(answer), json.loads(done.stdout)
    except json.JSONDecodeError:
        message, found = answer.strip(), done.stdout.strip()
    assert fits(message, found), f"the page says\n{answer}\nand the pod\n{done.stdout}"
