"""kopf: watches what we care about, and marks the object that it belongs to.

The handlers are `kopf.on.event`, the low level, and not create, update and resume: those keep their progress
in annotations and finalizers of the object and tell *what* changed. We look at everything anew each time, so
all we need to know is *that* something changed; nothing is written to the object, and nothing is lost in a
restart.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import kopf

from dragoman_contract.kubernetes import GROUP, LABEL_DEPLOYMENT, PLURAL, VERSION
from dragoman_operator.credentials import configuration
from dragoman_operator.observed.snapshot import CHILD_KINDS, POD, Key

RECONNECT_S = 1.0
RECONNECTS = 60
"""Attempts before kopf gives up on an API server; whoever runs it starts it anew."""


def registry(mark: Callable[[Key], None]) -> kopf.OperatorRegistry:
    """Handlers that mark a key for every change of a TranslationDeployment, its children and its pods.

    Args:
        mark: Called in kopf's own thread.
    """
    handlers = kopf.OperatorRegistry()

    @kopf.on.event(GROUP, VERSION, PLURAL, registry=handlers)
    async def object_changed(namespace: str | None, name: str, **_: Any) -> None:
        mark(Key(namespace or "", name))

    async def child_changed(namespace: str | None, labels: Mapping[str, str], **_: Any) -> None:
        if name := labels.get(LABEL_DEPLOYMENT):
            mark(Key(namespace or "", name))

    for kind in (*CHILD_KINDS, POD):
        group, _, version = kind.api_version.rpartition("/")
        kopf.on.event(
            group, version, kind.plural, registry=handlers, labels={LABEL_DEPLOYMENT: kopf.PRESENT}
        )(child_changed)

    kopf.on.login(registry=handlers)(login)
    return handlers


def settings() -> kopf.OperatorSettings:
    """kopf as a watcher and nothing more: no peering, no posting, no look at namespaces and CRDs."""
    chosen = kopf.OperatorSettings()
    chosen.posting.enabled = False
    chosen.peering.standalone = True
    chosen.scanning.disabled = True
    chosen.networking.error_backoffs = [RECONNECT_S] * RECONNECTS
    for kind in (*CHILD_KINDS, POD):
        group, _, version = kind.api_version.rpartition("/")
        chosen.watching.label_selectors[group, version, kind.plural] = LABEL_DEPLOYMENT
    return chosen


async def login(**_: Any) -> kopf.ConnectionInfo:
    """The same cluster and credentials as our own client has; asked again where they no longer work."""
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
