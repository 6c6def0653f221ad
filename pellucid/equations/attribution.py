"""Attribution: what a prediction is made of, split exactly, and the shares of source and prefix.

A residual stream is a sum: what was embedded, and what each sublayer added. While the deviations
of the norms are held at what they were, the way from any of these parts to the logits is linear,
so that a difference of two logits is a sum over the parts.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from pellucid.core.errors import ConfigError, ShapeError
from pellucid.equations.choices import NormKind
from pellucid.equations.shapes import Number, require_same_size


def normalize_part(
    part: Float[Tensor, "*parts size"],
    x: Float[Tensor, " size"],
    kind: NormKind,
    gain: Float[Tensor, " size"] | None = None,
    eps: Number = 0.0,
) -> Float[Tensor, "*parts size"]:
    """The share of a part in the norm of the row that it is a part of.

        Nₓ(p) = g ⊙ (p - μ(p)) / √(σ²(x) + ε),   Σ Nₓ(pᵢ) + b = LayerNorm(Σ pᵢ; g, b)

    EQ: none.  Source: Elhage et al. (2021), "A Mathematical Framework for Transformer Circuits";
    Kobayashi et al. (2021), "Incorporating Residual and Normalization Layers into Analysis of
    Masked Language Models".
    Symbols: part = p, x = the row that was normalized, kind = which norm, gain = g, eps = ε; the
    norm's bias b is a part of its own. ``rms`` and ``l2`` subtract no mean.
    Raises: ShapeError if the part is not as wide as the row; ConfigError for a norm that is not
    linear once its deviation is held.

    Linear in the part, as the deviation is that of x whatever the part is.
    """
    require_same_size("size", ("part", part, -1), ("x", x, -1))
    centered = _centered(part, kind)
    return (centered if gain is None else gain * centered) / _length(x, kind, eps)


def direction_before_norm(
    direction: Float[Tensor, " size"],
    x: Float[Tensor, " size"],
    kind: NormKind,
    gain: Float[Tensor, " size"] | None = None,
    eps: Number = 0.0,
) -> Float[Tensor, " size"]:
    """The direction before a norm along which a part moves what it moves along d after the norm.

        d′ = Nₓᵀ(d),   p · d′ = Nₓ(p) · d

    EQ: none.  Source: derived; the transpose of ``normalize_part``.
    Symbols: direction = d, result = d′, x = the row that was normalized, kind = which norm,
    gain = g, eps = ε.
    Raises: ShapeError if the direction is not as wide as the row.

    Through many norms, one direction is taken back instead of every part forward.
    """
    require_same_size("size", ("direction", direction, -1), ("x", x, -1))
    # to subtract the mean is a symmetric map; the gain came after it, so it comes first here
    scaled = direction if gain is None else gain * direction
    return _centered(scaled, kind) / _length(x, kind, eps)


def attended_parts(
    weights: Float[Tensor, "*batch heads query key"],
    value: Float[Tensor, "*batch heads #query key value_size"],
    w_o: Float[Tensor, "heads*value_size d_model"],
) -> Float[Tensor, "*batch heads query key d_model"]:
    """The contribution of each attended position to the output of each head.

        pₕᵢⱼ = wₕᵢⱼ vₕⱼ W^O₍ₕ₎,   MultiHead(·)ᵢ = Σₕ Σⱼ pₕᵢⱼ (+ b^O)

    EQ: 81.  Source: Kobayashi et al. (2020), "Attention is Not Only a Weight: Analyzing
    Transformers with Vector Norms".
    Symbols: weights = w, value = v, a row for each key; relative positions give each query values
    of its own. w_o = W^O, whose rows of head h are W^O₍ₕ₎.
    Raises: ShapeError if W^O does not have as many rows as all heads have value features.
    """
    heads, _, _, value_size = value.shape[-4:]
    if w_o.shape[-2] != heads * value_size:
        raise ShapeError(
            f"w_o must have heads * value_size = {heads * value_size} rows (axis -2), got shape"
            f" {tuple(w_o.shape)}"
        )
    # (heads · value_size, d_model) → (heads, 1, value_size, d_model)
    of_head = w_o.reshape(heads, 1, value_size, -1)
    # (*batch, heads, query or 1, key, d_model), weighted
    return weights.unsqueeze(-1) * (value @ of_head)


def direct_logit_attribution(
    parts: Float[Tensor, "*parts d_model"], direction: Float[Tensor, " d_model"]
) -> Float[Tensor, "*parts"]:
    """The addition of each part of a hidden state to the logit of one word, less that of another.

        Δz(p) = p · (w_a - w_b)

    EQ: none.  Source: Elhage et al. (2021), "A Mathematical Framework for Transformer Circuits";
    Wang et al. (2023), "Interpretability in the Wild", for the difference of two logits; Yin and
    Neubig (2022), "Interpreting Language Models with Contrastive Explanations".
    Symbols: parts = p, direction = w_a - w_b, columns of the last linear map, taken back through
    the norms that follow the part (``direction_before_norm``).
    Raises: ShapeError if parts and direction differ in width.

    Direct: what a part does by changing what later blocks compute is counted for those blocks.
    """
    require_same_size("d_model", ("parts", parts, -1), ("direction", direction, -1))
    return parts @ direction


def token_contributions(
    parts: Float[Tensor, "*batch part size"], whole: Float[Tensor, "*batch size"]
) -> Float[Tensor, "*batch part"]:
    """How much each token's part makes up a hidden state: the nearer to the whole, the more.

        cⱼ = max(0, ‖y‖₁ - ‖y - pⱼ‖₁) / Σₖ max(0, ‖y‖₁ - ‖y - pₖ‖₁)

    EQ: none.  Source: Ferrando, Gállego and Costa-jussà (2022), "Measuring the Mixing of Contextual
    Information in the Transformer" (ALTI).
    Symbols: parts = pⱼ, a row for each token; whole = y; result = cⱼ, whose sum is one.
    Raises: ShapeError if parts and whole differ in width.

    Where no part comes nearer to y than zero does, the parts count by their lengths ‖pⱼ‖₁ (not in
    the source, which divides 0 by 0); where all are zero, nothing contributes.
    """
    require_same_size("size", ("parts", parts, -1), ("whole", whole, -1))
    whole = whole.unsqueeze(-2)  # (*batch, 1, size)
    nearness = (whole.abs().sum(-1) - (whole - parts).abs().sum(-1)).clamp(min=0.0)
    lengths = parts.abs().sum(-1)  # (*batch, part)

    shares = torch.where(nearness.sum(-1, keepdim=True) > 0, nearness, lengths)
    total = shares.sum(-1, keepdim=True)
    return shares / torch.where(total > 0, total, torch.ones_like(total))


def decoder_contributions(
    prefix: Float[Tensor, "target prefix"],
    source: Float[Tensor, "target source"],
    attended: Float[Tensor, "target target"],
    crossed: Float[Tensor, "target source+1"],
    encoder: Float[Tensor, "source source"],
) -> tuple[Float[Tensor, "target prefix"], Float[Tensor, "target source"]]:
    """The contributions of prefix and source words after one decoder layer more.

        pre′ = diag(r) C pre,   src′ = diag(r) C src + D E

    EQ: none.  Source: Ferrando et al. (2022), "Towards Opening the Black Box of Neural Machine
    Translation: Source and Target Interpretations of the Transformer" (ALTI+).
    Symbols: prefix = pre, source = src, both of the layer below; attended = C, the contributions
    cⱼ of the self-attention for each query (``token_contributions``); crossed = (D, r), those of
    the cross-attention, whose last column is the residual stream; encoder = E, of source words to
    the encoder's output; result = pre′, src′.
    Raises: ShapeError if ``crossed`` does not have one column for each row of E, and one more.

    Where the rows of pre and src sum to one together, those of pre′ and src′ do. Feed-forward
    sublayers mix no words.
    """
    if crossed.shape[-1] != encoder.shape[-2] + 1:
        raise ShapeError(
            "crossed must have a column for each source word and one for the stream (axis -1),"
            f" got shape {tuple(crossed.shape)} for {encoder.shape[-2]} source words"
        )
    read, stream = crossed[:, :-1], crossed[:, -1:]
    return stream * (attended @ prefix), stream * (attended @ source) + read @ encoder


def value_zeroing(
    whole: Float[Tensor, "*batch query size"],
    without: Float[Tensor, "*batch key query size"],
) -> Float[Tensor, "*batch query key"]:
    """How far each output of a layer turns when the value of one position is set to zero.

        Cᵢⱼ = dᵢⱼ / Σₖ dᵢₖ,   dᵢⱼ = 1 - cos(yᵢ, yᵢ⁻ʲ)

    EQ: none.  Source: Mohebbi et al. (2023), "Quantifying Context Mixing in Transformers", §3.
    Symbols: whole = yᵢ, the outputs of a layer with its residual connections, norms and
    feed-forward network; without = yᵢ⁻ʲ, the same outputs with vⱼ = 0 in every head.
    Raises: ShapeError if the two differ in width.
    Differs: ``token_contributions`` splits the attention's output and leaves the layer as it was.

    The weights stay as they are: only what is read from position j is missing. Where no value
    turns an output, nothing contributes; the source divides 0 by 0.
    """
    require_same_size("size", ("whole", whole, -1), ("without", without, -1))
    ones = [
        each
        / torch.linalg.vector_norm(each, dim=-1, keepdim=True).clamp(
            min=torch.finfo(each.dtype).tiny
        )
        for each in (whole.unsqueeze(-3), without)  # (*batch, 1 or key, query, size)
    ]

    # 1 - cos is half the square of the distance of unit vectors, and exactly 0 for equal rows.
    # A row of zeros has no direction, and is as far from all others as a right angle.
    squares = (ones[0] - ones[1]).square().sum(dim=-1)
    has_direction = (ones[0] != 0).any(dim=-1) & (ones[1] != 0).any(dim=-1)
    distances = torch.where(has_direction, squares / 2, 1.0)  # (*batch, key, query)

    distances = distances.transpose(-2, -1)
    total = distances.sum(dim=-1, keepdim=True)
    return distances / torch.where(total > 0, total, torch.ones_like(total))


def _centered(x: Tensor, kind: NormKind) -> Tensor:
    """``x`` without its mean, where the norm subtracts it."""
    match kind:
        case "layer" | "l2_centered":
            return x - x.mean(dim=-1, keepdim=True)
        case "rms" | "l2":
            return x
        case _:
            raise ConfigError(f"what a part is in a norm is known for every norm_kind but {kind!r}")


def _length(x: Tensor, kind: NormKind, eps: Number) -> Tensor:
    """The divisor of a norm, for each row."""
    squares = _centered(x, kind).square()
    # ``layer`` and ``rms`` divide by the root of a mean, the others by a length
    inside = squares.mean(dim=-1) if kind in ("layer", "rms") else squares.sum(dim=-1)
    return (inside + eps).sqrt()
