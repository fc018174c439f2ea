"""One container: starts its process, probes it, restarts it when it ends, stops it in time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dragoman_devcluster.errors import LocalClusterError, PodRefusedError, StartFailedError
from dragoman_devcluster.node.command import program
from dragoman_devcluster.node.context import NodeContext
from dragoman_devcluster.node.launch import Launch, prepare
from dragoman_devcluster.node.pod_status import (
    ContainerView,
    running,
    should_restart,
    terminated,
    termination_message,
    waiting,
)
from dragoman_devcluster.node.probes import Target, attempt, results
from dragoman_devcluster.process import Process
from dragoman_kube.errors import ClusterError
from dragoman_kube.objects import Manifest

logger = logging.getLogger(__name__)

CONFIG_RETRY_S = 2.0


class Container:
    """A container of a pod on this node."""

    def __init__(
        self,
        spec: Manifest,
        pod: Callable[[], Manifest],
        context: NodeContext,
        on_change: Callable[[], None],
        *,
        restart_policy: str,
    ) -> None:
        self.spec = spec
        self._pod = pod
        self._context = context
        self._on_change = on_change
        self._policy = restart_policy
        self._stopping = asyncio.Event()
        self._process: Process | None = None
        self._launch: Launch | None = None
        self.view = ContainerView(spec["name"], spec.get("image") or "", waiting("ContainerCreating"))
        """What there is to report."""
        self._delay_s: float | None = None
        self._ending: asyncio.Task[None] | None = None

    async def run(self, volumes: Mapping[str, Path]) -> None:
        """Run until it has ended for good or is shut down."""
        while not self._stopping.is_set():
            launch = await self._prepare(volumes)
            # The pod may have been ended meanwhile; from here to the process's start nothing is awaited.
            if launch is None or self._stopping.is_set():
                return
            code, ran_s = await self._run_once(launch)
            if self._stopping.is_set() or not should_restart(self._policy, code):
                return
            self._delay_s = self._context.backoff.next_delay_s(self._delay_s, ran_s)
            await self._back_off(self._delay_s)

    async def shut_down(self, grace_s: float) -> None:
        """End the container and do not start it again: preStop, SIGTERM, and SIGKILL after `grace_s`."""
        self._stopping.set()
        await self._stop(grace_s, "Stopping container " + self.spec["name"])

    async def kill(self) -> None:
        """End the container at once."""
        self._stopping.set()
        if self._process is not None:
            self._process.kill()
            await self._process.wait()

    async def _prepare(self, volumes: Mapping[str, Path]) -> Launch | None:
        while not self._stopping.is_set():
            try:
                return await prepare(self.spec, self._pod(), volumes, self._context)
            except (ClusterError, LocalClusterError, OSError) as error:
                self._show(state=waiting("CreateContainerConfigError", str(error)))
                self._event("Failed", f"Error: {error}", warning=True)
                if isinstance(error, PodRefusedError):
                    await self._stopping.wait()
                else:
                    await self._sleep(CONFIG_RETRY_S)
        return None

    async def _run_once(self, launch: Launch) -> tuple[int, float]:
        log = self._context.directories.log(self._pod(), self.spec["name"])
        if log.exists():
            log.replace(self._context.directories.log(self._pod(), self.spec["name"], previous=True))
        started = datetime.now(UTC)
        try:
            process = Process.start(
                launch.argv,
                env=launch.env,
                cwd=launch.cwd,
                output=log,
                guardian=self._context.guardian,
                preload=self._context.preload,
            )
        except StartFailedError as error:
            self._event("Failed", f"Error: {error}", warning=True)
            ended = terminated(128, started, started, str(error), self.view.container_id, "StartError")
            self._show(state=ended, started=False, ready=False)
            return 128, 0.0
        self._process, self._launch = process, launch
        container_id, is_started = f"process://{process.pid}", "startupProbe" not in self.spec
        self._show(
            state=running(started),
            container_id=container_id,
            started=is_started,
            ready=is_started and "readinessProbe" not in self.spec,
        )
        self._event("Started", f"Started container {self.spec['name']}")
        checking = asyncio.create_task(self._run_probes())
        code = await process.wait()
        checking.cancel()
        with suppress(asyncio.CancelledError):
            await checking
        self._process = None
        finished = datetime.now(UTC)
        use_log = self.spec.get("terminationMessagePolicy") == "FallbackToLogsOnError" and code != 0
        message = termination_message(launch.termination_file, log, use_log=use_log)
        ended = terminated(code, started, finished, message, container_id)
        self._show(state=ended, started=False, ready=False)
        return code, (finished - started).total_seconds()

    async def _back_off(self, delay_s: float) -> None:
        if delay_s:
            pod = self._pod()["metadata"]
            what = f"container={self.spec['name']} pod={pod['name']}_{pod['namespace']}({pod['uid']})"
            message = f"back-off {delay_s:g}s restarting failed {what}"
            self._show(last_state=self.view.state, state=waiting("CrashLoopBackOff", message))
            self._event("BackOff", f"Back-off restarting failed container {self.spec['name']}", warning=True)
            await self._sleep(delay_s)
        else:
            self._show(last_state=self.view.state)
        if not self._stopping.is_set():
            self._show(restart_count=self.view.restart_count + 1)

    async def _run_probes(self) -> None:
        """Run the startup probe, then the others, until cancelled or the process has to end."""
        if "startupProbe" in self.spec:
            if not await self._passes("Startup"):
                return
            self._show(started=True, ready="readinessProbe" not in self.spec)
        checks: list[Coroutine[Any, Any, object]] = []
        if "readinessProbe" in self.spec:
            checks.append(self._follow_readiness())
        if "livenessProbe" in self.spec:
            checks.append(self._passes("Liveness"))
        await asyncio.gather(*checks)

    async def _follow_readiness(self) -> None:
        async for failure, verdict in results(self.spec["readinessProbe"], self._target()):
            self._report_failure("Readiness", failure)
            if verdict is not None and verdict != self.view.ready:
                self._show(ready=verdict)

    async def _passes(self, kind: str) -> bool:
        """Whether the startup probe has succeeded; False once the process is being ended, to be started again."""
        async for failure, verdict in results(self.spec[f"{kind.lower()}Probe"], self._target()):
            if kind == "Startup" and verdict:
                return True
            self._report_failure(kind, failure)
            if verdict is False:
                message = f"Container {self.spec['name']} failed {kind.lower()} probe, will be restarted"
                # Not awaited: the end of the process cancels the caller, and the stop has to outlive it.
                self._ending = asyncio.create_task(self._stop(self._grace_s(), message))
                return False
        return False

    def _report_failure(self, kind: str, failure: str | None) -> None:
        if failure is not None and not self._stopping.is_set():
            self._event("Unhealthy", f"{kind} probe failed: {failure}", warning=True)

    async def _stop(self, grace_s: float, message: str) -> None:
        process, launch = self._process, self._launch
        if process is None or launch is None or process.has_ended:
            return
        self._event("Killing", message)
        deadline = asyncio.get_running_loop().time() + grace_s
        hook = (self.spec.get("lifecycle") or {}).get("preStop")
        if hook is not None and grace_s > 0:
            await self._run_hook(hook, process, grace_s)
        left_s = max(0.0, deadline - asyncio.get_running_loop().time())
        await process.stop(left_s)

    async def _run_hook(self, hook: Manifest, process: Process, grace_s: float) -> None:
        """Run preStop; not waited for once the process has ended by itself."""
        attempting = asyncio.create_task(attempt(hook, self._target(), grace_s))
        ending = asyncio.create_task(process.wait())
        await asyncio.wait((attempting, ending), return_when=asyncio.FIRST_COMPLETED)
        ending.cancel()
        if attempting.done() and (failure := attempting.result()):
            self._event("FailedPreStopHook", f"PreStopHook failed: {failure}", warning=True)
        attempting.cancel()
        await asyncio.gather(attempting, ending, return_exceptions=True)

    def _target(self) -> Target:
        address = self._pod()["status"]["podIP"]
        return Target(self.spec, address, self._context.session, self._execute)

    async def _execute(self, command: list[str]) -> tuple[int, str]:
        launch = self._launch
        if launch is None:
            return 1, "the container does not run"
        output = launch.termination_file.with_name(f"exec-{id(command)}.log")
        words = [launch.paths.rewrite(word) for word in command]
        process = Process.start(
            [*program(words[0]), *words[1:]],
            env=launch.env,
            cwd=launch.cwd,
            output=output,
            guardian=self._context.guardian,
            append=False,
        )
        try:
            code = await process.wait()
            return code, output.read_text(errors="replace")
        finally:
            process.kill()
            output.unlink(missing_ok=True)

    def _grace_s(self) -> float:
        grace_s = self._pod()["spec"].get("terminationGracePeriodSeconds")
        return 30.0 if grace_s is None else float(grace_s)

    def _show(self, **changes: Any) -> None:
        """Change what is reported."""
        self.view = replace(self.view, **changes)
        self._on_change()

    async def _sleep(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stopping.wait()

    def _event(self, reason: str, message: str, *, warning: bool = False) -> None:
        field = f"spec.containers{{{self.spec['name']}}}"
        self._context.events.record(self._pod(), reason, message, warning=warning, field_path=field)
