"""A plain page about the interface, written from its OpenAPI document; it loads nothing."""

from html import escape
from typing import Any

from fastapi import APIRouter, FastAPI
from starlette.responses import HTMLResponse, Response


def make_docs_route(app: FastAPI) -> APIRouter:
    """``/docs``."""
    router = APIRouter(include_in_schema=False)

    @router.get("/docs")
    async def docs() -> Response:
        return HTMLResponse(docs_page(app.openapi()))

    return router


def docs_page(document: dict[str, Any]) -> str:
    """All operations with their fields, as HTML without a script or a style."""
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8><title>Pellucid: interface</title>",
        f"<h1>Pellucid {escape(document['info']['version'])}</h1>",
        "<p>This page is made from <a href=/openapi.json>/openapi.json</a>.</p>",
    ]
    schemas = document["components"]["schemas"]
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            parts.append(f"<h2>{method.upper()} {escape(path)}</h2>")
            parts.append(f"<p>{escape(operation.get('description', ''))}</p>")
            content = operation.get("requestBody", {}).get("content", {})
            name = _schema_name(content.get("application/json", {}).get("schema", {}))
            if name:
                parts.append(_fields(f"Body: {name}", schemas[name]))
            answer = operation["responses"].get("200", {}).get("content", {})
            name = _schema_name(answer.get("application/json", {}).get("schema", {}))
            if name:
                parts.append(_fields(f"Answer: {name}", schemas[name]))
            statuses = ", ".join(sorted(operation["responses"]))
            parts.append(f"<p>Statuses: {escape(statuses)}</p>")
    return "\n".join(parts) + "</html>"


def _fields(title: str, schema: dict[str, Any]) -> str:
    rows = "".join(
        f"<tr><td><code>{escape(name)}</code><td>{escape(_type_of(field))}"
        f"<td>{escape(field.get('description', ''))}"
        for name, field in schema.get("properties", {}).items()
    )
    return f"<h3>{escape(title)}</h3><table><tr><th>Field<th>Type<th>Meaning{rows}</table>"


def _type_of(field: dict[str, Any]) -> str:
    if "anyOf" in field:
        return " or ".join(_type_of(each) for each in field["anyOf"])
    if "$ref" in field:
        return str(field["$ref"]).rpartition("/")[2]
    if field.get("type") == "array":
        return f"list of {_type_of(field.get('items', {}))}"
    return str(field.get("type", "any"))


def _schema_name(schema: dict[str, Any]) -> str:
    return str(schema.get("$ref", "")).rpartition("/")[2]
