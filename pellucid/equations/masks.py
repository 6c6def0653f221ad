"""Masks: who may attend to whom. True = may attend, everywhere in Pellucid."""

import math

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from pellucid.equations.shapes import require_fits
from pellucid.equations.softmax import softmax


def causal_mask(
    length: int, offset: int = 0, device: torch.device | str | None = None
) -> Bool[Tensor, "{length} {length}+{offset}"]:
    """Each position may attend to itself and to earlier positions.

        may_attend[i, j] = (j ≤ i + offset)

    EQ: 70.  Source: Agarwal, §5.2; Transformers report, (7); Vaswani et al. (2017), §3.2.3.
    Symbols: length = number of queries, offset = keys that precede the first query (a cache).

    The diagonal is allowed: row i of the shifted input holds word i - 1 (ER-40). With an offset
    the last query still sees every key ("bottom right", ER-41).
    """
    # (length, 1) against (length + offset): every query beside every key
    queries = torch.arange(length, device=device).unsqueeze(-1)
    keys = torch.arange(length + offset, device=device)
    return keys <= queries + offset


def padding_mask(ids: Int[Tensor, "*batch length"], pad_id: int) -> Bool[Tensor, "*batch length"]:
    """Tokens may be attended to, padding may not.

        may_attend[j] = (idⱼ ≠ pad)

    EQ: none.  Source: not in the five sources, which treat one sentence at a time (ER-66).
    Symbols: ids = token ids, pad_id = the id that fills sentences up.
    """
    return ids != pad_id


def masked_softmax(
    scores: Float[Tensor, "*batch query key"],
    may_attend: Bool[Tensor, "*#batch #query #key"] | None = None,
) -> Float[Tensor, "*batch query key"]:
    """Softmax over the keys that may be attended to; all others get exactly zero.

        A = softmax(S + M), with exp(-∞) = 0

    EQ: 72, 73, 75.  Source: Agarwal, §5.2; Transformers report, (7).
    Symbols: scores = S, M = additive_mask(may_attend), result = A.
    Raises: ShapeError if the mask does not fit the scores.

    A query that may attend to nothing has no distribution: its weights are all zero (not NaN,
    not uniform), as in PyTorch's fused kernel, and so are its gradients.
    """
    if may_attend is None:
        return softmax(scores)
    require_fits("may_attend", may_attend, "the scores", scores)

    # (*batch, query, 1), for example a sentence of padding alone
    sees_nothing = ~may_attend.any(dim=-1, keepdim=True)
    masked = scores.masked_fill(~may_attend, -math.inf)

    # such rows become finite before the softmax: NaN that is only masked afterwards stays in the
    # graph, where anomaly detection and second derivatives find it
    weights = softmax(masked.masked_fill(sees_nothing, 0.0))
    # exp(-∞) is 0 already; this line is for the rows that were filled above
    return weights.masked_fill(~may_attend, 0.0)
