"""What clients, routers and engine pods say to each other beside the translation itself.

How a pod leaves (all of it bounded, and none of it needed where there is no router):

1. On SIGTERM a pod turns unready (`READY_PATH` 503) and goes on serving: it is a lame duck.
2. Each router that sees it terminating sends it nothing new from that moment, and tells it so once:
   `POST DRAINED_PATH` with `ROUTER_HEADER`, no body; the pod answers 204.
3. The pod knows its routers from `ROUTER_HEADER` on requests of the last `ROUTER_SEEN_S` seconds. Once each of
   them has confirmed and no client asks past the routers, or after `LAME_DUCK_S`, it answers new requests that
   have `ROUTER_HEADER` with 503 and `REFUSED_HEADER: draining`, finishes what is in flight, and ends. Requests
   without it are served until the pod is idle; then it closes its listener. Until the end each answer says
   `Connection: close`, so that clients of a Service alone, whose kept connections know nothing of its endpoints,
   ask another pod next. A pod that was asked nothing for a minute waits for none.
4. Translated documents are fetched from a pod for as long as it answers, its drain included: whoever fetches has
   nowhere else to go. Such requests carry no `ROUTER_HEADER`, so that they do not take a confirmation back.

How a document is found again: with each upload the router tells the pod, in `REPLICA_HEADER`, the tag by which
routers know it, and the pod begins the document's id with it (`new_document_id`). Every router works out the same
tags (`replica_tag`) from what its source says of the replicas, so that none has to remember, or ask, anything.

How a pod gets the glossaries that routers keep for callers, whose requests name them by id (`glossaries.py` has the
forms):

1. A router that passes such a request on says in `GLOSSARIES_HEADER` which revision each id stands for now.
2. A pod that has these revisions translates. One that lacks any refuses before any work: 503 and
   `REFUSED_HEADER: glossary_missing`.
3. The router then sends `PUT HELD_GLOSSARIES_PATH<revision>`, one for each, and the same request again to the same
   pod.

A revision is the hash of what it names. So nothing that a pod holds is ever out of date, and nothing has to be taken
away from it: a glossary that was deleted or changed is one that no router names any more.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import uuid
from typing import Literal, get_args

DEPLOYMENT_HEADER = "X-Dragoman-Deployment"
"""Request: `NAMESPACE/NAME` of the TranslationDeployment that shall answer. Answer: the one that did."""
DEPLOYMENT_PREFIX = "/d/"
"""`/d/NAMESPACE/NAME/…` asks for that TranslationDeployment at the path that follows."""
ENDPOINT_HEADER = "X-Dragoman-Endpoint"
"""Answer: the replica that gave it, `POD@HOST:PORT`."""
ROUTE_HEADER = "X-Dragoman-Route"
"""Answer: why it went there, such as `pair; least-in-flight; attempts=2; queued=0.31s`."""
ROUTER_HEADER = "X-Dragoman-Router"
"""To the pod: which router passes the request on."""
REPLICA_HEADER = "X-Dragoman-Replica"
"""To the pod, with an upload: its `replica_tag`."""

CHARACTERS_HEADER = "X-Dragoman-Characters"
"""Answer: the characters that the request is charged for, as the pod counted them. Negative on the first answer that
says that a document which was charged for has failed."""
CHARACTERS_LEFT_HEADER = "X-Dragoman-Characters-Left"
"""To the pod: the characters that the key's quota has left. The pod refuses a request that has more; only the pod can
count those of a document."""
TIMEOUT_HEADER = "X-Request-Timeout"
"""Seconds after which the request is given up, from its last byte. A client may set it, up to the maximum of router and
pod; a router writes it anew for each attempt, with what is left, so that one budget holds for both."""
REQUEST_TIMEOUT_S = 30.0
"""Default and maximum of that budget, of routers and pods alike."""

REFUSED_HEADER = "X-Dragoman-Refused"
"""A pod's 503, or 429 where its API says so: the request was not begun, for the `Refusal` named; a router asks
another replica, or for `GLOSSARY_MISSING` this one again once it has brought it."""
Refusal = Literal["draining", "not_ready", "overloaded", "glossary_missing"]
REFUSALS: tuple[str, ...] = get_args(Refusal)
GLOSSARY_MISSING: Refusal = "glossary_missing"

GLOSSARIES_HEADER = "X-Dragoman-Glossaries"
"""To the pod: `ID=REVISION`, with commas between them, for the glossaries that the request names."""
HELD_GLOSSARIES_PATH = "/held-glossaries/"
"""Where a router brings a pod a glossary: `PUT`, the revision follows; the body is `Packed.content`; 204 answers."""

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

TAG_DIGITS = 12
"""48 bits: among 10,000 replicas two share a tag once in five million clusters. It costs one of the two its
documents, which a router then looks for at the other: 404."""
_TAG = re.compile(rf"[0-9a-f]{{{TAG_DIGITS}}}")


def replica_tag(uid: str, address: str) -> str:
    """What routers call a replica in the ids of its documents; 12 hexadecimal digits.

    Args:
        uid: The pod's, which tells it from a later pod at its address; empty where there is none.
        address: `HOST:PORT`, which stands in for it.
    """
    return hashlib.blake2b((uid or address).encode(), digest_size=TAG_DIGITS // 2).hexdigest()


def new_document_id(tag: str | None) -> uuid.UUID:
    """An id of which 74 bits are random, or 122 where no router asks.

    A UUID of version 8, which leaves its first 48 bits to whoever makes it (RFC 9562 section 5.8), because a UUID
    is what LibreTranslate names files by, and its 32 digits are what DeepL's documents have.

    Args:
        tag: What `REPLICA_HEADER` said; what is no tag is passed over.
    """
    if tag is None or not _TAG.fullmatch(tag):
        return uuid.uuid4()
    rest = secrets.randbits(80) & ~(0xF << 76) & ~(0x3 << 62) | 0x8 << 76 | 0x2 << 62
    return uuid.UUID(int=int(tag, 16) << 80 | rest)


def tag_of(document_id: str) -> str:
    """The tag in a document's id, with or without dashes; of an id that has none, digits that no replica has."""
    return document_id.replace("-", "")[:TAG_DIGITS].lower()
