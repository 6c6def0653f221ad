"""Positions: without them, attention cannot tell one order of the words from another."""

from collections.abc import Mapping
from typing import assert_never

import torch
from jaxtyping import Float
from torch import Tensor

from pellucid.core.errors import ShapeError
from pellucid.equations.choices import PositionKind
from pellucid.equations.feed_forward import relu
from pellucid.equations.shapes import require_fits

BASE = 10000.0
"""The base of the wavelengths' geometric progression (Vaswani et al. 2017, §3.5)."""


def sinusoidal_positions(
    length: int,
    d_model: int,
    start: int = 0,
    dtype: torch.dtype | None = None,
    device: torch.device | str | None = None,
) -> Float[Tensor, "{length} {d_model}"]:
    """Encode each position by sines and cosines of different wavelengths.

        p[n, 2i] = sin(n / 10000^(2i/d)),   p[n, 2i+1] = cos(n / 10000^(2i/d))

    EQ: 24, 25, 32.  Source: Agarwal, §6.3; Single Page, Functions; Vaswani et al. (2017), §3.5.
    Symbols: row n - start = position n (counted from 0), d_model = d.

    Computed in float64 and returned in ``dtype`` (torch's default if not given).
    Differs: tensor2tensor, fairseq and flax put all sines before all cosines and divide by
    d/2 - 1 instead of d/2 in the exponent.
    """
    features = torch.arange(d_model)
    even = features - features % 2  # 2i, for both members of a pair
    # float64: in float32 an angle of some thousand radians is off in the fourth decimal
    positions = torch.arange(start, start + length, dtype=torch.float64)

    # (length, 1) / (d_model) → (length, d_model); both features of a pair have the same angle
    angles = positions.unsqueeze(-1) / BASE ** (even.double() / d_model)
    # sines at even features, cosines at odd ones, side by side
    encoding = torch.where(features == even, angles.sin(), angles.cos())
    return encoding.to(device=device, dtype=dtype or torch.get_default_dtype())


def tensor2tensor_positions(
    length: int,
    d_model: int,
    start: int = 0,
    dtype: torch.dtype | None = None,
    device: torch.device | str | None = None,
) -> Float[Tensor, "{length} {d_model}"]:
    """Encode each position by sines and cosines whose last wavelength is exactly 10000 · 2π.

        p[n, 2i] = sin(n / 10000^(i/(d/2-1))),   p[n, 2i+1] = cos(n / 10000^(i/(d/2-1)))

    EQ: none.  Source: Vaswani et al. (2018), Tensor2Tensor, whose code has it so, and after it
    Marian and Firefox's engine.
    Symbols: as in ``sinusoidal_positions``, which divides by d/2.
    Differs: these programs put all sines before all cosines.
    """
    pair = torch.arange(d_model) // 2  # i, for both members of a pair
    positions = torch.arange(start, start + length, dtype=torch.float64)

    # with one pair alone there is one wavelength, 2π
    steps = max(d_model // 2 - 1, 1)
    angles = positions.unsqueeze(-1) / BASE ** (pair.double() / steps)
    encoding = torch.where(torch.arange(d_model) % 2 == 0, angles.sin(), angles.cos())
    return encoding.to(device=device, dtype=dtype or torch.get_default_dtype())


def add_positions(
    x: Float[Tensor, "*batch length d_model"], positions: Float[Tensor, "*#batch length d_model"]
) -> Float[Tensor, "*batch length d_model"]:
    """The input of the first block: embedding plus position.

        X' = X + P

    EQ: 29, 107.  Source: Single Page, Training Phase; Transformers report, (2); Vaswani et al.
    (2017), §3.5.
    Symbols: x = X, positions = P, result = X'.
    Raises: ShapeError if positions and embeddings do not fit together.
    """
    require_fits("positions", positions, "x", x)
    return x + positions


def learned_positions(
    length: int, table: Float[Tensor, "max_length d_model"], start: int = 0
) -> Float[Tensor, "{length} d_model"]:
    """A learned vector for each position.

        P = (p₀; p₁; …), row n of a table

    EQ: 30.  Source: Transformers report, §1.2; Gehring et al. (2017), §3.1.
    Symbols: table = all of P, start = the first position that is wanted.
    Raises: ShapeError if the table ends too early.
    """
    return _rows("learned", table, length, start)


def one_hot_positions(
    x: Float[Tensor, "*batch length d_model"], max_length: int | None = None, start: int = 0
) -> Float[Tensor, "*batch length wider"]:
    """Append the one-hot vector of its position to each embedding.

        xₙ → (xₙ, eₙ)

    EQ: 21.  Source: Agarwal, §6.3.
    Symbols: x = X⁽⁰⁾, max_length = m (start + length if not given), eₙ = row n of the identity.
    Raises: ShapeError if the sequence is longer than ``max_length``.
    """
    length = x.shape[-2]
    size = start + length if max_length is None else max_length
    # row n is the one-hot vector of position n; every sentence of the batch gets the same rows
    basis = torch.eye(size, dtype=x.dtype, device=x.device)
    rows = _rows("one-hot", basis, length, start).expand(*x.shape[:-1], size)
    return torch.cat((x, rows), dim=-1)


def joint_positions(
    x: Float[Tensor, "*batch length d_model"],
    w_x: Float[Tensor, "d_model hidden"],
    w_e: Float[Tensor, "max_length hidden"],
    w_z: Float[Tensor, "hidden d_model"],
    start: int = 0,
) -> Float[Tensor, "*batch length d_model"]:
    """Send embedding and position through one small network together.

        zₙ = ReLU(xₙ W_x + eₙ W_e) W_z

    EQ: 22.  Source: Agarwal, §6.3, which attributes it to Gehring et al. (but see ER-52).
    Symbols: x = X, w_x = W_x, w_e = W_e, w_z = W_z, hidden = k, max_length = m.
    Raises: ShapeError if the sequence is longer than W_e has rows.
    """
    # eₙ W_e is row n of W_e; (*batch, length, hidden) + (length, hidden)
    return relu(x @ w_x + _rows("joint", w_e, x.shape[-2], start)) @ w_z


def summed_positions(
    x: Float[Tensor, "*batch length d_model"],
    w_x: Float[Tensor, "d_model hidden"],
    w_zx: Float[Tensor, "hidden d_model"],
    w_e: Float[Tensor, "max_length hidden"],
    w_ze: Float[Tensor, "hidden d_model"],
    start: int = 0,
) -> Float[Tensor, "*batch length d_model"]:
    """Send embedding and position through a small network each, and add the two.

        zₙ = ReLU(xₙ W_x) W_zx + ReLU(eₙ W_e) W_ze

    EQ: 23.  Source: Agarwal, §6.3, which attributes it to Gehring et al. (but see ER-52).
    Symbols: x = X, w_x = W_x, w_zx = W_zx, w_e = W_e, w_ze = W_ze, hidden = k, max_length = m.
    Raises: ShapeError if the sequence is longer than W_e has rows.
    """
    rows = _rows("summed", w_e, x.shape[-2], start)
    # two networks that meet only in the sum: a word and its position cannot interact before the
    # first block, as they can in ``joint_positions``
    return network_embedding(x, w_x, w_zx) + relu(rows) @ w_ze


def network_embedding(
    x: Float[Tensor, "*batch length d_model"],
    w_x: Float[Tensor, "d_model hidden"],
    w_zx: Float[Tensor, "hidden d_model"],
) -> Float[Tensor, "*batch length d_model"]:
    """Send each embedding through a small network, before its position is added.

        ReLU(xₙ W_x) W_zx   (then + pₙ)

    EQ: 28.  Source: Agarwal, §6.3. Not what the paper does, although Agarwal says so (ER-51).
    Symbols: x = X, w_x = W_x, w_zx = W_zx.
    """
    return relu(x @ w_x) @ w_zx


def encode_positions(
    x: Float[Tensor, "*batch length d_model"],
    kind: PositionKind,
    weights: Mapping[str, Tensor],
    start: int = 0,
) -> Float[Tensor, "*batch length d_model"]:
    """Add positions to embeddings by the kind that a config names.

    EQ: 21, 22, 23, 24, 29, 30.  Source: Vaswani et al. (2017), §3.5, for sinusoids and learned
    rows; the others as in their own functions.
    Symbols: x = rows of which the first has position ``start``; weights = the matrices that this
    kind learns, by the names of its function: ``table`` for learned, ``w`` for one-hot positions.
    """
    length, d_model = x.shape[-2:]
    match kind:
        case "sinusoidal":
            rows = sinusoidal_positions(length, d_model, start, device=x.device)
            return add_positions(x, rows.to(x.dtype))
        case "sinusoidal_t2t":
            rows = tensor2tensor_positions(length, d_model, start, device=x.device)
            return add_positions(x, rows.to(x.dtype))
        case "learned":
            return add_positions(x, learned_positions(length, weights["table"], start))
        case "one_hot":
            w = weights["w"]  # (d_model + max_length, d_model)
            return one_hot_positions(x, w.shape[0] - d_model, start) @ w
        case "joint":
            return joint_positions(x, weights["w_x"], weights["w_e"], weights["w_z"], start)
        case "summed":
            word = weights["w_x"], weights["w_zx"]
            position = weights["w_e"], weights["w_ze"]
            return summed_positions(x, *word, *position, start)
        # these act inside attention (``relative.py``), on queries, keys and scores
        case "relative" | "rotary" | "alibi" | "none":
            return x
        case _:
            assert_never(kind)


def _rows(kind: str, table: Tensor, length: int, start: int) -> Tensor:
    if start + length > table.shape[0]:
        raise ShapeError(
            f"{kind} positions end at {table.shape[0]} (axis 0 of shape {tuple(table.shape)}),"
            f" got a sequence of {start + length}",
            hint="split the sentence, train with a larger max_length, or use sinusoidal positions",
        )
    return table[start : start + length]
