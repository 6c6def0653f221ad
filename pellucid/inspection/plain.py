"""Captures as plain values for JSON."""

import dataclasses
import json
import math
from typing import Any

from pellucid.inspection.capture import Capture
from pellucid.inspection.entries import Entry

Plain = dict[str, Any]

_OF_SENTENCE = (
    "source",
    "text",
    "source_tokens",
    "source_ids",
    "target_input_tokens",
    "target_tokens",
    "target_ids",
)


def plain_capture(capture: Capture, *, with_values: bool) -> Plain:
    """Words, ids, confidences, predictions and entries of a capture; values only if asked for."""
    sentence = dataclasses.asdict(capture.sentence)
    return {
        **{name: sentence[name] for name in _OF_SENTENCE},
        "confidences": capture.confidences,
        "predictions": [list(map(dataclasses.asdict, row)) for row in capture.predictions],
        "model": capture.config.model_dump(mode="json"),
        "entries": [_entry(each, with_values=with_values) for each in capture.entries.values()],
    }


def _entry(entry: Entry, *, with_values: bool) -> Plain:
    described: Plain = {
        "name": entry.name,
        "axes": list(entry.axes),
        "shape": list(entry.tensor.shape),
        "equations": [f"EQ-{number:02}" for number in entry.equations],
        "formula": entry.formula,
        "meaning": entry.meaning,
    }
    return {**described, "values": entry.tensor.double().tolist()} if with_values else described


def json_line(plain: Plain) -> str:
    """One line of JSON, with null for NaN and infinity, which JSON cannot express."""
    try:
        # most has neither, and Python's walk is slow
        return json.dumps(plain, ensure_ascii=False, allow_nan=False)
    except ValueError:
        return json.dumps(_finite(plain), ensure_ascii=False)


def _finite(plain: Any) -> Any:
    if isinstance(plain, dict):
        return {name: _finite(each) for name, each in plain.items()}
    if isinstance(plain, list | tuple):
        return [_finite(each) for each in plain]
    return None if isinstance(plain, float) and not math.isfinite(plain) else plain
