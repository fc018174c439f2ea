"""Writes the pages of the reference that follow from the code; `make reference` runs it, and a test compares.

The pages on models and on the CRD's copies have commands of their own: `dragoman models`, `dragoman crd`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pydantic_core import PydanticUndefined

from dragoman_contract.command_line import CommandSettings, flag
from dragoman_operator.api.crd import custom_resource_definition
from dragoman_operator.settings import Settings as OperatorSettings
from dragoman_protocols.routes import ENDPOINTS
from dragoman_router.settings import Settings as RouterSettings
from dragoman_service.settings import Settings as ServiceSettings

REFERENCE = Path(__file__).parent / "reference"
CHART = Path(__file__).parents[1] / "charts/dragoman/README.md"
NOTE = "<!-- Written by docs/generate.py: run `make reference`. -->"

NOTHING = (None, "", (), PydanticUndefined)
"""Defaults that a table leaves out."""

API_NAMES = {
    "native": "native",
    "azure": "Azure",
    "libretranslate": "LibreTranslate",
    "deepl": "DeepL",
    "google": "Google",
    "openai": "OpenAI",
    "browser-extensions": "DeepLX, Immersive Translate",
}
"""In words, by the name of an API; another name is shown as it is."""


def pages() -> dict[Path, str]:
    """The text of each generated page."""
    return {
        REFERENCE / "translationdeployment.md": custom_resource(),
        REFERENCE / "flags.md": flags(),
        REFERENCE / "endpoints.md": endpoints(),
        REFERENCE / "chart.md": chart(),
    }


def page(title: str, introduction: str, *sections: str) -> str:
    """A page of paragraphs and tables."""
    return "\n\n".join((f"# {title}", NOTE, introduction, *sections)) + "\n"


def table(head: Sequence[str], rows: Iterator[Sequence[str]]) -> str:
    """A table in Markdown; cells are Markdown."""
    lines = ["| " + " | ".join(cells) + " |" for cells in (head, ["---"] * len(head), *rows)]
    return "\n".join(lines)


def plain(text: str) -> str:
    """Text as a cell of a table: without markup, and in one line."""
    for sign in ("\\", "|", "*", "`"):
        text = text.replace(sign, f"\\{sign}")
    return " ".join(text.replace("<", "&lt;").split())


def code(value: Any) -> str:
    """A value as a cell of a table; true and false as YAML has them."""
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return f"`{text.replace('|', chr(92) + '|')}`"


# The custom resource.


def custom_resource() -> str:
    """Each field of the CRD, by the sections of its spec."""
    version = custom_resource_definition()["spec"]["versions"][0]
    root = version["schema"]["openAPIV3Schema"]["properties"]
    spec, status = root["spec"], root["status"]
    small = {name: field for name, field in spec["properties"].items() if not field.get("properties")}
    sections = [section("spec", {**spec, "properties": small})]
    sections += [
        section(f"spec.{name}", field) for name, field in spec["properties"].items() if name not in small
    ]
    sections.append(section("status", status))
    return page(
        "TranslationDeployment",
        f"Every field of `dragoman.io/{version['name']}`, with its default. `kubectl explain td.spec` prints the same. "
        "Fields without a default are optional unless they are marked as required.",
        *sections,
    )


def section(path: str, schema: dict[str, Any]) -> str:
    """A heading, what the schema describes, its fields as a table, and its rules."""
    parts = [f"## {path}", plain(schema.get("description", ""))]
    parts.append(table(("field", "type", "default", "description"), fields(schema)))
    if found := [rule["message"] for rule in rules(schema)]:
        parts.append("Rules:\n\n" + "\n".join(f"- {plain(message)}" for message in dict.fromkeys(found)))
    return "\n\n".join(filter(None, parts))


def fields(schema: dict[str, Any], prefix: str = "") -> Iterator[Sequence[str]]:
    """A row for each field, those of objects and of lists of objects after them."""
    required = schema.get("required", ())
    for name, field in schema.get("properties", {}).items():
        inner = field.get("items", field)
        default = code(field["default"]) if "default" in field else "required" if name in required else ""
        yield code(prefix + name), kind(field), default, plain(field.get("description", ""))
        yield from fields(inner, f"{prefix}{name}{'[]' if 'items' in field else ''}.")


def kind(field: dict[str, Any]) -> str:
    """The type of a field with its bounds."""
    if "enum" in field:
        return ", ".join(map(code, field["enum"]))
    if field.get("x-kubernetes-int-or-string"):
        return "integer or string"
    name = str(field.get("type", "any"))
    if name == "array":
        return f"list of {kind(field['items'])}" if "properties" not in field["items"] else "list of objects"
    least, most = field.get("minimum"), field.get("maximum")
    if least is not None and most is not None:
        return f"{name}, {least} to {most}"
    if least is not None:
        return f"{name}, at least {least}"
    return name if most is None else f"{name}, at most {most}"


def rules(schema: dict[str, Any]) -> Iterator[dict[str, str]]:
    """The CEL rules of a schema and of what is in it."""
    yield from schema.get("x-kubernetes-validations", ())
    for field in schema.get("properties", {}).values():
        yield from rules(field)
    if "items" in schema:
        yield from rules(schema["items"])


# The commands that run in pods.


def flags() -> str:
    """The flags of the three programs that pods run."""
    return page(
        "Flags",
        "Each flag is also a variable of the environment: the prefix below and the flag's name in upper case, with `_` "
        "for `-`. A flag takes precedence. `dragoman COMMAND --help` prints the same.",
        *(
            f"## dragoman {name}\n\nVariables: `{model.model_config.get('env_prefix')}…`\n\n"
            + table(("flag", "default", "description"), settings(model))
            for name, model in (
                ("serve", ServiceSettings),
                ("router", RouterSettings),
                ("operator", OperatorSettings),
            )
        ),
    )


def settings(model: type[CommandSettings]) -> Iterator[Sequence[str]]:
    """A row for each setting."""
    for name, field in model.model_fields.items():
        if field.is_required():
            shown = "required"
        elif field.default_factory in (None, dict):
            shown = "" if field.default in NOTHING else code(field.default)
        else:
            shown = "" if name == "host" else "the host name"
        yield code(flag(name)), shown, plain(field.description or "")


# The HTTP APIs.


def endpoints() -> str:
    """The paths that pods and routers serve."""
    return page(
        "Endpoints",
        "Engine pods and routers serve the same paths; routers also serve them below `/d/NAMESPACE/NAME/`, for one "
        "deployment. [HTTP APIs](api.md) describes the fields. `GET /openapi.json` has the schemas. "
        "Where keys are required, paths marked *no* need none.",
        table(
            ("API", "method", "path", "key", "what it does"),
            (
                (
                    API_NAMES.get(each.api.name, each.api.name),
                    ", ".join(sorted(each.methods)),
                    code(each.path),
                    "yes" if each.needs_key else "no",
                    plain(each.operation.summary),
                )
                for each in ENDPOINTS
                if each.operation is not None
            ),
        ),
    )


# The chart.


def chart() -> str:
    """The table of values in the chart's README, with links that hold on this page."""
    values = CHART.read_text(encoding="utf-8").partition("## Values\n")[2]
    lines = [line for line in values.splitlines() if line.startswith("|")]
    return page(
        "Chart values",
        "Values of `charts/dragoman`. `values.schema.json` refuses unknown names and wrong types.",
        "\n".join(lines).replace("../../docs/reference/", "").replace("../../docs/", "../"),
    )


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
