"""From ids to a Translation."""

import dataclasses
from collections.abc import Sequence

from pellucid.decoding.protocols import Translatable
from pellucid.decoding.requests import ReadLine
from pellucid.decoding.result import Hypothesis, Translation


def write_translation(
    line: ReadLine, hypotheses: Sequence[Hypothesis], bundle: Translatable
) -> Translation:
    """Text for ids; the first hypothesis carries all of them."""
    n_best = tuple(write_hypothesis(line, each, bundle) for each in hypotheses)
    return dataclasses.replace(n_best[0], n_best=n_best)


def write_hypothesis(line: ReadLine, hypothesis: Hypothesis, bundle: Translatable) -> Translation:
    """One hypothesis as text."""
    tokenizer = bundle.target_tokenizer
    return Translation(
        text=tokenizer.decode(hypothesis.ids),
        score=hypothesis.score,
        tokens=tuple(tokenizer.tokens(hypothesis.ids)),
        token_log_probs=hypothesis.token_log_probs,
        n_best=(),
        source=line.request.source,
        token_ids=hypothesis.ids,
        source_tokens=tuple(bundle.source_tokenizer.tokens(line.source_ids)),
        truncated=line.truncated,
    )


def blank_translation(line: ReadLine) -> Translation:
    """The translation of a line that holds nothing."""
    empty = Translation(
        text="", score=0.0, tokens=(), token_log_probs=(), n_best=(), source=line.request.source
    )
    return dataclasses.replace(empty, n_best=(empty,))
