"""Attention entry by entry, one head at a time, and masks as matrices that are added.

Other ways to write what ``attention.py``, ``heads.py`` and ``masks.py`` compute; nothing runs them.
"""

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from pellucid.core.errors import ShapeError
from pellucid.equations.alignment import dot_product_attention
from pellucid.equations.attention import attention
from pellucid.equations.heads import merge_heads, require_projections
from pellucid.equations.masks import causal_mask
from pellucid.equations.shapes import require_same_size


def attention_normalizer(
    query: Float[Tensor, " key_size"], keys: Float[Tensor, "key key_size"]
) -> Float[Tensor, ""]:
    """The sum of the exponentials of one query's scores.

        totalᵢ = Σⱼ exp(qᵢ · kⱼ / √dₖ)

    EQ: 54.  Source: Agarwal, §4.1, where it is S and its index i is missing (ER-15).
    Symbols: query = qᵢ, keys = the rows kⱼ.

    As printed, without subtracting a maximum: infinite when a score passes 709 in float64.
    """
    # (key, key_size) @ (key_size) → (key), then one number
    return (keys @ query / math.sqrt(query.shape[-1])).exp().sum()


def attention_weight(
    query: Float[Tensor, " key_size"], keys: Float[Tensor, "key key_size"], position: int
) -> Float[Tensor, ""]:
    """The weight of one key for one query.

        wᵢⱼ = exp(qᵢ · kⱼ / √dₖ) / totalᵢ

    EQ: 54.  Source: Agarwal, §4.1; Lee, Scaled Dot-Product Attention.
    Symbols: query = qᵢ, keys = the rows kⱼ, position = j, totalᵢ = attention_normalizer.
    """
    score = query @ keys[position] / math.sqrt(query.shape[-1])
    return score.exp() / attention_normalizer(query, keys)


def attention_vector(
    query: Float[Tensor, " key_size"],
    keys: Float[Tensor, "key key_size"],
    values: Float[Tensor, "key value_size"],
) -> Float[Tensor, " value_size"]:
    """The output for one query: the sum of the values, each times its weight.

        aᵢ = Σⱼ wᵢⱼ vⱼ = (1/totalᵢ) Σⱼ exp(qᵢ · kⱼ / √dₖ) vⱼ

    EQ: 55, 56.  Source: Agarwal, §4.1.
    Symbols: query = qᵢ, keys = the rows kⱼ, values = the rows vⱼ.
    """
    exponentials = (keys @ query / math.sqrt(query.shape[-1])).exp()
    # (key) @ (key, value_size) → (value_size)
    return exponentials @ values / attention_normalizer(query, keys)


def masked_attention(
    query: Float[Tensor, "*batch length key_size"],
    key: Float[Tensor, "*batch length key_size"],
    value: Float[Tensor, "*batch length value_size"],
) -> Float[Tensor, "*batch length value_size"]:
    """Attention in which no query attends to a later position.

        MaskAttention(Q, K, V) = softmax(Q Kᵀ / √dₖ + M) V

    EQ: 74.  Source: Agarwal, Def. 5.2; Vaswani et al. (2017), §3.2.3.
    Symbols: query = Q, key = K, value = V, M = additive_mask(causal_mask(length)).
    Raises: ShapeError if the three do not fit together or are not equally long.
    """
    require_same_size("length", ("query", query, -2), ("key", key, -2))
    return attention(query, key, value, causal_mask(query.shape[-2], device=query.device))


def project_qkv(
    x: Float[Tensor, "*batch length d_model"],
    w_q: Float[Tensor, "d_model key_size"],
    w_k: Float[Tensor, "d_model key_size"],
    w_v: Float[Tensor, "d_model value_size"],
) -> tuple[
    Float[Tensor, "*batch length key_size"],
    Float[Tensor, "*batch length key_size"],
    Float[Tensor, "*batch length value_size"],
]:
    """Queries, keys and values of one head, all made from the same rows.

        Q = X W_q,   K = X W_k,   V = X W_v

    EQ: 62.  Source: Transformers report, §1.3.
    Symbols: x = X, w_q = W_q, w_k = W_k, w_v = W_v; results = (Q, K, V).
    """
    return x @ w_q, x @ w_k, x @ w_v


def attention_head(
    query: Float[Tensor, "*batch query d_model"],
    key: Float[Tensor, "*batch key d_model"],
    value: Float[Tensor, "*batch key d_model"],
    w_q: Float[Tensor, "d_model key_size"],
    w_k: Float[Tensor, "d_model key_size"],
    w_v: Float[Tensor, "d_model value_size"],
) -> Float[Tensor, "*batch query value_size"]:
    """One head: attention between projections of the three inputs.

        headᵢ = Attention(Q Wᵢ^Q, K Wᵢ^K, V Wᵢ^V)

    EQ: 78.  Source: Agarwal, Def. 4.2; Vaswani et al. (2017), §3.2.2.
    Symbols: query = Q, key = K, value = V, w_q = Wᵢ^Q, w_k = Wᵢ^K, w_v = Wᵢ^V.
    Raises: ShapeError if inputs and weights do not fit together.
    """
    require_projections(("query", query, w_q), ("key", key, w_k), ("value", value, w_v))
    return attention(query @ w_q, key @ w_k, value @ w_v)


def head_contributions(
    each_head: Float[Tensor, "*batch heads query value_size"],
    w_o: Float[Tensor, "heads*value_size d_model"],
) -> Float[Tensor, "*batch heads query d_model"]:
    """The contribution of each head to the output; their sum is the multi-head attention.

        Concat(head₁, …, head_h) W^O + b^O = Σᵢ headᵢ W^O₍ᵢ₎ + b^O

    EQ: 81.  Source: follows from Vaswani et al. (2017), §3.2.2.
    Symbols: each_head[i] = headᵢ, W^O₍ᵢ₎ = rows i·dᵥ to (i+1)·dᵥ of W^O; b^O, where a model has it,
    belongs to no head.
    Raises: ShapeError if heads and weights do not fit together.
    """
    require_same_size(
        "heads * value_size", ("the heads", merge_heads(each_head), -1), ("w_o", w_o, -2)
    )
    # W^O cut into one block of rows for each head: (heads, value_size, d_model)
    blocks = w_o.reshape(each_head.shape[-3], each_head.shape[-1], -1)
    return each_head @ blocks  # (*batch, heads, query, d_model)


def joint_rank(weights: Float[Tensor, "heads d_model size"]) -> int:
    """How many dimensions of the input the projections of all heads together can see.

        rank [W₁ W₂ … W_h]

    EQ: 87.  Source: derived; settles ER-22.
    Symbols: weights[i] = Wᵢ.
    """
    # (heads, d_model, size) → (d_model, heads · size): all columns side by side
    return int(torch.linalg.matrix_rank(merge_heads(weights)).item())


def additive_mask(
    may_attend: Bool[Tensor, "*shape"], dtype: torch.dtype | None = None
) -> Float[Tensor, "*shape"]:
    """The mask as a matrix to be added to the scores: 0 where a query may attend, -inf elsewhere.

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
    """Mask later keys: their scores become -inf.

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


def attend(
    states: Float[Tensor, "*batch key size"], query: Float[Tensor, "*batch size"]
) -> Float[Tensor, "*batch size"]:
    """The mean of any number of states, weighted by how well they match the query.

        c = Σₜ αₜ hₜ,   α = softmaxₜ(query · hₜ)

    EQ: 135, 136.  Source: Lee, Before Transformers; Luong et al. (2015), §3.1.
    Symbols: states = H, rows hₜ; query = h⁽ᵉ⁾; result = c.
    Raises: ShapeError if the query is not as wide as the states.
    """
    # one query: (*batch, 1, size)
    return dot_product_attention(query.unsqueeze(-2), states, states).squeeze(-2)
