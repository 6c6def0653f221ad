"""Captures and lenses as plain values for JSON."""

import json
import math
from typing import Any

from pellucid.inspection.capture import Capture
from pellucid.inspection.entries import Entry
from pellucid.inspection.lens import Lens
from pellucid.inspection.sentence import Prediction

Plain = dict[str, Any]


def plain_capture(capture: Capture, *, with_values: bool) -> Plain:
    """Words, ids, confidences, predictions and entries of a capture; values only if asked for."""
    sentence = capture.sentence
    return {
        "source": sentence.source,
        "text": sentence.text,
        "source_tokens": list(sentence.source_tokens),
        "source_ids": list(sentence.source_ids),
        "target_input_tokens": list(sentence.target_input_tokens),
        "target_tokens": list(sentence.target_tokens),
        "target_ids": list(sentence.target_ids),
        "confidences": list(capture.confidences),
        "predictions": [[plain_prediction(word) for word in row] for row in capture.predictions],
        "model": capture.config.model_dump(mode="json"),
        "entries": [
            plain_entry(capture.entry(name), with_values=with_values) for name in capture.names()
        ],
    }


def plain_entry(entry: Entry, *, with_values: bool) -> Plain:
    """One intermediate, with or without its values."""
    described: Plain = {
        "name": entry.name,
        "axes": list(entry.axes),
        "shape": list(entry.tensor.shape),
        "equations": [f"EQ-{number:02}" for number in entry.equations],
        "formula": entry.formula,
        "meaning": entry.meaning,
    }
    return {**described, "values": entry.tensor.double().tolist()} if with_values else described


def plain_prediction(word: Prediction) -> Plain:
    """A candidate for the next token."""
    return {"token": word.token, "id": word.id, "probability": word.probability}


def plain_lens(lens: Lens) -> list[Plain]:
    """The predictions of each layer, the first layer first."""
    return [
        {
            "name": layer.name,
            "confidences": list(layer.confidences),
            "predictions": [[plain_prediction(word) for word in row] for row in layer.predictions],
        }
        for layer in lens.layers
    ]


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
