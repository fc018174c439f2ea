"""Several APIs on one path, in one OpenAPI document."""

from typing import Any

from fastapi import APIRouter, FastAPI, Response
from pydantic import BaseModel, Field

from dragoman_service.dialects.openapi import FORM, JSON, body, document, errors, in_query, query, schema_of


class Inner(BaseModel):
    text: str


class One(BaseModel):
    """The one."""

    inner: list[Inner] = Field(description="some")
    more: Inner | None = None


class Other(BaseModel):
    """The other."""

    q: str


class Said(BaseModel):
    error: str


def test_definitions_are_written_where_they_are_used() -> None:
    schema = schema_of(One)
    assert "$defs" not in schema
    assert schema["properties"]["inner"]["items"]["properties"]["text"]["type"] == "string"
    assert "$ref" not in str(schema)


def shared() -> FastAPI:
    app = FastAPI(title="both")
    first, second = APIRouter(tags=["first"]), APIRouter(tags=["second"])

    @first.post(
        "/do", response_model=One, responses=errors(Said, {400: "bad"}), openapi_extra=body({JSON: One})
    )
    async def do_one() -> Response:
        """Do one."""
        return Response()

    both = body({JSON: Other, FORM: Other}, required=False)
    version = {"parameters": [query("version", {"type": "string"}, "of it", required=True)]}

    @second.post(
        "/do", response_model=Other, responses=errors(Said, {400: "wrong"}), openapi_extra=both | version
    )
    async def do_other() -> Response:
        """Do the other."""
        return Response()

    @second.get("/do", openapi_extra=in_query(Other))
    async def get_other() -> Response:
        return Response()

    app.include_router(first)
    app.include_router(second)
    return app


def test_operations_that_share_a_path_are_put_together() -> None:
    found: Any = document(shared())
    operation = found["paths"]["/do"]["post"]
    assert operation["tags"] == ["first", "second"]
    contents = operation["requestBody"]["content"]
    assert [option["title"] for option in contents[JSON]["schema"]["anyOf"]] == ["One", "Other"]
    assert contents[FORM]["schema"]["title"] == "Other"
    assert operation["requestBody"]["required"] is False
    assert [(each["name"], each["required"]) for each in operation["parameters"]] == [("version", False)]
    answers = operation["responses"]["200"]["content"][JSON]["schema"]["anyOf"]
    assert [answer["$ref"].rpartition("/")[2] for answer in answers] == ["One", "Other"]
    assert operation["responses"]["400"]["description"] == "bad; wrong"
    assert {"One", "Other", "Said"} <= found["components"]["schemas"].keys()
    (parameter,) = found["paths"]["/do"]["get"]["parameters"]
    assert (parameter["name"], parameter["required"]) == ("q", True)


def test_the_document_is_made_once() -> None:
    app = shared()
    assert document(app) is document(app)
