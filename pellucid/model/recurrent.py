"""Recurrent encoder-decoders, without attention (2014) and with it (2015)."""

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from pellucid.core.special import PAD_ID
from pellucid.model.config import RnnAttentionConfig, RnnConfig
from pellucid.model.layers import output_parameters
from pellucid.model.recurrent_parts import (
    AttendedMemory,
    RecurrentDecoder,
    RecurrentEncoder,
    RecurrentMemory,
    RecurrentState,
    TokenEmbedding,
)
from pellucid.model.seq2seq import Memory, Seq2Seq, State
from pellucid.model.trace import UNWATCHED, Trace


class RecurrentSeq2Seq(Seq2Seq):
    """A recurrent encoder and decoder, joined by the last state alone or by attention to all.

    EQ: 133, 136.  Source: Sutskever et al. (2014); Cho et al. (2014); Luong et al. (2015).
    Each decoder layer starts from the final state of the encoder layer of the same number.
    """

    config: RnnConfig | RnnAttentionConfig

    def __init__(
        self,
        config: RnnConfig | RnnAttentionConfig,
        source_vocabulary_size: int,
        target_vocabulary_size: int,
    ) -> None:
        super().__init__(config, source_vocabulary_size, target_vocabulary_size)

        self.target_embedding = TokenEmbedding(config, target_vocabulary_size, self.dropout_source)
        self.source_embedding = (
            self.target_embedding
            if config.share_embeddings
            else TokenEmbedding(config, source_vocabulary_size, self.dropout_source)
        )

        self.encoder = RecurrentEncoder(config, self.dropout_source)
        self.decoder = RecurrentDecoder(config, self.dropout_source)
        self.output_weight, self.output_bias = output_parameters(
            config, self.target_embedding.weight, target_vocabulary_size
        )

    def encode(
        self, source: Int[Tensor, "sentence source"], trace: Trace = UNWATCHED
    ) -> RecurrentMemory:
        """Read source ids, each row ending in EOS and filled up with PAD."""
        if source.shape[1] == 0:  # no words at all: read as one of padding
            source = functional.pad(source, (0, 1), value=PAD_ID)

        inner = trace.under("encoder")
        x = self.source_embedding(source, inner)
        may_attend = source != PAD_ID
        # a row of padding alone is read as one word: the kernel takes no empty sequences
        lengths = may_attend.sum(dim=1).clamp(min=1).cpu()
        states, last = self.encoder(x, lengths, inner)

        # without attention only the last state reaches the decoder: no hidden state is kept
        if self.decoder.cross_attention is None:
            states, may_attend = states[:, :0], may_attend[:, :0]

        return RecurrentMemory(states, may_attend, last)

    def hidden_states(
        self,
        source: Int[Tensor, "sentence source"],
        target_input: Int[Tensor, "sentence target"],
        trace: Trace = UNWATCHED,
    ) -> Float[Tensor, "sentence target d_model"]:
        """The last hidden states at every position of the target."""
        state = self.start(self.encode(source, trace))
        inner = trace.under("decoder")
        x = self.target_embedding(target_input, inner)
        hidden: Tensor
        hidden, _ = self.decoder(x, state, inner)
        return hidden

    def start(self, memory: Memory) -> RecurrentState:
        """The state before the first target token, with one beam for each sentence."""
        assert isinstance(memory, RecurrentMemory)
        attention, summary = self.decoder.cross_attention, memory.last[-1].hidden

        return RecurrentState(
            # layer by layer: the decoder has as many as the encoder
            layers=memory.last,
            fed=summary if self.decoder.feed_summary else torch.zeros_like(summary),
            memory=(
                AttendedMemory(memory.states, memory.states, memory.may_attend)
                if attention is None
                else attention.remember(memory.states, memory.may_attend)
            ),
            beam_count=1,
            length=0,
        )

    def step(
        self, ids: Int[Tensor, "sentence beam"], state: State
    ) -> tuple[Float[Tensor, "sentence beam vocabulary"], RecurrentState]:
        """Feed one token to each hypothesis; return the logits of the next and the new state."""
        assert isinstance(state, RecurrentState)
        hidden, new_state = self.decoder(self.target_embedding(ids.reshape(-1, 1)), state)
        logits = functional.linear(hidden.squeeze(1), self.output_weight, self.output_bias)
        return logits.view(*ids.shape, len(self.output_weight)), new_state
