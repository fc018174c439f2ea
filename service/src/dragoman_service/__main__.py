"""`dragoman serve`: reads the settings, picks the engine, runs the pod, and reports why it cannot."""

from __future__ import annotations

import asyncio
import logging
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import uvloop
from prometheus_client import REGISTRY

from dragoman_http.event_loop import use_one_worker_thread
from dragoman_protocols.errors import EngineDeadError
from dragoman_service.engine.devices import GPUMetrics, gpu_uuids
from dragoman_service.engine.protocol import Engine, SleepableEngine
from dragoman_service.engine.scripted.engine import ScriptedEngine, script_from
from dragoman_service.engine.sleeping import SleepingEngine, SleepMetrics
from dragoman_service.engine.threads import in_daemon_thread
from dragoman_service.errors import SettingsError, StartError
from dragoman_service.http.app import create_app
from dragoman_service.http.lifecycle import Lifecycle
from dragoman_service.http.server import Pod, listen
from dragoman_service.http.start_cache import start_cache_of
from dragoman_service.http.tracing import tracing
from dragoman_service.prompts.families import prompt_family
from dragoman_service.settings import Settings, read_settings, termination_log
from dragoman_service.start_cache.exchange import StartCache
from dragoman_system.command_line import configure_logging

if TYPE_CHECKING:
    from dragoman_service.engine.turns import Turns

log = logging.getLogger("dragoman_service")


def main(argv: list[str]) -> int:
    """Run one engine pod until SIGTERM; `argv` follows `dragoman serve`.

    Returns:
        0 after an orderly end, 1 where the pod could not start or its engine died, 2 for wrong settings.
    """
    try:
        settings = read_settings(argv)
        configure_logging(settings.log_level, sparse=("uvicorn.error", "dragoman_service.http.metrics"))
        uvloop.run(_serve(settings))
    except (StartError, EngineDeadError) as error:
        _report_reason(error, termination_log(argv))
        return 2 if isinstance(error, SettingsError) else 1
    return 0


async def _serve(settings: Settings) -> None:
    use_one_worker_thread()
    start_cache = start_cache_of(settings)
    lifecycle = Lifecycle()
    sleepable = _engine(settings, start_cache)
    sleeping = None
    turns = _turns(settings)
    if settings.sleep_after_s is not None:
        sleeping = SleepingEngine(
            sleepable,
            settings.sleep_after_s,
            settings.stall_timeout_s,
            lambda: lifecycle.idle_s,
            lifecycle.fail,
            SleepMetrics(REGISTRY, settings.name),
            turns,
        )
    engine: Engine = sleeping or sleepable
    traces = tracing(settings.traces_endpoint, settings.name)
    app = create_app(settings, engine, lifecycle, REGISTRY, traces, start_cache)
    REGISTRY.register(GPUMetrics(lambda: lifecycle.started))
    watches = [*app.watches, *([sleeping.watch] if sleeping else []), *([turns.watch] if turns else [])]
    watching = [asyncio.create_task(watch()) for watch in watches]
    with listen(settings.host, settings.port, settings.write_timeout_s) as listening:
        log.info("serving %s on %s port %d", settings.name, settings.host, settings.port)
        pod = Pod(app, engine, lifecycle, settings.drain_timeout_s, settings.lame_duck_s)
        try:
            await pod.run(listening)
        finally:
            for task in watching:
                task.cancel()
            await asyncio.gather(*watching, return_exceptions=True)
            if traces is not None:
                await in_daemon_thread(traces.close)


def _turns(settings: Settings) -> Turns | None:
    if settings.turns_url is None:
        return None
    # Imported only if it is used: it brings a client of Redis along.
    from dragoman_service.engine.turns import Turns, device_of

    device = settings.turns_device or device_of(gpu_uuids())
    return Turns(settings.turns_url.get_secret_value(), device, settings.name, REGISTRY)


def _engine(settings: Settings, start_cache: StartCache | None) -> SleepableEngine:
    if settings.engine == "scripted":
        return ScriptedEngine(script_from(settings), settings.name, REGISTRY)
    # Imported only if it is used: it brings vLLM and torch along, which take seconds.
    from dragoman_service.engine.vllm.engine import AsyncLLMEngine

    family = prompt_family(settings.prompt_family, settings.prompt_template)
    settled = [] if start_cache is None else [start_cache.wait]
    return AsyncLLMEngine(settings, family.framing, *settled)


def _report_reason(error: Exception, log_path: Path | None) -> None:
    """One sentence to standard error and to the termination log; the traceback at debug level."""
    sys.stderr.write(f"dragoman serve: {error}\n")
    if log_path is not None:
        with suppress(OSError):
            log_path.write_text(f"{error}\n", encoding="utf-8")
    log.debug("why the pod ended", exc_info=error)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
