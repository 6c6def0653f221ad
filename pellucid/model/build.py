"""From a config to a model."""

from typing import assert_never

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
    if config.share_embeddings and source_vocabulary_size != target_vocabulary_size:
        raise ConfigError(
            "model.share_embeddings needs one vocabulary for both sides, got"
            f" {source_vocabulary_size} source and {target_vocabulary_size} target tokens",
            hint="set tokenizer.shared=true or model.share_embeddings=false",
        )
    model: Transformer | RecurrentSeq2Seq
    match config.kind:
        case "transformer":
            model = Transformer(config, source_vocabulary_size, target_vocabulary_size)
        case "rnn" | "rnn-attention":
            model = RecurrentSeq2Seq(config, source_vocabulary_size, target_vocabulary_size)
        case _:
            assert_never(config.kind)
    initialize(model, seed)
    return model
