"""Reading the pods' metrics from Prometheus: queries, responses, tokens, and errors without credentials."""

import asyncio
import base64
import json
from typing import Any, cast

import aiohttp
import pytest
from aiohttp import web
from tests.support.loopback import NET, Handler, pod, served

from dragoman_kube.errors import RefusedError, UnavailableError
from dragoman_kube.kinds import Kind
from dragoman_kube.objects import Key
from dragoman_operator.api.scaling import Prometheus as PrometheusSource
from dragoman_operator.errors import MetricsError
from dragoman_operator.scraping.prometheus import PrometheusServers, pod_readings, query
from dragoman_operator.scraping.values import EngineMetrics


def series(name: str, values: list[tuple[float, float]], pod: str = "a", **labels: str) -> dict[str, Any]:
    metric = {"__name__": name, "namespace": "default", "pod": pod, **labels}
    return {"metric": metric, "values": [[at, str(value)] for at, value in values]}


def matrix(*result: dict[str, Any]) -> dict[str, Any]:
    return {"resultType": "matrix", "result": list(result)}


RUNNING = series("vllm:num_requests_running", [(100, 1), (115, 4)])
WAITING = series("vllm:num_requests_waiting", [(100, 0), (115, 7)])


def test_latest_scrape_with_the_rate_since_the_one_before() -> None:
    finished = [
        series("vllm:request_success_total", [(100, 10), (115, 40)], finished_reason="stop"),
        series("vllm:request_success_total", [(100, 5), (115, 5)], finished_reason="length"),
    ]
    usage = series("vllm:kv_cache_usage_perc", [(100, 0.1), (115, 0.3)])
    found = pod_readings(matrix(RUNNING, WAITING, usage, *finished))["default", "a"]
    assert found == (
        EngineMetrics(115, 4, 7, 0.3, finished=45),
        EngineMetrics(100, 1, 0, 0.1, finished=15),
    )


def test_scrape_that_misses_a_name_is_passed_over() -> None:
    running = series("vllm:num_requests_running", [(100, 1), (115, 4), (130, 9)])
    assert pod_readings(matrix(running, WAITING))["default", "a"].now.at == 115


def test_pod_without_queue_metrics_has_no_sample() -> None:
    assert pod_readings(matrix(RUNNING)) == {}


def test_first_scrape_has_no_rate() -> None:
    one = [
        series("vllm:num_requests_running", [(100, 1)], pod="b"),
        series("vllm:num_requests_waiting", [(100, 1)], pod="b"),
    ]
    found = pod_readings(matrix(*one))["default", "b"]
    assert found == (EngineMetrics(100, 1, 1), None)


@pytest.mark.parametrize(
    "data",
    [None, [], {}, {"resultType": "vector", "result": []}, matrix({"metric": {}, "values": []}), matrix({})],
    ids=["null", "list", "empty", "vector", "no labels", "no series"],
)
def test_answers_in_other_forms_are_errors(data: object) -> None:
    with pytest.raises(MetricsError, match=r"answers|malformed"):
        pod_readings(data)


def test_query_quotes_what_it_is_given() -> None:
    assert query(["a.b", "c"]).endswith('namespace=~"a\\\\.b|c",pod!=""}[2m]')


PROMETHEUS = f"http://user:secret@{NET}.2.1:9090/prom/"
RESPONSE = {
    "status": "success",
    "data": matrix(
        series("vllm:num_requests_running", [(50, 2)]), series("vllm:num_requests_waiting", [(50, 9)])
    ),
}


OWN = PrometheusSource()
"""The operator's own Prometheus."""


def servers(
    http: aiohttp.ClientSession, url: str = PROMETHEUS, token: str | None = None, kube: Any = None
) -> PrometheusServers:
    return PrometheusServers(kube, http, url, lambda: token, 2.0)


def prometheus(handler: Handler) -> Any:
    return served(f"{NET}.2.1", 9090, "/prom/api/v1/query", handler)


async def test_prometheus_is_queried_once_for_all(http: aiohttp.ClientSession) -> None:
    queries = []

    async def answer(request: web.Request) -> web.Response:
        queries.append((str((await request.post())["query"]), request.headers.get("Authorization")))
        return web.json_response(RESPONSE)

    source = servers(http, PROMETHEUS.replace("user:secret@", ""), "token")
    async with prometheus(answer):
        source.begin([("default", OWN), ("other", OWN)])
        pods = [pod("a", f"{NET}.0.1"), pod("b", f"{NET}.0.2")]
        first, _ = await asyncio.gather(source.read("default", OWN, pods), source.read("other", OWN, pods))
    ((query, authorization),) = queries
    assert 'namespace=~"default|other"' in query
    assert authorization == "Bearer token"
    sample = first.readings["uid-a"].now
    assert (sample.at, sample.running, sample.waiting) == (50.0, 2, 9)
    assert 'namespace="default", pod="b"' in first.problems["b"]
    assert first.failure is None


async def test_only_the_operators_own_prometheus_gets_its_headers(http: aiohttp.ClientSession) -> None:
    tenants = []

    async def answer(request: web.Request) -> web.Response:
        tenants.append(request.headers.get("X-Scope-OrgID"))
        return web.json_response(RESPONSE)

    url = f"http://{NET}.2.1:9090/prom"
    source = PrometheusServers(cast(Any, None), http, url, lambda: None, 2.0, {"X-Scope-OrgID": "mt"})
    async with prometheus(answer):
        for chosen in (OWN, PrometheusSource(url=url)):
            source.begin([("default", chosen)])
            assert (await source.read("default", chosen, [])).failure is None
    assert tenants == ["mt", None]


async def test_a_prometheus_learns_of_no_namespaces_but_of_those_that_name_it(
    http: aiohttp.ClientSession,
) -> None:
    queries: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        queries.append(str((await request.post())["query"]))
        return web.json_response(RESPONSE)

    source = servers(http, f"http://{NET}.2.1:9090/prom")
    of_tenant = PrometheusSource(url=f"http://{NET}.2.1:9090/prom/")
    async with prometheus(answer):
        source.begin([("default", OWN), ("other", OWN), ("tenant", of_tenant)])
        for namespace, chosen in (("default", OWN), ("tenant", of_tenant)):
            assert (await source.read(namespace, chosen, [])).failure is None
    assert ['namespace=~"default|other"' in query for query in queries] == [True, False]
    assert ['namespace=~"tenant"' in query for query in queries] == [False, True]


@pytest.mark.parametrize(
    ("status", "body", "problem"),
    [
        (200, "<html>a secret page</html>", "answers 200 and is not a Prometheus"),
        (401, "Unauthorized", "answers 401 and is not a Prometheus"),
        (400, json.dumps({"status": "error", "error": "bad query"}), "answers 400: bad query"),
        (200, json.dumps({"status": "success", "data": {"resultType": "vector"}}), "instead of a matrix"),
        (302, "", "answers 302"),
    ],
    ids=["page", "refused", "query", "vector", "redirect"],
)
async def test_wrong_prometheus_is_named_and_its_page_not_repeated(
    http: aiohttp.ClientSession, status: int, body: str, problem: str
) -> None:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(status=status, text=body)

    async with prometheus(answer):
        result = await servers(http).read("default", OWN, [pod("a", f"{NET}.0.1")])
    assert result.failure is not None
    assert result.failure.startswith(f"http://{NET}.2.1:9090/prom: ")
    assert problem in result.failure
    assert "secret" not in result.failure


async def test_unreachable_prometheus_keeps_the_last_samples(http: aiohttp.ClientSession) -> None:
    async def answer(_: web.Request) -> web.Response:
        return web.json_response(RESPONSE)

    source, pods = servers(http), [pod("a", f"{NET}.0.1")]
    async with prometheus(answer):
        source.begin([("default", OWN)])
        await source.read("default", OWN, pods)
    source.begin([("default", OWN)])
    result = await source.read("default", OWN, pods)
    assert result.failure == f"http://{NET}.2.1:9090/prom: cannot be reached: Connection refused"
    assert result.readings["uid-a"].now.at == 50.0


NOWHERE = "http://user:secret@127.0.0.1:9"


def source(**fields: Any) -> PrometheusSource:
    return PrometheusSource.model_validate(fields)


class Secrets:
    """An API server with one Secret."""

    def __init__(self) -> None:
        self.data: dict[str, str] | None = {"token": base64.b64encode(b"abc\n").decode()}
        self.error: Exception | None = None
        self.read = 0

    async def get(self, kind: Kind, key: Key) -> dict[str, Any] | None:
        assert (kind.name, *key) == ("Secret", "default", "prom")
        self.read += 1
        if self.error:
            raise self.error
        return None if self.data is None else {"data": self.data}


async def test_names_have_no_credentials(http: aiohttp.ClientSession) -> None:
    found = servers(http, "https://x@own:9090/a?b")
    assert found.named(OWN) == "https://own:9090/a"
    assert found.named(source(url=NOWHERE)) == "http://127.0.0.1:9"
    assert found.named(source(url="http://[")) == "a Prometheus with an invalid URL"
    for unescaped in ("s3cr/et", "s3cr?et", "s3cr#et", "s3@cr/et"):
        assert "cr" not in found.named(source(url=f"http://admin:{unescaped}@prom:9090"))


@pytest.mark.parametrize(
    "url",
    [
        "http://admin:s3cr/et@prom",
        "http://admin:s3[cret@prom",
        "http://admin:s3cret@prom:99999",
        "ftp://a:s3cret@b",
    ],
)
async def test_an_invalid_url_is_not_repeated_in_the_error(http: aiohttp.ClientSession, url: str) -> None:
    result = await servers(http, url).read("default", OWN, [])
    assert result.failure is not None
    assert result.failure.endswith("the URL is invalid")
    assert "cr" not in result.failure


async def test_a_response_that_is_no_http_has_no_credentials(http: aiohttp.ClientSession) -> None:
    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"SSH-2.0-x\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        own = f"http://admin:s3cret@127.0.0.1:{port}"
        result = await servers(http, own).read("default", OWN, [])
    assert result.failure is not None
    assert "malformed" in result.failure
    assert "s3cret" not in result.failure


async def test_nothing_named_and_nothing_of_our_own(http: aiohttp.ClientSession) -> None:
    result = await servers(http, "").read("default", OWN, [])
    assert result.failure is not None
    assert "--prometheus-url" in result.failure


@pytest.mark.parametrize("url", ["http://[", "http://:1", "http://no such host/"], ids=str)
async def test_addresses_that_are_none_are_failures(http: aiohttp.ClientSession, url: str) -> None:
    found = servers(http, url)
    assert (await found.read("default", OWN, [])).failure is not None


@pytest.mark.parametrize(
    ("data", "error", "problem"),
    [
        (None, None, "the Secret prom with the token does not exist"),
        ({"other": "eA=="}, None, "has no key token"),
        ({"token": "%%"}, None, "has no text in token"),
        (None, RefusedError("read Secret", "forbidden (403)"), "prometheus.readSecrets=true"),
        (None, UnavailableError("read Secret", "timeout"), "cannot be read: timeout"),
    ],
    ids=["missing", "key", "binary", "forbidden", "down"],
)
async def test_token_that_cannot_be_had_is_a_failure(
    http: aiohttp.ClientSession,
    data: dict[str, str] | None,
    error: Exception | None,
    problem: str,
) -> None:
    secrets = Secrets()
    secrets.data, secrets.error = data, error
    result = await servers(http, "", kube=secrets).read(
        "default", source(url=NOWHERE, tokenSecretRef={"name": "prom"}), []
    )
    assert result.failure is not None
    assert result.failure.startswith("http://127.0.0.1:9: ")
    assert problem in result.failure


async def test_token_is_read_once_a_minute(http: aiohttp.ClientSession) -> None:
    secrets = Secrets()
    chosen = source(url="http://127.0.0.1:9", tokenSecretRef={"name": "prom"})
    found = servers(http, "", kube=secrets)
    for _ in range(3):
        found.begin([("default", chosen)])
        result = await found.read("default", chosen, [])
        assert result.failure == "http://127.0.0.1:9: cannot be reached: Connection refused"
    assert secrets.read == 1
