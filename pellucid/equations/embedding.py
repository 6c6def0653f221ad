"""From ids to vectors, and from vectors back to logits over the vocabulary."""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor

from pellucid.core.errors import ShapeError
from pellucid.equations.shapes import require_same_size


def one_hot(
    ids: Int[Tensor, "*batch"], vocabulary_size: int, dtype: torch.dtype | None = None
) -> Float[Tensor, "*batch {vocabulary_size}"]:
    """Each id as a row of zeros with a single one.

        x[β] = 1 if β = id else 0

    EQ: 13.  Source: Single Page, Training Phase; Bayesuvius, (7).
    Symbols: vocabulary_size = V; the result is in ``dtype`` (torch's default if not given).
    Raises: ShapeError for an id outside the vocabulary, whose row would be all zero.
    """
    if ids.numel() and not 0 <= ids.min() <= ids.max() < vocabulary_size:
        raise ShapeError(
            f"ids must lie between 0 and {vocabulary_size - 1}, got"
            f" {int(ids.min())} to {int(ids.max())}"
        )
    # (*batch, 1) against (vocabulary): each id is compared with every column
    columns = torch.arange(vocabulary_size, device=ids.device)
    return (ids.unsqueeze(-1) == columns).to(dtype or torch.get_default_dtype())


def embed(
    ids: Int[Tensor, "*batch"], weight: Float[Tensor, "vocabulary d_model"]
) -> Float[Tensor, "*batch d_model"]:
    """Look up the row of each id: the same as one-hot rows times the matrix, only faster.

        X = X_onehot W_Embedding

    EQ: 14, 18.  Source: Single Page, Training Phase.
    Symbols: weight = W_Embedding.
    """
    # (*batch) → (*batch, d_model). The gradient reaches only the rows that were read.
    return weight[ids]


def embed_one_hot(
    x: Float[Tensor, "*batch vocabulary"], weight: Float[Tensor, "vocabulary d_model"]
) -> Float[Tensor, "*batch d_model"]:
    """One-hot rows (or any mixture of words) times the embedding matrix.

        X = X_onehot W_Embedding

    EQ: 14.  Source: Single Page, Training Phase.
    Symbols: x = X_onehot (a zero row is the Single Page's start symbol y₀), weight = W_Embedding.
    """
    # (*batch, vocabulary) @ (vocabulary, d_model) → (*batch, d_model)
    return x @ weight


def scaled_embedding(
    ids: Int[Tensor, "*batch"], weight: Float[Tensor, "vocabulary d_model"]
) -> Float[Tensor, "*batch d_model"]:
    """The embedding times √d_model, so that it is as large as the positions added to it.

        X = √d_model · X_onehot W_Embedding

    EQ: 15, 107.  Source: Single Page, Training Phase; Vaswani et al. (2017), §3.4.
    Symbols: weight = W_Embedding. Of the five sources only the Single Page has the factor.
    """
    # a tied matrix begins with a deviation of about 1/√d_model, as the output layer needs it; the
    # factor brings its rows to the size of the sinusoids, whose entries lie between -1 and 1
    return math.sqrt(weight.shape[-1]) * embed(ids, weight)


def shift_right(
    labels: Int[Tensor, "*batch target"], start_id: int
) -> Int[Tensor, "*batch target"]:
    """The decoder's input in training: the start symbol, then all labels but the last.

        (y₁, …, yₙ) → (start, y₁, …, yₙ₋₁)

    EQ: 106.  Source: Single Page, Training Phase; Vaswani et al. (2017), §3.1.
    Symbols: labels = Y_output, start_id = y₀, result = Y'_output.
    """
    # row i of the input then holds word i - 1, so row i may attend to itself
    start = torch.full_like(labels[..., :1], start_id)
    return torch.cat((start, labels[..., :-1]), dim=-1)


def shift_right_zero(
    embedded: Float[Tensor, "*batch target d_model"],
) -> Float[Tensor, "*batch target d_model"]:
    """The same shift for vectors, with a zero vector for a start symbol.

        (y₁, …, yₙ) → (0, y₁, …, yₙ₋₁)

    EQ: 106.  Source: Single Page, Training Phase (y₀ is "the zero vector"); tensor2tensor's
    ``shift_right_3d``. See ER-44 for the two kinds of start.
    Symbols: embedded = the rows of the embedded labels.
    """
    # after the embedding, because no id has the zero vector for its row
    start = torch.zeros_like(embedded[..., :1, :])
    return torch.cat((start, embedded[..., :-1, :]), dim=-2)


def output_logits(
    states: Float[Tensor, "*batch d_model"],
    w_s: Float[Tensor, "d_model vocabulary"],
    b_s: Float[Tensor, " vocabulary"] | None = None,
) -> Float[Tensor, "*batch vocabulary"]:
    """The logit of every word of the vocabulary: what the softmax makes a probability of.

        Z = Z_N W^S + b^S

    EQ: 19, 112.  Source: Single Page, Training Phase; Vaswani et al. (2017), §3.4.
    Symbols: states = Z_N, w_s = W^S (tied: the transposed embedding matrix), b_s = b^S.
    Raises: ShapeError if states and weights differ in width.
    """
    require_same_size("d_model", ("states", states, -1), ("w_s", w_s, -2))
    # (*batch, d_model) @ (d_model, vocabulary) → (*batch, vocabulary)
    logits = states @ w_s
    return logits if b_s is None else logits + b_s
