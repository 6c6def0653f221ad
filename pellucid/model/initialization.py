"""The numbers a model starts from."""

import torch
from torch import nn

from pellucid.model.attention import MultiHeadAttention
from pellucid.model.embedding import Embedding, Positions
from pellucid.model.transformer import Transformer


def initialize(model: Transformer, seed: int) -> None:
    """Draw every parameter anew from ``seed``.

    Matrices get Xavier's uniform distribution (Glorot and Bengio, 2010), queries, keys and
    values each as a matrix of its own; embeddings a normal one of standard deviation
    d_model^-0.5, so that scaled embeddings have the size of the sinusoids; biases zero, gains
    one. The paper does not say how it starts (catalogue, section 5).
    """
    generator = torch.Generator().manual_seed(seed)
    for module in model.modules():
        if isinstance(module, MultiHeadAttention):
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
        elif isinstance(module, Embedding):
            nn.init.normal_(module.weight, std=module.weight.shape[1] ** -0.5, generator=generator)
        elif isinstance(module, Positions) and module.learned is not None:
            std = module.learned.shape[1] ** -0.5
            nn.init.normal_(module.learned, std=std, generator=generator)
    if not model.config.tie_output:
        nn.init.xavier_uniform_(model.output_weight, generator=generator)
    if model.output_bias is not None:
        nn.init.zeros_(model.output_bias)
