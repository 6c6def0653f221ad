"""The page ``/docs``, made from the OpenAPI document, in the style of the page that translates.

It loads no script. Its examples are in the language that the first model reads.
"""

import dataclasses
import json
import re
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from starlette.responses import HTMLResponse, Response

from pellucid.serve.models import LoadedModel
from pellucid.serve.server.rules import Rulebook, Rules
from pellucid.text.languages import sentence_in


@dataclasses.dataclass(frozen=True)
class Sample:
    """A sentence for the examples, and the languages of the model that reads it."""

    text: str = "A dog runs."
    source: str = "en"
    target: str = "de"


def sample_of(models: Sequence[LoadedModel]) -> Sample:
    """The sample for the first model; in English where no sentence in its language is known."""
    if not models:
        return Sample()
    source, target = models[0].source_language, models[0].target_language
    return Sample(sentence_in(source) or Sample.text, source, target)


def own_examples(sample: Sample) -> dict[str, Any]:
    """An example body for each path of our own interface that takes one."""
    text = sample.text
    return {
        "/v1/translate": {"text": text, "alternatives": 2, "alignment": True, "confidences": True},
        "/v1/alternatives": {"text": text, "prefix": [], "count": 3},
        "/v1/inspect": {"text": text, "only": ["decoder.*.cross_attention.weights"]},
        "/v1/walk": {"text": text, "format": "html"},
    }


_STYLES = ("ui/ui", "ui/page", "docs")
_CODE = re.compile(r"`+([^`]+)`+")
_READ_BY_PEOPLE = Rules(asks_in_browser=True)
RULES = Rulebook({"/docs": _READ_BY_PEOPLE, "/openapi.json": _READ_BY_PEOPLE})


def complete(document: dict[str, Any], examples: Mapping[str, Any]) -> dict[str, Any]:
    """The document with these examples of bodies by path, and with code marked as Markdown."""
    for path, body in examples.items():
        content = document["paths"][path]["post"]["requestBody"]["content"]
        content["application/json"]["example"] = body
    found: dict[str, Any] = _with_markdown(document)
    return found


def _with_markdown(value: Any) -> Any:
    """Descriptions converted: docstrings mark code with two backticks, Markdown with one."""
    match value:
        case dict():
            return {
                name: _CODE.sub(r"`\1`", each)
                if name == "description" and isinstance(each, str)
                else _with_markdown(each)
                for name, each in value.items()
            }
        case list():
            return [_with_markdown(each) for each in value]
        case _:
            return value


def make_docs_route(app: FastAPI) -> APIRouter:
    """``/docs``."""
    router = APIRouter(include_in_schema=False)

    @router.get("/docs")
    async def docs(request: Request) -> Response:
        return HTMLResponse(docs_page(app.openapi(), request.headers["host"]))

    return router


def docs_page(document: dict[str, Any], host: str) -> str:
    """All operations with their fields, as HTML."""
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8><title>Pellucid: interface</title>",
        "<meta name=viewport content='width=device-width, initial-scale=1'>",
        *(f"<link rel=stylesheet href=/static/{each}.css>" for each in _STYLES),
        f"<h1>Pellucid {escape(document['info']['version'])}</h1>",
        f"<p>{_rendered(document['info'].get('description', ''))}</p>",
        "<p>This page is made from <a href=/openapi.json>/openapi.json</a>.</p>",
    ]

    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            parts += _operation(method, path, operation, host)

    parts.append("<h2>Types</h2>")
    for name, schema in document["components"]["schemas"].items():
        parts.append(_fields(name, schema))
    return "\n".join(parts) + "</html>"


def _operation(method: str, path: str, operation: dict[str, Any], host: str) -> list[str]:
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    answer = operation["responses"].get("200", {}).get("content", {}).get("application/json", {})
    statuses = ", ".join(sorted(operation["responses"]))
    parts = [
        f"<h2>{method.upper()} {escape(path)}</h2>",
        f"<p>{_rendered(operation.get('description', ''))}</p>",
        f"<pre>{escape(_command(f'{host}{path}', body.get('example')))}</pre>",
    ]
    for label, content in (("Body", body), ("Answer", answer)):
        if kind := _type_of(content.get("schema", {}), ""):
            parts.append(f"<p>{label}: {kind}</p>")
    parts.append(f"<p>Statuses: {escape(statuses)}</p>")
    return parts


def _command(address: str, body: dict[str, Any] | None) -> str:
    """A curl command for the request."""
    if body is None:
        return f"curl -s {address}"
    content = json.dumps(body, ensure_ascii=False)
    return f"curl -s {address} -H 'Content-Type: application/json' \\\n  -d '{content}'"


def _fields(name: str, schema: dict[str, Any]) -> str:
    rows = "".join(
        f"<tr><td><code>{escape(field)}</code><td>{_type_of(each)}"
        f"<td>{_rendered(each.get('description', ''))}"
        for field, each in schema.get("properties", {}).items()
    )
    return (
        f"<h3 id={escape(name)}>{escape(name)}</h3>"
        f"<p>{_rendered(schema.get('description', ''))}</p>"
        f"<table><tr><th>Field<th>Type<th>Meaning{rows}</table>"
    )


def _rendered(text: str) -> str:
    """Our Markdown as HTML: text, and code between backticks."""
    return _CODE.sub(r"<code>\1</code>", escape(text))


def _type_of(field: dict[str, Any], unknown: str = "any") -> str:
    """A type in words, as HTML; our own types link to their fields."""
    # An optional field is "anyOf" its type and null.
    if "anyOf" in field:
        return " or ".join(_type_of(each) for each in field["anyOf"])
    if "$ref" in field:
        name = escape(str(field["$ref"]).rpartition("/")[2])
        return f"<a href=#{name}>{name}</a>"
    if field.get("type") == "array":
        return f"list of {_type_of(field.get('items', {}))}"
    return escape(str(field.get("type", unknown)))
