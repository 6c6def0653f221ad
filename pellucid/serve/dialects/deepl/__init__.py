"""DeepL's HTTP interface: JSON or forms, 403 without a key, 400 for values that are wrong."""

import dataclasses
from typing import Any

from pellucid.serve.dialects import Dialect
from pellucid.serve.dialects.deepl.glossaries import make_glossary_routes
from pellucid.serve.dialects.deepl.routes import make_deepl_routes
from pellucid.serve.schema import text_bounds
from pellucid.serve.server.body import Received
from pellucid.serve.server.errors import ErrorForm
from pellucid.serve.server.forms import is_form, once, read_form, read_json_alone
from pellucid.serve.server.limits import ServerLimits
from pellucid.serve.server.rules import Rulebook, Rules
from pellucid.serve.service import Service


def read_fields(received: Received, limits: ServerLimits) -> Any:
    """The fields of JSON or a form, where ``text`` may stand several times."""
    if not is_form(received):
        return read_json_alone(received, limits)
    given = read_form(received)
    texts = [value for name, value in given if name == "text"]
    fields: dict[str, Any] = {**once([each for each in given if each[0] != "text"])}
    if texts:
        fields["text"] = texts if len(texts) > 1 else texts[0]
    return fields


_ERRORS = ErrorForm("message", invalid_status=400)
_FIELDS = Rules(read=read_fields, no_key_status=403, takes_query=True, errors=_ERRORS)
_GLOSSARIES = Rules(no_key_status=403, errors=_ERRORS)
RULES = Rulebook(
    exact={
        "/v2/translate": _FIELDS,
        "/v2/usage": _FIELDS,
        # Clients send ``type`` in the body of a GET.
        "/v2/languages": dataclasses.replace(_FIELDS, reads_get=True),
    },
    beginnings={"/v2/glossar": _GLOSSARIES, "/v3/glossar": _GLOSSARIES},
)


def deepl(service: Service) -> Dialect:
    """All of it."""
    return Dialect(
        [make_deepl_routes(service), make_glossary_routes(service)],
        RULES,
        bounds={("DeeplRequest", "text"): text_bounds(service.limits)},
        examples=lambda sample: {
            "/v2/translate": {
                "text": [sample.text],
                "source_lang": sample.source.upper(),
                "target_lang": sample.target.upper(),
            }
        },
    )
