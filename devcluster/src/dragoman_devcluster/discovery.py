"""Which kinds an API server serves."""

from __future__ import annotations

import asyncio

from dragoman_kube.client import KubeClient
from dragoman_kube.errors import ClusterError
from dragoman_kube.kinds import Kind
from dragoman_kube.objects import Manifest

_REQUIRED_VERBS = {"list", "watch", "delete"}


async def discover(client: KubeClient) -> list[Kind]:
    """Every kind that can be listed, watched and deleted, once each, in its group's preferred version.

    Groups that answer with an error, such as an aggregated API that is down, are left out.
    """
    groups = (await client.request("GET", "/apis")).get("groups") or ()
    versions = [
        "v1",
        *((group.get("preferredVersion") or group["versions"][0])["groupVersion"] for group in groups),
    ]
    found = await asyncio.gather(*(_kinds(client, version) for version in versions))
    return [kind for kinds in found for kind in kinds]


async def _kinds(client: KubeClient, api_version: str) -> list[Kind]:
    root = "/apis/" if "/" in api_version else "/api/"
    try:
        response = await client.request("GET", root + api_version)
    except ClusterError as error:
        if not error.status:
            raise
        return []
    resources = response.get("resources") or ()
    return [
        Kind(api_version, item["kind"], item["name"], bool(item["namespaced"]))
        for item in resources
        if _is_collectable(item)
    ]


def _is_collectable(item: Manifest) -> bool:
    return "/" not in item["name"] and set(item.get("verbs") or ()) >= _REQUIRED_VERBS
