"""Scaled dot-product attention: each query takes a weighted mean of the values."""

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from pellucid.equations.masks import masked_softmax
from pellucid.equations.shapes import require_same_batch, require_same_size


def dot_products(
    query: Float[Tensor, "*batch query key_size"], key: Float[Tensor, "*batch key key_size"]
) -> Float[Tensor, "*batch query key"]:
    """The dot product of every query with every key.

        (Q Kᵀ)ᵢⱼ = qᵢ · kⱼ

    EQ: 51.  Source: Agarwal, §4.1; Vaswani et al. (2017), §3.2.1.
    Symbols: query = Q, key = K, key_size = dₖ.
    Raises: ShapeError if queries and keys differ in width or in their batch axes.
    """
    require_same_size("key_size", ("query", query, -1), ("key", key, -1))
    require_same_batch("query", query, "key", key)
    # (*batch, query, key_size) @ (*batch, key_size, key) → (*batch, query, key)
    return query @ key.transpose(-2, -1)


def attention_scores(
    query: Float[Tensor, "*batch query key_size"], key: Float[Tensor, "*batch key key_size"]
) -> Float[Tensor, "*batch query key"]:
    """How well each query matches each key, on a scale that does not grow with their width.

        S = Q Kᵀ / √dₖ

    EQ: 51, 60.  Source: Agarwal, Def. 4.1; Vaswani et al. (2017), §3.2.1, eq. (1).
    Symbols: query = Q, key = K, key_size = dₖ.
    Raises: ShapeError if queries and keys differ in width or in their batch axes.
    """
    # a sum of dₖ products of independent numbers of variance 1 has the variance dₖ; divided by its
    # root it is 1 again, and the softmax does not saturate (§3.2.1, footnote 4)
    return dot_products(query, key) / math.sqrt(key.shape[-1])


def attention_weights(
    query: Float[Tensor, "*batch query key_size"],
    key: Float[Tensor, "*batch key key_size"],
    may_attend: Bool[Tensor, "*#batch #query #key"] | None = None,
) -> Float[Tensor, "*batch query key"]:
    """How much each query attends to each key; the rows sum to one.

        A = softmax(Q Kᵀ / √dₖ)

    EQ: 52, 53, 63, 72, 139.  Source: Transformers report, (3); Vaswani et al. (2017), §3.2.1,
    eq. (1).
    Symbols: query = Q, key = K, key_size = dₖ.
    Raises: ShapeError if queries and keys, or scores and mask, do not fit together.

    A query that may attend to nothing has no distribution: its weights are all zero (not NaN,
    not uniform), as in PyTorch's fused kernel.
    """
    # over the keys, the last axis: each query shares out one unit of attention
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
    # (*batch, query, key) @ (*batch, key, value_size) → (*batch, query, value_size)
    return attention_weights(query, key, may_attend) @ value


def cached_attention(
    query: Float[Tensor, "*batch 1 key_size"],
    key: Float[Tensor, "*batch 1 key_size"],
    value: Float[Tensor, "*batch 1 value_size"],
    kept_keys: Float[Tensor, "*batch before key_size"],
    kept_values: Float[Tensor, "*batch before value_size"],
) -> tuple[
    Float[Tensor, "*batch 1 value_size"],
    Float[Tensor, "*batch before+1 key_size"],
    Float[Tensor, "*batch before+1 value_size"],
]:
    """One step of masked self-attention: only the newest row is computed, its key and value stay.

        aₖ = Attention(qₖ, (K₍<k₎; kₖ), (V₍<k₎; vₖ))

    EQ: 130.  Source: derived from Vaswani et al. (2017), §3.2.3: under the causal mask no earlier
    row changes when a word is appended (ER-38).
    Symbols: query = qₖ, key = kₖ, value = vₖ, kept_keys = K₍<k₎, kept_values = V₍<k₎; results =
    (aₖ, all keys, all values). No mask is needed: nothing later is there yet.
    Raises: ShapeError if queries and keys, or keys and values, do not fit together.
    """
    # along the positions: before + 1 keys, the newest last
    keys = torch.cat((kept_keys, key), dim=-2)
    values = torch.cat((kept_values, value), dim=-2)
    return attention(query, keys, values), keys, values
