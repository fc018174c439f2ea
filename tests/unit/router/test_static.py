import gc
from pathlib import Path

import pytest

from dragoman_devcluster.ports import free_port
from dragoman_router.__main__ import main
from dragoman_router.fleet.static import read


@pytest.mark.parametrize("name", ["servedModelName", "servedName"])
def test_the_model_name_has_two_names(tmp_path: Path, name: str) -> None:
    path = tmp_path / "static.yaml"
    path.write_text(f"deployments: [{{name: a, {name}: gemma, maxInFlight: 3, replicas: ['127.0.0.1:1']}}]")
    ((deployment, replicas),) = read(path)
    assert (deployment.key, deployment.served_name, deployment.max_in_flight) == ("default/a", "gemma", 3)
    assert [replica.address for replica in replicas] == ["127.0.0.1:1"]


def test_a_file_that_is_not_there_ends_the_router_with_one_sentence(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    ports = ["--port", str(free_port()), "--admin-port", str(free_port())]
    assert main(["--static", str(tmp_path / "none.yaml"), *ports]) == 2
    gc.collect()
    said = [line for line in capfd.readouterr().err.splitlines() if line.startswith("dragoman router:")]
    assert said == [f"dragoman router: read {tmp_path / 'none.yaml'}: No such file or directory"]
