"""The dot product as two lengths and the angle between them, and its variance."""

import math

from jaxtyping import Float
from torch import Tensor

from pellucid.equations.attention import dot_products
from pellucid.equations.softmax import softmax


def cosine(
    query: Float[Tensor, "*batch query size"], key: Float[Tensor, "*batch key size"]
) -> Float[Tensor, "*batch query key"]:
    """The cosine of the angle between query and key: 1 same, 0 orthogonal, -1 opposite direction.

        cos θᵢⱼ = qᵢ · kⱼ / (|qᵢ| |kⱼ|)

    EQ: 57.  Source: Agarwal, §4.1; Lee, Scaled Dot-Product Attention.
    Symbols: query = the rows qᵢ, key = the rows kⱼ. A zero row has no direction and gives NaN.
    Raises: ShapeError if the two differ in width.
    """
    return dot_products(query, key) / _lengths(query, key)


def angle(
    query: Float[Tensor, "*batch query size"], key: Float[Tensor, "*batch key size"]
) -> Float[Tensor, "*batch query key"]:
    """The angle between each query and each key, in radians from 0 to π.

        θᵢⱼ = arccos(qᵢ · kⱼ / (|qᵢ| |kⱼ|))

    EQ: 57.  Source: Agarwal, §4.1.
    Symbols: query = the rows qᵢ, key = the rows kⱼ.
    Raises: ShapeError if the two differ in width.
    """
    # rounding may bring the cosine of parallel rows to 1.0000000000000002, whose arc cosine is NaN
    return cosine(query, key).clamp(-1, 1).acos()


def angle_weights(
    query: Float[Tensor, "*batch query key_size"], key: Float[Tensor, "*batch key key_size"]
) -> Float[Tensor, "*batch query key"]:
    """Attention weights written with angles: equal to ``attention_weights``.

        wᵢⱼ ∝ exp(|qᵢ| |kⱼ| cos θᵢⱼ / √dₖ)

    EQ: 58.  Source: Agarwal, §4.1, made exact.
    Symbols: query = the rows qᵢ, key = the rows kⱼ, key_size = dₖ.
    Raises: ShapeError if the two differ in width.
    Differs: Agarwal writes wᵢⱼ ∝ exp(cos θ), which needs |qᵢ| |kⱼ| = √dₖ (ER-06).
    """
    return softmax(_lengths(query, key) / math.sqrt(key.shape[-1]) * cosine(query, key))


def exp_cosine(theta: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """exp(cos θ), which is above 1 for acute angles and below 1 for obtuse ones.

        exp(cos θ)

    EQ: 59.  Source: Agarwal, §4.1 and Fig. 5.
    Symbols: theta = θ, in radians.
    Differs: Agarwal says |exp cos θ| < |cos θ| for every obtuse angle; that begins only where
    cos θ < ``exp_cosine_crossing()`` (ER-05).
    """
    return theta.cos().exp()


def exp_cosine_crossing() -> float:
    """The cosine at which exp(cos θ) = -cos θ; below it the exponential is the smaller one.

        x = -W(1), the root of exp(x) + x = 0

    EQ: 59.  Source: derived; settles ER-05 (W is Lambert's function).
    Symbols: result = cos θ, about -0.567; the angle is about 124.55°.
    """
    x = -0.5
    for _ in range(5):  # Newton's method doubles the correct digits each time
        x -= (math.exp(x) + x) / (math.exp(x) + 1)
    return x


def dot_product_variance(
    query: Float[Tensor, "*draw size"], key: Float[Tensor, "*draw size"]
) -> Float[Tensor, ""]:
    """The variance of q · k over many draws of a query and a key; it grows with their width.

        Var(q · k) = dₖ for independent components of mean 0 and variance 1

    EQ: 60.  Source: Vaswani et al. (2017), §3.2.1, footnote 4; Lee.
    Symbols: query = draws of q, key = draws of k, one per row, size = dₖ. Population variance.
    """
    # (*draw, size) → (*draw): one product for each draw, then the variance over all of them
    return (query * key).sum(dim=-1).var(correction=0)


def _lengths(query: Tensor, key: Tensor) -> Tensor:
    """|qᵢ| |kⱼ| for each query and each key."""
    query_lengths = query.square().sum(dim=-1).sqrt()
    key_lengths = key.square().sum(dim=-1).sqrt()
    # (*batch, query, 1) · (*batch, 1, key) → (*batch, query, key)
    return query_lengths.unsqueeze(-1) * key_lengths.unsqueeze(-2)
