"""The other Transformers of step_speed.py, at the sizes of one ModelConfig, as fast as they go.

All of them: tied and shared embeddings scaled by the root of d_model, sinusoidal positions, norms
after the residual sums, dropout after embeddings and sublayers and nowhere else, no padding mask in
the decoder (what comes after a sentence is hidden from it by causality and counts in no loss).
"""

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

_PAD = 0
_MOST_PLACES = 512


def build_peer(system: str, model: dict[str, Any], vocabulary_size: int) -> nn.Module:
    """A module from source and decoder input to logits."""
    match system:
        case "plain":
            return PlainTransformer(model, vocabulary_size)
        case "nn-transformer":
            return TorchTransformer(model, vocabulary_size)
        case "huggingface":
            return Marian(model, vocabulary_size)
    raise SystemExit(f"unknown contender {system}")


def _sinusoids(width: int) -> Tensor:
    places = torch.arange(_MOST_PLACES).unsqueeze(1)
    rates = torch.exp(torch.arange(0, width, 2) * (-math.log(10000.0) / width))
    table = torch.zeros(_MOST_PLACES, width)
    table[:, 0::2], table[:, 1::2] = torch.sin(places * rates), torch.cos(places * rates)
    return table


class _Embedding(nn.Module):
    """Scaled rows of a shared table, positions added."""

    def __init__(self, vocabulary_size: int, width: int, dropout: float) -> None:
        super().__init__()
        self.table = nn.Embedding(vocabulary_size, width, padding_idx=_PAD)
        nn.init.normal_(self.table.weight, std=width**-0.5)
        self.register_buffer("places", _sinusoids(width), persistent=False)
        self.scale, self.dropout = math.sqrt(width), nn.Dropout(dropout)

    def forward(self, ids: Tensor) -> Tensor:
        rows: Tensor = self.table(ids) * self.scale + self.places[: ids.shape[1]]
        return self.dropout(rows)  # type: ignore[no-any-return]


class _Attention(nn.Module):
    """Packed projections around PyTorch's own attention kernel."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.packed = nn.Linear(width, 3 * width, bias=False)
        self.output = nn.Linear(width, width, bias=False)

    def forward(self, x: Tensor, memory: Tensor | None, mask: Tensor | None) -> Tensor:
        width = x.shape[-1]
        if memory is None:
            query, key, value = self.packed(x).split(width, -1)
        else:
            query = functional.linear(x, self.packed.weight[:width])
            key, value = functional.linear(memory, self.packed.weight[width:]).split(width, -1)
        query, key, value = (
            each.unflatten(-1, (self.heads, -1)).transpose(1, 2) for each in (query, key, value)
        )
        heads = functional.scaled_dot_product_attention(
            query, key, value, attn_mask=mask, is_causal=memory is None and mask is None
        )
        return self.output(heads.transpose(1, 2).flatten(2))  # type: ignore[no-any-return]


class _Block(nn.Module):
    """Self-attention, attention to a memory if there is one, feed-forward; a norm after each."""

    def __init__(self, width: int, heads: int, inner: int, dropout: float, reads: bool) -> None:
        super().__init__()
        self.attentions = nn.ModuleList(_Attention(width, heads) for _ in range(1 + reads))
        self.inner, self.outer = nn.Linear(width, inner), nn.Linear(inner, width)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2 + reads))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, memory: Tensor | None, mask: Tensor | None) -> Tensor:
        own_mask = mask if memory is None else None
        x = self.norms[0](x + self.dropout(self.attentions[0](x, None, own_mask)))
        if memory is not None:
            x = self.norms[1](x + self.dropout(self.attentions[1](x, memory, mask)))
        fed = self.outer(functional.relu(self.inner(x)))
        return self.norms[-1](x + self.dropout(fed))  # type: ignore[no-any-return]


class PlainTransformer(nn.Module):
    """The Transformer as one writes it in PyTorch today."""

    def __init__(self, model: dict[str, Any], vocabulary_size: int) -> None:
        super().__init__()
        width, heads, inner, dropout = _sizes(model)
        self.embedding = _Embedding(vocabulary_size, width, dropout)
        self.encoder = nn.ModuleList(
            _Block(width, heads, inner, dropout, reads=False)
            for _ in range(model["encoder_layers"])
        )
        self.decoder = nn.ModuleList(
            _Block(width, heads, inner, dropout, reads=True) for _ in range(model["decoder_layers"])
        )

    def forward(self, source: Tensor, target_input: Tensor) -> Tensor:
        # An additive mask: the kernel for CPUs turns a boolean one into it for every layer.
        hidden = torch.zeros(source.shape[0], 1, 1, source.shape[1], device=source.device)
        mask = hidden.masked_fill((source == _PAD)[:, None, None], -math.inf)
        if torch.is_autocast_enabled(source.device.type):
            mask = mask.to(torch.get_autocast_dtype(source.device.type))
        memory = self.embedding(source)
        for block in self.encoder:
            memory = block(memory, None, mask)
        x = self.embedding(target_input)
        for block in self.decoder:
            x = block(x, memory, mask)
        return functional.linear(x, self.embedding.table.weight)


class TorchTransformer(nn.Module):
    """torch.nn.Transformer, without its dropout inside attention and feed-forward."""

    def __init__(self, model: dict[str, Any], vocabulary_size: int) -> None:
        super().__init__()
        width, heads, inner, dropout = _sizes(model)
        self.embedding = _Embedding(vocabulary_size, width, dropout)
        self.transformer = nn.Transformer(
            width,
            heads,
            model["encoder_layers"],
            model["decoder_layers"],
            inner,
            dropout,
            batch_first=True,
        )
        for module in self.transformer.modules():
            if isinstance(module, nn.MultiheadAttention):
                module.dropout = 0.0
            elif isinstance(module, nn.TransformerEncoderLayer | nn.TransformerDecoderLayer):
                module.dropout.p = 0.0

    def forward(self, source: Tensor, target_input: Tensor) -> Tensor:
        is_padding = source == _PAD
        causal = nn.Transformer.generate_square_subsequent_mask(
            target_input.shape[1], device=source.device
        )
        rows = self.transformer(
            self.embedding(source),
            self.embedding(target_input),
            tgt_mask=causal,
            src_key_padding_mask=is_padding,
            memory_key_padding_mask=is_padding,
            tgt_is_causal=True,
        )
        return functional.linear(rows, self.embedding.table.weight)


class Marian(nn.Module):
    """MarianMTModel of Hugging Face's transformers with fused attention."""

    def __init__(self, model: dict[str, Any], vocabulary_size: int) -> None:
        super().__init__()
        from transformers import MarianConfig, MarianMTModel

        width, heads, inner, dropout = _sizes(model)
        config = MarianConfig(
            vocab_size=vocabulary_size,
            max_position_embeddings=_MOST_PLACES,
            encoder_layers=model["encoder_layers"],
            encoder_ffn_dim=inner,
            encoder_attention_heads=heads,
            decoder_layers=model["decoder_layers"],
            decoder_ffn_dim=inner,
            decoder_attention_heads=heads,
            activation_function="relu",
            d_model=width,
            dropout=dropout,
            init_std=width**-0.5,
            scale_embedding=True,
            use_cache=False,
            pad_token_id=_PAD,
            eos_token_id=3,
            forced_eos_token_id=3,
            decoder_start_token_id=2,
            attn_implementation="sdpa",
        )
        self.marian = MarianMTModel(config)

    def forward(self, source: Tensor, target_input: Tensor) -> Tensor:
        output = self.marian(
            input_ids=source, attention_mask=source != _PAD, decoder_input_ids=target_input
        )
        return output.logits  # type: ignore[no-any-return]


def _sizes(model: dict[str, Any]) -> tuple[int, int, int, float]:
    """Width, heads, inner width and dropout; refuses what the peers cannot follow."""
    if model.get("norm", "post") != "post":
        raise SystemExit("the peers of this benchmark have their norms after the residual sums")
    return model["d_model"], model["heads"], model["d_ff"], model["dropout"]
