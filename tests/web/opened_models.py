"""Bundles as the engine in a page of Chromium opens them."""

import base64
import json
from collections.abc import Callable
from typing import Any

from playwright.sync_api import Page

from pellucid.backends.web.content import web_content
from pellucid.backends.web.weights import WeightsType
from pellucid.bundle import Bundle
from pellucid.model.seq2seq import SequenceModel

OPEN = """
([header, weights, isPlain, shift]) => {
  const text = atob(weights);
  // the bytes may begin anywhere in their memory
  const bytes = new Uint8Array(text.length + shift).subarray(shift);
  for (let at = 0; at < text.length; at++) bytes[at] = text.charCodeAt(at);
  globalThis.model = engine.openModel(JSON.parse(header), bytes, { isPlain });
}
"""

Opened = Callable[..., Page]
"""Opens a bundle in the page, as the global ``model``."""


def open_in(
    page: Page,
    bundle: Bundle[SequenceModel],
    weights: WeightsType = "float32",
    *,
    plain: bool = False,
    shift: int = 0,
) -> Page:
    content = web_content(bundle, "a model", weights)
    packed = base64.b64encode(content.weights).decode()
    arguments: list[Any] = [json.dumps(content.header), packed, plain, shift]
    page.evaluate(OPEN, arguments)
    return page
