"""Each module can be imported by itself, whichever is imported first."""

from graphlib import CycleError, TopologicalSorter

import grimp
import pytest

PACKAGES = (
    "dragoman",
    "dragoman_bench",
    "dragoman_contract",
    "dragoman_devcluster",
    "dragoman_operator",
    "dragoman_router",
    "dragoman_service",
    "dragoman_simulate",
    "dragoman_tune",
)


def ancestors(module: str) -> set[str]:
    parts = module.split(".")
    return {".".join(parts[:end]) for end in range(1, len(parts))}


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_has_no_import_cycle(package: str) -> None:
    graph = grimp.build_graph(package, cache_dir=None, exclude_type_checking_imports=True)
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
