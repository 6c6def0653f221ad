"""Encoder blocks alone, taught to guess hidden words: the road to BERT."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from pellucid.core.special import MASK_ID, PAD_ID, SPECIAL_COUNT, STOP_ID
from pellucid.model.config import ModelConfig
from pellucid.model.dropout import DropoutSource
from pellucid.model.embedding import Embedding
from pellucid.model.encoder import Encoder
from pellucid.model.losses import loss_sums
from pellucid.model.masks import mask_for_heads
from pellucid.model.positions import Positions
from pellucid.model.seq2seq import LossSums, SequenceModel
from pellucid.model.trace import UNWATCHED, Trace

_HIDDEN, _REPLACED = 0.8, 0.1
"""Shares of the chosen words that are hidden and replaced; the rest stays (Devlin et al. 2019)."""


class EncoderOnly(SequenceModel):
    """Every word sees every other, and those that are hidden must be guessed.

    EQ: 137.  Source: Lee, Conclusion; Devlin et al. (2019), §3.1, for the objective.
    """

    def __init__(self, config: ModelConfig, vocabulary_size: int) -> None:
        super().__init__()
        self.config = config
        self.source_vocabulary_size = self.target_vocabulary_size = vocabulary_size
        self.dropout_source = DropoutSource()
        positions = Positions(config)
        self.embedding = Embedding(config, vocabulary_size, positions, self.dropout_source)
        self.encoder = Encoder(config, self.dropout_source)
        self.output_weight = (
            self.embedding.weight
            if config.tie_output
            else nn.Parameter(torch.empty(vocabulary_size, config.d_model))
        )
        self.output_bias = (
            nn.Parameter(torch.zeros(vocabulary_size)) if config.output_bias else None
        )

    def forward(
        self, ids: Int[Tensor, "sentence length"], trace: Trace = UNWATCHED
    ) -> Float[Tensor, "sentence length vocabulary"]:
        """The logits of the word at every place, given all places, the same one included."""
        hidden = self._encode(ids, trace)
        logits = functional.linear(hidden, self.output_weight, self.output_bias)
        return trace.keep("logits", logits)

    def loss(
        self,
        source: Int[Tensor, "sentence length"],
        target_input: Int[Tensor, "sentence length"],  # noqa: ARG002  # every model is asked so
        labels: Int[Tensor, "sentence length"],
        smoothing: float,
    ) -> LossSums:
        """Guess a share ``mask_rate`` of the words of ``source``.

        In training the choice comes from the dropout source, so that a resumed run makes the same
        ones; in evaluation it is the same for the same batch.
        """
        ids, chosen = self.hide(source)
        hidden = self._encode(ids, UNWATCHED)
        return loss_sums(
            hidden,
            self.output_weight,
            self.output_bias,
            labels.masked_fill(~chosen, PAD_ID),
            smoothing,
        )

    def hide(
        self, ids: Int[Tensor, "sentence length"]
    ) -> tuple[Int[Tensor, "sentence length"], Bool[Tensor, "sentence length"]]:
        """The sentences with words hidden or replaced, and which words must be guessed."""
        source = self.dropout_source if self.training else DropoutSource()
        is_word = (ids != PAD_ID) & (ids != STOP_ID)
        draw, change, word = (source.uniform(ids.shape).to(ids.device) for _ in range(3))
        chosen = (draw < self.config.mask_rate) & is_word
        if not bool(chosen.any()):  # a batch without a question teaches nothing
            chosen = is_word & (draw == draw.masked_fill(~is_word, 2.0).min())
        ordinary = max(1, self.source_vocabulary_size - SPECIAL_COUNT)
        random_ids = SPECIAL_COUNT + (word * ordinary).long()
        hidden = torch.where(chosen & (change < _HIDDEN), MASK_ID, ids)
        is_replaced = chosen & (change >= _HIDDEN) & (change < _HIDDEN + _REPLACED)
        return torch.where(is_replaced, random_ids, hidden), chosen

    def _encode(
        self, ids: Int[Tensor, "sentence length"], trace: Trace
    ) -> Float[Tensor, "sentence length d_model"]:
        inner = trace.under("encoder")
        x = self.embedding(ids, trace=inner)
        encoded: Tensor = self.encoder(x, mask_for_heads(ids != PAD_ID), inner)
        return encoded
