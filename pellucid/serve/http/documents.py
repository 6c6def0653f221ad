"""The routes of documents: upload, progress and download, and those of LibreTranslate's clients."""

import contextlib
import hashlib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pydantic
from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, Response

from pellucid.documents.names import ending_of
from pellucid.serve.documents import Documents, DocumentState
from pellucid.serve.http.libretranslate import choose_model
from pellucid.serve.http.routes import documented
from pellucid.serve.marked import WARNINGS_HEADER
from pellucid.serve.server.auth import key_of
from pellucid.serve.server.body import Upload, while_connected
from pellucid.serve.server.errors import Fault, InvalidError, NotFoundError
from pellucid.serve.server.guard import UPLOAD
from pellucid.serve.service import Service
from pellucid.serve.shelf import FolderFiles, MemoryFiles, Shelf

UPLOADS = frozenset(("/v1/documents", "/translate_file"))
"""Paths that take a file."""
DOWNLOADS = "/download_file/"
"""The beginning of the addresses of LibreTranslate's downloads. They need no key, as
LibreTranslate's need none: the rest of an address is a secret of its own."""
_TYPES = {
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    "odt": "application/vnd.oasis.opendocument.text",
    "epub": "application/epub+zip",
}


class TranslatedFile(pydantic.BaseModel):
    """Where a translated file can be had."""

    translatedFileUrl: str  # noqa: N815  # LibreTranslate's name


def _form(*fields: str, required: tuple[str, ...] = ()) -> dict[str, Any]:
    """The form of an upload in OpenAPI."""
    properties: dict[str, Any] = {name: {"type": "string"} for name in fields}
    properties["file"] = {"type": "string", "format": "binary"}
    schema = {"type": "object", "properties": properties, "required": ["file", *required]}
    return {
        "requestBody": {"required": True, "content": {"multipart/form-data": {"schema": schema}}}
    }


def make_document_routes(service: Service, shared: Path | None = None) -> APIRouter:
    """``/v1/documents`` and LibreTranslate's ``/translate_file``.

    A document is in the memory of one process; of several workers on one address each finds those
    of the others in the folder ``shared``.
    """
    router = APIRouter()
    files = MemoryFiles() if shared is None else FolderFiles(shared)
    limits = service.limits
    shelf = Shelf(files, seconds=limits.max_document_seconds, most=limits.max_documents)
    documents = Documents(service, shelf)

    def uploaded(request: Request, known: Collection[str]) -> Upload:
        upload: Upload = request.scope["state"][UPLOAD]
        faults = [Fault(name, "is not a field", "") for name in upload.fields if name not in known]
        if faults:
            raise InvalidError(faults)
        return upload

    @router.post(
        "/v1/documents",
        response_model=DocumentState,
        status_code=202,
        responses=documented(404, 422, 429),
        openapi_extra=_form("model", "columns", "keep_numbers", "guard_cells", "glossary"),
    )
    async def upload_document(request: Request) -> Response:
        """Begin to translate a file; its format is that of its name. ``columns`` are those of a
        table, with commas between; ``keep_numbers`` and ``guard_cells``, which puts an apostrophe
        before cells that a spreadsheet may run, are ``true`` or ``false``; ``glossary`` names one
        from ``GET /v1/models``, whose terms are in the translation.
        """
        known = ("model", "columns", "keep_numbers", "guard_cells", "glossary", "api_key")
        upload = uploaded(request, known)
        fields = upload.fields
        state = await documents.add(
            _client(request, fields),
            fields.get("model"),
            upload.name,
            upload.data,
            columns=fields.get("columns", ""),
            keep_numbers=_flag(fields, "keep_numbers"),
            guard_cells=_flag(fields, "guard_cells"),
            glossary=fields.get("glossary"),
        )
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
        return _file(*await documents.file(key))

    @router.post(
        "/translate_file",
        response_model=TranslatedFile,
        responses=documented(404, 422, 429),
        openapi_extra=_form(
            "source", "target", "api_key", "glossary", required=("source", "target")
        ),
        tags=["LibreTranslate"],
    )
    async def translate_file(request: Request) -> Response:
        """Translate a file as LibreTranslate does, and answer with the translation's address."""
        known = ("source", "target", "api_key", "glossary")
        upload = uploaded(request, known)
        for name in ("source", "target"):
            if name not in upload.fields:
                raise InvalidError([Fault(name, "is required", "")])
        model = choose_model(service, upload.fields["source"], upload.fields["target"])
        begun = await documents.add(
            _client(request, upload.fields),
            model.place.name,
            upload.name,
            upload.data,
            glossary=upload.fields.get("glossary"),
        )
        try:
            found = await while_connected(request.receive, documents.ended(begun.id))
        except BaseException:
            # Nobody else knows of it: the client has gone, or its time is up.
            with contextlib.suppress(NotFoundError):
                documents.drop(begun.id)
            raise

        if found.state == "failed":
            with contextlib.suppress(NotFoundError):
                documents.drop(begun.id)
            reason = f": {found.detail}" if found.detail else ""
            raise InvalidError([Fault("file", f"cannot be translated{reason}", "")])
        address = f"{DOWNLOADS.lstrip('/')}{found.id}.{ending_of(found.name)}"
        base = str(request.base_url)
        if request.headers.get("x-forwarded-proto", "").lower() == "https":
            base = base.replace("http://", "https://", 1)  # a proxy before this server has TLS
        # The answer has no place for why segments should not be trusted.
        counted = ", ".join(f"{kind};count={count}" for kind, count in found.warnings.items())
        headers = {WARNINGS_HEADER: counted} if counted else {}
        return JSONResponse({"translatedFileUrl": f"{base}{address}"}, headers=headers)

    @router.get(
        "/download_file/{name}",
        response_class=Response,
        responses={
            **documented(404),
            200: {"content": {"application/octet-stream": {"schema": {"type": "string"}}}},
        },
        tags=["LibreTranslate"],
    )
    async def download_file(name: str) -> Response:
        """The file whose address ``/translate_file`` gave."""
        return _file(*await documents.file(name.partition(".")[0]))

    return router


def _client(request: Request, fields: Mapping[str, str]) -> str:
    """Whoever sent a request: a hash of the key, or without one the address."""
    key = key_of(request.headers) or fields.get("api_key")
    address = request.client.host if request.client else ""
    return hashlib.sha256((key or address).encode()).hexdigest()


def _flag(fields: Mapping[str, str], name: str) -> bool:
    value = fields.get(name, "false")
    if value not in ("true", "false"):
        raise InvalidError([Fault(name, "must be true or false", value)])
    return value == "true"


def _file(name: str, data: bytes) -> Response:
    """A download: never shown by a browser as a page of this server."""
    return Response(
        data,
        media_type=_TYPES.get(ending_of(name), "application/octet-stream"),
        headers={"content-disposition": f"attachment; filename*=UTF-8''{quote(name)}"},
    )
