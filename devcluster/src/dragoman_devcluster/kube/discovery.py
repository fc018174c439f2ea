"""Which resources an API server has."""

from __future__ import annotations

import asyncio

from dragoman_devcluster.errors import ApiError
from dragoman_devcluster.kube.client import KubeClient
from dragoman_devcluster.kube.resources import Resource
from dragoman_devcluster.objects import Manifest

_NEEDED_VERBS = {"list", "watch", "delete"}


async def discover(client: KubeClient) -> list[Resource]:
    """Every resource that can be listed, watched and deleted, once each, in its group's preferred version.

    Groups that do not answer, such as an aggregated API that is down, are left out.
    """
    groups = (await client.request("GET", "/apis")).get("groups") or ()
    versions = [
        "v1",
        *((group.get("preferredVersion") or group["versions"][0])["groupVersion"] for group in groups),
    ]
    found = await asyncio.gather(*(_resources(client, version) for version in versions))
    return [resource for resources in found for resource in resources]


async def _resources(client: KubeClient, group_version: str) -> list[Resource]:
    root = "/apis/" if "/" in group_version else "/api/"
    try:
        answer = await client.request("GET", root + group_version)
    except ApiError:
        return []
    return [_resource(group_version, item) for item in answer.get("resources") or () if _is_collectable(item)]


def _is_collectable(item: Manifest) -> bool:
    return "/" not in item["name"] and set(item.get("verbs") or ()) >= _NEEDED_VERBS


def _resource(group_version: str, item: Manifest) -> Resource:
    return Resource(group_version, item["name"], item["kind"], bool(item["namespaced"]))
