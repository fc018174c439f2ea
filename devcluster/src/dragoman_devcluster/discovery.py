"""The kinds that an API server serves."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from dragoman_kube.client import KubeClient
from dragoman_kube.errors import ClusterError
from dragoman_kube.kinds import Kind

_REQUIRED_VERBS = {"list", "watch", "delete"}


async def discover(client: KubeClient) -> Sequence[Kind]:
    """Every kind that can be listed, watched and deleted, once each, in its group's preferred version.

    Groups that answer with an error, such as an aggregated API that is down, are left out.
    """
    groups = (await client.request("GET", "/apis")).get("groups") or ()
    preferred = [group.get("preferredVersion") or group["versions"][0] for group in groups]
    versions = ["v1", *(version["groupVersion"] for version in preferred)]
    found = await asyncio.gather(*(_kinds(client, version) for version in versions))
    return [kind for kinds in found for kind in kinds]


async def _kinds(client: KubeClient, api_version: str) -> Sequence[Kind]:
    root = "/apis/" if "/" in api_version else "/api/"
    try:
        response = await client.request("GET", root + api_version)
    except ClusterError as error:
        if not error.status:
            raise
        return []
    return [
        Kind(api_version, item["kind"], item["name"], bool(item["namespaced"]))
        for item in response.get("resources") or ()
        if "/" not in item["name"] and set(item.get("verbs") or ()) >= _REQUIRED_VERBS
    ]
