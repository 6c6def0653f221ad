"""Where a model looked in the source while it said what it said."""

from collections.abc import Sequence
from typing import assert_never

import torch
from jaxtyping import Float
from torch import Tensor

from pellucid.core.errors import ConfigError
from pellucid.core.special import PAD_ID, START_ID
from pellucid.decoding.batching import pad_sources, token_batches
from pellucid.decoding.ensemble import Ensemble
from pellucid.model.seq2seq import Seq2Seq
from pellucid.model.trace import Trace

_LOOKED_UP_TOKENS = 2048
"""Target tokens read at a time: their logits are held at once."""

Look = Float[Tensor, "target source"]
"""The weights of one sentence pair, both stops included; each row sums to one."""


def looks(
    model: Seq2Seq | Ensemble,
    pairs: Sequence[tuple[Sequence[int], Sequence[int]]],
    layer: int | None,
    head: int | None,
) -> list[Look]:
    """The cross-attention (EQ-89) of each (source, target), ids without stops, by a forced pass.

    ``layer`` None is the last but one, or the only one: Garg et al. (2019), §4, find
    that it aligns best. ``head`` None is the mean of all. An ensemble gives the mean of its models.

    Raises ConfigError if there is no such layer or head, or no attention at all.
    """
    members = model.members if isinstance(model, Ensemble) else (model,)
    names = [_weights_name(member, layer) for member in members]
    found: dict[int, Look] = {}
    lengths = [max(len(source), len(target)) for source, target in pairs]
    for batch in token_batches(lengths, _LOOKED_UP_TOKENS):
        source = pad_sources([pairs[index][0] for index in batch], model)
        longest = max(len(pairs[index][1]) for index in batch) + 1
        said = source.new_full((len(batch), longest), PAD_ID)
        for row, index in enumerate(batch):
            target = pairs[index][1]
            said[row, : len(target) + 1] = said.new_tensor([START_ID, *target])
        mean = torch.stack(
            [
                _watch(each, source, said, name, head)
                for each, name in zip(members, names, strict=True)
            ]
        ).mean(dim=0)
        for row, index in enumerate(batch):
            ours, theirs = pairs[index]
            found[index] = mean[row, : len(theirs) + 1, : len(ours) + 1].cpu()
    return [found[index] for index in range(len(pairs))]


def _watch(
    model: Seq2Seq, source: Tensor, said: Tensor, name: str, head: int | None
) -> Float[Tensor, "sentence target source"]:
    trace = Trace(name)
    model(source, said, trace)
    weights = trace.values[name]  # (sentence, head, target, source)
    if head is None:
        return weights.mean(dim=1).double()
    if head >= weights.shape[1]:
        raise ConfigError(
            f"align_head must be below {weights.shape[1]}, the heads of this model, got {head}"
        )
    return weights[:, head].double()


def _weights_name(model: Seq2Seq, layer: int | None) -> str:
    config = model.config
    match config.kind:
        case "transformer":
            count = config.decoder_layers
            if layer is not None and layer >= count:
                raise ConfigError(
                    f"align_layer must be below {count}, the decoder layers of this model,"
                    f" got {layer}"
                )
            number = max(0, count - 2) if layer is None else layer
            return f"decoder.layers.{number}.cross_attention.weights"
        case "rnn-attention":
            if layer:
                raise ConfigError(
                    f"align_layer must be 0 for this model, which attends once, got {layer}"
                )
            return "decoder.cross_attention.weights"
        case "rnn":
            raise ConfigError(
                "aligning, coverage_penalty and replace_unknown need a model with attention;"
                " this one is an rnn without it"
            )
        case "encoder" | "decoder" | "skipgram":
            raise ConfigError(f"a model of kind {config.kind} has no source to align with")
        case _:
            assert_never(config.kind)
