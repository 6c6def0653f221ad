"""Forced decoding: how likely a given translation is."""

from collections.abc import Sequence

import torch
from jaxtyping import Int
from torch import Tensor

from pellucid.core.errors import DataError
from pellucid.core.special import EOS_ID
from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.engine import token_batches
from pellucid.decoding.requests import Translatable
from pellucid.decoding.result import Hypothesis, Penalty, make_hypothesis
from pellucid.decoding.search.recompute import Recomputing
from pellucid.decoding.search.search import inference, pad_sources, pad_targets, searched_model
from pellucid.model.ensemble import Ensemble
from pellucid.model.seq2seq import Seq2Seq
from pellucid.text.batching import collate_sources

Scorer = Seq2Seq | Ensemble | Recomputing
"""A model that computes all logits of a known target at once."""
SCORED_TOKENS = 2048
"""Target tokens scored at a time: their logits are held at once, 1 MB for 32 of 8,000 words."""


def score_lines(
    bundle: Translatable,
    sources: Sequence[Sequence[int]],
    targets: Sequence[Sequence[int]],
    settings: DecodingConfig,
) -> list[Hypothesis]:
    """``score_ids`` with the model of a bundle, as a search with ``settings`` steps it."""
    with inference(bundle.model):
        model = searched_model(bundle.model, settings)
        return score_ids(model, sources, targets, settings.penalty)


def score_ids(
    model: Scorer,
    sources: Sequence[Sequence[int]],
    targets: Sequence[Sequence[int]],
    penalty: Penalty,
) -> list[Hypothesis]:
    """``score_targets`` for any number of pairs, in batches of like length; order kept."""
    scored: dict[int, Hypothesis] = {}
    longest = [max(len(s), len(t)) for s, t in zip(sources, targets, strict=True)]
    for batch in token_batches(longest, SCORED_TOKENS):
        source = pad_sources([sources[index] for index in batch], model)
        found = score_targets(model, source, [targets[index] for index in batch], penalty)
        scored.update(zip(batch, found, strict=True))
    return [scored[index] for index in range(len(sources))]


def score_targets(
    model: Scorer,
    source: Int[Tensor, "sentence source"],
    targets: Sequence[Sequence[int]],
    penalty: Penalty,
) -> list[Hypothesis]:
    """log p of every token of each target, and of the stop after it (EQ-118, EQ-121).

    ``targets`` are ids without BOS and EOS. Raises DataError if one is longer than the model can
    number.
    """
    longest = max(len(target) for target in targets) + 1
    if model.max_length is not None and longest > model.max_length:
        raise DataError(
            f"a target must have at most {model.max_length - 1} tokens for this model,"
            f" got {longest - 1}"
        )

    # the decoder reads what it predicts, shifted by one; a stop is predicted and never read
    logits = model.forward(source, pad_targets(targets, source))
    labels = collate_sources(targets).to(source.device)

    # at least float32: narrower numbers cannot sum over a vocabulary
    dtype = torch.float64 if logits.dtype == torch.float64 else torch.float32
    # (sentence, target, vocabulary) → (sentence, target), the log-probability of each label
    chosen = logits.log_softmax(dim=-1, dtype=dtype).gather(-1, labels[:, :, None])[:, :, 0]

    return [
        make_hypothesis([*target, EOS_ID], log_probs[: len(target) + 1], penalty)
        for target, log_probs in zip(targets, chosen.tolist(), strict=True)
    ]
