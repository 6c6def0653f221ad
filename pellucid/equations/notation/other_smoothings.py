"""The variants of label smoothing in other programs."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from pellucid.equations.embedding import one_hot
from pellucid.equations.losses import require_smoothing
from pellucid.equations.shapes import Number


def smooth_labels_excluding_label(
    labels: Int[Tensor, "*batch"],
    vocabulary_size: int,
    smoothing: Number,
    dtype: torch.dtype | None = None,
) -> Float[Tensor, "*batch {vocabulary_size}"]:
    """Give the true word 1 - ε and share ε among the other words only.

        q = (1 - ε) y + ε (1 - y) / (|𝒱| - 1)

    EQ: 120.  Source: fairseq's label_smoothed_cross_entropy, flax's wmt example (ER-48).
    Symbols: y = one_hot(labels), smoothing = ε, vocabulary_size = |𝒱|.
    Raises: ConfigError unless 0 ≤ smoothing ≤ 1.
    Differs: ``smooth_labels`` shares among all words; there the right one keeps 1 - ε + ε/|𝒱|.
    """
    require_smoothing(smoothing)
    y = one_hot(labels, vocabulary_size, dtype)
    return (1 - smoothing) * y + smoothing * (1 - y) / (vocabulary_size - 1)


def smooth_labels_excluding_padding(
    labels: Int[Tensor, "*batch"],
    vocabulary_size: int,
    smoothing: Number,
    pad_id: int,
    dtype: torch.dtype | None = None,
) -> Float[Tensor, "*batch {vocabulary_size}"]:
    """Give the true word 1 - ε and share ε among the other words, padding excluded.

        q = (1 - ε) y + ε (1 - y - y_pad) / (|𝒱| - 2);   q = 0 where the label is padding

    EQ: 120.  Source: the Annotated Transformer, LabelSmoothing; JoeyNMT (ER-48).
    Symbols: y = one_hot(labels), y_pad = one_hot(pad_id), smoothing = ε, vocabulary_size = |𝒱|.
    Raises: ConfigError unless 0 ≤ smoothing ≤ 1.
    Differs: ``smooth_labels`` shares among all words, padding included.
    """
    require_smoothing(smoothing)
    y = one_hot(labels, vocabulary_size, dtype)
    padding = one_hot(torch.full_like(labels, pad_id), vocabulary_size, dtype)
    smoothed = (1 - smoothing) * y + smoothing * (1 - y - padding) / (vocabulary_size - 2)
    # a label that is padding teaches nothing: its whole row is zero
    return smoothed.masked_fill((labels == pad_id).unsqueeze(-1), 0.0)
