"""The deployment's glossary as a pod has it: edited under its feet, and broken."""

import os
from pathlib import Path
from typing import Any


def put(path: Path, text: str) -> Path:
    """Replace a file in one step, as a kubelet does."""
    new = path.with_suffix(".new")
    new.write_text(text)
    os.replace(new, path)
    return path


def warnings(pod: Any) -> list[str]:
    requested = {"text": "The invoice.", "source_lang": "en", "target_lang": "de", "details": True}
    answer = pod.client.post("/translate", json=requested)
    assert answer.status_code == 200, answer.text
    return [warning["code"] for warning in answer.json()["details"][0]["warnings"]]


def test_an_edit_holds_without_a_restart_and_a_broken_one_does_not(
    start_scripted: Any, tmp_path: Path
) -> None:
    path = put(tmp_path / "terms.yaml", "- {source: en, target: de, terms: {invoice: Rechnung}}")
    pod = start_scripted("--glossary", str(path), answers={"The invoice.": "Die Rechnung."})
    pod.wait_for("/readyz")
    assert (pod.metric("dragoman_glossary_terms"), pod.metric("dragoman_glossary_stale")) == (1, 0)
    assert warnings(pod) == []
    put(path, "- {source: en, target: de, terms: {invoice: Faktura, bill: Faktura}}")
    # No request is needed for it to be heeded.
    pod.wait_for_metric("dragoman_glossary_terms", 2)
    assert warnings(pod) == ["glossary"]
    put(path, "- {source: en, target: de}")
    pod.wait_for_metric("dragoman_glossary_stale", 1)
    assert pod.metric("dragoman_glossary_terms") == 2
    assert warnings(pod) == ["glossary"]
    pod.wait_for_log("reload failed, the previous content stays in use: 0.terms: Field required")
    put(path, "- {source: en, target: de, terms: {invoice: Rechnung}}")
    pod.wait_for_metric("dragoman_glossary_stale", 0)
    assert warnings(pod) == []


def test_a_pod_does_not_start_on_a_file_that_is_no_glossary(start_scripted: Any, tmp_path: Path) -> None:
    path = put(tmp_path / "terms.tsv", "en\tde\tinvoice\n")
    pod = start_scripted("--glossary", str(path))
    assert pod.process.wait(30) == 2
    message = f"--glossary {path}: line 1: four cells are needed: source, target, term, translation\n"
    assert pod.last_words.read_text() == message
