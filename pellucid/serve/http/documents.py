"""The routes of documents: upload, progress and download."""

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, Response

from pellucid.documents.names import ending_of
from pellucid.serve.documents import Documents, DocumentState
from pellucid.serve.http.parsed import ParsedRoute
from pellucid.serve.http.routes import documented
from pellucid.serve.server.auth import key_of
from pellucid.serve.server.body import VALUE
from pellucid.serve.server.errors import FieldProblem, InvalidError, refuse
from pellucid.serve.server.forms import Upload, read_upload
from pellucid.serve.server.rules import Rulebook, Rules
from pellucid.serve.service import Service
from pellucid.serve.shelf import FolderFiles, MemoryFiles, Order, Shelf, new_key

RULES = Rulebook(exact={"/v1/documents": Rules(read=read_upload, is_upload=True)})
_FIELDS = ("model", "columns", "keep_numbers", "guard_cells", "glossary", "below", "doubtful")
"""The fields of an upload, beside the file."""
_TYPES = {
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    "odt": "application/vnd.oasis.opendocument.text",
    "epub": "application/epub+zip",
}


def form_schema(*fields: str, required: tuple[str, ...] = ()) -> dict[str, Any]:
    """The form of an upload in OpenAPI."""
    properties: dict[str, Any] = {name: {"type": "string"} for name in fields}
    properties["file"] = {"type": "string", "format": "binary"}
    schema = {"type": "object", "properties": properties, "required": ["file", *required]}
    return {
        "requestBody": {"required": True, "content": {"multipart/form-data": {"schema": schema}}}
    }


def make_documents(service: Service, shared: Path | None) -> Documents:
    """A document is in the memory of one process; of several workers on one address each finds
    those of the others in the folder ``shared``.
    """
    files = MemoryFiles() if shared is None else FolderFiles(shared)
    limits = service.limits
    shelf = Shelf(files, seconds=limits.max_document_seconds, most=limits.max_documents)
    return Documents(service, shelf)


def uploaded(request: Request, *known: str) -> Upload:
    """The file and fields of a request. Raises InvalidError for other fields than ``known``."""
    upload: Upload = request.scope["state"][VALUE]
    others = [name for name in upload.fields if name not in known]
    refuse([FieldProblem(name, "is not a field", "") for name in others])
    return upload


def make_document_routes(documents: Documents) -> APIRouter:
    """``/v1/documents``."""
    router = APIRouter(route_class=ParsedRoute)

    @router.post(
        "/v1/documents",
        response_model=DocumentState,
        status_code=202,
        responses=documented(404, 422, 429),
        openapi_extra=form_schema(*_FIELDS),
    )
    async def upload_document(request: Request) -> Response:
        """Begin to translate a file; its format is that of its name. ``columns`` are those of a
        table, with commas between; ``keep_numbers`` and ``guard_cells``, which puts an apostrophe
        before cells that a spreadsheet may run, are ``true`` or ``false``; ``glossary`` names one
        from ``GET /v1/models``, whose terms are in the translation. Segments whose quality is less
        than ``below`` (0 to 1) get a mark, or with ``doubtful=leave`` stay as they are.
        """
        upload = uploaded(request, *_FIELDS, "api_key")
        fields = upload.fields

        columns = map(str.strip, fields.get("columns", "").split(","))
        order = Order(
            new_key(),
            client_of(request, fields),
            fields.get("model"),
            upload.name,
            columns=tuple(filter(None, columns)),
            keep_numbers=_flag(fields, "keep_numbers"),
            guard_cells=_flag(fields, "guard_cells"),
            glossary=fields.get("glossary"),
            below=_quality(fields),
            doubtful=_doubtful(fields),
        )
        state = await documents.add(order, upload.data)
        return JSONResponse(state.model_dump(), status_code=202)

    @router.get("/v1/documents/{key}", response_model=DocumentState, responses=documented(404))
    async def document_state(key: str) -> Response:
        """How far a document is."""
        return JSONResponse(documents.state(key).model_dump())

    @router.delete("/v1/documents/{key}", status_code=204, responses=documented(404))
    async def forget_document(key: str) -> Response:
        """Forget a document, and end its translation."""
        documents.drop(key)
        return Response(status_code=204)

    @router.get(
        "/v1/documents/{key}/file",
        response_class=Response,
        responses={
            **documented(404),
            200: {"content": {"application/octet-stream": {"schema": {"type": "string"}}}},
        },
    )
    async def document_file(key: str) -> Response:
        """The translated file."""
        return file_of(*await documents.file(key))

    return router


def client_of(request: Request, fields: Mapping[str, str]) -> str:
    """Whoever sent a request: a hash of the key, or without one the address."""
    key = key_of(request.headers) or fields.get("api_key")
    address = request.client.host if request.client else ""
    return hashlib.sha256((key or address).encode()).hexdigest()


def _flag(fields: Mapping[str, str], name: str) -> bool:
    value = fields.get(name, "false")
    if value not in ("true", "false"):
        raise InvalidError([FieldProblem(name, "must be true or false", value)])
    return value == "true"


def _quality(fields: Mapping[str, str]) -> float | None:
    given = fields.get("below")
    if given is None:
        return None
    # as JSON writes a number, and nothing that float() takes besides
    if not re.fullmatch(r"[01](\.[0-9]{1,10})?", given) or float(given) > 1:
        raise InvalidError([FieldProblem("below", "must be a number from 0 to 1", given)])
    return float(given)


def _doubtful(fields: Mapping[str, str]) -> Literal["mark", "leave"]:
    value = fields.get("doubtful", "mark")
    if value not in ("mark", "leave"):
        raise InvalidError([FieldProblem("doubtful", "must be mark or leave", value)])
    return "leave" if value == "leave" else "mark"


def file_of(name: str, data: bytes) -> Response:
    """A download: never shown by a browser as a page of this server."""
    return Response(
        data,
        media_type=_TYPES.get(ending_of(name), "application/octet-stream"),
        headers={"content-disposition": f"attachment; filename*=UTF-8''{quote(name)}"},
    )
