"""From a config to a model."""

from typing import assert_never

import torch

from pellucid.core.errors import ConfigError
from pellucid.model.config import ModelConfig
from pellucid.model.decoder_only import DecoderOnly
from pellucid.model.encoder_only import EncoderOnly
from pellucid.model.initialization import initialize
from pellucid.model.recurrent import RecurrentSeq2Seq
from pellucid.model.seq2seq import Seq2Seq, SequenceModel
from pellucid.model.skipgram import SkipGram
from pellucid.model.transformer import Transformer


def build_model(
    config: ModelConfig,
    source_vocabulary_size: int,
    target_vocabulary_size: int,
    seed: int = 0,
) -> Seq2Seq:
    """The translator that ``config`` describes, its parameters drawn from ``seed``.

    Raises ConfigError if a shared embedding is asked for vocabularies of different sizes, or if
    the kind learns from plain text.
    """
    model = build_any_model(config, source_vocabulary_size, target_vocabulary_size, seed)
    if not isinstance(model, Seq2Seq):
        raise ConfigError(f"model.kind={config.kind} learns from plain text and does not translate")
    return model


def build_any_model(
    config: ModelConfig,
    source_vocabulary_size: int,
    target_vocabulary_size: int,
    seed: int = 0,
) -> SequenceModel:
    """The model of any kind that ``config`` describes, its parameters drawn from ``seed``.

    Raises ConfigError if one vocabulary is needed for both sides and they differ in size.
    """
    model = _construct(config, source_vocabulary_size, target_vocabulary_size)
    initialize(model, seed)
    return model


def build_unfilled(
    config: ModelConfig, source_vocabulary_size: int, target_vocabulary_size: int
) -> SequenceModel:
    """The same model of any kind with parameters that hold anything, to be filled from a file.

    Raises ConfigError as ``build_model`` does.
    """
    return _construct(config, source_vocabulary_size, target_vocabulary_size)


def parameter_shapes(
    config: ModelConfig, source_vocabulary_size: int, target_vocabulary_size: int
) -> dict[str, torch.Size]:
    """The names and shapes of its parameters, found without memory for a single one.

    Raises ConfigError as ``build_model`` does.
    """
    with torch.device("meta"):
        model = _construct(config, source_vocabulary_size, target_vocabulary_size)
    return {name: parameter.shape for name, parameter in model.named_parameters()}


def _construct(
    config: ModelConfig, source_vocabulary_size: int, target_vocabulary_size: int
) -> SequenceModel:
    sizes = source_vocabulary_size, target_vocabulary_size
    if config.translates and config.share_embeddings and sizes[0] != sizes[1]:
        raise ConfigError(
            "model.share_embeddings needs one vocabulary for both sides, got"
            f" {source_vocabulary_size} source and {target_vocabulary_size} target tokens",
            hint="set tokenizer.shared=true or model.share_embeddings=false",
        )
    match config.kind:
        case "transformer":
            return Transformer(config, *sizes)
        case "rnn" | "rnn-attention":
            return RecurrentSeq2Seq(config, *sizes)
        case "encoder":
            return EncoderOnly(config, target_vocabulary_size)
        case "decoder":
            return DecoderOnly(config, target_vocabulary_size)
        case "skipgram":
            return SkipGram(config, target_vocabulary_size)
        case _:
            assert_never(config.kind)
