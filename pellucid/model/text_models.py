"""Models of plain text: encoder blocks that fill masks, decoder blocks that continue."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional

from pellucid.core.special import EOS_ID, MASK_ID, PAD_ID, SPECIAL_COUNT
from pellucid.model.blocks import (
    Stack,
    blocks,
    last_norm,
    read_blocks,
    start_blocks,
    step_blocks,
)
from pellucid.model.config import DecoderConfig, EncoderConfig
from pellucid.model.dropout import DropoutSource, LayerDrop
from pellucid.model.embedding import Embedding, Positions
from pellucid.model.layers import output_parameters
from pellucid.model.seq2seq import LossSums, PredictsTokens, SequenceModel, State, loss_sums
from pellucid.model.state import Reading, StackState, mask_for_heads
from pellucid.model.trace import UNWATCHED, Trace

_HIDDEN, _REPLACED = 0.8, 0.1
"""Shares of the chosen words that are masked and replaced; the rest stays (Devlin et al. 2019)."""


class EncoderOnly(SequenceModel):
    """An encoder in which every word attends to every other, and which predicts masked words.

    EQ: 137.  Source: Lee, Conclusion; Devlin et al. (2019), §3.1, for the objective.
    """

    config: EncoderConfig

    def __init__(self, config: EncoderConfig, vocabulary_size: int) -> None:
        super().__init__(config, vocabulary_size, vocabulary_size)

        positions = Positions(config)
        self.embedding = Embedding(config, vocabulary_size, positions, self.dropout_source)
        kinds = config.sublayers("encoder")
        self.encoder = Stack(config.encoder_layers, config, kinds, self.dropout_source)

        self.output_weight, self.output_bias = output_parameters(
            config, self.embedding.weight, vocabulary_size
        )

    def forward(
        self, ids: Int[Tensor, "sentence length"], trace: Trace = UNWATCHED
    ) -> Float[Tensor, "sentence length vocabulary"]:
        """The logits of the word at every position, given all positions, that one included."""
        hidden = self._encode(ids, trace)
        logits = functional.linear(hidden, self.output_weight, self.output_bias)
        return trace.keep("logits", logits)

    def loss(
        self,
        source: Int[Tensor, "sentence length"],
        target_input: Int[Tensor, "sentence length"],  # noqa: ARG002  # every model is asked so
        labels: Int[Tensor, "sentence length"],
        smoothing: float,
        non_padding: Int[Tensor, " real"] | None = None,  # noqa: ARG002
    ) -> LossSums:
        """The loss of predicting a share ``mask_rate`` of the words of ``source``.

        In training the words are chosen with the dropout source, so that a resumed run makes the
        same choices; in evaluation the same batch always gets the same choice.
        """
        # only chosen words have a label: the loss leaves out what was never hidden
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
        """The sentences with words masked or replaced, and which words must be predicted."""
        # in evaluation a new source, which starts from the same seed at every call
        source = self.dropout_source if self.training else DropoutSource()
        is_word = (ids != PAD_ID) & (ids != EOS_ID)
        # three numbers for each word: whether it is chosen, what becomes of it, and by which word
        draw, change, word = (source.uniform(ids.shape).to(ids.device) for _ in range(3))
        chosen = (draw < self.config.mask_rate) & is_word
        if not bool(chosen.any()):  # a loss over no words has no mean
            # the word with the smallest draw; 2.0 is above every draw
            chosen = is_word & (draw == draw.masked_fill(~is_word, 2.0).min())

        ordinary = max(1, self.source_vocabulary_size - SPECIAL_COUNT)
        # a special token never takes the place of a word
        random_ids = SPECIAL_COUNT + (word * ordinary).long()
        hidden = torch.where(chosen & (change < _HIDDEN), MASK_ID, ids)
        # one draw decides between mask, random word and no change, so the three exclude each other
        is_replaced = chosen & (change >= _HIDDEN) & (change < _HIDDEN + _REPLACED)
        return torch.where(is_replaced, random_ids, hidden), chosen

    def _encode(
        self, ids: Int[Tensor, "sentence length"], trace: Trace
    ) -> Float[Tensor, "sentence length d_model"]:
        inner = trace.under("encoder")
        x = self.embedding(ids, trace=inner)
        encoded: Tensor = self.encoder(x, Reading(mask_for_heads(ids != PAD_ID)), inner)
        return encoded


class DecoderOnly(PredictsTokens):
    """A stack of masked self-attention and feed-forward blocks, without cross-attention.

    EQ: 138.  Source: Lee, Conclusion; two Add & Norm a block, as there is no encoder to
    attend to (ER-70).  Searches take it like a translator; it reads no source.
    """

    config: DecoderConfig

    def __init__(self, config: DecoderConfig, vocabulary_size: int) -> None:
        super().__init__(config, vocabulary_size, vocabulary_size)

        positions = Positions(config)
        self.embedding = Embedding(
            config,
            vocabulary_size,
            positions,
            self.dropout_source,
            start_symbol=config.start_symbol,
        )

        # no ``Stack``: its name would stand before those of the parameters in a bundle
        kinds = config.sublayers("decoder")
        self.layers = blocks(config.decoder_layers, config, kinds, self.dropout_source)
        self.layer_drop = LayerDrop(config.layer_drop, self.dropout_source)
        self.last_norm = last_norm(config)

        self.output_weight, self.output_bias = output_parameters(
            config, self.embedding.weight, vocabulary_size
        )

    def forward(
        self, ids: Int[Tensor, "text length"], trace: Trace = UNWATCHED
    ) -> Float[Tensor, "text length vocabulary"]:
        """The logits of every next word given the words before it, the first being BOS."""
        hidden = self.hidden_states(ids, ids, trace)
        return trace.keep("logits", functional.linear(hidden, self.output_weight, self.output_bias))

    def hidden_states(
        self,
        source: Int[Tensor, "text source"],  # noqa: ARG002  # every model is asked so
        target_input: Int[Tensor, "text length"],
        trace: Trace = UNWATCHED,
    ) -> Float[Tensor, "text length d_model"]:
        """The last hidden states at every position of the text."""
        inner = trace.under("decoder")
        x = self.embedding(target_input, trace=inner)

        x = read_blocks(self.layer_drop.kept(self.layers), x, Reading(causal=True), inner)
        hidden: Tensor = self.last_norm(x)
        return inner.keep("output", hidden)

    def encode(self, source: Int[Tensor, "text source"]) -> int:
        """The number of texts; the ids in ``source`` are not read."""
        return source.shape[0]

    def start(self, memory: int) -> StackState:
        """The state before the first token of each text."""
        weight = self.output_weight
        no_source = weight.new_empty(memory, 0, weight.shape[1])
        may_attend = torch.empty(memory, 0, dtype=torch.bool, device=weight.device)
        return start_blocks(self.layers, no_source, may_attend)

    def step(
        self, ids: Int[Tensor, "text beam"], state: State
    ) -> tuple[Float[Tensor, "text beam vocabulary"], StackState]:
        """Feed one token to each text; return the logits of the next and the new state."""
        assert isinstance(state, StackState)
        if len(ids) == 0:  # no text is left: nothing to divide among the beams
            nothing = self.output_weight.new_zeros(*ids.shape, len(self.output_weight))
            return nothing, state.without_sentences()

        # (text · beam, d_model), at the position after the tokens fed so far
        x = self.embedding(ids.reshape(-1, 1), start=state.length).squeeze(1)

        x, state = step_blocks(self.layers, x, state)
        hidden: Tensor = self.last_norm(x)
        logits = functional.linear(hidden, self.output_weight, self.output_bias)
        return logits.view(*ids.shape, -1), state
