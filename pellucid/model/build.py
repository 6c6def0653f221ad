"""From a config to a model."""

from typing import assert_never

import torch

from pellucid.core.errors import ConfigError
from pellucid.model.config import ModelConfig
from pellucid.model.initialization import initialize
from pellucid.model.recurrent import RecurrentSeq2Seq
from pellucid.model.seq2seq import Seq2Seq
from pellucid.model.transformer import Transformer


def build_model(
    config: ModelConfig,
    source_vocabulary_size: int,
    target_vocabulary_size: int,
    seed: int = 0,
) -> Seq2Seq:
    """The model that ``config`` describes, its parameters drawn from ``seed``.

    Raises ConfigError if a shared embedding is asked for vocabularies of different sizes.
    """
    model = _construct(config, source_vocabulary_size, target_vocabulary_size)
    initialize(model, seed)
    return model


def build_unfilled(
    config: ModelConfig, source_vocabulary_size: int, target_vocabulary_size: int
) -> Seq2Seq:
    """The same model with parameters that hold anything, to be filled from a file.

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
) -> Transformer | RecurrentSeq2Seq:
    if config.share_embeddings and source_vocabulary_size != target_vocabulary_size:
        raise ConfigError(
            "model.share_embeddings needs one vocabulary for both sides, got"
            f" {source_vocabulary_size} source and {target_vocabulary_size} target tokens",
            hint="set tokenizer.shared=true or model.share_embeddings=false",
        )
    match config.kind:
        case "transformer":
            return Transformer(config, source_vocabulary_size, target_vocabulary_size)
        case "rnn" | "rnn-attention":
            return RecurrentSeq2Seq(config, source_vocabulary_size, target_vocabulary_size)
        case _:
            assert_never(config.kind)
