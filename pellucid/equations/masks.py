"""Masks: who may look at whom. True = may attend, everywhere in Pellucid."""

import math

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from pellucid.core.errors import ShapeError
from pellucid.equations.shapes import require_fits
from pellucid.equations.softmax import softmax


def causal_mask(
    length: int, offset: int = 0, device: torch.device | str | None = None
) -> Bool[Tensor, "{length} {length}+{offset}"]:
    """Each query may attend to itself and to what came before it.

        may_attend[i, j] = (j ≤ i + offset)

    EQ: 70.  Source: Agarwal, §5.2; Transformers report, (7); Vaswani et al. (2017), §3.2.3.
    Symbols: length = number of queries, offset = keys that precede the first query (a cache).

    The diagonal is allowed: row i of the shifted input holds word i - 1 (ER-40). With an offset
    the last query still sees every key ("bottom right", ER-41).
    """
    queries = torch.arange(length, device=device).unsqueeze(-1)
    keys = torch.arange(length + offset, device=device)
    return keys <= queries + offset


def padding_mask(ids: Int[Tensor, "*batch length"], pad_id: int) -> Bool[Tensor, "*batch length"]:
    """Real tokens may be attended to, padding may not.

        may_attend[j] = (idⱼ ≠ pad)

    EQ: none.  Source: not in the five sources, which treat one sentence at a time (ER-66).
    Symbols: ids = token ids, pad_id = the id that fills sentences up.
    """
    return ids != pad_id


def additive_mask(
    may_attend: Bool[Tensor, "*shape"], dtype: torch.dtype | None = None
) -> Float[Tensor, "*shape"]:
    """The mask as a matrix to be added to the scores: 0 where one may look, -inf elsewhere.

        M[i, j] = 0 if may_attend[i, j] else -∞

    EQ: 70, 72.  Source: Agarwal, Def. 5.2; Transformers report, (7).
    Symbols: result = M, in ``dtype`` (torch's default dtype if not given).

    Made by selection, not by multiplication: 0 · (-∞) is NaN (ER-42).
    """
    zeros = torch.zeros(may_attend.shape, dtype=dtype, device=may_attend.device)
    return zeros.masked_fill(~may_attend, -math.inf)


def mask_scores(
    scores: Float[Tensor, "*batch query key"], offset: int = 0
) -> Float[Tensor, "*batch query key"]:
    """Forbid looking ahead: scores of later keys become -inf.

        x'[i, j] = x[i, j] if j ≤ i + offset else -∞

    EQ: 71, 72.  Source: Single Page, Functions, Mask(x).
    Symbols: scores = x, result = x', offset = keys that precede the first query.
    Raises: ShapeError unless there are exactly ``offset`` more keys than queries.
    """
    query_count, key_count = scores.shape[-2:]
    if key_count != query_count + offset:
        raise ShapeError(
            f"scores must have as many keys (axis -1) as queries (axis -2) plus offset={offset},"
            f" got shape {tuple(scores.shape)}",
            hint=f"offset={key_count - query_count} fits if the queries are the last of the keys",
        )
    return scores.masked_fill(~causal_mask(query_count, offset, scores.device), -math.inf)


def masked_softmax(
    scores: Float[Tensor, "*batch query key"],
    may_attend: Bool[Tensor, "*#batch #query #key"] | None = None,
) -> Float[Tensor, "*batch query key"]:
    """Softmax over the keys that may be attended to; all others get exactly zero.

        W = softmax(B + M), with exp(-∞) = 0

    EQ: 72, 73, 75.  Source: Agarwal, §5.2; Transformers report, (7).
    Symbols: scores = B, M = additive_mask(may_attend), result = W.
    Raises: ShapeError if the mask does not fit the scores.

    A query that may attend to nothing has no distribution to speak of: its weights are all
    zero (not NaN, not uniform), as in PyTorch's fused kernel, and so are its gradients.
    """
    if may_attend is None:
        return softmax(scores)
    require_fits("may_attend", may_attend, "the scores", scores)
    sees_nothing = ~may_attend.any(dim=-1, keepdim=True)
    masked = scores.masked_fill(~may_attend, -math.inf)
    # Such rows are made harmless before the softmax: NaN that is only hidden afterwards still
    # stands in the graph, where anomaly detection and second derivatives meet it.
    weights = softmax(masked.masked_fill(sees_nothing, 0.0))
    return weights.masked_fill(~may_attend, 0.0)
