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
from pellucid.decoding.requests import Request
from pellucid.decoding.result import Alternative
from pellucid.decoding.translator import Translator
from pellucid.inspection.capture import Capture, capture_of
from pellucid.inspection.entries import select
from pellucid.inspection.parts import parts_of
from pellucid.inspection.report.content import BUDGET, report_content
from pellucid.inspection.report.page import render_page
from pellucid.inspection.report.views import look_around
from pellucid.inspection.sentence import open_model, read_sentence
from pellucid.serve.limits import Limits
from pellucid.serve.models import LoadedModel
from pellucid.serve.schema import AlternativesRequest, InspectRequest, WalkRequest
from pellucid.serve.server.errors import FieldProblem, InvalidError, NotFoundError

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
    limit = model.source_limit(limits.max_inspect_tokens)
    settings = model.settings.model_copy(
        update={
            **model.bounded_lengths(model.settings.max_length, limits.max_new_tokens),
            "max_source_tokens": limit,
            "align": model.has_attention,
        }
    )

    has_words = bool(model.translator.odd_line(Request(request.text)).plain.source.strip())
    source_ids = model.source_ids([request.text])[0] if has_words else []
    most = longest_prefix(model.bundle, settings, min(len(source_ids), limit))
    if len(request.prefix) > most:
        got = len(request.prefix)
        rule = f"must have at most {most} tokens for this text, got {got}"
        raise InvalidError([FieldProblem("prefix", rule, str(got))])
    if not source_ids:
        return []

    # With the settings of this request, and with PyTorch, whatever engine translates elsewhere.
    own = model.translator
    translator = Translator(
        model.bundle,
        settings,
        usual_warnings=own.usual_warnings,
        logs_warnings=False,
        literals_in=own.literals_in,
    )
    try:
        return translator.alternatives(request.text, request.prefix, count, watcher)
    except DataError as error:  # the prefix holds a token outside the vocabulary
        raise NotFoundError("Unknown name", str(error)) from None


def look_inside(
    model: LoadedModel, request: InspectRequest, limits: Limits, watcher: SearchWatcher
) -> str:
    """The intermediates that a request names, as JSON.

    Raises NotFoundError if a name matches nothing, InvalidError if a side is too long or the
    answer would have too many values, and what the watcher raises.
    """
    _check_tokens(model, request, limits)

    inside = open_model(model.bundle, watcher, logs_warnings=False)
    try:
        select(parts_of(inside.model.config), request.only)  # a wrong name fails before translating
        sentence = read_sentence(inside, request.text, request.target)
        capture = capture_of(inside, sentence, request.only)
    except ConfigError as error:
        raise NotFoundError("Unknown name", str(error)) from None
    except DataError as error:
        raise InvalidError([FieldProblem("text", str(error), "")]) from None

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
    _check_tokens(model, request, limits)
    inside = open_model(model.bundle, watcher, logs_warnings=False)
    try:
        sentence = read_sentence(inside, request.text, request.target)
    except DataError as error:
        raise InvalidError([FieldProblem("text", str(error), "")]) from None

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


def _check_tokens(
    model: LoadedModel, request: InspectRequest | WalkRequest, limits: Limits
) -> None:
    sides = [("text", request.text, model.bundle.source_tokenizer)]
    if request.target is not None:
        sides.append(("target", request.target, model.bundle.target_tokenizer))

    problems = []
    for field, text, tokenizer in sides:
        count = len(tokenizer.encode(text))
        if count > limits.max_inspect_tokens:
            rule = f"must have at most {limits.max_inspect_tokens} tokens, got {count}"
            problems.append(FieldProblem(field, rule, str(count)))
    if problems:
        raise InvalidError(problems)


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
        tensors[name] = _tensor(capture, name)

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


def _tensor(capture: Capture, name: str) -> dict[str, Any]:
    entry = capture.entry(name)
    return {
        "axes": entry.axes,
        "shape": list(entry.tensor.shape),
        "equations": entry.equations,
        "meaning": entry.meaning,
        "values": _plain(entry.tensor.tolist()),
    }


def _plain(values: Any) -> Any:
    if isinstance(values, list):
        return [_plain(each) for each in values]
    return _rounded(values) if isinstance(values, float) else values


def _rounded(value: float) -> float | None:
    """The value with six digits; None (null) for a masked score, as JSON has no infinity."""
    return float(f"{value:.{_DIGITS}g}") if math.isfinite(value) else None
