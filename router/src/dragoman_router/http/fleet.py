"""What the fleet view shows, and to whom."""

from __future__ import annotations

import time

from dragoman_protocols.errors import FleetForbiddenError, UnknownDeploymentError
from dragoman_protocols.fleet import Observed, ObservedFleet
from dragoman_router.access.addresses import is_local
from dragoman_router.fleet.history import KEPT, MAX_DEPLOYMENTS, STEP_S
from dragoman_router.http.state import State
from dragoman_router.request import RoutedRequest
from dragoman_router.routing.placement import in_scope


def sees_fleet(request: RoutedRequest, keys_required: bool) -> bool:
    """Whether a caller may see the fleet view.

    Where keys or tokens are required, one that is marked for it can; elsewhere a client on the router's own machine,
    and one behind `kubectl port-forward`, whose connection comes over loopback.
    """
    return request.fleet if keys_required else is_local(request.peer, request.headers)


def check_fleet(request: RoutedRequest, keys_required: bool) -> None:
    """Refuse a caller that may not see it.

    Raises:
        FleetForbiddenError: It may not.
    """
    if sees_fleet(request, keys_required):
        return
    if keys_required:
        raise FleetForbiddenError('the fleet view needs a key or a token that has "fleet": true')
    raise FleetForbiddenError(
        "the fleet view of a router without keys is for its own machine: use kubectl port-forward and 127.0.0.1, or "
        'give the router keys, one of them with "fleet": true'
    )


def observed_fleet(state: State, request: RoutedRequest, router_id: str) -> ObservedFleet:
    """The deployments that a caller may use, or the one that its path names, by name.

    Raises:
        UnknownDeploymentError: It may not use the one that is named, or there is none.
    """
    named, scope = request.deployment, request.scope
    keys = sorted(
        key
        for key in state.fleet.backends
        if (scope is None or in_scope(key, scope)) and (named is None or named == key)
    )
    if named is not None and not keys:
        raise UnknownDeploymentError(f"no TranslationDeployment {named[:100]!r} here")
    return ObservedFleet(
        router_id,
        int(time.time()),
        STEP_S,
        STEP_S * KEPT,
        tuple(_observed(state, key) for key in keys[:MAX_DEPLOYMENTS]),
        max(0, len(keys) - MAX_DEPLOYMENTS),
    )


def _observed(state: State, key: str) -> Observed:
    now, samples = state.history.of(key)
    status = state.fleet.statuses.get(key)
    if status is None:
        return Observed(key, now, samples)
    return Observed(key, now, samples, status.scaling, status.state, status.message, status.degraded)
