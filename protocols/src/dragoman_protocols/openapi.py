"""The OpenAPI document, from the endpoints' operations.

It describes the requests of all APIs, and the answers of Dragoman's own: those of the others are documented by their
publishers, and held by the tests with their clients.

OpenAPI has one operation for a path and a method: those of all APIs that share one are put together, each parameter
optional, each body and answer one of several.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import msgspec

from dragoman_protocols.bodies import JSON_TYPE
from dragoman_protocols.endpoints import Endpoint, Operation
from dragoman_protocols.messages import EVENT_STREAM

Node = dict[str, Any]

VERSION = "1.0"
"""Of all APIs together: its first number changes where a path or a field goes."""


def document(endpoints: Iterable[Endpoint]) -> Node:
    """The whole document."""
    paths: dict[str, Node] = {}
    for endpoint in endpoints:
        if endpoint.operation is None:
            continue
        there = paths.setdefault(endpoint.path, {})
        for method in sorted(endpoint.methods):
            made = _operation(endpoint, endpoint.operation, method)
            there[method.lower()] = either(there[method.lower()], made) if method.lower() in there else made
    return {"openapi": "3.1.0", "info": {"title": "Dragoman", "version": VERSION}, "paths": paths}


def _operation(endpoint: Endpoint, operation: Operation, method: str) -> Node:
    written: Node = {
        "tags": [endpoint.api.name],
        "description": operation.summary,
        "operationId": f"{endpoint.api.name}{endpoint.path}_{method}".replace("/", "_").lower(),
        "responses": {
            "2XX": {"description": "OK", "content": _content(operation.answer) | _events(operation)},
            **{
                str(status): {"description": causes, "content": _content(endpoint.api.error_type)}
                for status, causes in endpoint.api.causes().items()
            },
        },
    }
    parameters: list[Node] = [
        {"in": "path", "name": name, "required": True, "schema": {"type": "string"}}
        for name in re.findall(r"\{(\w+)\}", endpoint.path)
    ]
    with_query = method == "GET" or not operation.bodies or operation.query_beside_body
    if operation.query is not None and with_query:
        schema = schema_of(operation.query)
        required = schema.get("required", [])
        parameters += [
            {
                "in": "query",
                "name": name,
                "required": name in required,
                "schema": described,
                "description": described.get("description", ""),
            }
            for name, described in schema["properties"].items()
        ]
    if parameters:
        written["parameters"] = parameters
    if operation.bodies and method != "GET":
        content = {media: {"schema": schema_of(shape)} for media, shape in operation.bodies.items()}
        required = operation.query is None or operation.query_beside_body
        written["requestBody"] = {"required": required, "content": content}
    return written


def _content(shape: Any) -> Node:
    return {} if shape is None else {JSON_TYPE: {"schema": schema_of(shape)}}


def _events(operation: Operation) -> Node:
    return {EVENT_STREAM: {"schema": {"type": "string"}}} if operation.streams else {}


def schema_of(shape: Any) -> Node:
    """A type's JSON schema with definitions written where they are used: no type of the APIs refers to itself."""
    (schema,), definitions = msgspec.json.schema_components(
        [shape], ref_template="#/components/schemas/{name}"
    )

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

    written: Node = resolved(schema)
    return written


def either(one: Node, other: Node) -> Node:
    """Two operations on one path and method as one."""
    merged = dict(one)
    merged["tags"] = [*one.get("tags", []), *other.get("tags", [])]
    merged["description"] = f"{one.get('description', '')} Or: {other.get('description', '')}"
    parameters = [*one.get("parameters", []), *other.get("parameters", [])]
    if parameters:
        merged["parameters"] = [each | {"required": False} for each in parameters]
    if "requestBody" in one or "requestBody" in other:
        bodies = [each.get("requestBody", {}) for each in (one, other)]
        required = all(each.get("required", False) for each in bodies)
        merged["requestBody"] = {"required": required, "content": _either_content(*bodies)}
    merged["responses"] = dict(one["responses"])
    for status, response in other["responses"].items():
        known = merged["responses"].get(status)
        merged["responses"][status] = (
            response
            if known is None
            else {
                "description": f"{known['description']}; {response['description']}",
                "content": _either_content(known, response),
            }
        )
    return merged


def _either_content(one: Node, other: Node) -> Node:
    content = dict(one.get("content", {}))
    for media, described in other.get("content", {}).items():
        if media not in content:
            content[media] = described
            continue
        schemas = [each.get("schema", {}) for each in (content[media], described)]
        options = [option for schema in schemas for option in schema.get("anyOf", [schema])]
        content[media] = {"schema": {"anyOf": options}}
    return content
