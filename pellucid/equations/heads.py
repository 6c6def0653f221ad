"""Multi-head attention: several attentions side by side, joined by one projection."""

import dataclasses
from collections.abc import Callable

from jaxtyping import Bool, Float
from torch import Tensor

from pellucid.core.errors import ShapeError
from pellucid.equations.attention import attention
from pellucid.equations.shapes import require_same_size


@dataclasses.dataclass(frozen=True)
class HeadBiases:
    """The biases that Marian's models add to each projection; the paper has none."""

    b_q: Float[Tensor, "heads 1 key_size"] | None = None
    b_k: Float[Tensor, "heads 1 key_size"] | None = None
    b_v: Float[Tensor, "heads 1 value_size"] | None = None
    b_o: Float[Tensor, " d_model"] | None = None


NO_BIASES = HeadBiases()


def head_size(d_model: int, heads: int) -> int:
    """The width of queries, keys and values in one head: d_model divided among the heads.

        dₖ = dᵥ = d_model / h

    EQ: 80.  Source: Vaswani et al. (2017), §3.2.2; Single Page, Variables; Bayesuvius, p. 1.
    Symbols: heads = h. Agarwal, the Transformers report and Lee leave dₖ and dᵥ free.
    Raises: ShapeError if d_model is not a multiple of ``heads``.
    """
    if heads < 1 or d_model % heads:
        raise ShapeError(f"d_model must be a multiple of heads={heads}, got {d_model}")
    return d_model // heads


def split_heads(
    x: Float[Tensor, "*batch length width"], heads: int
) -> Float[Tensor, "*batch {heads} length size"]:
    """Cut each row into equal pieces, one per head, the first head first.

        T[Δ] → T[ν, δ] with Δ = ν d + δ

    EQ: 33.  Source: Bayesuvius, (2).
    Symbols: width = D = n_h d, heads = n_h, size = d.
    Raises: ShapeError if the width is not a multiple of ``heads``.
    """
    width = x.shape[-1]
    if heads < 1 or width % heads:
        raise ShapeError(
            f"the width (axis -1) must be a multiple of heads={heads}, got shape {tuple(x.shape)}"
        )
    pieces = x.reshape(*x.shape[:-1], heads, width // heads)  # (*batch, length, heads, size)
    # (*batch, heads, length, size): the heads become a batch axis, so that one product serves all
    return pieces.transpose(-3, -2)


def merge_heads(
    x: Float[Tensor, "*batch heads length size"],
) -> Float[Tensor, "*batch length heads*size"]:
    """Put the heads' rows side by side, the first head first; undoes ``split_heads``.

        Concat(head₁, …, head_h),   T[ν, δ] → T[Δ] with Δ = ν d + δ

    EQ: 33, 34.  Source: Bayesuvius, (1), (3); Vaswani et al. (2017), §3.2.2.
    Symbols: heads = h, size = d.
    Differs: the Transformers report draws the heads on top of each other, which no W_O can
    multiply (ER-21).
    """
    # (*batch, heads, length, size) → (*batch, length, heads, size) → (*batch, length, heads · size)
    return x.transpose(-3, -2).flatten(-2)


def multi_head_attention(
    query: Float[Tensor, "*batch query d_model"],
    key: Float[Tensor, "*batch key d_model"],
    value: Float[Tensor, "*batch key d_model"],
    w_q: Float[Tensor, "heads d_model key_size"],
    w_k: Float[Tensor, "heads d_model key_size"],
    w_v: Float[Tensor, "heads d_model value_size"],
    w_o: Float[Tensor, "heads*value_size d_model"],
    may_attend: Bool[Tensor, "*#batch #query #key"] | None = None,
    biases: HeadBiases = NO_BIASES,
    head: Callable[[Tensor, Tensor, Tensor, Tensor | None], Tensor] = attention,
) -> Float[Tensor, "*batch query d_model"]:
    """Several heads attend in parallel; their outputs are concatenated and projected back.

        MultiHead(Q, K, V) = Concat(head₁, …, head_h) W^O

    EQ: 77, 79, 82, 83, 88, 89.  Source: Agarwal, Def. 4.2; Vaswani et al. (2017), §3.2.2.
    Symbols: query = Q, key = K, value = V, w_q[i] = Wᵢ^Q, w_k[i] = Wᵢ^K, w_v[i] = Wᵢ^V, w_o = W^O,
    heads = h, key_size = dₖ, value_size = dᵥ; head = Attention of one head.
    Raises: ShapeError if inputs, weights or mask do not fit together.

    Self-attention is Q = K = V = X, cross attention K = V = the encoder's output; the mask is
    the same for every head. The paper has no biases. Differs: torch.nn.MultiheadAttention ties
    key_size and value_size to d_model / heads, and its masks say True = hidden.
    """
    require_projections(("query", query, w_q), ("key", key, w_k), ("value", value, w_v))

    # the inputs get an axis of heads, (*batch, 1, length, d_model), which broadcasts against the
    # matrices, (heads, d_model, size)
    each_head = head(
        _plus(query.unsqueeze(-3) @ w_q, biases.b_q),  # (*batch, heads, query, key_size)
        _plus(key.unsqueeze(-3) @ w_k, biases.b_k),
        _plus(value.unsqueeze(-3) @ w_v, biases.b_v),
        # one mask for all heads: (*batch, 1, query, key)
        None if may_attend is None else may_attend.unsqueeze(-3),
    )

    side_by_side = merge_heads(each_head)  # (*batch, query, heads * value_size)
    require_same_size("heads * value_size", ("the heads", side_by_side, -1), ("w_o", w_o, -2))
    return _plus(side_by_side @ w_o, biases.b_o)


def two_stage_weights(
    shared: Float[Tensor, "d_model size"], per_head: Float[Tensor, "heads size size"]
) -> Float[Tensor, "heads d_model size"]:
    """Per-head projections that are the product of a shared projection and a small one per head.

        Wᵢ^Q = W_q W_q⁽ⁱ⁾

    EQ: 87.  Source: Transformers report, §1.4, (6).
    Symbols: shared = W_q, per_head[i] = W_q⁽ⁱ⁾; for keys and values likewise.
    Differs: the paper's heads project straight from d_model columns. Here all heads share one
    space of ``size`` dimensions: their joint rank is at most ``size``, not heads · size (ER-22).
    """
    # (d_model, size) @ (heads, size, size) → (heads, d_model, size)
    return shared @ per_head


def _plus(x: Tensor, bias: Tensor | None) -> Tensor:
    return x if bias is None else x + bias


def require_projections(*projections: tuple[str, Tensor, Tensor]) -> None:
    """Raise ShapeError unless every input is as wide as its matrix has rows."""
    for name, x, weight in projections:
        require_same_size("d_model", (name, x, -1), (f"w_{name[0]}", weight, -2))
