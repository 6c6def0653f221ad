"""The whole Transformer (EQ-115): layers, stacks, and the model that joins them."""

from collections.abc import Callable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from pellucid.core.special import PAD_ID
from pellucid.model.attention import AttentionPositions, MultiHeadAttention, mask_for_heads
from pellucid.model.config import BlockSettings, EncoderConfig, TransformerConfig
from pellucid.model.dropout import DropoutSource, LayerDrop
from pellucid.model.embedding import Embedding, Positions
from pellucid.model.layers import AddAndNorm, FeedForward, Norm, output_parameters
from pellucid.model.seq2seq import Memory, Seq2Seq, State
from pellucid.model.state import Ancestry, FilledSlots, LayerCache, TransformerState
from pellucid.model.trace import UNWATCHED, Trace


class EncoderLayer(nn.Module):
    """Self-attention, Add & Norm, feed-forward, Add & Norm.

    EQ: 104.  Source: Vaswani et al. (2017), §3.1 and Figure 1, left.
    """

    def __init__(self, config: BlockSettings, source: DropoutSource) -> None:
        super().__init__()
        self.self_attention = MultiHeadAttention(config, source, AttentionPositions(config))
        self.self_attention_norm = AddAndNorm(config, source)
        self.feed_forward = FeedForward(config, source)
        self.feed_forward_norm = AddAndNorm(config, source)

    def forward(
        self,
        x: Float[Tensor, "sentence source d_model"],
        may_attend: Bool[Tensor, "sentence 1 1 source"] | None,
        trace: Trace = UNWATCHED,
        *,
        causal: bool = False,
    ) -> Float[Tensor, "sentence source d_model"]:
        """Run the block; with ``causal`` a position attends to no later one (EQ-138)."""
        inner = trace.under("self_attention")

        def attend(rows: Tensor) -> Tensor:
            return self.self_attention(rows, may_attend, causal=causal, trace=inner)  # type: ignore[no-any-return]

        return self._run(x, attend, trace)

    def step(
        self, x: Float[Tensor, "row 1 d_model"], cache: LayerCache, ancestry: Ancestry
    ) -> Float[Tensor, "row 1 d_model"]:
        """Run the block for the newest token alone, and cache its key and value (EQ-138)."""

        def attend(rows: Tensor) -> Tensor:
            return _attend_to_ancestors(self.self_attention, rows, cache, ancestry)

        return self._run(x, attend, UNWATCHED)

    def _run(
        self,
        x: Float[Tensor, "row length d_model"],
        attend: Callable[[Tensor], Tensor],
        trace: Trace,
    ) -> Float[Tensor, "row length d_model"]:
        """Run the block around its self-attention, over whole sequences or with a KV cache."""
        x = self.self_attention_norm(x, attend, trace.under("self_attention"))

        inner = trace.under("feed_forward")
        x = self.feed_forward_norm(x, lambda rows: self.feed_forward(rows, inner), inner)

        return trace.keep("output", x)


class Encoder(nn.Module):
    """X⁽⁰⁾ → X⁽¹⁾ → … → X⁽ᴺ⁾; with pre-norm a last norm closes the stack.

    EQ: 105.  Source: Vaswani et al. (2017), §3.1.
    """

    def __init__(self, config: TransformerConfig | EncoderConfig, source: DropoutSource) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            EncoderLayer(config, source) for _ in range(config.encoder_layers)
        )
        self.layer_drop = LayerDrop(config.layer_drop, source)
        # pre-norm adds unnormalized outputs to the residual stream, so the stack ends with a norm;
        # a post-norm block ends with one already (Xiong et al., 2020)
        self.last_norm = Norm(config) if config.norm == "pre" else nn.Identity()

    def forward(
        self,
        x: Float[Tensor, "sentence source d_model"],
        may_attend: Bool[Tensor, "sentence 1 1 source"] | None,
        trace: Trace = UNWATCHED,
    ) -> Float[Tensor, "sentence source d_model"]:
        """Run all blocks over the whole sentence at once."""
        for index, layer in self.layer_drop.kept(self.layers):
            x = layer(x, may_attend, trace.under(f"layers.{index}"))

        return trace.keep("output", self.last_norm(x))


class DecoderLayer(nn.Module):
    """Masked self-attention, cross-attention and feed-forward, each with Add & Norm.

    EQ: 108, 109.  Source: Vaswani et al. (2017), §3.1 and Figure 1, right.
    """

    def __init__(self, config: BlockSettings, source: DropoutSource) -> None:
        super().__init__()
        self.self_attention = MultiHeadAttention(config, source, AttentionPositions(config))
        self.self_attention_norm = AddAndNorm(config, source)
        self.cross_attention = MultiHeadAttention(config, source)
        self.cross_attention_norm = AddAndNorm(config, source)
        self.feed_forward = FeedForward(config, source)
        self.feed_forward_norm = AddAndNorm(config, source)

    def forward(
        self,
        x: Float[Tensor, "sentence target d_model"],
        memory: Float[Tensor, "sentence source d_model"],
        memory_may_attend: Bool[Tensor, "sentence 1 1 source"] | None,
        trace: Trace = UNWATCHED,
        *,
        causal: bool = True,
    ) -> Float[Tensor, "sentence target d_model"]:
        """Run the block over whole target prefixes."""
        inner = trace.under("self_attention"), trace.under("cross_attention")

        def attend(rows: Tensor) -> Tensor:
            return self.self_attention(rows, causal=causal, trace=inner[0])  # type: ignore[no-any-return]

        def attend_to_memory(rows: Tensor) -> Tensor:
            query = self.cross_attention.project_query(rows)
            key, value = self.cross_attention.project_memory(memory)
            return self.cross_attention.attend(query, key, value, memory_may_attend, trace=inner[1])

        return self._run(x, attend, attend_to_memory, trace)

    def step(
        self,
        x: Float[Tensor, "row 1 d_model"],
        cache: LayerCache,
        ancestry: Ancestry,
        memory_may_attend: Bool[Tensor, "sentence 1 1 source"] | None,
    ) -> Float[Tensor, "row 1 d_model"]:
        """Run the block for the newest token alone, and cache its key and value (EQ-130)."""

        def attend(rows: Tensor) -> Tensor:
            return _attend_to_ancestors(self.self_attention, rows, cache, ancestry)

        def attend_to_memory(rows: Tensor) -> Tensor:
            # keys and values of the source were computed once, in ``Decoder.start``
            query = self.cross_attention.project_query(rows)
            memory = cache.memory_keys, cache.memory_values
            return _attend_from_beams(self.cross_attention, query, *memory, memory_may_attend)

        return self._run(x, attend, attend_to_memory, UNWATCHED)

    def _run(
        self,
        x: Float[Tensor, "row length d_model"],
        attend: Callable[[Tensor], Tensor],
        attend_to_memory: Callable[[Tensor], Tensor],
        trace: Trace,
    ) -> Float[Tensor, "row length d_model"]:
        """Run the block around its two attentions, over whole prefixes or with a KV cache."""
        x = self.self_attention_norm(x, attend, trace.under("self_attention"))
        x = self.cross_attention_norm(x, attend_to_memory, trace.under("cross_attention"))

        inner = trace.under("feed_forward")
        x = self.feed_forward_norm(x, lambda rows: self.feed_forward(rows, inner), inner)

        return trace.keep("output", x)


def _attend_to_ancestors(
    attention: MultiHeadAttention,
    rows: Float[Tensor, "row 1 d_model"],
    cache: LayerCache,
    ancestry: Ancestry,
) -> Float[Tensor, "row 1 d_model"]:
    """Self-attention over the cache, of all beams of a sentence at once where order permits."""
    query, key, value = attention.project_all(rows, start=ancestry.position)
    # before attention: the newest token attends to itself too
    cache.write(ancestry.first_slot, key, value)
    may_attend = ancestry.may_attend

    # relative positions and ALiBi go by the order of the keys, and the slots of several beams are
    # interleaved; a single beam owns all slots, and they are in order already
    if may_attend is not None and attention.needs_order:
        own = ancestry.in_order(cache.keys), ancestry.in_order(cache.values)
        return attention.attend(query, *own)

    # every beam attends to all slots of its sentence, and the mask hides those of other beams:
    # softmax does not depend on the order of keys, and rotary keys were rotated before caching
    keys, values = cache.keys[:, : ancestry.end], cache.values[:, : ancestry.end]
    return _attend_from_beams(
        attention, query, keys.transpose(1, 2), values.transpose(1, 2), may_attend
    )


def _attend_from_beams(
    attention: MultiHeadAttention,
    query: Float[Tensor, "row heads 1 key_size"],
    keys: Float[Tensor, "sentence heads key key_size"],
    values: Float[Tensor, "sentence heads key value_size"],
    may_attend: Bool[Tensor, "sentence 1 #beam key"] | None,
) -> Float[Tensor, "row 1 d_model"]:
    """Attention in which the beams of a sentence are queries to the same keys.

    So the keys and values of a sentence are read once, and not copied for each beam.
    """
    _, heads, _, key_size = query.shape

    # (sentence · beam, heads, 1, key_size) → (sentence, heads, beam, key_size)
    query = query.view(keys.shape[0], -1, heads, key_size).transpose(1, 2)
    attended = attention.attend(query, keys, values, may_attend)  # (sentence, beam, d_model)

    # back to one row for each hypothesis: (sentence · beam, 1, d_model)
    return attended.reshape(-1, 1, attended.shape[-1])


class Decoder(nn.Module):
    """Y⁽⁰⁾ → Y⁽¹⁾ → … → Y⁽ᴺ⁾, every block reading the same memory.

    EQ: 90, 110.  Source: Vaswani et al. (2017), §3.1.
    """

    def __init__(self, config: TransformerConfig, source: DropoutSource) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            DecoderLayer(config, source) for _ in range(config.decoder_layers)
        )
        self.layer_drop = LayerDrop(config.layer_drop, source)
        self.last_norm = Norm(config) if config.norm == "pre" else nn.Identity()

    def forward(
        self,
        x: Float[Tensor, "sentence target d_model"],
        memory: Float[Tensor, "sentence source d_model"],
        memory_may_attend: Bool[Tensor, "sentence 1 1 source"] | None,
        trace: Trace = UNWATCHED,
        *,
        causal: bool = True,
    ) -> Float[Tensor, "sentence target d_model"]:
        """Run all blocks over whole target prefixes at once."""
        for index, layer in self.layer_drop.kept(self.layers):
            inner = trace.under(f"layers.{index}")
            x = layer(x, memory, memory_may_attend, inner, causal=causal)

        return trace.keep("output", self.last_norm(x))

    def step(
        self,
        x: Float[Tensor, "row 1 d_model"],
        caches: tuple[LayerCache, ...],
        ancestry: Ancestry,
        memory_may_attend: Bool[Tensor, "sentence 1 1 source"] | None,
    ) -> Float[Tensor, "row 1 d_model"]:
        """Run all blocks for the newest token alone, and fill the next slots of each cache."""
        for layer, cache in zip(self.layers, caches, strict=True):
            assert isinstance(layer, DecoderLayer)
            x = layer.step(x, cache, ancestry, memory_may_attend)

        output: Tensor = self.last_norm(x)
        return output

    def start(self, memory: Float[Tensor, "sentence source d_model"]) -> tuple[LayerCache, ...]:
        """Caches with the keys and values of the source, and without a target token."""
        caches = []
        for layer in self.layers:
            assert isinstance(layer, DecoderLayer)
            keys, values = layer.cross_attention.project_memory(memory)
            # (sentence, slot, heads, size) with no slot yet
            empty_keys, empty_values = (each.transpose(1, 2)[:, :0] for each in (keys, values))
            caches.append(
                # contiguous, as every step reads them: they are views of a packed projection
                LayerCache(keys.contiguous(), values.contiguous(), empty_keys, empty_values)
            )
        return tuple(caches)


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

        self.encoder = Encoder(config, self.dropout_source)
        self.decoder = Decoder(config, self.dropout_source)
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
        """Read source ids, each row ending in STOP and filled up with PAD."""
        inner = trace.under("encoder")
        x = self.source_embedding(source, trace=inner)

        may_attend = source != PAD_ID
        states = self.encoder(x, mask_for_heads(may_attend), inner)
        return Memory(states, may_attend)

    def hidden_states(
        self,
        source: Int[Tensor, "sentence source"],
        target_input: Int[Tensor, "sentence target"],
        trace: Trace = UNWATCHED,
    ) -> Float[Tensor, "sentence target d_model"]:
        """The last hidden states at every position of the target."""
        return self.decode(self.encode(source, trace), target_input, trace)

    def start(self, memory: Memory) -> TransformerState:
        """The state before the first target token, with one beam for each sentence."""
        return TransformerState(
            layers=self.decoder.start(memory.states),
            filled=FilledSlots(0),
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
        """Feed one token to each hypothesis; return the logits of the next and the new state."""
        assert isinstance(state, TransformerState)
        if len(ids) == 0:  # no sentence is left: nothing to divide among the beams
            nothing = self.output_weight.new_zeros(*ids.shape, len(self.output_weight))
            return nothing, state.without_sentences()

        # (sentence · beam, 1, d_model), at the position after the tokens fed so far
        x = self.target_embedding(ids.reshape(-1, 1), start=state.length)
        mask = mask_for_heads(state.memory_may_attend)

        # tensors with room for these tokens, which no other state writes to
        layers, filled = state.writable()
        ancestry = state.ancestry()
        hidden = self.decoder.step(x, layers, ancestry, mask)

        # (sentence · beam, vocabulary)
        logits = functional.linear(hidden.squeeze(1), self.output_weight)
        if self.output_bias is not None:
            logits += self.output_bias  # in place: the product would first write the bias out

        return logits.view(*ids.shape, -1), state.after(layers, filled, ancestry)

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

        hidden: Tensor = self.decoder(x, memory.states, mask, inner, causal=causal)
        return hidden
