"""Protocol between clients, routers and engine pods, beside the translation itself.

Termination of a pod (each step is bounded in time, and none requires a router):

1. On SIGTERM a pod turns unready (`READY_PATH` 503) and goes on serving: it is a lame duck.
2. Each router that observes its termination sends no new requests, and confirms this once: `POST DRAINED_PATH` with
   `ROUTER_HEADER` and no body; the pod answers 204.
3. The pod knows its routers from `ROUTER_HEADER` on requests of the last `ROUTER_SEEN_S` seconds. Once all of them
   have confirmed and no client sends requests directly, or after `LAME_DUCK_S`, it answers new requests that have
   `ROUTER_HEADER` with 503 and `REFUSED_HEADER: draining`, finishes those in flight, and ends. Requests without the
   header are served until the pod is idle; then it closes its listener. Until the end each response has
   `Connection: close`, so that clients of a Service, whose keep-alive connections outlive its endpoints, connect to
   another pod. A pod without requests in the last minute does not wait.
4. Translated documents can be fetched during the drain as well: no other pod has them. Such requests have no
   `ROUTER_HEADER`, so that they do not revoke a confirmation.

Location of documents: with each upload the router sends the pod its tag in `REPLICA_HEADER`, and the document's id
begins with it (`new_document_id`). Every router computes the same tags (`replica_tag`) from its list of replicas, so
that routers need no shared state.

Glossaries that routers keep for callers, whose requests name them by id (`glossaries.py` has their encoding):

1. A router that forwards such a request adds `GLOSSARIES_HEADER` with the current revision of each id.
2. A pod that has these revisions translates. A pod that lacks one refuses before any work: 503 and
   `REFUSED_HEADER: glossary_missing`.
3. The router then sends `PUT HELD_GLOSSARIES_PATH<revision>` for each, and repeats the request to the same pod.

A revision is the hash of its content, so a pod never has outdated revisions, and none has to be removed from it.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import uuid
from typing import Literal, get_args

DEPLOYMENT_HEADER = "X-Dragoman-Deployment"
"""Request: `NAMESPACE/NAME` of the requested TranslationDeployment. Response: the one that answered."""
DEPLOYMENT_PREFIX = "/d/"
"""Prefix of paths: `/d/NAMESPACE/NAME/…` requests that TranslationDeployment."""
ENDPOINT_HEADER = "X-Dragoman-Endpoint"
"""Response: the replica that answered, `POD@HOST:PORT`."""
ROUTE_HEADER = "X-Dragoman-Route"
"""Response: reason of the route, such as `pair; least-in-flight; attempts=2; queued=0.31s`."""
ROUTER_HEADER = "X-Dragoman-Router"
"""To the pod: the router that forwards the request."""
REPLICA_HEADER = "X-Dragoman-Replica"
"""To the pod, with an upload: its `replica_tag`."""

CHARACTERS_HEADER = "X-Dragoman-Characters"
"""Response: the characters that the request is charged for, as counted by the pod. Negative on the first response
that reports the failure of a document that was charged for."""
CHARACTERS_LEFT_HEADER = "X-Dragoman-Characters-Left"
"""To the pod: the characters left in the key's quota. The pod refuses a request that has more; only the pod can
count those of a document."""
TIMEOUT_HEADER = "X-Request-Timeout"
"""Timeout of the request in seconds, from its last byte. A client may set it, up to the maximum of router and pod; a
router sends the remaining time with each attempt, so that both share one budget."""
REQUEST_TIMEOUT_S = 30.0
"""Default and maximum of that budget, of routers and pods alike."""

REFUSED_HEADER = "X-Dragoman-Refused"
"""On a pod's 503 (429 in some APIs): the request was not started, for this `Refusal`. A router sends it to another
replica, or with `GLOSSARY_MISSING` to this one again after it has sent the glossary."""
Refusal = Literal["draining", "not_ready", "overloaded", "glossary_missing"]
REFUSALS: tuple[str, ...] = get_args(Refusal)
GLOSSARY_MISSING: Refusal = "glossary_missing"

GLOSSARIES_HEADER = "X-Dragoman-Glossaries"
"""To the pod: `ID=REVISION`, separated by commas, for the glossaries that the request names."""
HELD_GLOSSARIES_PATH = "/held-glossaries/"
"""Path of a pod for glossaries: `PUT` with the revision appended and `Packed.content` as body; answers 204."""

DRAINED_PATH = "/drained"
"""Path of a terminating pod at which a router confirms that it sends no new requests."""
LAME_DUCK_S = 5.0
"""Maximum time for which a pod accepts requests after SIGTERM."""
ROUTER_SEEN_S = 60.0
"""A router without a request for this long need not confirm."""

WEIGHT_ANNOTATION = "dragoman.io/weight"
"""On a TranslationDeployment: its share among those that serve the same pair, 0 to 1000; default: 100.

An annotation instead of a field of the spec: it changes routing and not the pods, so that moving a canary from 5 to
50 starts no rollout and does not change the generation.
"""
DEFAULT_WEIGHT = 100
MAX_WEIGHT = 1000

MAX_IN_FLIGHT_ANNOTATION = "dragoman.io/max-in-flight"
"""On a TranslationDeployment: maximum requests in flight from one router to one replica; further ones are queued."""

TAG_DIGITS = 12
"""48 bits: among 10,000 replicas two share a tag once in five million clusters. Documents of one of the two are then
requested from the other: 404."""
_TAG = re.compile(rf"[0-9a-f]{{{TAG_DIGITS}}}")


def replica_tag(uid: str, address: str) -> str:
    """The tag of a replica in the ids of its documents; 12 hexadecimal digits.

    Args:
        uid: Of the pod, because a later pod may have the same address; may be empty.
        address: `HOST:PORT`, used without a uid.
    """
    return hashlib.blake2b((uid or address).encode(), digest_size=TAG_DIGITS // 2).hexdigest()


def new_document_id(tag: str | None) -> uuid.UUID:
    """An id with 74 random bits, or 122 without a tag.

    A UUID of version 8, whose first 48 bits are free (RFC 9562 section 5.8): LibreTranslate names files by a UUID, and
    DeepL's ids of documents have 32 digits.

    Args:
        tag: The value of `REPLICA_HEADER`; ignored if it is not a tag.
    """
    if tag is None or not _TAG.fullmatch(tag):
        return uuid.uuid4()
    rest = secrets.randbits(80) & ~(0xF << 76) & ~(0x3 << 62) | 0x8 << 76 | 0x2 << 62
    return uuid.UUID(int=int(tag, 16) << 80 | rest)


def tag_of(document_id: str) -> str:
    """The tag in a document's id, with or without dashes; for an id without one, digits that no replica has."""
    return document_id.replace("-", "")[:TAG_DIGITS].lower()
