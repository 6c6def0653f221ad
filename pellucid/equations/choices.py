"""The named choices of a config. A config reads this file, so it imports no torch.

Each choice is one ``match`` beside its equations, such as ``activate`` in ``feed_forward.py``.
"""

from typing import Literal

Activation = Literal["relu", "gelu", "swish"]
"""Computed by ``pellucid.equations.feed_forward.activate``."""

NormKind = Literal["layer", "rms", "l2", "l2_centered"]
"""Computed by ``pellucid.equations.normalization.normalize``."""

NormPlacement = Literal["post", "pre"]
"""After the residual sum, or before the sublayer."""

PositionKind = Literal[
    "sinusoidal",
    "sinusoidal_t2t",
    "learned",
    "one_hot",
    "joint",
    "summed",
    "relative",
    "rotary",
    "alibi",
    "none",
]
"""Computed by ``pellucid.equations.positions.encode_positions``. The last four add nothing to the
embeddings: three act inside attention, the fourth nowhere."""

DecoderReading = Literal["self-attention", "ssru"]
"""How a decoder position reads those before it."""

ADDED_POSITIONS: tuple[PositionKind, ...] = ("sinusoidal", "sinusoidal_t2t", "learned")
"""Kinds that add a vector of the position alone to each embedding."""

StartSymbol = Literal["token", "zero"]
"""The first input of a decoder: the embedding of BOS, or a vector of zeros."""

Cell = Literal["lstm", "gru"]
"""The cell of a recurrent layer."""

RecurrentAttention = Literal["additive", "dot", "general"]
"""How a recurrent decoder scores the states of the source."""

Schedule = Literal["paper", "inverse_root", "cosine", "linear", "plateau", "constant", "wsd"]
"""The schedule of the learning rate, computed by ``pellucid.equations.schedules``."""
