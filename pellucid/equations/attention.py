"""Scaled dot-product attention: each query takes a weighted mean of the values."""

import math

from jaxtyping import Bool, Float
from torch import Tensor

from pellucid.equations.masks import causal_mask, masked_softmax
from pellucid.equations.shapes import require_same_batch, require_same_size


def dot_products(
    query: Float[Tensor, "*batch query key_size"], key: Float[Tensor, "*batch key key_size"]
) -> Float[Tensor, "*batch query key"]:
    """Every query times every key.

        (Q Kᵀ)ᵢⱼ = qᵢ · kⱼ

    EQ: 51.  Source: Agarwal, §4.1; Vaswani et al. (2017), §3.2.1.
    Symbols: query = Q, key = K, key_size = dₖ.
    Raises: ShapeError if queries and keys differ in width or in their batch axes.
    """
    require_same_size("key_size", ("query", query, -1), ("key", key, -1))
    require_same_batch("query", query, "key", key)
    return query @ key.transpose(-2, -1)


def attention_scores(
    query: Float[Tensor, "*batch query key_size"], key: Float[Tensor, "*batch key key_size"]
) -> Float[Tensor, "*batch query key"]:
    """How well each query matches each key, on a scale that does not grow with their width.

        B = Q Kᵀ / √dₖ

    EQ: 51, 60.  Source: Agarwal, Def. 4.1; Vaswani et al. (2017), §3.2.1, eq. (1).
    Symbols: query = Q, key = K, key_size = dₖ.
    Raises: ShapeError if queries and keys differ in width or in their batch axes.
    """
    return dot_products(query, key) / math.sqrt(key.shape[-1])


def attention_weights(
    query: Float[Tensor, "*batch query key_size"],
    key: Float[Tensor, "*batch key key_size"],
    may_attend: Bool[Tensor, "*#batch #query #key"] | None = None,
) -> Float[Tensor, "*batch query key"]:
    """How much each query looks at each key; the rows sum to one.

        W = softmax(Q Kᵀ / √dₖ)

    EQ: 52, 53, 63, 72, 139.  Source: Transformers report, (3); Vaswani et al. (2017), §3.2.1,
    eq. (1).
    Symbols: query = Q, key = K, key_size = dₖ.
    Raises: ShapeError if queries and keys, or scores and mask, do not fit together.

    A query that may attend to nothing has no distribution to speak of: its weights are all
    zero (not NaN, not uniform), as in PyTorch's fused kernel.
    """
    return masked_softmax(attention_scores(query, key), may_attend)


def attention(
    query: Float[Tensor, "*batch query key_size"],
    key: Float[Tensor, "*batch key key_size"],
    value: Float[Tensor, "*batch key value_size"],
    may_attend: Bool[Tensor, "*#batch #query #key"] | None = None,
) -> Float[Tensor, "*batch query value_size"]:
    """Each query gets the mean of the values, weighted by how well their keys match it.

        Attention(Q, K, V) = softmax(Q Kᵀ / √dₖ) V

    EQ: 50, 55, 63.  Source: Agarwal, Def. 4.1; Vaswani et al. (2017), §3.2.1, eq. (1).
    Symbols: query = Q, key = K, value = V, key_size = dₖ, value_size = dᵥ.
    Raises: ShapeError if the three, or the mask, do not fit together.
    """
    require_same_size("number of keys", ("key", key, -2), ("value", value, -2))
    require_same_batch("query", query, "value", value)
    return attention_weights(query, key, may_attend) @ value


def masked_attention(
    query: Float[Tensor, "*batch length key_size"],
    key: Float[Tensor, "*batch length key_size"],
    value: Float[Tensor, "*batch length value_size"],
) -> Float[Tensor, "*batch length value_size"]:
    """Attention in which no query looks ahead of itself.

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


def attention_normalizer(
    query: Float[Tensor, " key_size"], keys: Float[Tensor, "key key_size"]
) -> Float[Tensor, ""]:
    """What the exponentials of one query's scores sum to.

        Sᵢ = Σⱼ exp(qᵢ · kⱼ / √dₖ)

    EQ: 54.  Source: Agarwal, §4.1, where the index i is missing (ER-15).
    Symbols: query = qᵢ, keys = the rows kⱼ.

    As printed, without subtracting a maximum: infinite when a score passes 709 in float64.
    """
    return (keys @ query / math.sqrt(query.shape[-1])).exp().sum()


def attention_weight(
    query: Float[Tensor, " key_size"], keys: Float[Tensor, "key key_size"], position: int
) -> Float[Tensor, ""]:
    """How much one query looks at the key in one position.

        wᵢⱼ = exp(qᵢ · kⱼ / √dₖ) / Sᵢ

    EQ: 54.  Source: Agarwal, §4.1; Lee, Scaled Dot-Product Attention.
    Symbols: query = qᵢ, keys = the rows kⱼ, position = j, Sᵢ = attention_normalizer.
    """
    score = query @ keys[position] / math.sqrt(query.shape[-1])
    return score.exp() / attention_normalizer(query, keys)


def attention_vector(
    query: Float[Tensor, " key_size"],
    keys: Float[Tensor, "key key_size"],
    values: Float[Tensor, "key value_size"],
) -> Float[Tensor, " value_size"]:
    """What one query gets: the values, each times its weight, added up.

        aᵢ = Σⱼ wᵢⱼ vⱼ = (1/Sᵢ) Σⱼ exp(qᵢ · kⱼ / √dₖ) vⱼ

    EQ: 55, 56.  Source: Agarwal, §4.1.
    Symbols: query = qᵢ, keys = the rows kⱼ, values = the rows vⱼ.
    """
    exponentials = (keys @ query / math.sqrt(query.shape[-1])).exp()
    return exponentials @ values / attention_normalizer(query, keys)
