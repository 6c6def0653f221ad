"""LibreTranslate's HTTP interface: JSON or forms, with the key in a field, and ``error``."""

import dataclasses
from typing import Any

from pellucid.serve.dialects import Dialect
from pellucid.serve.dialects.libretranslate.files import make_file_routes
from pellucid.serve.dialects.libretranslate.routes import make_libretranslate_routes
from pellucid.serve.documents import Documents
from pellucid.serve.schema import text_bounds
from pellucid.serve.server.body import Received
from pellucid.serve.server.errors import ErrorForm
from pellucid.serve.server.forms import is_form, once, read_form, read_json_alone, read_upload
from pellucid.serve.server.limits import ServerLimits
from pellucid.serve.server.rules import Rulebook, Rules
from pellucid.serve.service import Service


def read_fields(received: Received, limits: ServerLimits) -> Any:
    """The fields of JSON or a form, where digits in ``alternatives`` are a number."""
    has_form = is_form(received)
    fields = once(read_form(received)) if has_form else read_json_alone(received, limits)
    if not isinstance(fields, dict):
        return fields
    count = fields.get("alternatives")
    if isinstance(count, str) and count.isdecimal() and len(count) < 10:
        return {**fields, "alternatives": int(count)}
    return fields


_PLAIN = Rules(
    read=read_fields,
    no_key_status=403,
    takes_query=True,
    errors=ErrorForm("error", invalid_status=400),
)
_KEYED = dataclasses.replace(_PLAIN, takes_key_in_body=True)
RULES = Rulebook(
    exact={
        "/translate": _KEYED,
        "/detect": _KEYED,
        "/languages": _KEYED,
        "/translate_file": dataclasses.replace(_KEYED, read=read_upload, is_upload=True),
        "/health": _PLAIN,
        "/frontend/settings": _PLAIN,
    },
    # The rest of such an address is a secret, and LibreTranslate's clients send no key there.
    beginnings={"/download_file/": Rules(needs_key=False, is_secret=True)},
)


def libretranslate(service: Service, documents: Documents, *, needs_key: bool) -> Dialect:
    """The dialect of LibreTranslate: its routes, rules, bounds and examples. ``needs_key`` is what
    the clients are told."""
    text = text_bounds(service.limits)
    return Dialect(
        [
            make_libretranslate_routes(service, needs_key=needs_key),
            make_file_routes(service, documents),
        ],
        RULES,
        bounds={
            ("LibreRequest", "q"): text,
            ("LibreRequest", "alternatives"): {"maximum": service.limits.max_n_best - 1},
            ("LibreDetectRequest", "q"): text,
        },
        examples=lambda sample: {
            "/translate": {
                "q": f"<p>{sample.text}</p>",
                "source": "auto",
                "target": sample.target,
                "format": "html",
            },
            "/detect": {"q": sample.text},
        },
    )
