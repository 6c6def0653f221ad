"""Answers that need the model itself: alternatives, a bounded part of a capture as JSON, and walks.

Importing this file imports torch, so ``service`` imports it when a request first needs it.
"""

import dataclasses
import json
import math
from collections.abc import Callable
from typing import Any

from pellucid.core.errors import ConfigError, DataError
from pellucid.decoding.alternatives import longest_prefix
from pellucid.decoding.engine import SearchWatcher
from pellucid.decoding.result import Alternative
from pellucid.decoding.translator import Translator
from pellucid.inspection.capture import Capture, capture_of
from pellucid.inspection.entries import select
from pellucid.inspection.parts import parts_of
from pellucid.inspection.report.content import BUDGET, report_content
from pellucid.inspection.report.page import render_page
from pellucid.inspection.report.views import look_around
from pellucid.inspection.sentence import Opened, open_model, read_line, read_sentence
from pellucid.serve.limits import Limits
from pellucid.serve.models import LoadedModel
from pellucid.serve.schema import AlternativesRequest, InspectRequest, WalkRequest
from pellucid.serve.server.errors import FieldProblem, InvalidError, NotFoundError, refuse

_DIGITS = 6
"""Significant digits of a number in an answer; float32 holds about 7."""
_WALK_BYTES = 1_500_000
"""Bytes of the matrices of a walk on the page, which is downloaded; a file may be larger."""


def find_alternatives(
    model: LoadedModel,
    request: AlternativesRequest,
    count: int,
    limits: Limits,
    watcher: SearchWatcher,
) -> list[Alternative]:
    """The likeliest next tokens after a prefix; none for a text that is not searched.

    Raises InvalidError for a prefix that is too long for the text, NotFoundError for one with a
    token that the model does not have, and what the watcher raises.
    """
    text = request.text
    odd, read = read_line(model.translator, text)
    if not odd.plain.source.strip():
        return []

    translator = _translator(model, read, limits, limits.max_new_tokens)
    length = min(len(model.source_ids([read])[0]), translator.source_limit)
    most = longest_prefix(model.bundle, translator.settings, length)
    if len(request.prefix) > most:
        got = len(request.prefix)
        rule = f"must have at most {most} tokens for this text, got {got}"
        raise InvalidError([FieldProblem("prefix", rule, str(got))])

    try:
        return translator.alternatives(text, request.prefix, count, watcher)
    except DataError as error:  # the prefix holds a token outside the vocabulary
        raise NotFoundError(str(error)) from None


def look_inside(
    model: LoadedModel, request: InspectRequest, limits: Limits, watcher: SearchWatcher
) -> str:
    """The intermediates that a request names, as JSON.

    Raises NotFoundError if a name matches nothing, InvalidError if a side is too long or the
    answer would have too many values, and what the watcher raises.
    """
    inside = _open(model, request, limits, watcher)
    try:
        select(parts_of(inside.model.config), request.only)  # a wrong name fails before translating
        sentence = read_sentence(inside, request.text, request.target)
        capture = capture_of(inside, sentence, request.only)
    except ConfigError as error:
        raise NotFoundError(str(error)) from None

    names = _without_twins(capture.names())
    count = sum(capture[name].numel() for name in names)
    if count > limits.max_inspect_values:
        rule = f"must select at most {limits.max_inspect_values} numbers, got {count}"
        raise InvalidError([FieldProblem("only", rule, "")])

    answer = _answer(model, capture, names, inside.before_pass)

    return json.dumps(answer, ensure_ascii=False, allow_nan=False)


def walk_through(
    model: LoadedModel, request: WalkRequest, limits: Limits, watcher: SearchWatcher
) -> str:
    """A walk of one sentence through the model: data for the page, or a whole report as HTML.

    Raises InvalidError if a side is too long, and what the watcher raises.
    """
    inside = _open(model, request, limits, watcher)
    sentence = read_sentence(inside, request.text, request.target)

    # Everything in one pass through the model; the views and the report read from it.
    capture = capture_of(inside, sentence, ("*",))
    views = look_around(inside, capture, with_search=request.target is None)

    # Between two long steps the watcher may cancel the work or let short sentences run.
    inside.before_pass()

    is_file = request.format == "html"
    budget = BUDGET if is_file else _WALK_BYTES
    content = report_content(capture, inside.model, views, budget=budget)

    inside.before_pass()

    if is_file:
        return render_page(content)

    content["warnings"] = _warnings(capture)
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _open(
    model: LoadedModel,
    request: InspectRequest | WalkRequest,
    limits: Limits,
    watcher: SearchWatcher,
) -> Opened:
    """The model, to inspect one sentence. Raises InvalidError if a side is too long."""
    odd, read = read_line(model.translator, request.text)
    most = limits.max_inspect_tokens
    counts = [("text", len(model.source_ids([read])[0]), model.source_limit(most))]
    if request.target is not None:
        ids = model.bundle.target_tokenizer.encode(odd.plain_target(request.target))
        counts.append(("target", len(ids), model.target_limit(most)))

    problems = [
        FieldProblem(field, f"must have at most {limit} tokens, got {count}", str(count))
        for field, count, limit in counts
        if count > limit
    ]
    refuse(problems)

    translator = _translator(model, read, limits, min(most, limits.max_new_tokens))
    return open_model(translator, watcher)


def _translator(model: LoadedModel, read: str, limits: Limits, most: int) -> Translator:
    """The translator of one text, with PyTorch, whatever engine translates elsewhere.

    It reads at most ``max_inspect_tokens`` and writes at most ``most``.
    """
    own = model.translator
    source_limit = model.source_limit(limits.max_inspect_tokens)
    length = min(len(model.source_ids([read])[0]), source_limit)
    settings = own.settings.model_copy(
        update={
            **model.bounded_lengths(own.settings.max_length, most),
            "max_source_tokens": source_limit,
            "align": own.can_align,
        }
    )

    return own.with_model(model.bundle, model.within(settings, length, most))


def _without_twins(names: list[str]) -> list[str]:
    """The names without single heads whose tensor of all heads is named too."""
    whole = {name.rpartition(".")[0] + ":" + name.rpartition(".")[2] for name in names}

    def is_needed(name: str) -> bool:
        stem, separator, rest = name.partition(".heads.")
        if not separator:
            return True
        part = rest.rpartition(".")[2]
        return f"{stem}:{'heads' if part == 'output' else part}" not in whole

    return [name for name in names if is_needed(name)]


def _answer(
    model: LoadedModel, capture: Capture, names: list[str], before_tensor: Callable[[], None]
) -> dict[str, Any]:
    tensors = {}
    for name in names:
        before_tensor()  # writing numbers takes long enough for a client to leave
        entry = capture.entry(name)
        tensors[name] = {
            "axes": entry.axes,
            "shape": list(entry.tensor.shape),
            "equations": entry.equations,
            "meaning": entry.meaning,
            "values": _plain(entry.tensor.tolist()),
        }

    return {
        "model": model.place.name,
        "text": capture.text,
        "warnings": _warnings(capture),
        "source_tokens": capture.source_tokens,
        "target_tokens": capture.target_tokens,
        "target_input_tokens": capture.target_input_tokens,
        "confidences": [_rounded(value) for value in capture.confidences],
        "names": names,
        "tensors": tensors,
    }


def _warnings(capture: Capture) -> list[dict[str, str]]:
    return [dataclasses.asdict(each) for each in capture.sentence.warnings]


def _plain(values: Any) -> Any:
    if isinstance(values, list):
        return [_plain(each) for each in values]
    return _rounded(values) if isinstance(values, float) else values


def _rounded(value: float) -> float | None:
    """The value with six digits; None (null) for a masked score, as JSON has no infinity."""
    return float(f"{value:.{_DIGITS}g}") if math.isfinite(value) else None
