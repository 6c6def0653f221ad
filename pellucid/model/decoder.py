"""The decoder: masked self-attention, cross-attention and feed-forward, block after block."""

from collections.abc import Callable

from jaxtyping import Bool, Float
from torch import Tensor, nn

from pellucid.model.attention import MultiHeadAttention
from pellucid.model.attention_positions import AttentionPositions
from pellucid.model.config import ModelConfig
from pellucid.model.dropout import DropoutSource, LayerDrop
from pellucid.model.feed_forward import FeedForward
from pellucid.model.normalization import Norm
from pellucid.model.state import Ancestry, LayerCache
from pellucid.model.sublayer import AddAndNorm
from pellucid.model.trace import UNWATCHED, Trace


class DecoderLayer(nn.Module):
    """Masked self-attention, cross-attention and feed-forward, each with Add & Norm.

    EQ: 108, 109.  Source: Vaswani et al. (2017), §3.1 and Figure 1, right.
    """

    def __init__(self, config: ModelConfig, source: DropoutSource) -> None:
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
        """The rows of whole target prefixes one block further."""
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
        """The newest row alone one block further; its key and value are kept (EQ-130)."""

        def attend(rows: Tensor) -> Tensor:
            query, key, value = self.self_attention.project_all(rows, start=ancestry.place)
            cache.write(ancestry.first_slot, key, value)
            return self._attend_to_ancestors(query, cache, ancestry)

        def attend_to_memory(rows: Tensor) -> Tensor:
            query = self.cross_attention.project_query(rows)
            memory = cache.memory_keys, cache.memory_values
            return _attend_from_beams(self.cross_attention, query, *memory, memory_may_attend)

        return self._run(x, attend, attend_to_memory, UNWATCHED)

    def _attend_to_ancestors(
        self,
        query: Float[Tensor, "row heads 1 key_size"],
        cache: LayerCache,
        ancestry: Ancestry,
    ) -> Float[Tensor, "row 1 d_model"]:
        """Self-attention; beams read the slots of their sentence together, if order is nothing."""
        attention, may_attend = self.self_attention, ancestry.may_attend
        if may_attend is not None and attention.needs_order:
            own = ancestry.in_order(cache.keys), ancestry.in_order(cache.values)
            return attention.attend(query, *own)
        keys, values = cache.keys[:, : ancestry.end], cache.values[:, : ancestry.end]
        return _attend_from_beams(
            attention, query, keys.transpose(1, 2), values.transpose(1, 2), may_attend
        )

    def _run(
        self,
        x: Float[Tensor, "row length d_model"],
        attend: Callable[[Tensor], Tensor],
        attend_to_memory: Callable[[Tensor], Tensor],
        trace: Trace,
    ) -> Float[Tensor, "row length d_model"]:
        """The block around its two attentions, over whole prefixes or with a KV cache."""
        x = self.self_attention_norm(x, attend, trace.under("self_attention"))
        x = self.cross_attention_norm(x, attend_to_memory, trace.under("cross_attention"))
        inner = trace.under("feed_forward")
        x = self.feed_forward_norm(x, lambda rows: self.feed_forward(rows, inner), inner)
        return trace.keep("output", x)


def _attend_from_beams(
    attention: MultiHeadAttention,
    query: Float[Tensor, "row heads 1 key_size"],
    keys: Float[Tensor, "sentence heads key key_size"],
    values: Float[Tensor, "sentence heads key value_size"],
    may_attend: Bool[Tensor, "sentence 1 #beam key"] | None,
) -> Float[Tensor, "row 1 d_model"]:
    """Attention in which the beams of a sentence are so many queries to the same keys."""
    _, heads, _, key_size = query.shape
    query = query.view(keys.shape[0], -1, heads, key_size).transpose(1, 2)
    attended = attention.attend(query, keys, values, may_attend)  # (sentence, beam, d_model)
    return attended.reshape(-1, 1, attended.shape[-1])


class Decoder(nn.Module):
    """Y⁽⁰⁾ → Y⁽¹⁾ → … → Y⁽ᴺ⁾, every block reading the same memory.

    EQ: 90, 110.  Source: Vaswani et al. (2017), §3.1.
    """

    def __init__(self, config: ModelConfig, source: DropoutSource) -> None:
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
        """All blocks, whole target prefixes at once."""
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
        """All blocks, the newest row alone; each cache's next slots are filled."""
        for layer, cache in zip(self.layers, caches, strict=True):
            assert isinstance(layer, DecoderLayer)
            x = layer.step(x, cache, ancestry, memory_may_attend)
        output: Tensor = self.last_norm(x)
        return output

    def start(self, memory: Float[Tensor, "sentence source d_model"]) -> tuple[LayerCache, ...]:
        """Caches that know the source and no target token yet."""
        caches = []
        for layer in self.layers:
            assert isinstance(layer, DecoderLayer)
            keys, values = layer.cross_attention.project_memory(memory)
            empty_keys, empty_values = (each.transpose(1, 2)[:, :0] for each in (keys, values))
            caches.append(
                LayerCache(keys.contiguous(), values.contiguous(), empty_keys, empty_values)
            )
        return tuple(caches)
