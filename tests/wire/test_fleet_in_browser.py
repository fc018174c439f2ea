"""The fleet view in Chromium: at routers before scripted pods, for those who may see it."""

import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
import yaml
from tests.support.browser import NEEDED, WIDTHS, violations, watched_page
from tests.support.load import Load
from tests.support.servers import PodProcess, RouterProcess

playwright = pytest.importorskip("playwright.sync_api", reason="requirements/test.txt has it")
expect = playwright.expect
pytestmark = [pytest.mark.slow, NEEDED]

LANGUAGES = [{"source": "en", "targets": ["fr", "de"]}]
ADMIN, TEAM, USER = "a-secret-of-admin", "a-secret-of-team", "a-secret-of-user"
NOW = 1_795_575_600
SHORT = "test-of-a-namespace/european"

StartRouter = Callable[..., RouterProcess]


@pytest.fixture(scope="module")
def pod(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PodProcess]:
    """Two requests at once, each half a second long."""
    script = json.dumps({"first_token_s": 0.5})
    flags = ["--model", "org/model", "--engine", "scripted", "--engine-args", script, "--max-num-seqs", "2"]
    started = PodProcess(tmp_path_factory.mktemp("fleet"), *flags, "--languages", json.dumps(LANGUAGES))
    try:
        started.wait_for("/readyz")
        yield started
    finally:
        started.close()


@pytest.fixture(scope="module")
def start_router(pod: PodProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StartRouter]:
    """Routers of two deployments; the other one has no replica."""
    directory = tmp_path_factory.mktemp("routers")
    one = {"name": "default/one", "languages": LANGUAGES, "replicas": [f"127.0.0.1:{pod.port}"]}
    other = {"name": "team-a/other", "languages": [{"source": "en", "targets": ["ne"]}]}
    (directory / "static.yaml").write_text(yaml.safe_dump({"deployments": [one | {"maxInFlight": 4}, other]}))
    routers: list[RouterProcess] = []

    def start(*arguments: str) -> RouterProcess:
        routers.append(RouterProcess(directory, f"--static={directory / 'static.yaml'}", *arguments))
        routers[-1].wait_until_ready()
        return routers[-1]

    yield start
    for router in routers:
        router.close()


@pytest.fixture(scope="module")
def url(start_router: StartRouter) -> str:
    """Of a router without keys."""
    return start_router().url


@pytest.fixture(scope="module")
def keyed(start_router: StartRouter, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Of a router with keys: one for the fleet view, one for the view of a namespace, one for translations alone."""
    keys = tmp_path_factory.mktemp("keys")
    for name, entry in (
        ("admin", {"key": ADMIN, "fleet": True}),
        ("team", {"key": TEAM, "fleet": True, "deployments": ["team-a/*"]}),
        ("user", {"key": USER}),
    ):
        (keys / name).write_text(json.dumps(entry))
    return start_router(f"--keys-dir={keys}").url


@contextmanager
def load(url: str, in_flight: int) -> Iterator[None]:
    """Requests meanwhile."""
    stop = threading.Event()
    sender = threading.Thread(target=Load(url).run, args=(in_flight, stop.is_set))
    sender.start()
    try:
        yield
    finally:
        stop.set()
        sender.join()


def card(page: Any, name: str) -> Any:
    return page.get_by_role("region", name=name, exact=True)


def value(page: Any, deployment: str, title: str) -> Any:
    """Of a tile."""
    return card(page, deployment).locator(".tile", has_text=title).locator(".value")


def test_load_is_seen_as_it_comes_and_goes(page: Any, url: str) -> None:
    page.goto(url)
    page.get_by_role("link", name="Fleet").click()
    expect(page.get_by_role("heading", name="default/one")).to_be_visible()
    expect(value(page, "default/one", "Replicas ready")).to_have_text("1")
    expect(value(page, "team-a/other", "Replicas ready")).to_have_text("0")
    expect(value(page, "default/one", "Duration, p95")).to_have_text("–")
    with load(url, 9):
        expect(value(page, "default/one", "Queue")).to_have_text("5")
        expect(value(page, "default/one", "Running")).to_have_text("4")
        expect(value(page, "default/one", "Duration, p95")).to_have_text(re.compile(r"^[1-9][\d.]* s$"))
        expect(value(page, "default/one", "Characters a minute")).not_to_have_text("0")
        expect(value(page, "team-a/other", "Queue")).to_have_text("0")
    expect(value(page, "default/one", "Queue")).to_have_text("0")
    expect(card(page, "default/one").get_by_text("up to 5")).to_be_visible()
    queue = card(page, "default/one").get_by_role("img", name=re.compile("^Queue over the last"))
    assert re.fullmatch(r"M[\d.]+ 40(L[\d.]+ [\d.]+){2,}", queue.locator(".first").get_attribute("d"))
    page.get_by_role("link", name="Translate").click()
    expect(page.get_by_label("Text to translate")).to_be_visible()


def test_a_key_that_is_marked_sees_the_fleet_and_another_does_not(page: Any, keyed: str) -> None:
    page.goto(f"{keyed}/page/fleet.html")
    field = page.get_by_label("API key or token")
    expect(page.get_by_text("This server asks for a key.")).to_be_visible()
    field.fill(USER)
    field.press("Enter")
    expect(page.get_by_text('needs a key or a token that has "fleet": true')).to_be_visible()
    expect(page.get_by_role("region")).to_have_count(0)
    field.fill(ADMIN)
    field.press("Enter")
    expect(card(page, "default/one")).to_be_visible()
    expect(field).to_be_hidden()
    page.get_by_role("link", name="Translate").click()
    expect(page.get_by_role("link", name="Fleet")).to_be_visible()
    page.get_by_role("button", name="Forget key").click()
    expect(page.get_by_text("This server asks for a key.")).to_be_visible()
    expect(page.get_by_role("link", name="Fleet")).to_be_hidden()


@pytest.mark.parametrize(
    ("key", "path", "status", "names"),
    [
        (ADMIN, "/fleet", 200, ["default/one", "team-a/other"]),
        (ADMIN, "/d/default/one/fleet", 200, ["default/one"]),
        (TEAM, "/fleet", 200, ["team-a/other"]),
        (TEAM, "/d/default/one/fleet", 404, None),
        (USER, "/fleet", 403, None),
        ("wrong-key", "/fleet", 403, None),
        (None, "/fleet", 401, None),
    ],
)
def test_a_key_lists_the_deployments_that_it_may_use(
    keyed: str, key: str | None, path: str, status: int, names: list[str] | None
) -> None:
    answer = httpx.get(keyed + path, headers={} if key is None else {"Authorization": f"Bearer {key}"})
    assert answer.status_code == status, answer.text
    if names is not None:
        assert [each["name"] for each in answer.json()["deployments"]] == names
    assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize("headers", [{"Host": "rebound.example.org"}, {"X-Forwarded-For": "127.0.0.1"}])
def test_without_keys_only_the_router_s_own_machine_sees_it(url: str, headers: dict[str, str]) -> None:
    assert httpx.get(f"{url}/fleet").status_code == 200
    assert httpx.get(f"{url}/frontend/settings").json()["fleet"] is True
    refused = httpx.get(f"{url}/fleet", headers=headers)
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "fleet_forbidden")
    assert httpx.get(f"{url}/frontend/settings", headers=headers).json()["fleet"] is False


def test_a_pod_has_no_fleet_view_and_says_so(page: Any, pod: PodProcess) -> None:
    page.goto(pod.url)
    expect(page.get_by_label("Translate to")).to_have_value("fr")
    expect(page.get_by_role("link", name="Fleet")).to_be_hidden()
    page.goto(f"{pod.url}/page/fleet.html")
    expect(page.get_by_text("an engine pod has no fleet view")).to_be_visible()


def sample(time: int, **fields: Any) -> dict[str, Any]:
    usual: dict[str, Any] = {"ready": 1, "wanted": 2, "queued": 30, "running": 8, "characters": 1200}
    return {"time": time, **usual, "p95_s": 0.4, "kv_cache_usage": 0.2, "gpus": 1.0} | fields


def deployment(name: str, samples: list[dict[str, Any]], **fields: Any) -> dict[str, Any]:
    history = {field: [each[field] for each in samples] for field in sample(0)}
    change = {
        "time": "2026-11-25T02:58:00Z",
        "from": 1,
        "to": 2,
        "rule": "Backlog",
        "reason": "118 requests wait",
    }
    usual = {
        "now": sample(NOW),
        "history": history,
        "scaling": {
            "rule": "Load",
            "reason": "the load",
            "measured": "2026-11-25T02:59:20Z",
            "changes": [change] * 5,
        },
        "state": "Progressing",
        "message": "one replica starts",
        "degraded": False,
        "characters": 120_000,
        "gpu_seconds_per_million_characters": 4321.0,
    }
    return {"name": name, **usual, **fields}


def fleet(*deployments: dict[str, Any], **fields: Any) -> dict[str, Any]:
    usual = {"router": "r1", "time": NOW, "step_s": 60, "kept_s": 14_400, "left_out": 0}
    return {**usual, "deployments": list(deployments), **fields}


HOURS = [sample(NOW - 60 * age, p95_s=None if age % 7 else 1.2, queued=age) for age in range(239, 0, -1)]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_and_nothing_is_wider_than_the_window(
    browser: Any, url: str, axe: str, scheme: str
) -> None:
    broken = {"degraded": True, "state": "EngineFailed", "message": "the model directory /m does not exist"}
    shown = fleet(deployment(SHORT, HOURS), deployment(f"{'n' * 60}/{'d' * 60}", [], **broken))
    for width in WIDTHS:
        with watched_page(browser, viewport={"width": width, "height": 800}, color_scheme=scheme) as page:
            page.route("**/fleet?*", lambda route: route.fulfill(json=shown))
            page.goto(f"{url}/page/fleet.html")
            expect(page.get_by_text("the model directory /m does not exist")).to_be_visible()
            assert page.evaluate("document.documentElement.scrollWidth") == width
            assert violations(page, axe) == []


def test_nothing_is_wider_than_a_telephone_with_a_key_that_sees_the_fleet(page: Any, keyed: str) -> None:
    page.set_viewport_size({"width": 360, "height": 800})
    page.goto(f"{keyed}/page/fleet.html")
    page.get_by_label("API key or token").fill(ADMIN)
    page.get_by_role("button", name="Use").click()
    expect(card(page, "default/one")).to_be_visible()
    expect(page.get_by_role("button", name="Forget key")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    page.get_by_role("link", name="Translate").click()
    expect(page.get_by_role("link", name="Fleet")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") == 360


def test_decisions_are_listed_with_their_reasons(page: Any, url: str) -> None:
    page.route("**/fleet?*", lambda route: route.fulfill(json=fleet(deployment(SHORT, HOURS))))
    page.goto(f"{url}/page/fleet.html")
    changes = card(page, SHORT).get_by_role("listitem")
    expect(changes).to_have_count(5)
    expect(card(page, SHORT).get_by_text("Load: the load (measured 40 s ago)")).to_be_visible()
    expect(changes.first).to_have_text("2 min ago1 → 2Backlog: 118 requests wait")
    expect(card(page, SHORT)).to_contain_text("4,321 over 4 h")
    expect(value(page, SHORT, "GPU s for 1M characters")).to_have_text("50K")
    expect(page.locator("#about")).to_contain_text("Charts: the last 4 h.")
    expect(page.locator("#about")).to_contain_text("through the router r1")


def test_only_new_samples_are_requested_and_another_router_s_from_its_beginning(page: Any, url: str) -> None:
    queries: list[str] = []

    def answer(route: Any) -> None:
        since = int(route.request.url.partition("since=")[2])
        queries.append(str(since))
        router = "r1" if len(queries) < 3 else "r2"
        new = [each for each in HOURS if each["time"] > since]
        route.fulfill(json=fleet(deployment(SHORT, new), router=router))

    page.route("**/fleet?*", answer)
    page.goto(f"{url}/page/fleet.html")
    expect(page.get_by_text("through the router r2")).to_be_visible(timeout=15_000)
    last = str(HOURS[-1]["time"])
    assert queries[:4] == ["0", last, last, "0"]
    line = card(page, SHORT).get_by_role("img", name=re.compile("^Queue")).locator(".first")
    assert len(re.findall("L", line.get_attribute("d"))) == len(HOURS)


def test_a_router_that_is_away_is_asked_again(page: Any, url: str) -> None:
    page.route("**/fleet?*", lambda route: route.abort("connectionrefused"), times=1)
    page.goto(f"{url}/page/fleet.html")
    expect(page.get_by_text("The server does not answer.")).to_be_visible()
    page.get_by_role("button", name="Try now").click()
    expect(card(page, "default/one")).to_be_visible()
    expect(page.get_by_text("The server does not answer.")).to_be_hidden()


def test_a_deployment_that_is_gone_leaves_the_view(page: Any, url: str) -> None:
    answers = [
        fleet(deployment(SHORT, HOURS), deployment("a/b", HOURS)),
        fleet(deployment("a/b", []), left_out=7),
    ]
    page.route(
        "**/fleet?*", lambda route: route.fulfill(json=answers.pop(0) if len(answers) > 1 else answers[0])
    )
    page.goto(f"{url}/page/fleet.html")
    expect(page.get_by_role("heading", level=2)).to_have_text(["a/b", SHORT])
    expect(page.get_by_role("heading", level=2)).to_have_text(["a/b"])
    expect(page.get_by_text("1 deployment, 7 more are not listed")).to_be_visible()


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("ceiling([0, 3, 118])", 200),
        ("ceiling([null, 0.07], 0.1)", 0.1),
        ("ceiling([], 1)", 1),
        ("ceiling([1000])", 1000),
        ("path([0, 5, 10], [0, 5, 10], frame)", "M0 40L50 20L100 0"),
        ("path([0, 5, 10], [0, 99, 10], { ...frame, steps: true })", "M0 40H50V0H100V0"),
        ("path([0, 5, 10], [0, 5, 10], { ...frame, closed: true })", "M0 40L50 20L100 0V40H0Z"),
        ("path([0, 2, 5, 10], [1, null, 5, 10], frame)", "M0 36h1M50 20L100 0"),
        ("path([], [], frame)", ""),
        ("[0, 89, 91, 5400, 172800].map(span)", ["0 s", "89 s", "2 min", "2 h", "2 d"]),
        (
            "samplesOf({ time: [1, 2], queued: [3, null] })",
            [{"time": 1, "queued": 3}, {"time": 2, "queued": None}],
        ),
        (
            "remember({ samples: [{ time: 1 }, { time: 60 }], live: [{ time: 119 }, { time: 121 }] }, "
            "{ history: { time: [120] }, now: { time: 125 } }, 30)",
            {"samples": [{"time": 60}, {"time": 120}], "live": [{"time": 121}, {"time": 125}]},
        ),
    ],
)
def test_charts_are_functions_of_samples(page: Any, pod: PodProcess, expression: str, expected: Any) -> None:
    page.goto(f"{pod.url}/page/icon.svg")
    frame = "{ from: 0, to: 10, max: 10, width: 100, height: 40 }"
    names = "ceiling, path, remember, samplesOf, span"
    found = page.evaluate(
        f"import('/page/chart.js').then(({{ {names} }}) => {{ const frame = {frame}; return {expression}; }})"
    )
    assert found == expected
