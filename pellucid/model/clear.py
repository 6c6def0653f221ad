"""Opens a model as the weights that the pages of equations take.

The matrices are views of the parameters of the model, so gradients of what a page computes arrive
at the model.
"""

import dataclasses
from typing import cast

from torch import Tensor

from pellucid.core.errors import ConfigError
from pellucid.equations.heads import NO_BIASES, HeadBiases, two_stage_weights
from pellucid.equations.weights import (
    AttentionWeights,
    BlockWeights,
    DecoderBlockWeights,
    Dropout,
    EmbeddingWeights,
    FeedForwardWeights,
    NoDropout,
    NormWeights,
    Settings,
    TextModel,
)
from pellucid.equations.weights import Transformer as ClearTransformer
from pellucid.model.attention import MultiHeadAttention
from pellucid.model.config import ModelConfig
from pellucid.model.decoder import DecoderLayer
from pellucid.model.decoder_only import DecoderOnly
from pellucid.model.dropout import DropoutSource
from pellucid.model.embedding import Embedding
from pellucid.model.encoder import EncoderLayer
from pellucid.model.encoder_only import EncoderOnly
from pellucid.model.feed_forward import FeedForward
from pellucid.model.normalization import Norm
from pellucid.model.seq2seq import SequenceModel
from pellucid.model.transformer import Transformer


class DrawnDropout:
    """Drops what a model in training would: the same bytes of its own source, in the same order."""

    def __init__(self, source: DropoutSource) -> None:
        self._source = source

    def drop(self, x: Tensor, rate: float) -> Tensor:
        """``x`` times a mask of zeros and 1 / (1 - rate); at rate 0 nothing is drawn."""
        if rate == 0.0:
            return x
        return x * self._source.keep_mask(x.shape, rate).to(x.dtype)

    def skips_layer(self, rate: float) -> bool:
        """Whether the next block is left out."""
        return self._source.happens(rate)


def clear_transformer(model: SequenceModel) -> ClearTransformer:
    """``model`` as ``pellucid.equations.transformer`` takes it; in training mode with its dropout.

    Raises ConfigError for any other kind of model.
    """
    if not isinstance(model, Transformer):
        raise ConfigError(
            f"the page of the Transformer is for model.kind=transformer, got {model.config.kind}"
        )
    return ClearTransformer(
        settings=_settings(model),
        source_embedding=_embedding(model.source_embedding),
        target_embedding=_embedding(model.target_embedding),
        encoder=[_block(cast(EncoderLayer, layer)) for layer in model.encoder.layers],
        decoder=[_decoder_block(cast(DecoderLayer, layer)) for layer in model.decoder.layers],
        encoder_norm=_last_norm(model.config, model.encoder.last_norm),
        decoder_norm=_last_norm(model.config, model.decoder.last_norm),
        w_s=model.output_weight.T,
        b_s=model.output_bias,
    )


def clear_text_model(model: SequenceModel) -> TextModel:
    """``model`` as ``pellucid.equations.text_models`` takes it; in training mode with its dropout.

    Raises ConfigError unless it is an encoder-only or a decoder-only model.
    """
    match model:
        case EncoderOnly():
            layers, last_norm = model.encoder.layers, model.encoder.last_norm
        case DecoderOnly():
            layers, last_norm = model.layers, model.last_norm
        case _:
            raise ConfigError(
                "the page of models of plain text is for model.kind=encoder and decoder, got"
                f" {model.config.kind}"
            )
    return TextModel(
        settings=_settings(model),
        embedding=_embedding(model.embedding),
        blocks=[_block(cast(EncoderLayer, layer)) for layer in layers],
        last_norm=_last_norm(model.config, last_norm),
        w_s=model.output_weight.T,
        b_s=model.output_bias,
    )


def _settings(model: SequenceModel) -> Settings:
    """Every field of ``Settings`` stands in the config under the same name."""
    names = [field.name for field in dataclasses.fields(Settings) if field.name != "training"]
    chosen = {name: getattr(model.config, name) for name in names}
    training: Dropout = DrawnDropout(model.dropout_source) if model.training else NoDropout()
    return Settings(**chosen, training=training)


def _embedding(embedding: Embedding) -> EmbeddingWeights:
    network = None
    if embedding.w_x is not None and embedding.w_zx is not None:
        network = embedding.w_x, embedding.w_zx
    positions = dict(embedding.positions.matrices.items())
    if embedding.positions.learned is not None:
        positions["table"] = embedding.positions.learned
    return EmbeddingWeights(embedding.weight, network, positions)


def _block(layer: EncoderLayer) -> BlockWeights:
    return BlockWeights(
        self_attention=_attention(layer.self_attention),
        self_attention_norm=_norm(layer.self_attention_norm.norm),
        feed_forward=_feed_forward(layer.feed_forward),
        feed_forward_norm=_norm(layer.feed_forward_norm.norm),
    )


def _decoder_block(layer: DecoderLayer) -> DecoderBlockWeights:
    return DecoderBlockWeights(
        self_attention=_attention(layer.self_attention),
        self_attention_norm=_norm(layer.self_attention_norm.norm),
        cross_attention=_attention(layer.cross_attention),
        cross_attention_norm=_norm(layer.cross_attention_norm.norm),
        feed_forward=_feed_forward(layer.feed_forward),
        feed_forward_norm=_norm(layer.feed_forward_norm.norm),
    )


def _attention(attention: MultiHeadAttention) -> AttentionWeights:
    """The packed matrix cut into W^Q, W^K and W^V of every head."""
    heads, widths = attention.heads, _widths(attention)
    if attention.two_stage is not None:
        shared, per_head = attention.two_stage.shared, attention.two_stage.per_head
        w_q, w_k, w_v = (
            two_stage_weights(shared[name], per_head[name]) for name in ("query", "key", "value")
        )
    else:
        assert attention.w_qkv is not None
        w_q, w_k, w_v = (
            # (heads · size, d_model) -> (heads, d_model, size)
            part.reshape(heads, -1, part.shape[-1]).transpose(1, 2)
            for part in attention.w_qkv.split(widths)
        )

    biases = NO_BIASES
    if attention.b_qkv is not None:
        b_q, b_k, b_v = (part.reshape(heads, 1, -1) for part in attention.b_qkv.split(widths))
        biases = HeadBiases(b_q, b_k, b_v, attention.b_o)
    positions = attention.positions
    return AttentionWeights(
        w_q,
        w_k,
        w_v,
        attention.w_o.T,
        biases,
        None if positions is None else positions.keys,
        None if positions is None else positions.values,
    )


def _widths(attention: MultiHeadAttention) -> list[int]:
    return [attention.query_width, attention.query_width, attention.value_width]


def _feed_forward(network: FeedForward) -> FeedForwardWeights:
    inner, outer = network.inner, network.outer
    return FeedForwardWeights(inner.weight.T, inner.bias, outer.weight.T, outer.bias)


def _norm(norm: Norm) -> NormWeights:
    return NormWeights(norm.gain, norm.bias)


def _last_norm(config: ModelConfig, norm: object) -> NormWeights | None:
    return _norm(norm) if config.norm == "pre" and isinstance(norm, Norm) else None
