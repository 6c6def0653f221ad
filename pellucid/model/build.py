"""From a config to a model whose parameters are initialized."""

from collections.abc import Sequence
from typing import assert_never

import torch
from torch import Tensor, nn

from pellucid.core.errors import ConfigError
from pellucid.model.attention import AttentionPositions, MultiHeadAttention, TwoStageProjection
from pellucid.model.config import (
    DecoderConfig,
    EncoderConfig,
    ModelConfig,
    NetworkSettings,
    RnnAttentionConfig,
    RnnConfig,
    SkipGramConfig,
    TransformerConfig,
    TranslatorSettings,
)
from pellucid.model.embedding import Embedding, Positions
from pellucid.model.recurrent import RecurrentSeq2Seq
from pellucid.model.recurrent_parts import RecurrentAttention, TokenEmbedding
from pellucid.model.seq2seq import Seq2Seq, SequenceModel
from pellucid.model.skipgram import SkipGram
from pellucid.model.text_models import DecoderOnly, EncoderOnly
from pellucid.model.transformer import Transformer


def initialize(model: SequenceModel, seed: int) -> None:
    """Draw every parameter from ``seed``.

    Matrices get Xavier's uniform distribution (Glorot and Bengio, 2010), queries, keys and
    values each as a matrix of its own; embeddings a normal one of standard deviation
    d_model^-0.5, so that scaled embeddings have the size of the sinusoids; biases zero, gains
    one. The paper does not give its initialization (catalogue, section 5). Recurrent layers: see
    ``_initialize_recurrent``.
    """
    generator = torch.Generator().manual_seed(seed)
    # in the order of construction, which is fixed: a seed always draws the same model
    for module in model.modules():
        if isinstance(module, MultiHeadAttention):
            if module.w_qkv is not None:
                widths = [module.query_width, module.query_width, module.value_width]
                # W^Q, W^K and W^V one by one: Xavier's bound depends on the size of a matrix
                for part in torch.split(module.w_qkv.data, widths):
                    nn.init.xavier_uniform_(part, generator=generator)
            nn.init.xavier_uniform_(module.w_o, generator=generator)
            for bias in (module.b_qkv, module.b_o):
                if bias is not None:
                    nn.init.zeros_(bias)
        elif isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight, generator=generator)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
        elif isinstance(module, nn.LSTM | nn.GRU):
            _initialize_recurrent(module, generator)
        elif isinstance(module, RecurrentAttention):
            for matrix in (module.w_query, module.w_key, module.w_output):
                if matrix is not None:
                    nn.init.xavier_uniform_(matrix, generator=generator)
            if module.v is not None:
                nn.init.xavier_uniform_(module.v.data.unsqueeze(1), generator=generator)
        elif isinstance(module, TwoStageProjection):
            _draw_matrices([*module.shared.values(), *module.per_head.values()], generator)
        elif isinstance(module, AttentionPositions):
            _draw_matrices([module.keys, module.values], generator)
        elif isinstance(module, Embedding | TokenEmbedding):
            nn.init.normal_(module.weight, std=module.weight.shape[1] ** -0.5, generator=generator)
            if isinstance(module, Embedding):
                _draw_matrices([module.w_x, module.w_zx], generator)
        elif isinstance(module, SkipGram):  # as in word2vec.c
            reach = 0.5 / module.config.d_model
            nn.init.uniform_(module.w_in, -reach, reach, generator=generator)
            nn.init.zeros_(module.w_out)
        elif isinstance(module, Positions):
            if module.learned is not None:
                std = module.learned.shape[1] ** -0.5
                nn.init.normal_(module.learned, std=std, generator=generator)
            _draw_matrices(list(module.matrices.values()), generator)

    # a tied output is the matrix of an embedding, which was drawn above
    weight, bias = getattr(model, "output_weight", None), getattr(model, "output_bias", None)
    is_tied = isinstance(model.config, NetworkSettings) and model.config.tie_output
    if weight is not None and not is_tied:
        nn.init.xavier_uniform_(weight, generator=generator)
    if bias is not None:
        nn.init.zeros_(bias)


def _draw_matrices(matrices: Sequence[Tensor | None], generator: torch.Generator) -> None:
    """Xavier's uniform distribution for each matrix of a stack; its axes are the last two."""
    for stack in matrices:
        if stack is not None:
            # (…, rows, columns) → (matrix, rows, columns)
            for matrix in stack.data.unsqueeze(0).flatten(0, -3):
                nn.init.xavier_uniform_(matrix, generator=generator)


def _initialize_recurrent(module: nn.LSTM | nn.GRU, generator: torch.Generator) -> None:
    """Each gate as a matrix of its own: Xavier for input weights, orthogonal for recurrent ones.

    An LSTM's forget gates start open, with a bias of 1 (Jozefowicz et al., 2015).
    Source: Saxe et al. (2014) for orthogonal matrices, which keep the norm of a state.
    """
    size = module.hidden_size
    for name, parameter in module.named_parameters():
        if name.startswith("bias"):
            nn.init.zeros_(parameter)
            # PyTorch's gates are input, forget, cell, output; the two biases are added, so one is 1
            if isinstance(module, nn.LSTM) and name.startswith("bias_ih"):
                nn.init.ones_(parameter.data[size : 2 * size])
            continue
        draw = nn.init.xavier_uniform_ if name.startswith("weight_ih") else nn.init.orthogonal_

        # PyTorch stacks the gates' matrices, and an orthogonal matrix is square
        for gate in torch.split(parameter.data, size):
            draw(gate, generator=generator)


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

    # on the meta device a tensor has a shape and no memory
    return {name: parameter.shape for name, parameter in model.named_parameters()}


def _construct(
    config: ModelConfig, source_vocabulary_size: int, target_vocabulary_size: int
) -> SequenceModel:
    sizes = source_vocabulary_size, target_vocabulary_size

    # a matrix shared by both sides has one row for each token, so the tables must agree
    has_one_matrix = isinstance(config, TranslatorSettings) and config.share_embeddings
    if has_one_matrix and sizes[0] != sizes[1]:
        raise ConfigError(
            "model.share_embeddings needs one vocabulary for both sides, got"
            f" {source_vocabulary_size} source and {target_vocabulary_size} target tokens",
            hint="set tokenizer.shared=true or model.share_embeddings=false",
        )

    match config:
        case TransformerConfig():
            return Transformer(config, *sizes)
        case RnnConfig() | RnnAttentionConfig():
            return RecurrentSeq2Seq(config, *sizes)
        case EncoderConfig():
            return EncoderOnly(config, target_vocabulary_size)
        case DecoderConfig():
            return DecoderOnly(config, target_vocabulary_size)
        case SkipGramConfig():
            return SkipGram(config, target_vocabulary_size)
        case _:
            assert_never(config)
