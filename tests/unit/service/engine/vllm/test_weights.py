from pathlib import Path

import pytest

from dragoman_service.download.files import check_formats
from dragoman_service.engine.vllm.weights import is_local, is_remote_store, local_directory
from dragoman_service.errors import ModelLoadError


@pytest.mark.parametrize("model", ["/mnt/model/x", "./x", "../x", "~/x"])
def test_a_path_is_local_although_it_does_not_exist(model: str) -> None:
    assert is_local(model)


def test_a_relative_directory_is_local_where_it_exists(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "examples" / "demo").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert is_local("examples/demo")
    assert not is_local("org/name")


def test_an_object_store_is_left_to_vllm() -> None:
    assert is_remote_store("s3://bucket/model")
    assert not is_remote_store("org/name")


def test_a_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "version").mkdir()
    (tmp_path / "version" / "config.json").write_text("{}")
    (tmp_path / "model").symlink_to("version")
    assert local_directory(str(tmp_path / "model")) == str(tmp_path / "version")


@pytest.mark.parametrize(
    "files",
    [
        ["config.json", "model.safetensors", "pytorch_model.bin", "training_args.bin"],
        ["config.json", "model.gguf"],
        [],
    ],
)
def test_what_vllm_does_not_unpickle_is_loaded(files: list[str]) -> None:
    check_formats(files)


@pytest.mark.parametrize("name", ["pytorch_model.bin", "consolidated.00.pth", "model.pt"])
def test_pickled_weights_alone_are_refused_with_the_field_that_allows_them(name: str) -> None:
    with pytest.raises(
        ModelLoadError, match=rf"\({name}\) may run code: .*spec.model.trustRemoteCode to true"
    ):
        check_formats(["config.json", name])
