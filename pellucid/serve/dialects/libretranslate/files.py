"""LibreTranslate's routes of files: one request that waits for the file, and its download."""

import contextlib

import pydantic
from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, Response

from pellucid.documents.names import ending_of
from pellucid.serve.dialects.choosing import choose_model
from pellucid.serve.documents import Documents
from pellucid.serve.http.documents import client_of, file_of, form_schema, uploaded
from pellucid.serve.http.parsed import ParsedRoute
from pellucid.serve.http.routes import documented
from pellucid.serve.marked import WARNINGS_HEADER
from pellucid.serve.server.body import while_connected
from pellucid.serve.server.errors import FieldProblem, InvalidError, NotFoundError, refuse
from pellucid.serve.service import Service
from pellucid.serve.shelf import Order, new_key


class TranslatedFile(pydantic.BaseModel):
    """Where a translated file can be had."""

    translatedFileUrl: str  # noqa: N815  # LibreTranslate's name


def make_file_routes(service: Service, documents: Documents) -> APIRouter:
    """``/translate_file`` and ``/download_file``."""
    router = APIRouter(tags=["LibreTranslate"], route_class=ParsedRoute)

    @router.post(
        "/translate_file",
        response_model=TranslatedFile,
        responses=documented(429),
        openapi_extra=form_schema(
            "source", "target", "api_key", "glossary", required=("source", "target")
        ),
    )
    async def translate_file(request: Request) -> Response:
        """Translate a file as LibreTranslate does, and answer with the translation's address."""
        upload = uploaded(request, "source", "target", "api_key", "glossary")
        missing = [name for name in ("source", "target") if name not in upload.fields]
        refuse([FieldProblem(name, "is required", "") for name in missing])
        model = choose_model(service, upload.fields["source"], upload.fields["target"])
        client, glossary = client_of(request, upload.fields), upload.fields.get("glossary")
        order = Order(new_key(), client, model.place.name, upload.name, glossary=glossary)
        begun = await documents.add(order, upload.data)
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
            raise InvalidError([FieldProblem("file", f"cannot be translated{reason}", "")])
        address = f"download_file/{found.id}.{ending_of(found.name)}"
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
    )
    async def download_file(name: str) -> Response:
        """The file whose address ``/translate_file`` gave."""
        return file_of(*await documents.file(name.partition(".")[0]))

    return router
