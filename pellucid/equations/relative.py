"""Positions inside attention: the distance between two words, not their positions."""

import math

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from pellucid.core.errors import ShapeError
from pellucid.equations.attention import attention_scores
from pellucid.equations.masks import masked_softmax
from pellucid.equations.positions import sinusoidal_positions
from pellucid.equations.shapes import require_same_size


def relative_distances(
    query_length: int,
    key_length: int,
    clip: int,
    offset: int = 0,
    device: torch.device | str | None = None,
) -> Int[Tensor, "{query_length} {key_length}"]:
    """For each pair of positions, the row of the table of distances that belongs to it.

        clip(j - i, -k, k) + k

    EQ: 31.  Source: Shaw et al. (2018), §3.2; Transformers report, §1.2, by name.
    Symbols: clip = k, i = query + offset, j = key; offset = keys that precede the first query.
    """
    queries = torch.arange(offset, offset + query_length, device=device).unsqueeze(-1)
    keys = torch.arange(key_length, device=device)
    # from -k … k to the rows 0 … 2k; all longer distances share the outermost rows (§3.2: beyond k
    # the exact distance does not help)
    return (keys - queries).clamp(-clip, clip) + clip


def relative_attention_weights(
    query: Float[Tensor, "*batch query key_size"],
    key: Float[Tensor, "*batch key key_size"],
    key_table: Float[Tensor, "distances key_size"],
    may_attend: Bool[Tensor, "*#batch #query #key"] | None = None,
    offset: int = 0,
) -> Float[Tensor, "*batch query key"]:
    """Attention weights from ``relative_scores``.

        wᵢⱼ = softmaxⱼ(qᵢ · (kⱼ + aᴷ[j - i]) / √dₖ)

    EQ: 31.  Source: Shaw et al. (2018), eq. (4).
    Symbols: query = xᵢ W^Q, key = xⱼ W^K, key_table = the 2k + 1 rows of aᴷ, nearest in the
    middle, offset = keys that precede the first query.
    Raises: ShapeError if the shapes do not fit, or if the table has an even number of rows.
    """
    return masked_softmax(relative_scores(query, key, key_table, offset), may_attend)


def relative_scores(
    query: Float[Tensor, "*batch query key_size"],
    key: Float[Tensor, "*batch key key_size"],
    key_table: Float[Tensor, "distances key_size"],
    offset: int = 0,
) -> Float[Tensor, "*batch query key"]:
    """Attention scores to which a learned vector for the distance of the two positions contributes.

        eᵢⱼ = qᵢ · (kⱼ + aᴷ[j - i]) / √dₖ

    EQ: 31.  Source: Shaw et al. (2018), eq. (4).
    Symbols: query = xᵢ W^Q, key = xⱼ W^K, key_table = aᴷ, offset = keys before the first query.
    Raises: ShapeError if the shapes do not fit, or if the table has an even number of rows.
    """
    positions = _distance_rows(key_table, query, key, offset)  # (query, key, key_size)
    require_same_size("key_size", ("query", query, -1), ("key_table", key_table, -1))
    # each query with the vectors of its own distances: (*batch, query, 1, key_size) @ (query,
    # key_size, key) → (*batch, query, 1, key)
    relative = (query.unsqueeze(-2) @ positions.transpose(-2, -1)).squeeze(-2)
    return attention_scores(query, key) + relative / math.sqrt(key.shape[-1])


def relative_attention(
    query: Float[Tensor, "*batch query key_size"],
    key: Float[Tensor, "*batch key key_size"],
    value: Float[Tensor, "*batch key value_size"],
    key_table: Float[Tensor, "distances key_size"],
    value_table: Float[Tensor, "distances value_size"],
    may_attend: Bool[Tensor, "*#batch #query #key"] | None = None,
    offset: int = 0,
) -> Float[Tensor, "*batch query value_size"]:
    """Attention with learned vectors for distances, added to keys and to values.

        zᵢ = Σⱼ wᵢⱼ (vⱼ + aⱽ[j - i])

    EQ: 31.  Source: Shaw et al. (2018), eq. (3), (4).
    Symbols: wᵢⱼ = relative_attention_weights, value = xⱼ W^V, value_table = aⱽ.
    Raises: ShapeError if the shapes do not fit, or if a table has an even number of rows.
    """
    weights = relative_attention_weights(query, key, key_table, may_attend, offset)
    return relative_values(weights, value, value_table, offset)


def relative_values(
    weights: Float[Tensor, "*batch query key"],
    value: Float[Tensor, "*batch key value_size"],
    value_table: Float[Tensor, "distances value_size"],
    offset: int = 0,
) -> Float[Tensor, "*batch query value_size"]:
    """The weighted mean of the values, each with a learned vector for its distance added.

        zᵢ = Σⱼ wᵢⱼ (vⱼ + aⱽ[j - i])

    EQ: 31.  Source: Shaw et al. (2018), eq. (3).
    Symbols: weights = wᵢⱼ, value = vⱼ, value_table = aⱽ, offset = keys before the first query.
    Raises: ShapeError if the shapes do not fit, or if the table has an even number of rows.
    """
    require_same_size("number of keys", ("weights", weights, -1), ("value", value, -2))
    require_same_size("value_size", ("value", value, -1), ("value_table", value_table, -1))
    positions = _distance_rows(value_table, weights, value, offset)  # (query, key, value_size)
    # (*batch, query, 1, key) @ (query, key, value_size) → (*batch, query, 1, value_size)
    return weights @ value + (weights.unsqueeze(-2) @ positions).squeeze(-2)


def rotary_positions(
    x: Float[Tensor, "*batch length size"],
    start: int = 0,
    waves: Float[Tensor, "length size"] | None = None,
) -> Float[Tensor, "*batch length size"]:
    """Rotate each pair of features by an angle that grows with the position.

        (x₂ᵢ, x₂ᵢ₊₁) → (x₂ᵢ cos nθᵢ - x₂ᵢ₊₁ sin nθᵢ,  x₂ᵢ sin nθᵢ + x₂ᵢ₊₁ cos nθᵢ),
        θᵢ = 10000^(-2i/d)

    EQ: none.  Source: Su et al. (2021), eq. (15), (34).
    Symbols: x = queries or keys of one head, row n - start = position n, size = d; waves = the
    sinusoids of these positions, where the caller has them already.
    Raises: ShapeError if the size is odd.

    The dot product of a query and a key rotated in this way depends on their distance only.
    Differs: GPT-NeoX and Llama pair feature i with i + d/2 instead of its neighbor.
    """
    length, size = x.shape[-2:]
    if size % 2:
        raise ShapeError(
            f"rotary positions need an even size (axis -1), got shape {tuple(x.shape)}"
        )

    if waves is None:
        waves = sinusoidal_positions(length, size, start, x.dtype, x.device)
    # the sinusoid holds sin nθᵢ at feature 2i and cos nθᵢ beside it: (length, size / 2) each
    sines, cosines = waves[:, ::2], waves[:, 1::2]
    # (*batch, length, size / 2)
    even, odd = x[..., ::2], x[..., 1::2]

    # (*batch, length, size / 2, 2) → (*batch, length, size): pairs stay neighbors
    turned = torch.stack((even * cosines - odd * sines, even * sines + odd * cosines), dim=-1)
    return turned.flatten(-2)


def alibi_slopes(heads: int) -> list[float]:
    """The slope of each head: how fast its penalty grows with the distance.

        m_h = 2^(-8h/H),   h = 1 … H

    EQ: none.  Source: Press et al. (2022), §3 and its code for H that is no power of two:
    the slopes of the next lower power, then every other one of the next higher.
    Symbols: heads = H.
    """
    # the largest power of two that is not above the number of heads
    lower = 2 ** (heads.bit_length() - 1)
    slopes = [2.0 ** (-8 * (head + 1) / lower) for head in range(lower)]
    # of twice as many heads, every other slope: they lie between those above, and are taken in turn
    between = [2.0 ** (-4 * (head + 1) / lower) for head in range(0, 2 * lower, 2)]
    return slopes + between[: heads - lower]


def alibi_bias(
    heads: int,
    query_length: int,
    key_length: int,
    offset: int = 0,
    dtype: torch.dtype | None = None,
    device: torch.device | str | None = None,
) -> Float[Tensor, "{heads} {query_length} {key_length}"]:
    """A penalty that is added to the scores and grows with the distance to the key.

        -m_h · |j - i|

    EQ: none.  Source: Press et al. (2022), §3.
    Symbols: m_h = alibi_slopes, i = query + offset, j = key.

    Differs: the paper is causal and needs no absolute value; this serves the encoder as well.
    """
    queries = torch.arange(offset, offset + query_length, device=device).unsqueeze(-1)
    distances = (torch.arange(key_length, device=device) - queries).abs()
    slopes = torch.tensor(
        alibi_slopes(heads), dtype=dtype or torch.get_default_dtype(), device=device
    )
    # (heads, 1, 1) · (query, key) → (heads, query, key)
    return -slopes.reshape(-1, 1, 1) * distances


def alibi_attention_weights(
    query: Float[Tensor, "*batch heads query key_size"],
    key: Float[Tensor, "*batch heads key key_size"],
    may_attend: Bool[Tensor, "*fits #query #key"] | None = None,
    offset: int = 0,
) -> Float[Tensor, "*batch heads query key"]:
    """Attention weights that fall with the distance, at a slope of each head's own.

        W_h = softmax(Q_h K_hᵀ / √dₖ - m_h |j - i|)

    EQ: none.  Source: Press et al. (2022), §3.
    Symbols: query = Q_h, key = K_h, m_h = alibi_slopes, offset = keys before the first query.
    Raises: ShapeError if queries, keys or mask do not fit together.
    """
    scores = attention_scores(query, key)
    heads, query_length, key_length = scores.shape[-3:]
    bias = alibi_bias(heads, query_length, key_length, offset, scores.dtype, scores.device)
    return masked_softmax(scores + bias, may_attend)


def _distance_rows(table: Tensor, query: Tensor, key: Tensor, offset: int) -> Tensor:
    if table.shape[0] % 2 == 0:
        raise ShapeError(
            "a table of distances must have 2·clip + 1 rows (axis 0),"
            f" got shape {tuple(table.shape)}"
        )
    clip = table.shape[0] // 2
    return table[
        relative_distances(query.shape[-2], key.shape[-2], clip, offset, device=table.device)
    ]
