"""The web page and its files: read once at the start, found by exact name, sent from memory."""

import dataclasses
import hashlib
from pathlib import Path

from fastapi import APIRouter, Request
from starlette.exceptions import HTTPException
from starlette.responses import Response

import pellucid.inspection.report
from pellucid.backends.web.scripts import script_sources

FOLDER = Path(__file__).parents[1] / "page"
REPORT_FOLDER = Path(pellucid.inspection.report.__file__).parent / "assets"
"""The scripts and styles that draw a walk; every report embeds the same files."""
UI_FOLDER = REPORT_FOLDER.parents[1] / "ui"
"""Scripts and styles shared by page and report: colors, heat maps, the view of all heads."""
INDEX = "index.html"
_FRAMED = "walk.html"
"""The only file that may be shown in a frame, and only by our own page."""
_FRAME_HEADERS = {
    "content-security-policy": "default-src 'self'; frame-ancestors 'self'",
    "x-frame-options": "SAMEORIGIN",
}
_LIVE = "live.html"
"""The page that fetches ``/live/NAME``, with the key if there is one, and becomes what it got."""
_LIVE_HEADERS = {
    "content-security-policy": (
        "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:;"
        f" worker-src blob:; script-src 'self' {script_sources()}; base-uri 'none';"
        " form-action 'none'; frame-ancestors 'none'"
    ),
}
# Not from mimetypes, which depends on the machine.
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}


@dataclasses.dataclass(frozen=True)
class PageFile:
    """A file of the page in memory."""

    content: bytes
    media_type: str
    tag: str


def read_page() -> dict[str, PageFile]:
    """The files of the page by the path at which they are served."""
    return (
        _read_folder(FOLDER, "/static")
        | _read_folder(REPORT_FOLDER, "/static/report")
        | _read_folder(UI_FOLDER, "/static/ui")
    )


def _read_folder(folder: Path, under: str) -> dict[str, PageFile]:
    files = {}
    for path in sorted(folder.iterdir()):
        if path.suffix not in _TYPES:
            continue
        # In memory, so that no request opens a file and an upgrade cannot mix two versions.
        content = path.read_bytes()
        address = "/" if path.name == INDEX else f"{under}/{path.name}"
        tag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
        files[address] = PageFile(content, _TYPES[path.suffix], tag)
    return files


def make_page_routes(files: dict[str, PageFile]) -> APIRouter:
    """``/``, ``/static/NAME`` and the two folders below it.

    Names are looked up in ``files`` and never opened as paths, so none can leave the folder.
    """
    router = APIRouter(include_in_schema=False)

    @router.get("/")
    @router.get("/static/{name}")
    @router.get("/static/report/{name}")
    @router.get("/static/ui/{name}")
    async def page(request: Request) -> Response:
        return _send(files, request.scope["path"], request)

    return router


def is_known(tag: str, request: Request) -> bool:
    """Whether a client has what has this tag; a proxy that compresses answers makes it a weak one,
    ``W/"..."``.
    """
    given = request.headers.get("if-none-match", "")
    return tag in (each.strip().removeprefix("W/") for each in given.split(","))


def _send(files: dict[str, PageFile], address: str, request: Request) -> Response:
    file = files.get(address)
    if file is None:
        raise HTTPException(404)
    headers = {"etag": file.tag, "cache-control": "no-cache", "content-type": file.media_type}
    if address.endswith(f"/{_FRAMED}"):
        headers |= _FRAME_HEADERS
    if address.endswith(f"/{_LIVE}"):
        headers |= _LIVE_HEADERS
    # The tag is a hash of the content: a browser asks every time and downloads only changes.
    if is_known(file.tag, request):
        return Response(status_code=304, headers=headers)
    return Response(file.content, headers=headers)
