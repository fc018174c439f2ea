import importlib
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from dragoman_service.engine.vllm import imports

SLOW = "import time\nends = time.monotonic() + 0.05\nwhile time.monotonic() < ends:\n    pass\n"
PACKAGES = ("scipy", "outer_part", "inner_part")


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """`scipy`, a package that imports another one, and that other one, which takes 50 ms."""
    for name, code in zip(PACKAGES, ("", "import inner_part\n", SLOW), strict=True):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(code)
    (tmp_path / "outer_part/scipy.py").write_text("value = 1\n")
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    monkeypatch.setattr(
        sys, "modules", {key: module for key, module in sys.modules.items() if key not in PACKAGES}
    )
    monkeypatch.syspath_prepend(tmp_path)
    yield
    for name in PACKAGES:
        sys.modules.pop(name, None)


@pytest.mark.usefixtures("packages")
def test_a_package_that_the_pod_does_not_use_counts_as_not_installed() -> None:
    imports.install(hides_unused=True)
    assert find_spec("scipy") is None
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("scipy")
    assert importlib.import_module("outer_part.scipy").value == 1


@pytest.mark.usefixtures("packages")
def test_with_code_of_the_model_all_packages_can_be_imported() -> None:
    imports.install(hides_unused=True)
    imports.install(hides_unused=False)
    assert importlib.import_module("scipy").__name__ == "scipy"


@pytest.mark.usefixtures("packages")
def test_the_time_of_an_import_counts_for_the_package_that_took_it() -> None:
    finder = imports.install(hides_unused=True)
    importlib.import_module("outer_part")
    assert finder.seconds["inner_part"] >= 0.05
    assert finder.seconds["inner_part"] > finder.seconds["outer_part"]
    assert finder.slowest().startswith("inner_part ")


@pytest.mark.usefixtures("packages")
def test_a_package_that_cannot_be_imported_is_timed_as_well(tmp_path: Path) -> None:
    (tmp_path / "inner_part/__init__.py").write_text("raise ImportError('no')\n")
    finder = imports.install(hides_unused=True)
    with pytest.raises(ImportError, match="no"):
        importlib.import_module("outer_part")
    assert set(finder.seconds) == {"inner_part", "outer_part"}
