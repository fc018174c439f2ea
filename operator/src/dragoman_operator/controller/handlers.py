"""kopf watches the TranslationDeployments and runs the hooks of start and end.

The handler is `kopf.on.event` instead of create, update and resume, which store progress in annotations
and finalizers of the object. A reconciliation compares all objects, so the event needs no details; nothing is written
to the object, and a restart loses nothing. The assumptions about kopf are tested in
tests/unit/operator/controller/test_kopf_limits.py.

It is not one of kopf's indices: those wake the tasks of all objects for each object of the first list, so that the time
grows with the square of their number. After a list that follows a broken watch, they also keep what was deleted.
"""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable
from typing import Any

import kopf

from dragoman_contract.kubernetes import GROUP
from dragoman_kube.config import configuration
from dragoman_kube.errors import ClusterError
from dragoman_operator.errors import OperatorError
from dragoman_operator.observed.snapshot import TRANSLATION_DEPLOYMENT, Manifest

BACKOFF_S = 5.0
"""Seconds between attempts of one request, without an end: in an outage the operator exits when it loses its Lease."""
LIST_TIMEOUT_S = 60.0
FINALIZER = f"{GROUP}/never-set"
"""kopf removes its finalizer from every object without a handler for deletion. The default finalizer is shared by all
kopf operators, and others may need it on our objects."""


def registry(
    changed: Callable[[str | None, Manifest], None],
    start: Callable[[], Awaitable[None]],
    stop: Callable[[], Awaitable[None]],
) -> kopf.OperatorRegistry:
    """The handlers.

    Args:
        changed: Called with the type of each watch event, None for an object from a list, and the object.
        start: Called before kopf lists anything; its exceptions end kopf.
        stop: Called when all watches have ended.
    """
    handlers = kopf.OperatorRegistry()

    @kopf.on.startup(registry=handlers, errors=kopf.ErrorsMode.PERMANENT)
    async def startup(**_: Any) -> None:
        try:
            await start()
        except (OperatorError, ClusterError) as error:
            raise kopf.PermanentError(str(error)) from error

    @kopf.on.cleanup(registry=handlers, errors=kopf.ErrorsMode.PERMANENT)
    async def cleanup(**_: Any) -> None:
        await stop()

    async def event(type: str | None, body: kopf.Body, **_: Any) -> None:
        metadata = {field: value for field, value in body["metadata"].items() if field != "managedFields"}
        changed(type, {**body, "metadata": metadata})

    group, _, version = TRANSLATION_DEPLOYMENT.api_version.rpartition("/")
    kopf.on.event(group, version, TRANSLATION_DEPLOYMENT.plural, registry=handlers)(event)
    kopf.on.login(registry=handlers)(login)
    return handlers


class NoDiffs(kopf.DiffBaseStorage):
    """No former states to compare with: kopf would copy every object of every event, and no handler takes a diff."""

    def build(self, **_: Any) -> kopf.BodyEssence:
        """Nothing."""
        return kopf.BodyEssence()

    def fetch(self, **_: Any) -> None:
        """Nothing."""

    def store(self, **_: Any) -> None:
        """Nothing."""


def settings() -> kopf.OperatorSettings:
    """kopf without peering, events, finalizers, and watches of namespaces and CRDs."""
    chosen = kopf.OperatorSettings()
    chosen.posting.enabled = False
    chosen.peering.standalone = True
    chosen.scanning.disabled = True
    chosen.persistence.finalizer = FINALIZER
    chosen.persistence.diffbase_storage = NoDiffs()
    chosen.networking.error_backoffs = itertools.repeat(BACKOFF_S)
    chosen.networking.enforce_retry_after = True
    chosen.networking.request_timeout = LIST_TIMEOUT_S
    return chosen


async def login(**_: Any) -> kopf.ConnectionInfo:
    """Cluster and credentials, as of our own client; kopf calls this again when they are refused."""
    loaded = await configuration()
    token = loaded.api_key.get("BearerToken", "").partition(" ")[2]
    return kopf.ConnectionInfo(
        server=loaded.host,
        ca_path=loaded.ssl_ca_cert,
        insecure=not loaded.verify_ssl,
        scheme="Bearer" if token else None,
        token=token or None,
        certificate_path=loaded.cert_file,
        private_key_path=loaded.key_file,
        proxy_url=loaded.proxy,
    )
