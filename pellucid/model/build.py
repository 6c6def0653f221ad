"""From a config to a model."""

from typing import assert_never

from pellucid.model.config import ModelConfig
from pellucid.model.initialization import initialize
from pellucid.model.seq2seq import Seq2Seq
from pellucid.model.transformer import Transformer


def build_model(
    config: ModelConfig,
    source_vocabulary_size: int,
    target_vocabulary_size: int,
    seed: int = 0,
) -> Seq2Seq:
    """The model that ``config`` describes, its parameters drawn from ``seed``.

    Raises ConfigError if the vocabularies do not fit the config.
    """
    match config.kind:
        case "transformer":
            model = Transformer(config, source_vocabulary_size, target_vocabulary_size)
            initialize(model, seed)
            return model
        case _:
            assert_never(config.kind)
