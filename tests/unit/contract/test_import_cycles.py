"""Each module can be imported by itself, whichever is imported first."""

from graphlib import CycleError, TopologicalSorter

import grimp
import pytest

PACKAGES = (
    "dragoman",
    "dragoman_bench",
    "dragoman_contract",
    "dragoman_devcluster",
    "dragoman_http",
    "dragoman_kube",
    "dragoman_operator",
    "dragoman_protocols",
    "dragoman_router",
    "dragoman_service",
    "dragoman_simulate",
    "dragoman_system",
    "dragoman_tune",
)

WITHOUT_CYCLES_OF_TYPES = ("dragoman_contract", "dragoman_http", "dragoman_protocols", "dragoman_system")
"""Nor are there cycles of imports for type checking."""


def ancestors(module: str) -> set[str]:
    parts = module.split(".")
    return {".".join(parts[:end]) for end in range(1, len(parts))}


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_has_no_import_cycle(package: str) -> None:
    graph = grimp.build_graph(
        package, cache_dir=None, exclude_type_checking_imports=package not in WITHOUT_CYCLES_OF_TYPES
    )
    # Importing a module runs its packages' __init__ first.
    needed = {
        importer: {
            each
            for imported in graph.find_modules_directly_imported_by(importer)
            for each in {imported} | (ancestors(imported) - ancestors(importer) - {importer})
        }
        for importer in graph.modules
    }
    try:
        TopologicalSorter(needed).prepare()
    except CycleError as error:
        pytest.fail(" → ".join(reversed(error.args[1])))
