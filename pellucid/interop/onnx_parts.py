"""The three graphs of an exported model, named as Hugging Face Optimum names its files."""

from collections.abc import Iterator, Mapping
from typing import Any

from torch import Tensor

from pellucid.interop.onnx_graph import Blocks, Graph
from pellucid.model.config import ModelConfig

ENCODER, DECODER, STEP = "encoder_model", "decoder_model", "decoder_with_past_model"


def encoder_graph(onnx: Any, config: ModelConfig, tensors: Mapping[str, Tensor]) -> Graph:
    """The encoder: from ids and their mask to the hidden states that the decoder attends to."""
    graph = Graph(onnx)
    blocks = Blocks(graph, config, tensors)
    ids = graph.input("input_ids", ["batch", "source"], ids=True)
    mask = blocks.mask(graph.input("attention_mask", ["batch", "source"], ids=True))
    side = "target" if config.share_embeddings else "source"  # a shared one is stored once
    x = blocks.embed(side, ids, None)

    for index in range(config.encoder_layers):
        name = f"encoder.layers.{index}"
        x = _attend_self(blocks, name, x, mask)[0]
        x = _feed(blocks, name, x)

    if config.norm == "pre":
        x = blocks.norm(x, "encoder.last_norm")
    graph.output(x, "last_hidden_state", ["batch", "source", config.d_model])
    return graph


def decoder_graph(
    onnx: Any, config: ModelConfig, tensors: Mapping[str, Tensor], *, has_past: bool
) -> Graph:
    """The decoder: from a prefix to the logits after each token, and the next step's KV cache.

    With a past the prefix is one token, and the keys and values of all earlier tokens are inputs.
    """
    graph = Graph(onnx)
    blocks = Blocks(graph, config, tensors)
    length: str | int = 1 if has_past else "length"
    ids = graph.input("input_ids", ["batch", length], ids=True)
    mask = blocks.mask(graph.input("encoder_attention_mask", ["batch", "source"], ids=True))

    if has_past:
        past = {name: graph.input(name, shape) for name, shape in past_shapes(config)}
        # The cache is (batch, head, past, size): its length is the position of the new token.
        start = blocks.axis_size("past_key_values.0.decoder.key", 2, "past/length")
        causal, memory = None, ""  # a single token attends to all of the past
    else:
        past, start, causal = {}, None, blocks.causal_mask(ids)
        memory = graph.input("encoder_hidden_states", ["batch", "source", config.d_model])

    x = blocks.embed("target", ids, start)
    for index in range(config.decoder_layers):
        x = _decoder_layer(blocks, index, x, (memory, mask, causal), past)

    if config.norm == "pre":
        x = blocks.norm(x, "decoder.last_norm")
    vocabulary_size = tensors["target_embedding.weight"].shape[0]
    graph.output(blocks.logits(x), "logits", ["batch", length, vocabulary_size])
    return graph


def past_shapes(config: ModelConfig) -> Iterator[tuple[str, list[str | int]]]:
    """The names and shapes of the KV cache that a step reads, layer by layer."""
    for index in range(config.decoder_layers):
        for part, length in (("decoder", "past"), ("encoder", "source")):
            for kind, width in (("key", config.key_size), ("value", config.value_size)):
                name = f"past_key_values.{index}.{part}.{kind}"
                yield name, ["batch", config.heads, length, width]


def _decoder_layer(
    blocks: Blocks,
    index: int,
    x: str,
    looks_at: tuple[str, str, str | None],
    past: Mapping[str, str],
) -> str:
    memory, mask, causal = looks_at
    name = f"decoder.layers.{index}"
    x, key, value = _attend_self(blocks, name, x, causal, index if past else None)
    _give_back(blocks, index, "decoder", (key, value), "past + 1" if past else "length")

    cross = f"{name}.cross_attention"
    query = blocks.project(blocks.enter(x, f"{cross}_norm"), cross, "query")

    # The keys and values of the source never change: only the first decoder
    # computes and returns them.
    if past:
        key, value = (f"past_key_values.{index}.encoder.{kind}" for kind in ("key", "value"))
    else:
        key, value = (blocks.project(memory, cross, kind) for kind in ("key", "value"))
        _give_back(blocks, index, "encoder", (key, value), "source")
    x = blocks.leave(x, blocks.attend(cross, query, key, value, mask), f"{cross}_norm")
    return _feed(blocks, name, x)


def _attend_self(
    blocks: Blocks, name: str, x: str, mask: str | None, past_of: int | None = None
) -> tuple[str, str, str]:
    """Self-attention with norm and residual: the hidden states, and all keys and values so far."""
    own = f"{name}.self_attention"
    rows = blocks.enter(x, f"{own}_norm")
    query, key, value = (blocks.project(rows, own, part) for part in ("query", "key", "value"))

    # Keys are rotated before they enter the cache, at the position they keep.
    query, key = blocks.turn(query), blocks.turn(key)

    if past_of is not None:
        key, value = (
            blocks.graph.add(
                "Concat",
                [f"past_key_values.{past_of}.decoder.{kind}", new],
                f"{own}/all_{kind}s",
                {"axis": 2},
            )
            for kind, new in (("key", key), ("value", value))
        )

    attended = blocks.attend(own, query, key, value, mask)
    return blocks.leave(x, attended, f"{own}_norm"), key, value


def _feed(blocks: Blocks, name: str, x: str) -> str:
    around = f"{name}.feed_forward_norm"
    return blocks.leave(x, blocks.feed_forward(blocks.enter(x, around), name), around)


def _give_back(blocks: Blocks, index: int, part: str, pair: tuple[str, str], length: str) -> None:
    config = blocks.config
    for kind, value, width in zip(
        ("key", "value"), pair, (config.key_size, config.value_size), strict=True
    ):
        name = f"present.{index}.{part}.{kind}"
        blocks.graph.output(value, name, ["batch", config.heads, length, width])
