"""The HTTP server of pods and routers."""

import asyncio

from dragoman_http.server import use_one_worker_thread


async def test_work_in_threads_runs_one_after_another() -> None:
    use_one_worker_thread()
    running = most = 0

    def work() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        sum(range(200_000))
        running -= 1

    await asyncio.gather(*(asyncio.to_thread(work) for _ in range(20)))
    assert most == 1
