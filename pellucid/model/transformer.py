"""The whole Transformer (EQ-115): an encoder and a decoder between embeddings and a softmax."""

from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from pellucid.core.special import PAD_ID
from pellucid.model.array_steps import ArrayState, array_decoder, logits_of
from pellucid.model.blocks import Stack
from pellucid.model.config import TransformerConfig
from pellucid.model.embedding import Embedding, Positions
from pellucid.model.layers import output_parameters
from pellucid.model.seq2seq import Memory, Seq2Seq, State
from pellucid.model.state import Reading, StackState, mask_for_heads
from pellucid.model.trace import UNWATCHED, Trace


class Transformer(Seq2Seq):
    """Encoder and decoder between an embedding and a softmax.

    EQ: 105, 110, 112, 115.  Source: Vaswani et al. (2017), Figure 1.
    """

    config: TransformerConfig

    def __init__(
        self, config: TransformerConfig, source_vocabulary_size: int, target_vocabulary_size: int
    ) -> None:
        super().__init__(config, source_vocabulary_size, target_vocabulary_size)

        positions = Positions(config)
        self.target_embedding = self._embedding(target_vocabulary_size, positions)
        # one matrix for both sides, if they share a vocabulary (Vaswani et al., 2017, §3.4)
        self.source_embedding = (
            self.target_embedding
            if config.share_embeddings
            else self._embedding(source_vocabulary_size, positions)
        )

        of_encoder, of_decoder = config.sublayers("encoder"), config.sublayers("decoder")
        self.encoder = Stack(config.encoder_layers, config, of_encoder, self.dropout_source)
        self.decoder = Stack(config.decoder_layers, config, of_decoder, self.dropout_source)
        self.output_weight, self.output_bias = output_parameters(
            config, self.target_embedding.weight, target_vocabulary_size
        )

    def _embedding(self, vocabulary_size: int, positions: Positions) -> Embedding:
        return Embedding(
            self.config,
            vocabulary_size,
            positions,
            self.dropout_source,
            start_symbol=self.config.start_symbol,
        )

    def encode(self, source: Int[Tensor, "sentence source"], trace: Trace = UNWATCHED) -> Memory:
        """Read source ids, each row ending in EOS and filled up with PAD."""
        inner = trace.under("encoder")
        x = self.source_embedding(source, trace=inner)

        may_attend = source != PAD_ID
        states = self.encoder(x, Reading(mask_for_heads(may_attend)), inner)
        return Memory(states, may_attend)

    def hidden_states(
        self,
        source: Int[Tensor, "sentence source"],
        target_input: Int[Tensor, "sentence target"],
        trace: Trace = UNWATCHED,
    ) -> Float[Tensor, "sentence target d_model"]:
        """The last hidden states at every position of the target."""
        return self.decode(self.encode(source, trace), target_input, trace)

    def start(self, memory: Memory) -> StackState | ArrayState:
        """The state before the first target token, with one beam for each sentence.

        For a few sentences on a CPU, in inference mode, the steps are NumPy's.
        """
        arrays = array_decoder(self.decoder, self.target_embedding, memory.states)
        return (arrays or self.decoder).start(memory.states, memory.may_attend)

    def step(
        self, ids: Int[Tensor, "sentence beam"], state: State
    ) -> tuple[Float[Tensor, "sentence beam vocabulary"], StackState | ArrayState]:
        """Feed one token to each hypothesis; return the logits of the next and the new state."""
        assert isinstance(state, StackState | ArrayState)
        if len(ids) == 0:  # no sentence is left: nothing to divide among the beams
            nothing = self.output_weight.new_zeros(*ids.shape, len(self.output_weight))
            return nothing, state.without_sentences()

        if isinstance(state, ArrayState):
            array, state = state.decoder.step(ids, state)
            logits = logits_of(array, self.output_weight)
        else:
            # (sentence · beam, d_model), at the position after the tokens fed so far
            x = self.target_embedding(ids.reshape(-1, 1), start=state.length).squeeze(1)
            hidden, state = self.decoder.step(x, state)
            logits = functional.linear(hidden, self.output_weight)  # (sentence · beam, vocabulary)

        if self.output_bias is not None:
            logits += self.output_bias  # in place: the product would first write the bias out

        return logits.view(*ids.shape, -1), state

    def decode(
        self,
        memory: Memory,
        target_input: Int[Tensor, "sentence target"],
        trace: Trace = UNWATCHED,
        *,
        causal: bool = True,
    ) -> Float[Tensor, "sentence target d_model"]:
        """The output hidden states of whole target prefixes.

        Without ``causal`` every position attends to later ones too, as in the Single Page's
        inference (EQ-84, ER-36). A KV cache cannot serve that: each new token would change the
        hidden states of all tokens before it.
        """
        inner = trace.under("decoder")
        x = self.target_embedding(target_input, trace=inner)
        mask = mask_for_heads(memory.may_attend)

        reading = Reading(causal=causal, memory=memory.states, memory_may_attend=mask)
        hidden: Tensor = self.decoder(x, reading, inner)
        return hidden
