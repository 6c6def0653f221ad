"""The column-vector notation of Bayesuvius: words stand side by side as columns.

Features come first and positions last, linear maps multiply from the left, and the softmax
runs over the keys, which are the first axis of the scores. Everything here is the row form
transposed, which the tests prove.
"""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor

from pellucid.equations.embedding import one_hot
from pellucid.equations.feed_forward import relu
from pellucid.equations.positions import sinusoidal_positions
from pellucid.equations.shapes import require_same_size
from pellucid.equations.softmax import softmax


def to_columns(x: Float[Tensor, "*batch length size"]) -> Float[Tensor, "*batch size length"]:
    """Rows (the paper and the other four sources) to columns (Bayesuvius).

        (X W)ᵀ = Wᵀ Xᵀ

    EQ: 37.  Source: Bayesuvius, after (6); Agarwal, Remark 2.3 (ER-25).
    Symbols: x = X; ``to_columns`` undoes itself.
    """
    return x.transpose(-2, -1)


def hadamard(
    left: Float[Tensor, "*shape"], right: Float[Tensor, "*shape"]
) -> Float[Tensor, "*shape"]:
    """The product entry by entry.

        T * S = (T^ν S^ν)_ν

    EQ: 35.  Source: Bayesuvius, (4); Agarwal, Def. 6.1 (⊙).
    Symbols: left = T, right = S.
    """
    return left * right


def inner_product(left: Float[Tensor, " size"], right: Float[Tensor, " size"]) -> Float[Tensor, ""]:
    """The inner product of two columns.

        Tᵀ S = Σ_ν T^ν S^ν

    EQ: 36.  Source: Bayesuvius, (5).
    Symbols: left = T, right = S.
    """
    return hadamard(left, right).sum()


def matrix_product(
    left: Float[Tensor, "rows inner"], right: Float[Tensor, "inner columns"]
) -> Float[Tensor, "rows columns"]:
    """The matrix product as a sum over the inner index.

        (T S)^{α,γ} = Σ_β T^{α,β} S^{β,γ}

    EQ: 36.  Source: Bayesuvius, (6).
    Symbols: left = T, right = S.
    Raises: ShapeError if the inner sizes differ.
    """
    require_same_size("inner size", ("left", left, -1), ("right", right, -2))
    # T^{α,β} at (rows, inner, 1) times S^{β,γ} at (1, inner, columns), summed over β
    return (left.unsqueeze(-1) * right.unsqueeze(-3)).sum(dim=-2)


def one_hot_columns(
    ids: Int[Tensor, "*batch length"], vocabulary_size: int, dtype: torch.dtype | None = None
) -> Float[Tensor, "*batch {vocabulary_size} length"]:
    """Each word as a column of zeros with a single one.

        x^{β,α} = δ(β, β(α))

    EQ: 13.  Source: Bayesuvius, (7).
    Symbols: ids = β(α), vocabulary_size = L.
    """
    return to_columns(one_hot(ids, vocabulary_size, dtype))


def embed_columns(
    x: Float[Tensor, "*batch vocabulary length"], embedding: Float[Tensor, "size vocabulary"]
) -> Float[Tensor, "*batch size length"]:
    """The embedding matrix times one-hot columns.

        e^{δ,α} = Σ_β E^{δ,β} x^{β,α}

    EQ: 16.  Source: Bayesuvius, (8).
    Symbols: x = x, embedding = E, the transpose of W_Embedding.
    Raises: ShapeError if the two differ in the size of the vocabulary.
    """
    require_same_size("vocabulary", ("embedding", embedding, -1), ("x", x, -2))
    return embedding @ x


def sinusoidal_columns(
    d_model: int, length: int, dtype: torch.dtype | None = None
) -> Float[Tensor, "{d_model} {length}"]:
    """The positional encoding with one column per position.

        E_pos^{δ,α} = sin(2π α / λ(δ)) for even δ,   cos(2π α / λ(δ)) for odd δ

    EQ: 26.  Source: Bayesuvius, (18), whose β should be the position α (ER-29).
    Symbols: d_model = d, length = ℓ, λ = wavelength.
    """
    return to_columns(sinusoidal_positions(length, d_model, dtype=dtype))


def project_columns(
    w: Float[Tensor, "heads size d_model"], e: Float[Tensor, "*batch d_model length"]
) -> Float[Tensor, "*batch heads size length"]:
    """Queries, keys or values of all heads.

        Q^{ν,δ,α} = Σ_δ' W_q^{ν,δ,δ'} e^{δ',α},   K and V likewise

    EQ: 64.  Source: Bayesuvius, (9), (10), (11).
    Symbols: w = W_q, W_k or W_v; e = e, of any width (Bayesuvius gives it only d, ER-27).
    Raises: ShapeError if weights and embeddings differ in width.
    """
    require_same_size("d_model", ("w", w, -1), ("e", e, -2))
    # (heads, size, d_model) @ (*batch, 1, d_model, length) → (*batch, heads, size, length)
    return w @ e.unsqueeze(-3)


def scores_columns(
    query: Float[Tensor, "*batch size query"], key: Float[Tensor, "*batch size key"]
) -> Float[Tensor, "*batch key query"]:
    """How well each key matches each query: keys first, queries second.

        B^{ν,α,α'} = (1/√d) Σ_δ K^{ν,δ,α} Q^{ν,δ,α'}

    EQ: 65.  Source: Bayesuvius, (12), (16).
    Symbols: query = Q^ν, key = K^ν, size = d, result = B^ν; α = key, α' = query.
    Raises: ShapeError if queries and keys differ in width.
    """
    require_same_size("size", ("query", query, -2), ("key", key, -2))
    # Kᵀ Q and not Q Kᵀ: (*batch, key, size) @ (*batch, size, query) → (*batch, key, query)
    return key.transpose(-2, -1) @ query / math.sqrt(key.shape[-2])


def weights_columns(
    query: Float[Tensor, "*batch size query"], key: Float[Tensor, "*batch size key"]
) -> Float[Tensor, "*batch key query"]:
    """The probability of each key, given the query; the columns sum to one.

        P(α | ν, α') = softmax over α of B^{ν,α,α'},   Σ_α P(α | ν, α') = 1

    EQ: 39, 66, 67.  Source: Bayesuvius, (13), (14); its text to (17) swaps the two (ER-26).
    Symbols: query = Q^ν, key = K^ν, result = P; α = key, α' = query.
    Raises: ShapeError if queries and keys differ in width.
    """
    # over the keys, which are the first axis here
    return softmax(scores_columns(query, key), dim=-2)


def attention_columns(
    query: Float[Tensor, "*batch size query"],
    key: Float[Tensor, "*batch size key"],
    value: Float[Tensor, "*batch value_size key"],
) -> Float[Tensor, "*batch value_size query"]:
    """Each query's column is a mean of the values' columns.

        A^{ν,δ,α'} = Σ_α V^{ν,δ,α} P(α | ν, α')

    EQ: 66, 69.  Source: Bayesuvius, (13), (17).
    Symbols: query = Q^ν, key = K^ν, value = V^ν, result = A^ν.
    Raises: ShapeError if the three do not fit together.
    """
    require_same_size("number of keys", ("key", key, -1), ("value", value, -1))
    # (*batch, value_size, key) @ (*batch, key, query) → (*batch, value_size, query)
    return value @ weights_columns(query, key)


def merge_heads_columns(
    x: Float[Tensor, "*batch heads size length"],
) -> Float[Tensor, "*batch heads*size length"]:
    """Stack the heads' blocks, the first head on top.

        A^{ν,δ,α} → A^{Δ,α},   Δ = ν d + δ

    EQ: 33, 68.  Source: Bayesuvius, (1), (15). Bayesuvius has no W^O after it (ER-28).
    Symbols: heads = n_h, size = d.
    """
    # features are the axis beside the heads already, so nothing is transposed
    return x.flatten(-3, -2)


def feed_forward_columns(
    x: Float[Tensor, "*batch d_model length"],
    w_1: Float[Tensor, "d_ff d_model"],
    b_1: Float[Tensor, " d_ff"],
    w_2: Float[Tensor, "d_model d_ff"],
    b_2: Float[Tensor, " d_model"],
) -> Float[Tensor, "*batch d_model length"]:
    """The feed-forward network with weights on the left.

        F(x) = W₂ ReLU(W₁ x + b₁) + b₂

    EQ: 103.  Source: Bayesuvius, (21), with d_model and d_ff for ℓ and d, and b₂ for b₁ (ER-32).
    Symbols: x = x, w_1 = W₁, b_1 = b₁, w_2 = W₂, b_2 = b₂.
    """
    # biases are columns, (d_ff, 1), and broadcast over the positions
    return w_2 @ relu(w_1 @ x + b_1.unsqueeze(-1)) + b_2.unsqueeze(-1)
