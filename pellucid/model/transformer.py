"""The whole Transformer (EQ-115), behind the protocol that search and training know."""

import dataclasses

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from pellucid.core.special import PAD_ID
from pellucid.model.config import ModelConfig
from pellucid.model.decoder import Decoder
from pellucid.model.dropout import DropoutSource
from pellucid.model.embedding import Embedding
from pellucid.model.encoder import Encoder
from pellucid.model.losses import loss_sums
from pellucid.model.masks import mask_for_heads
from pellucid.model.positions import Positions
from pellucid.model.seq2seq import LastRows, LossSums, Memory, Seq2Seq, State, keep_distribution
from pellucid.model.state import Places, TransformerState
from pellucid.model.trace import UNWATCHED, Trace


class Transformer(Seq2Seq):
    """Encoder and decoder between an embedding and a softmax.

    EQ: 105, 110, 112, 115.  Source: Vaswani et al. (2017), Figure 1.
    """

    def __init__(
        self, config: ModelConfig, source_vocabulary_size: int, target_vocabulary_size: int
    ) -> None:
        super().__init__()
        self.config = config
        self.source_vocabulary_size = source_vocabulary_size
        self.target_vocabulary_size = target_vocabulary_size
        self.dropout_source = DropoutSource()
        positions = Positions(config)
        self.target_embedding = Embedding(
            config, target_vocabulary_size, positions, self.dropout_source
        )
        self.source_embedding = (
            self.target_embedding
            if config.share_embeddings
            else Embedding(config, source_vocabulary_size, positions, self.dropout_source)
        )
        self.encoder = Encoder(config, self.dropout_source)
        self.decoder = Decoder(config, self.dropout_source)
        self.output_weight = (
            self.target_embedding.weight
            if config.tie_output
            else nn.Parameter(torch.empty(target_vocabulary_size, config.d_model))
        )
        self.output_bias = (
            nn.Parameter(torch.zeros(target_vocabulary_size)) if config.output_bias else None
        )

    def encode(self, source: Int[Tensor, "sentence source"], trace: Trace = UNWATCHED) -> Memory:
        """Read source ids, each row ending in STOP and filled up with PAD."""
        inner = trace.under("encoder")
        x = self.source_embedding(source, trace=inner)
        may_attend = source != PAD_ID
        states = self.encoder(x, mask_for_heads(may_attend), inner)
        return Memory(states, may_attend)

    def forward(
        self,
        source: Int[Tensor, "sentence source"],
        target_input: Int[Tensor, "sentence target"],
        trace: Trace = UNWATCHED,
    ) -> Float[Tensor, "sentence target vocabulary"]:
        """The logits of every next token given the true prefix (EQ-121)."""
        hidden = self.decode(self.encode(source, trace), target_input, trace)
        logits = functional.linear(hidden, self.output_weight, self.output_bias)
        return keep_distribution(logits, trace)

    def loss(
        self,
        source: Int[Tensor, "sentence source"],
        target_input: Int[Tensor, "sentence target"],
        labels: Int[Tensor, "sentence target"],
        smoothing: float,
    ) -> LossSums:
        """The loss against ``labels``, PAD left out, without ever holding all logits."""
        hidden = self.decode(self.encode(source), target_input, UNWATCHED)
        return loss_sums(hidden, self.output_weight, self.output_bias, labels, smoothing)

    def last_rows(
        self,
        source: Int[Tensor, "sentence source"],
        target_input: Int[Tensor, "sentence target"],
    ) -> LastRows:
        """What the logits of every next token are made of."""
        hidden = self.decode(self.encode(source), target_input, UNWATCHED)
        return LastRows(hidden, self.output_weight, self.output_bias)

    def start(self, memory: Memory) -> TransformerState:
        """A decoder that has said nothing, one beam for each sentence."""
        return TransformerState(
            layers=self.decoder.start(memory.states),
            places=Places(0),
            memory_may_attend=memory.may_attend,
            slots=torch.empty(
                (memory.may_attend.shape[0], 1, 0),
                dtype=torch.long,
                device=memory.may_attend.device,
            ),
            taken=0,
        )

    def step(
        self, ids: Int[Tensor, "sentence beam"], state: State
    ) -> tuple[Float[Tensor, "sentence beam vocabulary"], TransformerState]:
        """Feed one token to each hypothesis; the logits of the next, and the state after it."""
        assert isinstance(state, TransformerState)
        if len(ids) == 0:  # no sentence is left: nothing to divide among the beams
            slots = torch.cat([state.slots, ids.unsqueeze(-1)], dim=-1)
            return self.output_weight.new_zeros(*ids.shape, len(self.output_weight)), (
                dataclasses.replace(state, slots=slots, taken=state.taken + state.beam_count)
            )
        x = self.target_embedding(ids.reshape(-1, 1), start=state.length)
        mask = mask_for_heads(state.memory_may_attend)
        layers, places = state.writable()
        ancestry = state.ancestry()
        hidden = self.decoder.step(x, layers, ancestry, mask)
        logits = functional.linear(hidden.squeeze(1), self.output_weight)
        if self.output_bias is not None:
            logits += self.output_bias  # in place: the product would first write the bias out
        new_state = dataclasses.replace(
            state, layers=layers, places=places, slots=ancestry.slots, taken=ancestry.end
        )
        return logits.view(*ids.shape, -1), new_state

    def decode(
        self,
        memory: Memory,
        target_input: Int[Tensor, "sentence target"],
        trace: Trace = UNWATCHED,
        *,
        causal: bool = True,
    ) -> Float[Tensor, "sentence target d_model"]:
        """The last rows of whole target prefixes.

        Without ``causal`` every row may look at those after it, as in the Single Page's inference
        (EQ-84, ER-36); no cache can do that.
        """
        inner = trace.under("decoder")
        x = self.target_embedding(target_input, trace=inner)
        mask = mask_for_heads(memory.may_attend)
        hidden: Tensor = self.decoder(x, memory.states, mask, inner, causal=causal)
        return hidden
