"""The views of a whole sentence in a report: lens, rollout, saliency, heads and search."""

import dataclasses
import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch

from pellucid.core.special import EOS_ID
from pellucid.decoding.explain import explain_search
from pellucid.decoding.requests import as_requests
from pellucid.inspection.capture import Capture
from pellucid.inspection.heads import HeadRank, rank_heads
from pellucid.inspection.lens import Lens, lens_of
from pellucid.inspection.report.matrices import Axis, Matrix, pack_numbers
from pellucid.inspection.report.steps import labeler, plain_prediction
from pellucid.inspection.rollout import Rollout, has_rollout, rollout_of
from pellucid.inspection.saliency import Saliency, is_steep, saliency_of
from pellucid.inspection.sentence import STOP_MARK, Opened, Prediction, Sentence
from pellucid.inspection.why import METHOD, Candidate, Why, explain_all
from pellucid.model.config import TransformerConfig

_LENS_WORDS = 3
"""The number of predictions of each layer and position."""

_SALIENCY_STEPS = 16
"""Points of the integral, a quarter of the default of ``saliency``, and so a quarter of its time.
For a sentence of 23 tokens and a model of 4+4 layers the sum of a row then differs from its gain by
0.18 nats of 6.5 on average, instead of by 0.04; the report shows both."""
_STEEP_STEPS = 64
"""The same for a steep integral (``saliency.is_steep``)."""
_SALIENCY_TOKENS = 200_000
"""Tokens that the backward passes of the integral read, at most, unless one point takes more.

Each point has a backward pass for each target token, over all tokens of source and target, so that
a sentence twice as long would take four times as long. Beyond 40 tokens on each side it has fewer
points instead. With 15 points, for 80 tokens, the sum of a row differs from its gain by 0.2 nats of
4, with 64 by 0.04 (the demo's model)."""

_RIVALS = 3
"""The number of other words that each word of the target is compared with."""

_MOST_ATTENDED = 250_000
"""Numbers behind these comparisons, a megabyte. A model of 6 layers with 8 heads has 60,000 for
each other word of a sentence of 25 tokens."""

_RANKED = 8
"""The number of best aligning heads that are listed."""


@dataclasses.dataclass(frozen=True)
class SentenceViews:
    """The views of one sentence; None or empty if the kind of model does not have one."""

    lens: Lens
    rollout: Rollout | None
    saliency: Saliency
    saliency_points: int
    """Points of the integral of ``saliency``."""
    heads: Sequence[HeadRank]
    """The heads that align best; empty without attention or without target tokens."""
    search: dict[str, Any] | None
    """The tree as JSON; None if the target was given, or the search has no tree."""
    why: Sequence[Sequence[Why]] = ()
    """For each position its word against others; empty for recurrent kinds."""


def look_around(opened: Opened, capture: Capture, *, with_search: bool) -> SentenceViews:
    """Compute every view of a captured sentence, and of its search if asked for."""
    steps = _saliency_steps(opened, capture.sentence)
    return SentenceViews(
        lens=lens_of(opened, capture.sentence, _LENS_WORDS),
        rollout=rollout_of(capture) if has_rollout(capture.config) else None,
        saliency=saliency_of(opened, capture.sentence, "integrated_gradients", steps),
        saliency_points=steps,
        heads=rank_heads([capture])[:_RANKED] if capture.config.cross_attentions else [],
        search=_explain(opened, capture) if with_search else None,
        why=explain_all(opened, capture.sentence, _rival_count(capture)),
    )


def _saliency_steps(opened: Opened, sentence: Sentence) -> int:
    """The points of the integral, fewer for a sentence whose backward passes would take long."""
    most = _STEEP_STEPS if is_steep(opened.model.config) else _SALIENCY_STEPS
    rows = len(sentence.target_ids)
    tokens = rows * (rows + len(sentence.source_ids))
    return max(1, min(most, _SALIENCY_TOKENS // max(1, tokens)))


def _rival_count(capture: Capture) -> int:
    """How many words each word is compared with; none if a report could not hold the numbers."""
    config = capture.config
    if not isinstance(config, TransformerConfig):
        return 0
    rows, sources = len(capture.target_tokens), len(capture.source_tokens)
    numbers = config.decoder_layers * config.heads * (rows + sources) * rows
    return min(_RIVALS, _MOST_ATTENDED // max(1, numbers))


def _explain(opened: Opened, capture: Capture) -> dict[str, Any] | None:
    """The tree of the search; None where there is none, as for sampling and a blank source."""
    translator, source = opened.translator, capture.sentence.source
    settings = translator.settings
    # A sample draws one path, and what chooses after the search shows another order than the tree.
    has_tree = settings.sampling is None and not settings.repredict
    is_chosen_later = settings.mbr or settings.coverage_penalty != 0.0
    [request] = as_requests([source], settings, 1)
    is_searched = bool(translator.odd_line(request).plain.source.strip())
    if not has_tree or is_chosen_later or not is_searched:
        return None
    tree = explain_search(translator, source, watcher=opened.watcher)
    # As ``translate --explain-search`` writes it: one format for both.
    plain: dict[str, Any] = json.loads(tree.to_json())

    # Tokens get the labels of the other views, and the stop its mark.
    # A tokenizer may write its stop in its own way.
    [stop] = opened.target_tokenizer.tokens([EOS_ID])
    label = labeler([node["token"] for node in plain["nodes"]])
    for node in plain["nodes"]:
        node["token"] = STOP_MARK if node["token"] == stop else label(node["token"])
    return plain


def view_matrices(views: SentenceViews) -> dict[str, Matrix]:
    """The views that are matrices, by their names in the report."""
    source, written, read = (Axis(name, "words") for name in ("source", "says", "reads"))
    matrices = {
        "saliency": Matrix(views.saliency.scores, written, source),
        "saliency_ends": Matrix(
            # (target token, 2): equal up to the error of the quadrature, so both are shown.
            torch.stack([views.saliency.scores.sum(-1), views.saliency.gains], dim=-1),
            written,
            Axis("ends", "vocabulary"),
        ),
    }
    if views.rollout is not None:
        rollout = views.rollout
        matrices["rollout.encoder"] = Matrix(rollout.encoder, source, source, "part")
        matrices["rollout.source"] = Matrix(rollout.decoder_source, written, source, "part")
        matrices["rollout.target"] = Matrix(rollout.decoder_target, written, read, "part")

    return matrices


def view_content(views: SentenceViews) -> dict[str, Any]:
    """The views that are words."""
    return {
        "lens": [
            {
                "name": layer.name,
                "confidences": layer.confidences,
                "predictions": plain_predictions(layer.predictions),
            }
            for layer in views.lens.layers
        ],
        "ranks": [dataclasses.asdict(rank) for rank in views.heads],
        "saliency_points": views.saliency_points,
        "has_rollout": views.rollout is not None,
        "search": views.search,
        "why": _plain_why(views.why),
    }


def _plain_why(explained: Sequence[Sequence[Why]]) -> dict[str, Any] | None:
    """Return what the parts add, packed; the parts have the same names at every position."""
    pairs = [each for row in explained for each in row]
    if not pairs:
        return None

    label = labeler([each.token for pair in pairs for each in (pair.word, pair.rival)])
    return {
        "method": METHOD,
        "parts": [[part.name, part.kind, len(part.attended)] for part in pairs[0].parts],
        "positions": [
            {
                "source": pack_numbers(torch.tensor(row[0].source_contributions)),
                "prefix": pack_numbers(torch.tensor(row[0].prefix_contributions)),
                "pairs": [_plain_pair(pair, label) for pair in row],
            }
            for row in explained
        ],
    }


def _plain_pair(pair: Why, label: Callable[[str], str]) -> dict[str, Any]:
    attended = [value for part in pair.parts for value in part.attended]
    return {
        "word": _plain_candidate(pair.word, label),
        "rival": _plain_candidate(pair.rival, label),
        "difference": pair.difference,
        "values": pack_numbers(torch.tensor([part.value for part in pair.parts])),
        "attended": pack_numbers(torch.tensor(attended)),
    }


def _plain_candidate(word: Candidate, label: Callable[[str], str]) -> dict[str, Any]:
    named = STOP_MARK if word.id == EOS_ID else label(word.token)
    return {"label": named, "id": word.id, "logit": word.logit, "probability": word.probability}


def plain_predictions(rows: Iterable[Sequence[Prediction]]) -> list[list[list[Any]]]:
    """Candidates for the next token of each position, for JSON."""
    rows = list(rows)
    # Decided by all words together: whether a tokenizer marks spaces shows in some of them only.
    label = labeler([word.token for row in rows for word in row])
    return [[plain_prediction(word, label) for word in row] for row in rows]
