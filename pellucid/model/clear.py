"""Opens a model as the weights that the pages of equations take.

The matrices are views of the parameters of the model, so gradients of what a page computes arrive
at the model.
"""

import dataclasses
from typing import Any, cast

from torch import Tensor, nn

from pellucid.core.errors import ConfigError
from pellucid.equations.recurrent_translator import (
    Cell,
    RecurrentAttentionWeights,
    RecurrentTranslator,
)
from pellucid.equations.weights import (
    BlockWeights,
    DecoderBlockWeights,
    Dropout,
    EmbeddingWeights,
    NoDropout,
    NormWeights,
    Settings,
    TextModel,
)
from pellucid.equations.weights import Transformer as ClearTransformer
from pellucid.model.blocks import Block
from pellucid.model.config import (
    BlockSettings,
    DecoderConfig,
    EncoderConfig,
    RnnAttentionConfig,
    RnnConfig,
    SkipGramConfig,
    TransformerConfig,
)
from pellucid.model.dropout import DropoutSource
from pellucid.model.embedding import Embedding
from pellucid.model.layers import Norm
from pellucid.model.recurrent import RecurrentSeq2Seq
from pellucid.model.recurrent_parts import RecurrentLayer
from pellucid.model.seq2seq import SequenceModel
from pellucid.model.text_models import DecoderOnly, EncoderOnly
from pellucid.model.transformer import Transformer

ClearModel = ClearTransformer | TextModel | RecurrentTranslator


class DrawnDropout:
    """Drops what the model drops in training: the same random bytes in the same order."""

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


def clear_model(model: SequenceModel) -> ClearModel:
    """``model`` as the page of equations of its kind takes it.

    Raises ConfigError for word vectors, whose page is ``pellucid.equations.word2vec``, and for a
    kind that has no page.
    """
    match model.config:
        case TransformerConfig():
            return clear_transformer(model)
        case EncoderConfig() | DecoderConfig():
            return clear_text_model(model)
        case RnnConfig() | RnnAttentionConfig():
            return clear_recurrent(model)
        case SkipGramConfig():
            raise ConfigError(
                "word vectors are two matrices, model.w_in and model.w_out, which the functions of"
                " pellucid.equations.word2vec take as they are"
            )
        case _:
            raise ConfigError(f"model.kind={model.config.kind} has no page of equations")


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
        encoder=[BlockWeights(**_block(layer)) for layer in model.encoder.layers],
        decoder=[DecoderBlockWeights(**_block(layer)) for layer in model.decoder.layers],
        encoder_norm=_last_norm(model.config, model.encoder.last_norm),
        decoder_norm=_last_norm(model.config, model.decoder.last_norm),
        # (vocabulary, d_model) → (d_model, vocabulary), as the page multiplies from the right
        w_s=model.output_weight.T,
        b_s=model.output_bias,
    )


def clear_text_model(model: SequenceModel) -> TextModel:
    """``model`` as ``pellucid.equations.text_models`` takes it; in training mode with its dropout.

    Raises ConfigError unless it is an encoder-only or a decoder-only model.
    """
    match model:
        case EncoderOnly():
            config: BlockSettings = model.config
            layers, last_norm = model.encoder.layers, model.encoder.last_norm
        case DecoderOnly():
            config, layers, last_norm = model.config, model.layers, model.last_norm
        case _:
            raise ConfigError(
                "the page of models of plain text is for model.kind=encoder and decoder, got"
                f" {model.config.kind}"
            )

    return TextModel(
        settings=_settings(model),
        embedding=_embedding(model.embedding),
        blocks=[BlockWeights(**_block(layer)) for layer in layers],
        last_norm=_last_norm(config, last_norm),
        w_s=model.output_weight.T,
        b_s=model.output_bias,
    )


def clear_recurrent(model: SequenceModel) -> RecurrentTranslator:
    """``model`` as ``pellucid.equations.recurrent_translator`` takes it; in training with dropout.

    Raises ConfigError for any other kind of model.
    """
    if not isinstance(model, RecurrentSeq2Seq):
        raise ConfigError(
            "the page of recurrent translators is for model.kind=rnn and rnn-attention, got"
            f" {model.config.kind}"
        )
    config, attention = model.config, model.decoder.cross_attention
    weights = None
    if attention is not None:
        weights = RecurrentAttentionWeights(
            kind=attention.scoring,
            w_query=attention.w_query,
            w_key=attention.w_key,
            v=attention.v,
            w_c=attention.w_output,
        )

    return RecurrentTranslator(
        source_embedding=model.source_embedding.weight,
        target_embedding=model.target_embedding.weight,
        encoder=[_cells(cast(RecurrentLayer, layer)) for layer in model.encoder.layers],
        # a decoder reads in one direction, so each layer has one cell
        decoder=[_cells(cast(RecurrentLayer, layer))[0] for layer in model.decoder.layers],
        attention=weights,
        w_s=model.output_weight.T,
        b_s=model.output_bias,
        cell=config.cell,
        scale_embeddings=config.scale_embeddings,
        input_feeding=model.decoder.input_feeding,
        feed_summary=model.decoder.feed_summary,
        reverse_source=model.encoder.reverse_source,
        dropout=config.dropout,
        training=_training(model),
    )


def _cells(layer: RecurrentLayer) -> list[Cell]:
    """W_ih, W_hh, b_ih and b_hh of every direction of a layer."""
    parameters = dict(layer.network.named_parameters())

    # PyTorch's names: layer 0, as every layer here is a network of its own, and its backward
    # direction
    suffixes = ("_l0", "_l0_reverse") if layer.network.bidirectional else ("_l0",)

    return [
        (
            parameters[f"weight_ih{suffix}"],
            parameters[f"weight_hh{suffix}"],
            parameters[f"bias_ih{suffix}"],
            parameters[f"bias_hh{suffix}"],
        )
        for suffix in suffixes
    ]


def _training(model: SequenceModel) -> Dropout:
    return DrawnDropout(model.dropout_source) if model.training else NoDropout()


def _settings(model: SequenceModel) -> Settings:
    """The fields of ``Settings`` that the config has, under the same names."""
    # a kind without a setting leaves the page's own default
    names = [field.name for field in dataclasses.fields(Settings)]
    settings = type(model.config).model_fields
    chosen = {name: getattr(model.config, name) for name in names if name in settings}
    return Settings(**chosen, training=_training(model))


def _embedding(embedding: Embedding) -> EmbeddingWeights:
    network = None
    if embedding.w_x is not None and embedding.w_zx is not None:
        network = embedding.w_x, embedding.w_zx

    positions = dict(embedding.positions.matrices.items())
    if embedding.positions.learned is not None:
        positions["table"] = embedding.positions.learned
    return EmbeddingWeights(embedding.weight, network, positions)


def _block(layer: nn.Module) -> dict[str, Any]:
    """The weights of each sublayer and of its norm, under the names that the page has for them."""
    weights: dict[str, Any] = {}
    for sublayer in cast(Block, layer).sublayers:
        weights[sublayer.name] = sublayer.module.clear_weights()
        weights[sublayer.kind.norm_name] = _norm(sublayer.around.norm)
    return weights


def _norm(norm: Norm) -> NormWeights:
    return NormWeights(norm.gain, norm.bias)


def _last_norm(config: BlockSettings, norm: object) -> NormWeights | None:
    # with post-norm the module is an identity
    return _norm(norm) if config.norm == "pre" and isinstance(norm, Norm) else None
