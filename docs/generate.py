"""Writes the pages of the reference that follow from the code; `make reference` runs it, and a test compares.

The pages on models and on the CRD's copies have commands of their own: `dragoman models`, `dragoman crd`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from dragoman_contract.metrics import by_section
from dragoman_operator import metric_definitions as metrics_of_operators
from dragoman_operator.api.crd import custom_resource_definition
from dragoman_operator.api.fields import DURATION_PATTERN
from dragoman_operator.settings import Settings as OperatorSettings
from dragoman_protocols.routes import ENDPOINTS
from dragoman_router import metric_definitions as metrics_of_routers
from dragoman_router.settings import Settings as RouterSettings
from dragoman_service import metric_definitions as metrics_of_pods
from dragoman_service.settings import Settings as ServiceSettings
from dragoman_system.command_line import CommandSettings, flag

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
    "browser-extensions": "DeepLX",
    "crowdin": "Crowdin",
}
"""In words, by the name of an API; another name is shown as it is."""
API_OF_PATH = {"/imme": "Immersive Translate"}
"""The same for a path: `browser-extensions` has the APIs of two extensions."""


def pages() -> dict[Path, str]:
    """The text of each generated page."""
    return {
        **{REFERENCE / f"{name}.md": text for name, text in custom_resource().items()},
        **{REFERENCE / f"flags-{name}.md": flags(name, *about) for name, about in PROGRAMS.items()},
        REFERENCE / "endpoints.md": endpoints(),
        REFERENCE / "chart.md": chart(),
        REFERENCE / "metrics.md": metrics(),
    }


def page(title: str, introduction: str, *sections: str) -> str:
    """A page of paragraphs and tables."""
    return "\n\n".join((f"# {title}", NOTE, introduction, *sections)) + "\n"


def table(head: Sequence[str], rows: Iterator[Sequence[str]]) -> str:
    """A table in Markdown; cells are Markdown."""
    lines = ["| " + " | ".join(cells) + " |" for cells in (head, ["---"] * len(head), *rows)]
    return "\n".join(lines)


def plain(text: str, names: Sequence[str] = ()) -> str:
    """Text as a cell of a table: without markup, but for code in backticks, and with its line breaks.

    A name before a colon at the start of a line is code.
    """
    for name in names:
        text = re.sub(rf"^{re.escape(name)}(?=: )", f"`{name}`", text, flags=re.MULTILINE)
    parts = text.split("`")
    for at, part in enumerate(parts):
        for sign in ("\\", "|", "*") if at % 2 == 0 else ("|",):
            part = part.replace(sign, f"\\{sign}")
        parts[at] = f"`{part}`" if at % 2 else part.replace("<", "&lt;")
    return "<br>".join(" ".join(line.split()) for line in "".join(parts).splitlines())


def code(value: Any) -> str:
    """A value as a cell of a table; true and false as YAML has them."""
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return f"`{text.replace('|', chr(92) + '|')}`"


# The custom resource.


EXAMPLE = """```yaml
apiVersion: dragoman.io/v1alpha1
kind: TranslationDeployment
metadata: {name: european}
spec:
  model: {uri: hf://tencent/Hy-MT2-7B, promptFamily: hy-mt2}
  languages: [{source: en, targets: [de, fr]}]
  resources:
    limits: {nvidia.com/gpu: 1}
```"""

TERMS = {
    "deployment": "**Deployment**: a [TranslationDeployment](translationdeployment.md), the custom resource of a model "
    "and its engine pods.",
    "replica": "**Replica**: an engine pod, which runs vLLM and serves the [HTTP APIs](api.md).",
    "router": "**Router**: an optional proxy in front of all TranslationDeployments ([router](router.md)).",
    "segment": "**Segment**: a part of a text, such as a paragraph or a sentence. The model translates each segment "
    "separately.",
    "sequence": "**Sequence**: one run of the model, to translate one segment into one language. vLLM's metrics call "
    "it a request.",
    "caller": "**Caller**: a client with an API key or a token. [Keys, limits, TLS](router.md#keys-limits-tls) "
    "describes keys, tokens and the fields of their limits.",
    "duration": "**Duration**: a string such as `90s`, `2m` or `1h30m`.",
}


def terms(*names: str) -> str:
    """What some words mean that a page uses."""
    return "\n".join(("These words are used below:\n", *(f"- {TERMS[name]}" for name in names)))


MORE = {
    "spec.model": "[Models](models.md)",
    "spec.admission": "[Admission and overload](engine-pod.md#admission-and-overload)",
    "spec.translation": "[Segments](../explanation/text.md#segments)",
    "spec.glossary": "[Glossary](engine-pod.md#glossary)",
    "spec.autoscaling": "[Autoscaling](../how-to/autoscaling.md)",
    "spec.tuning": "[Tuning](../how-to/tuning.md)",
    "spec.rollout": "[Rollouts](../how-to/rollouts.md)",
    "status": "[Reading the status](../how-to/autoscaling.md#reading-the-status), "
    "[conditions](../how-to/troubleshooting.md)",
}
"""Links to what is said elsewhere about a section."""

CONVENTIONS = """\
- A field is optional unless the column *default* says *required*.
- Secrets, ConfigMaps and PersistentVolumeClaims must be in the namespace of the TranslationDeployment."""

REJECTED = "The API server rejects an object that breaks a rule, with one of these messages:"


SCALING = ("autoscaling", "tuning", "rollout")
"""Sections of the spec with a page of their own."""


def custom_resource() -> dict[str, str]:
    """Pages with each field of the CRD, by the sections of its spec."""
    version = custom_resource_definition()["spec"]["versions"][0]
    root = version["schema"]["openAPIV3Schema"]
    spec, status = (dict(root["properties"][name]) for name in ("spec", "status"))
    across = [*root["x-kubernetes-validations"], *spec.pop("x-kubernetes-validations")]
    small = {name: field for name, field in spec["properties"].items() if not field.get("properties")}
    sections = {
        name: section(f"spec.{name}", field)
        for name, field in spec["properties"].items()
        if name not in small
    }
    scaling = [sections.pop(name) for name in SCALING]
    general = page(
        "TranslationDeployment",
        "A TranslationDeployment is a translation model and the pods that serve it. The operator creates these pods.",
        EXAMPLE,
        f"This page lists the fields of `dragoman.io/{version['name']}`, except "
        "[scaling, tuning and rollouts](translationdeployment-scaling.md) and the "
        "[status](translationdeployment-status.md). "
        "`kubectl explain td.spec` prints the same descriptions.",
        CONVENTIONS,
        terms("replica", "router", "segment", "sequence", "duration"),
        section("spec", {**spec, "properties": small}),
        *sections.values(),
        f"## Rules for several sections\n\n{REJECTED}\n\n{messages(across)}",
    )
    of_scaling = page(
        "TranslationDeployment: scaling, tuning, rollouts",
        "These sections of a [TranslationDeployment](translationdeployment.md) determine how many engine pods there "
        "are, and how they are replaced.",
        CONVENTIONS,
        terms("deployment", "replica", "router", "segment", "sequence", "duration"),
        *scaling,
    )
    of_status = page(
        "TranslationDeployment: status",
        "The operator writes these fields of a [TranslationDeployment](translationdeployment.md).",
        terms("replica", "router", "segment", "sequence"),
        section("status", status, written_by_users=False),
    )
    return {
        "translationdeployment": general,
        "translationdeployment-scaling": of_scaling,
        "translationdeployment-status": of_status,
    }


def section(path: str, schema: dict[str, Any], *, written_by_users: bool = True) -> str:
    """A heading, what the schema describes, its fields as a table, and its rules."""
    more = f" More: {MORE[path]}." if path in MORE else ""
    parts = [f"## {path}", plain(schema.get("description", "")) + more]
    if written_by_users:
        parts.append(table(("field", "type", "default", "description"), fields(schema)))
    else:
        rows = ((name, kind, text) for name, kind, _, text in fields(schema))
        parts.append(table(("field", "type", "description"), rows))
    if found := messages(rules(schema)):
        parts.append(f"{REJECTED}\n\n{found}")
    return "\n\n".join(filter(None, parts))


def fields(schema: dict[str, Any], prefix: str = "") -> Iterator[Sequence[str]]:
    """A row for each field, those of objects and of lists of objects after them."""
    required = schema.get("required", ())
    for name, field in schema.get("properties", {}).items():
        description = field.get("description", "")
        stripped = description.removeprefix("Required. ")
        inner = field.get("items", field)
        default = code(field["default"]) if field.get("default", {}) != {} else ""
        if name in required or stripped != description:
            default = "required"
        yield code(prefix + name), kind(field), default, plain(stripped, field.get("enum", ()))
        yield from fields(inner, f"{prefix}{name}{'[]' if 'items' in field else ''}.")


def kind(field: dict[str, Any]) -> str:
    """The type of a field with its bounds."""
    if "enum" in field:
        return ", ".join(map(code, field["enum"]))
    if field.get("x-kubernetes-int-or-string"):
        return "quantity"
    if field.get("pattern") == DURATION_PATTERN:
        return "duration"
    if field.get("format") == "date-time":
        return "date and time"
    name = str(field.get("type", "any"))
    if name == "array":
        inner = kind(field["items"])
        return "list of " + ("objects" if inner == "object" else "strings" if inner == "string" else inner)
    least, most = field.get("minimum"), field.get("maximum")
    if least is not None and most is not None:
        above = f"above {least}, at most" if field.get("exclusiveMinimum") else f"{least} to"
        return f"{name}, {above} {most}"
    return name if most is None else f"{name}, at most {most}"


def messages(found: Iterable[dict[str, str]]) -> str:
    """The messages of rules as a list, each once, without what the table says."""
    texts = dict.fromkeys(rule["message"] for rule in found)
    return "\n".join(f"- {plain(text)}" for text in texts if not text.endswith(": Field required"))


def rules(schema: dict[str, Any]) -> Iterator[dict[str, str]]:
    """The CEL rules of a schema and of what is in it."""
    yield from schema.get("x-kubernetes-validations", ())
    for field in schema.get("properties", {}).values():
        yield from rules(field)
    if "items" in schema:
        yield from rules(schema["items"])


# The commands that run in pods.


PROGRAMS: dict[str, tuple[str, type[CommandSettings], tuple[str, ...]]] = {
    "serve": (
        "`dragoman serve` is the program of an [engine pod](engine-pod.md). In a cluster the operator sets its flags "
        "[from the spec](engine-pod.md#fields-and-flags) of a TranslationDeployment.",
        ServiceSettings,
        ("deployment", "router", "segment", "sequence"),
    ),
    "router": (
        "`dragoman router` is a [proxy](router.md) in front of all TranslationDeployments. In a cluster the chart sets "
        "its flags [from the chart values](chart.md).",
        RouterSettings,
        ("deployment", "replica", "caller"),
    ),
    "operator": (
        "`dragoman operator` creates and scales engine pods. In a cluster the chart sets its flags "
        "[from the chart values](chart.md).",
        OperatorSettings,
        ("deployment", "replica", "router"),
    ),
}
"""The programs that pods run: subcommand, description, settings, and words that the settings use."""


def flags(name: str, about: str, model: type[CommandSettings], words: Sequence[str]) -> str:
    """The flags of a program that pods run."""
    prefix = str(model.model_config.get("env_prefix"))
    rows = list(settings(model))
    switch = next(
        forms for forms, default, _ in rows if default in ("`true`", "`false`") and ", " not in forms
    ).strip("`-")
    opposites = [forms for forms, *_ in rows if ", " in forms]
    example = next(each for each in model.model_fields if each.startswith("max_") or "namespace" in each)
    return page(
        f"Flags of dragoman {name}",
        about,
        f"**Environment variables**: each flag has one, such as `{prefix}{example.upper()}` for "
        f"`{flag(example)}`. If both are set, the flag takes precedence.",
        f"**Boolean flags** need a value: `--{switch}=false`."
        + (
            f" Exception: flags that the table lists with their opposite, such as {opposites[0]}."
            if opposites
            else ""
        ),
        terms(*words),
        table(("flag", "default", "description"), iter(rows)),
    )


def settings(model: type[CommandSettings]) -> Iterator[Sequence[str]]:
    """A row for each setting."""
    made = {"router_id": "the host name", "identity": "the host name and a random suffix"}
    for name, field in model.model_fields.items():
        if field.is_required():
            shown = "required"
        elif field.default_factory is None:
            shown = "" if field.default in (*NOTHING, {}) else code(field.default)
        else:
            shown = made.get(name, "")
        forms = code(flag(name))
        if any("ImplicitFlag" in getattr(each, "__name__", "") for each in field.metadata):
            forms += f", {code(flag(f'no_{name}'))}"
        yield forms, shown, f"{plain(field.description or '')}{choices(field)}"


def choices(field: FieldInfo) -> str:
    """The values of a setting that allows some only, as a sentence; empty for others."""
    options = (field.annotation, *get_args(field.annotation))
    values = next((get_args(each) for each in options if get_origin(each) is Literal), ())
    return f" Values: {', '.join(map(code, values))}." if values else ""


# The HTTP APIs.


def endpoints() -> str:
    """The paths that pods and routers serve."""
    return page(
        "Endpoints",
        "This page lists the HTTP endpoints for clients. [HTTP APIs](api.md) describes their fields. "
        "`GET /openapi.json` returns the schemas.",
        "- [Engine pods](engine-pod.md) run the model. [Routers](router.md) are proxies in front of them. Both serve "
        "the paths on this page. Exception: only routers serve `/fleet`.\n"
        "- A router chooses a [TranslationDeployment](translationdeployment.md), a set of engine pods, by the language "
        "pair. Below `/d/NAMESPACE/NAME/` it serves the same paths: requests go only to the TranslationDeployment NAME "
        "in NAMESPACE.\n"
        "- *native* is Dragoman's own API.\n"
        "- *needs API key*: whether requests need an API key or a token, if the router "
        "[requires them](router.md#keys-limits-tls). Engine pods check no keys. *unless public*: only with "
        "`--no-public-lists`.",
        "Several APIs share the paths `/translate`, `/detect` and `/languages`. The first row that matches a request "
        "decides:",
        table(
            ("request", "API"),
            iter(
                (
                    ("query parameter `api-version` or header `Ocp-Apim-Subscription-Key`", "Azure"),
                    ("`/translate`, JSON with the field `q`", "LibreTranslate"),
                    ("`/translate`, any other JSON", "native"),
                    (
                        "`/translate`, a form (URL-encoded or multipart) or the query parameter `q`",
                        "LibreTranslate",
                    ),
                    ("`/detect` and `/languages` otherwise", "LibreTranslate"),
                )
            ),
        ),
        "All endpoints:",
        table(
            ("API", "method", "path", "needs API key", "what it does"),
            (
                (
                    API_OF_PATH.get(each.path) or API_NAMES.get(each.api.name, each.api.name),
                    ", ".join(sorted(each.methods)),
                    code(each.path),
                    "unless public" if each.is_public else "yes" if each.needs_key else "no",
                    plain(each.operation.summary),
                )
                for each in ENDPOINTS
                if each.operation is not None
            ),
        ),
    )


# The metrics.


def metrics() -> str:
    """The page of metrics: tables of the definitions in a text that is written by hand."""
    text = (REFERENCE / "metrics.md").read_text(encoding="utf-8")
    for part in (metrics_of_pods, metrics_of_routers, metrics_of_operators):
        for title, defined in by_section(vars(part)).items():
            rows = ((code(each.name), each.kind, ", ".join(each.labels), each.about) for each in defined)
            labels = "more labels" if title == "TranslationDeployments" else "labels"
            made = table(("name", "type", labels, "description"), rows)
            old = re.search(
                rf"^##+ {title}\n(?:(?!##|\| name )[^\n]*\n)*((?:\|[^\n]*\n)+)", text, re.MULTILINE
            )
            if old is None:
                raise ValueError(f"metrics.md needs a section {title!r} with a table of metrics")
            text = f"{text[: old.start(1)]}{made}\n{text[old.end(1) :]}"
    return text


# The chart.


def chart() -> str:
    """The table of values in the chart's README, with links that hold on this page, in a section for each part."""
    values = CHART.read_text(encoding="utf-8").partition("## Values\n")[2]
    values = values.replace("../../docs/reference/", "").replace("../../docs/", "../")
    head, rule, *rows = [line for line in values.splitlines() if line.startswith("|")]
    router = [row for row in rows if row.startswith("| `router.")]
    operator = [row for row in rows if row not in router]
    introduction = values.partition("|")[0].strip()
    return page(
        "Chart values",
        f"These are the values of the Helm chart `charts/dragoman`. {introduction}",
        "## Operator and release",
        "\n".join((head, rule, *operator)),
        "## Routers",
        "[Routers](router.md) are optional proxies in front of all TranslationDeployments.",
        "\n".join((head, rule, *router)),
    )


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
