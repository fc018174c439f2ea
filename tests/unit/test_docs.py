"""The documentation agrees with the code: generated pages, manifests, command lines, reasons of conditions, links."""

import argparse
import json
import re
import shlex
import subprocess
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, get_args

import jsonschema
import pytest
import yaml
from docs.generate import pages
from tests.support.deployments import merged

from dragoman.__main__ import COMMANDS, entry_point
from dragoman_contract.kubernetes import KIND
from dragoman_operator.api.status import ConditionType
from dragoman_operator.api.v1alpha1 import TranslationDeploymentSpec
from dragoman_operator.observed.diagnosis import _ORDER

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
OUTSIDE = ["README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "charts/dragoman/README.md"]
"""Pages that the site does not have; `make docs` checks the links of those that it has."""
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
OPERATOR = ROOT / "operator/src/dragoman_operator"


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("path", pages(), ids=name_of)
def test_a_generated_page_is_as_the_code_has_it(path: Path) -> None:
    assert path.read_text(encoding="utf-8") == pages()[path], "run `make reference`"


def blocks(*languages: str) -> Iterator[tuple[Path, str]]:
    for page in PAGES:
        for language, text in BLOCK.findall(page.read_text(encoding="utf-8")):
            if language in languages:
                yield page, text


def manifests() -> list[Any]:
    found = [
        pytest.param(document, id=f"{name_of(page)}: {document['metadata']['name']}")
        for page, text in blocks("yaml")
        for document in yaml.safe_load_all(text)
        if isinstance(document, dict) and document.get("kind") == KIND
    ]
    assert found
    return found


@pytest.mark.parametrize("manifest", manifests())
def test_a_manifest_is_valid(manifest: dict[str, Any]) -> None:
    TranslationDeploymentSpec.model_validate(manifest["spec"])


def test_values_of_the_chart_are_valid() -> None:
    schema = json.loads((ROOT / "charts/dragoman/values.schema.json").read_text())
    defaults = yaml.safe_load((ROOT / "charts/dragoman/values.yaml").read_text())
    found = [yaml.safe_load(text) for _, text in blocks("yaml") if text.startswith("# values.yaml")]
    assert found
    for values in found:
        jsonschema.validate(merged(defaults, values), schema)


def test_every_block_of_yaml_and_json_can_be_read() -> None:
    read = [list(yaml.safe_load_all(text)) for _, text in blocks("yaml", "json")]
    assert len(read) > 20


def fragments() -> list[Any]:
    """Parts of a spec, which stand without `kind`."""
    return [
        pytest.param(document["spec"], id=f"{name_of(page)}: {', '.join(document['spec'])}")
        for page, text in blocks("yaml")
        for document in yaml.safe_load_all(text)
        if isinstance(document, dict) and "spec" in document and "kind" not in document
    ]


@pytest.mark.parametrize("spec", fragments())
def test_a_part_of_a_spec_is_valid(spec: dict[str, Any]) -> None:
    whole = {"model": {"uri": "hf://a/b", "promptFamily": "hy-mt2"}, **spec}
    whole.setdefault("resources", {"limits": {"nvidia.com/gpu": 1}})
    TranslationDeploymentSpec.model_validate(whole)


def command_lines() -> Iterator[tuple[Path, list[str]]]:
    """Each `dragoman COMMAND …` of a block of shell, up to a pipe, a redirection or a comment."""
    for page, text in blocks("sh"):
        for line in text.replace("\\\n", " ").splitlines():
            if not re.search(r"(?:^|[|;&/] ?)dragoman ", line):
                continue
            lexer = shlex.shlex(line, posix=True, punctuation_chars="|<>;&")
            lexer.whitespace_split, lexer.commenters = True, "#"
            words: list[str] = []
            for word in [*lexer, ";"]:
                if word[0] in "|<>;&":
                    # The word before a redirection may be a file descriptor; the one after it is no argument.
                    if words and words[0].rpartition("/")[2] == "dragoman" and words[1:]:
                        yield page, words[1:]
                    words = ["a file"] if word[0] in "<>" else []
                else:
                    words.append(word)


SHELL_PAGES = [*PAGES, *(ROOT / name for name in OUTSIDE), *(ROOT / "examples").rglob("*.md")]


@pytest.mark.parametrize("page", sorted({*SHELL_PAGES}), ids=name_of)
def test_commands_can_be_pasted_into_any_posix_shell(page: Path) -> None:
    for language, text in BLOCK.findall(page.read_text(encoding="utf-8")):
        assert language not in ("bash", "zsh", "shell"), "sh is for every shell"
        if language == "sh":
            checked = subprocess.run(["sh", "-n"], input=text, text=True, capture_output=True)
            assert checked.stderr == "", text
            # zsh takes them for arguments where a person types.
            assert not re.search(r"(?:^|\s)#", text, re.MULTILINE), f"a comment in: {text}"
            assert not re.search(
                r"<\(|<<<|&>|\[\[|(?<!\$)\{\w+,\w+\}(?!')|^source ", unquoted(text), re.MULTILINE
            ), text


def unquoted(text: str) -> str:
    return re.sub(r"'[^']*'|\"[^\"]*\"", "''", text)


def cases() -> list[Any]:
    found = [pytest.param(words, id=f"{name_of(page)}: {' '.join(words)}") for page, words in command_lines()]
    assert len(found) > 20
    return found


class ParsedError(Exception):
    """The command line was accepted; nothing was run."""


@pytest.mark.parametrize("words", cases())
def test_a_command_line_is_accepted(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command, *arguments = words
    if command == "--help":
        return
    assert command in COMMANDS
    parse = argparse.ArgumentParser.parse_args

    def parse_only(*given: Any, **named: Any) -> None:
        parse(*given, **named)
        raise ParsedError

    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", parse_only)
    found = entry_point(command)
    assert found is not None
    module, _, function = found.value.partition(":")
    try:
        with pytest.raises(ParsedError):
            getattr(import_module(module), function)(arguments)
    except SystemExit:
        pytest.fail(capsys.readouterr().err)


def reasons() -> set[str]:
    """Reasons of conditions, as the operator's code writes them."""
    code = "\n".join(path.read_text() for path in OPERATOR.rglob("*.py"))
    kinds = "|".join(re.sub(r"(?<!^)(?=[A-Z])", "_", kind).lower() for kind in get_args(ConditionType))
    written = re.findall(rf'\b_(?:{kinds})\(\s*(?:True|False),\s*"(\w+)"', code)
    found = {*written, *_ORDER, "Internal", "External", "InvalidSpec", "Replacing", "ScalingDown"}
    return found | {"RecommendationProvided", "UpToDate"}


def test_every_reason_of_a_condition_has_a_section() -> None:
    page = (DOCS / "how-to/troubleshooting.md").read_text()
    sections = re.findall(r"^### (.+)$", page, re.MULTILINE)
    assert sorted(reasons() - set(sections)) == []
    # And the reverse, but for the section of what other autoscalers report.
    code = "\n".join(path.read_text() for path in OPERATOR.rglob("*.py"))
    gone = [name for name in sections if "…" not in name and name.removeprefix("Trial") not in code]
    assert gone == []


def test_the_kinds_of_conditions_are_sections() -> None:
    page = (DOCS / "how-to/troubleshooting.md").read_text()
    assert set(get_args(ConditionType)) <= set(re.findall(r"^## (\w+)$", page, re.MULTILINE))


LINK = re.compile(r"\]\((?!https?:|#)([^)\s#]+)(?:#([^)\s]+))?\)")


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", heading).strip().lower()) for heading in headings}


@pytest.mark.parametrize("name", OUTSIDE)
def test_links_outside_of_the_site_lead_somewhere(name: str) -> None:
    page = ROOT / name
    found = LINK.findall(page.read_text(encoding="utf-8"))
    assert found
    broken = [
        f"{target}#{anchor}"
        for target, anchor in found
        if not (path := (page.parent / target).resolve()).exists()
        or (anchor and path.suffix == ".md" and anchor not in anchors(path))
    ]
    assert broken == []


def test_no_hint_installs_from_a_registry_that_does_not_have_us() -> None:
    texts = {path: path.read_text(encoding="utf-8") for path in (*PAGES, *ROOT.glob("*/src/**/*.py"))}
    assert len(texts) > 300
    found = r"(?:pip|pipx|uv|uvx)\s[\w -]*\bdragoman\b|\binstall dragoman-\w+"
    assert [name_of(path) for path, text in texts.items() if re.search(found, text)] == []


def test_paths_in_contributing_exist() -> None:
    named = re.findall(r"`([\w.-]+/[\w.-][\w./-]*)`", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    made = (".venv/", "build/")
    missing = [path for path in named if not path.startswith(made) and not (ROOT / path).exists()]
    assert len(named) > 30
    assert missing == []


def test_paths_of_documentation_in_code_exist() -> None:
    folders = (
        "bench",
        "charts",
        "cli",
        "contract",
        "crds",
        "examples",
        "kube",
        "operator",
        "protocols",
        "router",
        "service",
        "simulate",
        "tune",
    )
    files = [ROOT / "Makefile", *(path for folder in folders for path in (ROOT / folder).rglob("*"))]
    named = {
        found
        for path in files
        if path.suffix in {".py", ".yaml", ".json", ".txt", ""} and path.is_file()
        for found in re.findall(
            r"(?<![\w./-])docs/[\w/-]+\.md", path.read_text(encoding="utf-8", errors="ignore")
        )
    }
    assert named
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []
