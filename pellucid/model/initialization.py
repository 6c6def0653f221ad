"""The numbers a model starts from."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from pellucid.model.attention import MultiHeadAttention, TwoStageProjection
from pellucid.model.attention_positions import AttentionPositions
from pellucid.model.embedding import Embedding
from pellucid.model.positions import Positions
from pellucid.model.recurrent_attention import RecurrentAttention
from pellucid.model.recurrent_parts import TokenEmbedding
from pellucid.model.seq2seq import SequenceModel
from pellucid.model.skipgram import SkipGram


def initialize(model: SequenceModel, seed: int) -> None:
    """Draw every parameter anew from ``seed``.

    Matrices get Xavier's uniform distribution (Glorot and Bengio, 2010), queries, keys and
    values each as a matrix of its own; embeddings a normal one of standard deviation
    d_model^-0.5, so that scaled embeddings have the size of the sinusoids; biases zero, gains
    one. The paper does not say how it starts (catalogue, section 5). Recurrent layers: see
    ``_initialize_recurrent``.
    """
    generator = torch.Generator().manual_seed(seed)
    for module in model.modules():
        if isinstance(module, MultiHeadAttention):
            if module.w_qkv is not None:
                widths = [module.query_width, module.query_width, module.value_width]
                for part in torch.split(module.w_qkv.data, widths):
                    nn.init.xavier_uniform_(part, generator=generator)
            nn.init.xavier_uniform_(module.w_o, generator=generator)
            for bias in (module.b_qkv, module.b_o):
                if bias is not None:
                    nn.init.zeros_(bias)
        elif isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight, generator=generator)
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
        elif isinstance(module, SkipGram):  # as word2vec.c begins
            reach = 0.5 / module.config.d_model
            nn.init.uniform_(module.w_in, -reach, reach, generator=generator)
            nn.init.zeros_(module.w_out)
        elif isinstance(module, Positions):
            if module.learned is not None:
                std = module.learned.shape[1] ** -0.5
                nn.init.normal_(module.learned, std=std, generator=generator)
            _draw_matrices(list(module.matrices.values()), generator)
    weight, bias = getattr(model, "output_weight", None), getattr(model, "output_bias", None)
    if weight is not None and not model.config.tie_output:
        nn.init.xavier_uniform_(weight, generator=generator)
    if bias is not None:
        nn.init.zeros_(bias)


def _draw_matrices(matrices: Sequence[Tensor | None], generator: torch.Generator) -> None:
    """Xavier's uniform distribution for each matrix, the last two axes counting."""
    for stack in matrices:
        if stack is not None:
            for matrix in stack.data.unsqueeze(0).flatten(0, -3):
                nn.init.xavier_uniform_(matrix, generator=generator)


def _initialize_recurrent(module: nn.LSTM | nn.GRU, generator: torch.Generator) -> None:
    """Each gate as a matrix of its own: Xavier for what comes in, orthogonal from word to word.

    An LSTM's forget gates begin open, with a bias of 1 (Jozefowicz et al., 2015).
    Source: Saxe et al. (2014) for orthogonal matrices, which neither swell nor shrink a state.
    """
    size = module.hidden_size
    for name, parameter in module.named_parameters():
        if name.startswith("bias"):
            nn.init.zeros_(parameter)
            if isinstance(module, nn.LSTM) and name.startswith("bias_ih"):
                nn.init.ones_(parameter.data[size : 2 * size])
            continue
        draw = nn.init.xavier_uniform_ if name.startswith("weight_ih") else nn.init.orthogonal_
        for gate in torch.split(parameter.data, size):
            draw(gate, generator=generator)
