"""The decoder: masked self-attention, cross-attention and feed-forward, block after block."""

from jaxtyping import Bool, Float
from torch import Tensor, nn

from pellucid.model.attention import MultiHeadAttention
from pellucid.model.attention_positions import AttentionPositions
from pellucid.model.config import ModelConfig
from pellucid.model.dropout import DropoutSource
from pellucid.model.feed_forward import FeedForward
from pellucid.model.normalization import Norm
from pellucid.model.state import LayerCache
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
        inner = trace.under("self_attention")
        attended = self.self_attention(
            self.self_attention_norm.enter(x, inner), causal=causal, trace=inner
        )
        x = self.self_attention_norm.leave(x, attended, inner)

        inner = trace.under("cross_attention")
        query = self.cross_attention.project_query(self.cross_attention_norm.enter(x, inner))
        key, value = self.cross_attention.project_memory(memory)
        attended = self.cross_attention.attend(query, key, value, memory_may_attend, trace=inner)
        x = self.cross_attention_norm.leave(x, attended, inner)
        return trace.keep("output", self._feed(x, trace.under("feed_forward")))

    def step(
        self,
        x: Float[Tensor, "row 1 d_model"],
        cache: LayerCache,
        place: int,
        memory_may_attend: Bool[Tensor, "sentence 1 1 source"] | None,
    ) -> Float[Tensor, "row 1 d_model"]:
        """The newest row alone one block further; its key and value fill the ``place`` (EQ-130)."""
        query, key, value = self.self_attention.project_all(
            self.self_attention_norm.enter(x), start=place
        )
        keys, values = cache.write(place, key, value)
        attended = self.self_attention.attend(query, keys, values)
        x = self.self_attention_norm.leave(x, attended, UNWATCHED)

        query = self.cross_attention.project_query(self.cross_attention_norm.enter(x))
        attended = self._attend_from_beams(query, cache, memory_may_attend)
        x = self.cross_attention_norm.leave(x, attended, UNWATCHED)
        return self._feed(x, UNWATCHED)

    def _attend_from_beams(
        self,
        query: Float[Tensor, "row heads 1 key_size"],
        cache: LayerCache,
        memory_may_attend: Bool[Tensor, "sentence 1 1 source"] | None,
    ) -> Float[Tensor, "row 1 d_model"]:
        """Cross-attention in which the beams of a sentence are so many queries to one memory."""
        sentences = cache.memory_keys.shape[0]
        _, heads, _, key_size = query.shape
        query = query.view(sentences, -1, heads, key_size).transpose(1, 2)
        attended = self.cross_attention.attend(
            query, cache.memory_keys, cache.memory_values, memory_may_attend
        )  # (sentence, beam, d_model)
        return attended.reshape(-1, 1, attended.shape[-1])

    def _feed(
        self, x: Float[Tensor, "row length d_model"], trace: Trace
    ) -> Float[Tensor, "row length d_model"]:
        fed = self.feed_forward(self.feed_forward_norm.enter(x, trace), trace)
        return self.feed_forward_norm.leave(x, fed, trace)


class Decoder(nn.Module):
    """Y⁽⁰⁾ → Y⁽¹⁾ → … → Y⁽ᴺ⁾, every block reading the same memory.

    EQ: 90, 110.  Source: Vaswani et al. (2017), §3.1.
    """

    def __init__(self, config: ModelConfig, source: DropoutSource) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            DecoderLayer(config, source) for _ in range(config.decoder_layers)
        )
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
        for index, layer in enumerate(self.layers):
            inner = trace.under(f"layers.{index}")
            x = layer(x, memory, memory_may_attend, inner, causal=causal)
        return trace.keep("output", self.last_norm(x))

    def step(
        self,
        x: Float[Tensor, "row 1 d_model"],
        caches: tuple[LayerCache, ...],
        place: int,
        memory_may_attend: Bool[Tensor, "sentence 1 1 source"] | None,
    ) -> Float[Tensor, "row 1 d_model"]:
        """All blocks, the newest row alone; each cache's ``place`` is filled."""
        for layer, cache in zip(self.layers, caches, strict=True):
            assert isinstance(layer, DecoderLayer)
            x = layer.step(x, cache, place, memory_may_attend)
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
