"""Parts of the OpenAPI document: routes read their bodies themselves, so FastAPI cannot tell what is in them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from pydantic import BaseModel, TypeAdapter

from dragoman_protocols.openapi import document as of_endpoints
from dragoman_protocols.openapi import either
from dragoman_protocols.routes import ENDPOINTS

JSON = "application/json"
FORM = "application/x-www-form-urlencoded"


def schema_of(shape: Any) -> dict[str, Any]:
    """A type's JSON schema with its definitions written where they are used: none of ours refers to itself.

    Args:
        shape: A pydantic model, or any type that pydantic can describe.
    """
    schema = TypeAdapter(shape).json_schema(mode="validation")
    definitions = schema.pop("$defs", {})

    def resolved(node: Any) -> Any:
        if isinstance(node, list):
            return [resolved(each) for each in node]
        if not isinstance(node, dict):
            return node
        reference = node.get("$ref")
        if not isinstance(reference, str):
            return {name: resolved(each) for name, each in node.items()}
        rest = {name: resolved(each) for name, each in node.items() if name != "$ref"}
        return resolved(definitions[reference.rpartition("/")[2]]) | rest

    written: dict[str, Any] = resolved(schema)
    return written


def body(contents: Mapping[str, Any], *, required: bool = True) -> dict[str, Any]:
    """A request's body, for a route's `openapi_extra`.

    Args:
        contents: For each media type, the type of what is in it.
        required: Whether there has to be one.
    """
    content = {media: {"schema": schema_of(shape)} for media, shape in contents.items()}
    return {"requestBody": {"required": required, "content": content}}


def errors(shape: Any, statuses: Mapping[int, str]) -> dict[int | str, dict[str, Any]]:
    """The answers that are no success, for a route's `responses`.

    Args:
        shape: Of their bodies.
        statuses: What each status means.
    """
    return {status: {"model": shape, "description": said} for status, said in statuses.items()}


def query(name: str, schema: dict[str, Any], description: str, *, required: bool = False) -> dict[str, Any]:
    """One query parameter, for `parameters` in a route's `openapi_extra`."""
    return {"in": "query", "name": name, "required": required, "schema": schema, "description": description}


def in_query(shape: type[BaseModel]) -> dict[str, Any]:
    """A model's fields as query parameters, for a route's `openapi_extra`.

    Args:
        shape: Whose fields are plain values or lists of them.
    """
    schema = schema_of(shape)
    required = schema.get("required", [])
    return {
        "parameters": [
            query(name, described, described.get("description", ""), required=name in required)
            for name, described in schema["properties"].items()
        ]
    }


def document(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document of an application in which several APIs share a path.

    OpenAPI has one operation for a path and a method: those of all that share it are put together, each
    parameter optional, each body and answer one of several.

    Args:
        app: With all its routes.
    """
    if app.openapi_schema is None:
        layers: list[list[APIRoute]] = []
        for route in app.routes:
            if isinstance(route, APIRoute) and route.include_in_schema:
                free = (layer for layer in layers if not any(_overlap(route, other) for other in layer))
                layer = next(free, None)
                if layer is None:
                    layers.append(layer := [])
                layer.append(route)
        first, *others = (get_openapi(title=app.title, version=app.version, routes=layer) for layer in layers)
        for other in (*others, of_endpoints(ENDPOINTS, app.title, app.version)):
            _add(first, other)
        app.openapi_schema = first
    return app.openapi_schema


def _overlap(one: APIRoute, other: APIRoute) -> bool:
    return one.path == other.path and not one.methods.isdisjoint(other.methods)


def _add(document: dict[str, Any], other: dict[str, Any]) -> None:
    schemas = document.setdefault("components", {}).setdefault("schemas", {})
    schemas |= other.get("components", {}).get("schemas", {})
    for path, operations in other["paths"].items():
        there = document["paths"].setdefault(path, {})
        for method, operation in operations.items():
            there[method] = either(there[method], operation) if method in there else operation
