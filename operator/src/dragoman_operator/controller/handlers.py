"""kopf: watches what concerns a TranslationDeployment, and enqueues its key at every change.

The handlers are `kopf.on.event`, the low level, and not create, update and resume: those keep their progress in
annotations and finalizers of the object. A reconciliation compares everything anew each time, so it is enough to
know *that* something changed; nothing is written to the object, and nothing is lost in a restart. What this relies
on in kopf is held by tests/unit/operator/test_kopf_limits.py.
"""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any

import kopf

from dragoman_contract.kubernetes import GROUP, LABEL_DEPLOYMENT, PLURAL, VERSION
from dragoman_operator.credentials import configuration
from dragoman_operator.observed.snapshot import CHILD_KINDS, POD, Key, Kind

FIRST_BACKOFF_S, LONGEST_BACKOFF_S = 1.0, 30.0
LIST_TIMEOUT_S = 60.0
FINALIZER = f"{GROUP}/never-set"
"""kopf removes its finalizer from every object without a handler for deletion. Its default finalizer is that of all
operators on kopf, which may need it on our pods and children."""


class Backoffs:
    """Seconds between attempts of one request; they never end, as the end would be that of the operator.

    An outage ends in an exit by the Lease.
    """

    def __iter__(self) -> Iterator[float]:
        doubled = (FIRST_BACKOFF_S * 2.0**attempt for attempt in range(5))
        return itertools.chain(doubled, itertools.repeat(LONGEST_BACKOFF_S))


def registry(
    enqueue: Callable[[Key], None], start: Callable[[], Awaitable[None]], stop: Callable[[], Awaitable[None]]
) -> kopf.OperatorRegistry:
    """Handlers that enqueue a key for every change of a TranslationDeployment, its children and its pods.

    Args:
        enqueue: Has an object reconciled.
        start: Called before anything is listed; what it raises ends kopf.
        stop: Called when all watches have ended.
    """
    handlers = kopf.OperatorRegistry()

    @kopf.on.startup(registry=handlers, errors=kopf.ErrorsMode.PERMANENT)
    async def startup(**_: Any) -> None:
        await start()

    @kopf.on.cleanup(registry=handlers, errors=kopf.ErrorsMode.PERMANENT)
    async def cleanup(**_: Any) -> None:
        await stop()

    @kopf.on.event(GROUP, VERSION, PLURAL, registry=handlers)
    async def object_changed(namespace: str | None, name: str, **_: Any) -> None:
        enqueue(Key(namespace or "", name))

    async def child_changed(namespace: str | None, labels: Mapping[str, str], **_: Any) -> None:
        if name := labels.get(LABEL_DEPLOYMENT):
            enqueue(Key(namespace or "", name))

    for kind in (*CHILD_KINDS, POD):
        kopf.on.event(*_selector(kind), registry=handlers, labels={LABEL_DEPLOYMENT: kopf.PRESENT})(
            child_changed
        )

    kopf.on.login(registry=handlers)(login)
    return handlers


def settings() -> kopf.OperatorSettings:
    """kopf without peering, posting and finalizers, and without a watch of namespaces and CRDs."""
    chosen = kopf.OperatorSettings()
    chosen.posting.enabled = False
    chosen.peering.standalone = True
    chosen.scanning.disabled = True
    chosen.persistence.finalizer = FINALIZER
    chosen.networking.error_backoffs = Backoffs()
    chosen.networking.request_timeout = LIST_TIMEOUT_S
    for kind in (*CHILD_KINDS, POD):
        chosen.watching.label_selectors[_selector(kind)] = LABEL_DEPLOYMENT
    return chosen


def _selector(kind: Kind) -> tuple[str, str, str]:
    group, _, version = kind.api_version.rpartition("/")
    return group, version, kind.plural


async def login(**_: Any) -> kopf.ConnectionInfo:
    """The same cluster and credentials as our own client has; read again where they no longer work."""
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
