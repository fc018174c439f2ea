"""The HTTP server of pods and routers."""

import asyncio

from dragoman_contract.serving import RequestLimits, bound_socket, make_server


async def test_work_in_threads_runs_one_after_another() -> None:
    server = make_server(lambda *_: None, RequestLimits(1024, 10, 1024, 1.0), lambda: None, closing_s=1)
    listening = bound_socket("127.0.0.1", 0)
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    running = most = 0

    def work() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        sum(range(200_000))
        running -= 1

    async with asyncio.timeout(30):
        while not server.started:  # noqa: ASYNC110 - uvicorn has no event for it
            await asyncio.sleep(0.01)
        await asyncio.gather(*(asyncio.to_thread(work) for _ in range(20)))
        server.should_exit = True
        await serving
    listening.close()
    assert most == 1
