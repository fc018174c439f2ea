from pathlib import Path

import pytest

from dragoman_router.fleet.static import read


@pytest.mark.parametrize("name", ["servedModelName", "servedName"])
def test_the_model_name_has_two_names(tmp_path: Path, name: str) -> None:
    path = tmp_path / "static.yaml"
    path.write_text(f"deployments: [{{name: a, {name}: gemma, maxInFlight: 3, replicas: ['127.0.0.1:1']}}]")
    ((deployment, replicas),) = read(path)
    assert (deployment.key, deployment.served_name, deployment.max_in_flight) == ("default/a", "gemma", 3)
    assert [replica.address for replica in replicas] == ["127.0.0.1:1"]
