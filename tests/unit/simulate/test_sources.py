"""Where metrics are read."""

import asyncio

import pytest

from dragoman_kube.client import KubeClient
from dragoman_simulate import sources
from dragoman_simulate.errors import MetricsPageError


class Proxy(KubeClient):
    """An API server that answers any path."""

    def __init__(self):
        self.paths: list[str] = []

    async def text(self, path, attempted):
        self.paths.append(path)
        return f"page of {attempted}"


def test_a_pod_of_a_cluster_is_reached_through_the_proxy_of_its_api_server():
    cluster, pod = Proxy(), {"metadata": {"name": "demo-1", "namespace": "texts"}}
    page = asyncio.run(sources._page(cluster, pod, is_local=False))
    assert cluster.paths == ["/api/v1/namespaces/texts/pods/demo-1:8000/proxy/metrics"]
    assert page == "page of read the metrics of pod texts/demo-1"


def test_a_file_is_read(tmp_path):
    path = tmp_path / "page.txt"
    path.write_text("x 1\n")
    assert sources.page(str(path)) == "x 1\n"


@pytest.mark.parametrize("place", ["/nowhere/page.txt", "http://127.0.0.1:1"])
def test_what_cannot_be_read_is_an_error_that_names_it(place):
    with pytest.raises(MetricsPageError, match=rf"{place}.*cannot be read"):
        sources.page(place)
