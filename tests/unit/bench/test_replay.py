"""The replay of `dragoman bench replay`: arrivals, the open loop, and the comparison."""

import asyncio
import itertools
from dataclasses import replace

import aiohttp
import numpy as np
import pytest
from aiohttp import web

from dragoman_bench.errors import BenchError
from dragoman_bench.replay.arrivals import arrival_times
from dragoman_bench.replay.comparison import compared, figures, table
from dragoman_bench.replay.open_loop import Replayed, open_loop
from dragoman_simulate.exact import Arrival, served_by
from dragoman_simulate.speed import SpeedTable
from dragoman_simulate.trace import Trace
from dragoman_tune.requests import SampleRequest

POD = SpeedTable("a pod", (1.0, 8.0), (5.0, 9.0), 1000, ms_per_request=(20.0, 40.0), overhead_ms=3.0)
REQUEST = SampleRequest("one two", "en", "de", 2)


def trace_of(counts):
    lengths = np.full(len(counts), 50.0)
    return Trace("bursts", np.asarray(counts, float), lengths, lengths)


def test_the_peak_of_the_arrivals_is_what_is_wanted():
    trace = trace_of([20] * 100 + [100] * 30 + [20] * 130)
    _, times = arrival_times(trace, 30, 230, 60.0, seed=1)
    counts = np.bincount(np.array(times, int), minlength=230)
    assert counts[100:130].mean() == pytest.approx(60, rel=0.1)
    assert counts[:100].mean() == pytest.approx(12, rel=0.1)
    assert times == sorted(times)


def test_the_burstiest_part_of_a_long_trace_is_used_and_the_second_to_rehearse():
    trace = trace_of([50] * 400 + [10, 90] * 50 + [50] * 400 + [30, 70] * 50 + [50] * 400)
    before, times = arrival_times(trace, 100, 100, 50.0, seed=1)
    counts = np.bincount(np.array(times, int), minlength=100)
    others = np.bincount(np.array(before, int), minlength=100)
    assert counts[1::2].mean() - counts[::2].mean() == pytest.approx(80, rel=0.15)
    assert others[1::2].mean() - others[::2].mean() == pytest.approx(40, rel=0.3)


def test_arrivals_are_those_of_the_seed():
    trace = trace_of([5, 50, 5] * 20)
    assert arrival_times(trace, 10, 30, 20.0, seed=3) == arrival_times(trace, 10, 30, 20.0, seed=3)
    assert arrival_times(trace, 10, 30, 20.0, seed=3) != arrival_times(trace, 10, 30, 20.0, seed=4)


def test_a_trace_that_is_too_short_is_refused():
    with pytest.raises(BenchError, match="the trace has 100 s: it has to have at least 160"):
        arrival_times(trace_of([10] * 100), 50, 60, 10.0, seed=1)


def replayed_by(speed, seats=8):
    arrivals = [Arrival(0.02 * number, 20.0 + number % 50) for number in range(1500)]
    return [
        Replayed(one.arrival.at_s, one.arrival.at_s, one.latency_s, int(one.arrival.tokens))
        for one in served_by(arrivals, 1, seats, speed)
    ]


def test_a_pod_as_fast_as_its_table_is_simulated_exactly():
    comparison = compared(replayed_by(POD), 8, POD)
    assert comparison["ratio"] == pytest.approx(dict.fromkeys(comparison["ratio"], 1.0))
    assert comparison["queued_share"] > 0.5
    assert all(each["measured_mean_s"] == each["simulated_mean_s"] for each in comparison["slices"])
    assert "| p95 s " in table(comparison)


def test_a_slower_pod_than_its_table_shows_in_the_ratios():
    slower = replace(POD, ms_per_token=(10.0, 18.0))
    ratio = compared(replayed_by(slower), 8, POD)["ratio"]
    assert ratio["requests_per_s"] > 1.2
    assert ratio["p95_s"] < 0.8


def test_failed_requests_are_counted_and_in_no_figure():
    failed = Replayed(1.0, 1.0, 99.0, error="status 503")
    comparison = compared([*replayed_by(POD), failed], 8, POD)
    assert (comparison["failed"], comparison["answered"]) == (1, 1500)
    assert comparison["ratio"]["p99_s"] == pytest.approx(1.0)


def test_figures_of_known_requests():
    found = figures([(1.0, 0.5), (2.0, 1.0), (30.0, 1.5), (40.0, 2.0)])
    assert (found.requests_per_s, found.busiest_per_s) == (0.1, 0.2)
    assert (found.p50_s, found.p95_s, found.mean_s) == (1.0, 2.0, 1.25)


async def replay(handler, times):
    app = web.Application()
    app.router.add_post("/translate", handler)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    try:
        async with aiohttp.ClientSession() as session:
            return await open_loop(
                session, f"http://127.0.0.1:{port}", itertools.repeat(REQUEST), times, lambda _line: None
            )
    finally:
        await runner.cleanup()


def test_requests_are_sent_at_their_times_independent_of_the_responses():
    everyone = asyncio.Event()
    arrived = itertools.count(1)

    async def answer(_request):
        if next(arrived) == 3:
            everyone.set()
        await everyone.wait()  # A closed loop would never get here three times.
        return web.json_response(
            {"translation": "x", "details": [{"output_tokens": 4}, {"output_tokens": 3}]}
        )

    found = asyncio.run(replay(answer, [0.0, 0.01, 0.05]))
    assert [one.output_tokens for one in found] == [7, 7, 7]
    assert max(one.latency_s for one in found) >= 0.04
    assert all(one.sent_s >= one.at_s and not one.error for one in found)


def test_refused_requests_have_their_status():
    async def refuse(_request):
        return web.json_response({}, status=503)

    (found,) = asyncio.run(replay(refuse, [0.0]))
    assert found.error == "status 503"
