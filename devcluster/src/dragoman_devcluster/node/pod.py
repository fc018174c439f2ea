"""One pod: its volumes, its containers, its status, its end."""

from __future__ import annotations

import asyncio
import logging
import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from dragoman_devcluster.errors import LocalClusterError, PodRefusedError
from dragoman_devcluster.node.container import Container
from dragoman_devcluster.node.context import NodeContext
from dragoman_devcluster.node.pod_status import PodView, pod_status, waiting
from dragoman_devcluster.node.volumes import can_change, mount
from dragoman_kube.collection import resource_version
from dragoman_kube.errors import ClusterError, NotFoundError, UnavailableError
from dragoman_kube.kinds import POD
from dragoman_kube.objects import Manifest, differs, is_deleting, key_of, uid_of

logger = logging.getLogger(__name__)

MOUNT_RETRY_S = 2.0
REFRESH_S = 2.0
"""Interval at which changed ConfigMaps and Secrets are read; a kubelet takes up to a minute or two."""
STATUS_RETRY_S = 0.5
REMOVED_GRACE_S = 1.0
"""Grace period of a pod that was removed from the API without one."""


class Pod:
    """A pod that is bound to this node."""

    def __init__(self, manifest: Manifest, context: NodeContext) -> None:
        self._manifest = manifest
        self._context = context
        self._address = context.addresses.take()
        self._started_at = datetime.now(UTC)
        self._mounted = False
        self._waiting: Manifest | None = None
        self._stopping = asyncio.Event()
        self._grace_s: float | None = None
        self._dirty = asyncio.Event()
        self._init = self._containers("initContainers")
        self._main = self._containers("containers")
        self._initialized = not self._init
        if is_deleting(manifest):
            self._stopping.set()

    def update(self, manifest: Manifest) -> None:
        """The pod has changed in the API."""
        self._manifest = manifest
        if is_deleting(manifest):
            self._stopping.set()

    def end(self, grace_s: float) -> None:
        """End the processes, because the pod is gone from the API or the node stops."""
        self._grace_s = grace_s
        self._stopping.set()

    async def run(self) -> None:
        """Run the pod until it is deleted or ended; then nothing of it is left on this machine."""
        reporting = asyncio.create_task(self._report_changes())
        living = asyncio.create_task(self._live())
        try:
            await self._until_end(living)
            grace_s = self._remaining_grace_s()
            await asyncio.gather(*(container.shut_down(grace_s) for container in self._all))
            await living
        finally:
            for container in self._all:
                await container.kill()
            for task in (living, reporting):
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
            self._context.addresses.give_back(self._address)
            self._context.devices.release(uid_of(self._manifest))
        shutil.rmtree(self._context.directories.pod(self._manifest), ignore_errors=True)
        await self._remove()

    async def _until_end(self, living: asyncio.Task[None]) -> None:
        """Wait until the pod is to end, or fail with what its life has failed with."""
        stopping = asyncio.create_task(self._stopping.wait())
        await asyncio.wait({living, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if living.done() and not self._stopping.is_set():
            try:
                living.result()
            except BaseException:
                stopping.cancel()
                raise
        await stopping

    async def _live(self) -> None:
        self._dirty.set()
        volumes = await self._mount()
        if volumes is None:
            return
        refreshing = asyncio.create_task(self._keep_volumes_current())
        try:
            for container in self._init:
                await container.run(volumes)
                if container.view.exit_code != 0:
                    return
            self._initialized = True
            self._dirty.set()
            await asyncio.gather(*(container.run(volumes) for container in self._main))
        finally:
            refreshing.cancel()

    async def _keep_volumes_current(self) -> None:
        context = self._context
        if not any(map(can_change, self._manifest["spec"].get("volumes") or ())):
            return
        problem = ""
        while True:
            await asyncio.sleep(REFRESH_S)
            before, problem = problem, ""
            try:
                await mount(self._manifest, context.mirror.client, context.directories)
            except (ClusterError, LocalClusterError, OSError) as error:
                problem = str(error)
                if problem != before:
                    context.events.record(self._manifest, "FailedMount", problem, warning=True)

    async def _mount(self) -> Mapping[str, Path] | None:
        context = self._context
        while not self._stopping.is_set():
            try:
                _refuse_unsupported(self._manifest["spec"])
                volumes = await mount(self._manifest, context.mirror.client, context.directories)
            except (ClusterError, LocalClusterError, OSError) as error:
                refused = isinstance(error, PodRefusedError)
                reason = "Failed" if refused else "FailedMount"
                context.events.record(self._manifest, reason, str(error), warning=True)
                self._waiting = waiting(
                    "CreateContainerConfigError" if refused else "ContainerCreating", str(error)
                )
                self._dirty.set()
                with suppress(TimeoutError):
                    async with asyncio.timeout(None if refused else MOUNT_RETRY_S):
                        await self._stopping.wait()
            else:
                self._mounted, self._waiting = True, None
                self._dirty.set()
                return volumes
        return None

    def _current(self) -> Manifest:
        """The pod, with the addresses that its next status will have."""
        addresses = {"podIP": self._address, "hostIP": self._context.address}
        return {**self._manifest, "status": {**(self._manifest.get("status") or {}), **addresses}}

    @property
    def _all(self) -> list[Container]:
        return [*self._init, *self._main]

    def _containers(self, field: str) -> list[Container]:
        spec = self._manifest["spec"]
        policy = str(spec.get("restartPolicy") or "Always")
        if field == "initContainers" and policy == "Always":
            # Source: https://kubernetes.io/docs/concepts/workloads/pods/init-containers/
            policy = "OnFailure"
        return [
            Container(container, self._current, self._context, self._dirty.set, restart_policy=policy)
            for container in spec.get(field) or ()
        ]

    def _remaining_grace_s(self) -> float:
        if self._grace_s is not None:
            return self._grace_s
        grace_s = self._manifest["metadata"].get("deletionGracePeriodSeconds")
        if grace_s is None:
            grace_s = self._manifest["spec"].get("terminationGracePeriodSeconds")
        return 30.0 if grace_s is None else float(grace_s)

    def _status(self) -> Manifest:
        views = [container.view for container in self._main]
        init = [container.view for container in self._init]
        if not self._initialized:
            views = [replace(view, state=waiting("PodInitializing")) for view in views]
        if self._waiting is not None:
            views = [replace(view, state=self._waiting) for view in views]
            init = [replace(view, state=self._waiting) for view in init]
        view = PodView(
            pod=self._manifest,
            init=tuple(init),
            containers=tuple(views),
            address=self._address,
            host=self._context.address,
            started_at=self._started_at,
            mounted=self._mounted,
        )
        return pod_status(view, datetime.now(UTC))

    async def _report_changes(self) -> None:
        while True:
            await self._dirty.wait()
            self._dirty.clear()
            try:
                await self._report()
            except NotFoundError:
                continue
            except ClusterError as error:
                logger.debug("status of %s: %s", key_of(self._manifest), error)
                self._dirty.set()
                await asyncio.sleep(STATUS_RETRY_S)

    async def _report(self) -> None:
        status = self._status()
        if differs(self._manifest, status):
            # The uid makes the write fail if the pod was replaced by another of its name.
            patch = {"metadata": {"uid": uid_of(self._manifest)}, "status": status}
            written = await self._context.mirror.merge(POD, key_of(self._manifest), patch, "status")
            # The watch may have reported a later change, such as the pod's deletion, before this response was read.
            if resource_version(written) > resource_version(self._manifest):
                self._manifest = written

    async def _remove(self) -> None:
        if not is_deleting(self._manifest):
            return
        with suppress(ClusterError):
            await self._report()
        while True:
            try:
                await self._context.mirror.delete(POD, self._manifest, grace_s=0)
            except UnavailableError as error:
                if self._grace_s is not None:
                    return
                logger.debug("removing pod %s: %s", key_of(self._manifest), error)
                await asyncio.sleep(STATUS_RETRY_S)
            except ClusterError as error:
                logger.warning("removing pod %s: %s", key_of(self._manifest), error)
                return
            else:
                return


def _refuse_unsupported(spec: Manifest) -> None:
    if spec.get("readinessGates"):
        raise PodRefusedError("the local node does not know readinessGates")
    if any(container.get("restartPolicy") for container in spec.get("initContainers") or ()):
        raise PodRefusedError("the local node does not know init containers that are restarted (sidecars)")
    if any("postStart" in (container.get("lifecycle") or {}) for container in spec["containers"]):
        raise PodRefusedError("the local node does not know lifecycle.postStart")
