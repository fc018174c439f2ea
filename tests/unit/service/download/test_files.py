"""Which files are downloaded, and when a directory is complete."""

import json
from pathlib import Path

import pytest

from dragoman_service.download.errors import IncompleteModelError
from dragoman_service.download.files import check_complete, needed
from dragoman_service.errors import ModelLoadError


def test_weights_configuration_and_tokenizer_are_needed() -> None:
    wanted = [
        "model-1.safetensors",
        "config.json",
        "tokenizer.model",
        "chat_template.jinja",
        "merges.txt",
        "1_Pooling/config.json",
    ]
    others = ["a.bin", "a.gguf", "README.md", "original/a.safetensors", "onnx/config.json", ".gitattributes"]
    listed = [*wanted, *others, "modeling.py"]
    assert sorted(needed(listed, "org/m", False)) == sorted(wanted)
    assert sorted(needed(listed, "org/m", True)) == sorted([*wanted, "modeling.py"])


def test_pickled_weights_alone_are_downloaded_if_the_model_is_trusted() -> None:
    files = ["config.json", "pytorch_model.bin"]
    with pytest.raises(ModelLoadError, match="may run code"):
        needed(files, "org/m", False)
    assert needed(files, "org/m", True) == files


def test_a_model_without_weights() -> None:
    with pytest.raises(IncompleteModelError, match="org/m has no weights"):
        needed(["config.json"], "org/m", False)


def test_a_shard_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(IncompleteModelError, match=r"holds no config\.json"):
        check_complete(tmp_path)
    (tmp_path / "config.json").write_text("{}")
    check_complete(tmp_path)
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"a": "m-1.safetensors", "b": "m-2.safetensors"}}))
    (tmp_path / "m-1.safetensors").touch()
    with pytest.raises(
        IncompleteModelError, match=r"lacks m-2\.safetensors, which model\.safetensors\.index"
    ):
        check_complete(tmp_path)
    index.write_text("[]")
    with pytest.raises(IncompleteModelError, match="cannot be read"):
        check_complete(tmp_path)
