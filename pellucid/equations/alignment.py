"""Attention before the Transformer: a decoder's state attends to the encoder's states."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from pellucid.equations.attention import dot_products
from pellucid.equations.masks import masked_softmax
from pellucid.equations.shapes import require_same_batch, require_same_size


def dot_product_attention(
    query: Float[Tensor, "*batch query key_size"],
    key: Float[Tensor, "*batch key key_size"],
    value: Float[Tensor, "*batch key value_size"],
    may_attend: Bool[Tensor, "*#batch #query #key"] | None = None,
) -> Float[Tensor, "*batch query value_size"]:
    """Luong's attention: as ``attention``, but the dot products are not scaled down.

        softmax(Q Kᵀ) V

    EQ: 61, 136.  Source: Luong et al. (2015), §3.1, eq. (8), "dot"; Lee.
    Symbols: query = Q = hₜ, key = K = h̄ₛ, value = V.
    Raises: ShapeError if the three, or the mask, do not fit together.
    Differs: ``attention`` divides the scores by √dₖ (ER-67).
    """
    # (*batch, query, key), whose rows sum to one, times (*batch, key, value_size)
    return _weighted(masked_softmax(dot_products(query, key), may_attend), value)


def general_scores(
    query: Float[Tensor, "*batch query query_size"],
    key: Float[Tensor, "*batch key key_size"],
    w: Float[Tensor, "query_size key_size"],
) -> Float[Tensor, "*batch query key"]:
    """Dot products of the keys with a linear map of the query.

        score(hₜ, h̄ₛ) = hₜ W h̄ₛᵀ

    EQ: 136.  Source: Luong et al. (2015), §3.1, eq. (8), "general".
    Symbols: query = hₜ, key = h̄ₛ, w = W_a; rows, where Luong et al. write columns, hₜᵀ W h̄ₛ.
    Raises: ShapeError if query, key and w do not fit together.
    """
    require_same_size("query_size", ("query", query, -1), ("w", w, -2))
    # (*batch, query, query_size) → (*batch, query, key_size): the map brings the query into the
    # space of the keys, which may have another width
    return dot_products(query @ w, key)


def general_attention(
    query: Float[Tensor, "*batch query query_size"],
    key: Float[Tensor, "*batch key key_size"],
    value: Float[Tensor, "*batch key value_size"],
    w: Float[Tensor, "query_size key_size"],
    may_attend: Bool[Tensor, "*#batch #query #key"] | None = None,
) -> Float[Tensor, "*batch query value_size"]:
    """Luong's attention with a learned matrix between query and key.

        softmax(Q W Kᵀ) V

    EQ: 136.  Source: Luong et al. (2015), §3.1, eq. (7), (8), "general".
    Symbols: query = Q = hₜ, key = K = h̄ₛ, value = V, w = W_a.
    Raises: ShapeError if inputs, weight or mask do not fit together.
    """
    return _weighted(masked_softmax(general_scores(query, key, w), may_attend), value)


def additive_scores(
    query: Float[Tensor, "*batch query query_size"],
    keys: Float[Tensor, "*batch key key_size"],
    w_query: Float[Tensor, "query_size hidden"],
    w_key: Float[Tensor, "key_size hidden"],
    v: Float[Tensor, " hidden"],
) -> Float[Tensor, "*batch query key"]:
    """Scores of a small network for how well each state fits the query.

        eₜⱼ = v · tanh(sₜ₋₁ W_a + hⱼ U_a)

    EQ: 135.  Source: Bahdanau et al. (2015), §3.1 and Appendix A.1.2.
    Symbols: query = sₜ₋₁, the decoder's state before word t; keys = hⱼ, w_query = W_a, w_key = U_a,
    v = v_a.
    Raises: ShapeError if inputs and weights do not fit together.
    """
    require_same_size("query_size", ("query", query, -1), ("w_query", w_query, -2))
    require_same_size("key_size", ("keys", keys, -1), ("w_key", w_key, -2))
    require_same_size("hidden", ("w_query", w_query, -1), ("w_key", w_key, -1))
    require_same_size("hidden", ("w_key", w_key, -1), ("v", v, -1))
    require_same_batch("query", query, "keys", keys)
    projected_query = (query @ w_query).unsqueeze(-2)  # (*batch, query, 1, hidden)
    projected_keys = (keys @ w_key).unsqueeze(-3)  # (*batch, 1, key, hidden)
    # every query beside every key: (*batch, query, key, hidden) → (*batch, query, key). This is why
    # additive attention takes more memory than dot products of the same width.
    return torch.tanh(projected_query + projected_keys) @ v


def additive_attention(
    query: Float[Tensor, "*batch query query_size"],
    keys: Float[Tensor, "*batch key key_size"],
    values: Float[Tensor, "*batch key value_size"],
    w_query: Float[Tensor, "query_size hidden"],
    w_key: Float[Tensor, "key_size hidden"],
    v: Float[Tensor, " hidden"],
    may_attend: Bool[Tensor, "*#batch #query #key"] | None = None,
) -> Float[Tensor, "*batch query value_size"]:
    """Bahdanau's attention: the mean of the states, weighted by the scores of a small network.

        cₜ = Σⱼ αₜⱼ hⱼ,   α = softmax(e)

    EQ: 135.  Source: Bahdanau et al. (2015), §3.1, eq. (5), (6); Lee, Before Transformers.
    Symbols: query = sₜ₋₁, keys = values = hⱼ, w_query = W_a, w_key = U_a, v = v_a, result = cₜ.
    Raises: ShapeError if inputs, weights or mask do not fit together.
    """
    scores = additive_scores(query, keys, w_query, w_key, v)
    return _weighted(masked_softmax(scores, may_attend), values)


def attentional_state(
    context: Float[Tensor, "*batch context_size"],
    hidden: Float[Tensor, "*batch hidden"],
    w_c: Float[Tensor, "context_size+hidden outputs"],
) -> Float[Tensor, "*batch outputs"]:
    """The state that the decoder predicts from: context vector and hidden state, mixed.

        h̃ₜ = tanh([cₜ ; hₜ] W_c)

    EQ: 136.  Source: Luong et al. (2015), §3, eq. (5).
    Symbols: context = cₜ, hidden = hₜ, w_c = W_c, result = h̃ₜ.
    """
    # context first, as in Luong et al.: the order decides which rows of W_c belong to which
    return torch.tanh(torch.cat((context, hidden), dim=-1) @ w_c)


def _weighted(weights: Tensor, value: Tensor) -> Tensor:
    require_same_size("number of keys", ("weights", weights, -1), ("value", value, -2))
    require_same_batch("weights", weights, "value", value)
    return weights @ value
