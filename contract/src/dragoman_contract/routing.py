"""What clients, routers and engine pods say to each other beside the translation itself.

How a pod leaves (all of it bounded, and none of it needed where there is no router):

1. On SIGTERM a pod turns unready (`READY_PATH` 503) and goes on serving: it is a lame duck.
2. Each router that sees it terminating sends it nothing new from that moment, and tells it so once:
   `POST DRAINED_PATH` with `ROUTER_HEADER`, no body; the pod answers 204.
3. The pod knows its routers from `ROUTER_HEADER` on requests of the last `ROUTER_SEEN_S` seconds. Once each of
   them has confirmed, or after `LAME_DUCK_S`, it answers new requests with 503 and `REFUSED_HEADER: draining`,
   finishes what is in flight, and ends. A pod that knows no router waits for none: the preStop that the
   operator gives it has let a Service's clients learn of its end.
"""

from __future__ import annotations

from typing import Literal, get_args

DEPLOYMENT_HEADER = "X-Dragoman-Deployment"
"""Request: `NAMESPACE/NAME` of the TranslationDeployment that shall answer. Answer: the one that did."""
DEPLOYMENT_PREFIX = "/d/"
"""`/d/NAMESPACE/NAME/…` asks for that TranslationDeployment at the path that follows."""
ENDPOINT_HEADER = "X-Dragoman-Endpoint"
"""Answer: the replica that gave it, `POD@HOST:PORT`."""
ROUTE_HEADER = "X-Dragoman-Route"
"""Answer: why it went there, such as `pair; least-in-flight; attempts=2; held=0.31s`."""
SOURCE_LANG_HEADER = "X-Dragoman-Source-Lang"
"""To the pod: the language that the router detected, where it had to; a pod need not detect it again."""
ROUTER_HEADER = "X-Dragoman-Router"
"""To the pod: which router passes the request on."""

REFUSED_HEADER = "X-Dragoman-Refused"
"""A pod's 503, or 429 where its API says so: the request was not begun, for the `Refusal` named; a router asks
another replica."""
Refusal = Literal["draining", "not_ready", "overloaded"]
REFUSALS: tuple[str, ...] = get_args(Refusal)

DRAINED_PATH = "/drained"
"""Where a router confirms to a terminating pod that nothing new will come from it."""
LAME_DUCK_S = 5.0
"""Longest time that a pod which was told to end goes on taking requests."""
ROUTER_SEEN_S = 60.0
"""A router that sent nothing for so long need not confirm."""

WEIGHT_ANNOTATION = "dragoman.io/weight"
"""On a TranslationDeployment: its share among those that serve the same pair, 0 to 1000; 100 where unset.

An annotation and not a field of the spec: it changes how requests come, not what runs, so that moving a canary
from 5 to 50 starts no rollout and bumps no generation.
"""
DEFAULT_WEIGHT = 100
MAX_WEIGHT = 1000

MAX_IN_FLIGHT_ANNOTATION = "dragoman.io/max-in-flight"
"""On a TranslationDeployment: requests that one router has in flight with one replica before it holds more."""
