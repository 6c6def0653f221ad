"""Value zeroing: how far each hidden state turns when one position's value is missing."""

import dataclasses
from collections.abc import Mapping

import torch
from torch import Tensor

from pellucid.core.errors import ConfigError
from pellucid.equations.attribution import value_zeroing as shares_of
from pellucid.inspection.parts import sublayers_of
from pellucid.inspection.sentence import Openable, Opened, Sentence, open_model, read_sentence
from pellucid.model.config import TransformerConfig, TranslatorConfig
from pellucid.model.dropout import without_dropout
from pellucid.model.trace import Edit, Trace

_PASS_TOKENS = 2048
"""Tokens of source and target in one pass, over all copies of the sentence; bounds the memory."""

_ROUNDINGS = 16
"""Rows that differ by this many roundings of the model's numbers count as equal: sentences of one
batch are not computed alike to the last bit."""


@dataclasses.dataclass(frozen=True)
class ValueZeroing:
    """How far each hidden state after a layer turns without the value of each position."""

    sentence: Sentence
    attentions: Mapping[str, Tensor]
    """By the name of the attention, such as ``encoder.layers.0.self_attention``: (query, key), each
    row of which sums to one, or is zero where no value turns the hidden state."""


def value_zeroing(opened: Openable, source: str, target: str | None = None) -> ValueZeroing:
    """Zero the value of each position in each attention, and compare what the layer gives.

        Cᵢⱼ = dᵢⱼ / Σₖ dᵢₖ,   dᵢⱼ = 1 - cos(yᵢ, yᵢ⁻ʲ)

    Source: Mohebbi et al. (2023), §3, who define it for the self-attention of an encoder; each
    attention of a decoder is treated in the same way. Without a target the model's own translation
    is used. Raises ConfigError for a recurrent model, and as ``inspect`` does.
    """
    inside = open_model(opened)
    return value_zeroing_of(inside, read_sentence(inside, source, target))


def value_zeroing_of(opened: Opened, sentence: Sentence) -> ValueZeroing:
    """Return the value zeroing of a tokenized sentence; a pass for each attention and position."""
    found = {}
    rounding = torch.finfo(next(opened.model.parameters()).dtype).eps
    with torch.no_grad(), without_dropout(opened.model):
        for attention, output in _attentions(opened.model.config).items():
            [whole] = _outputs(opened, sentence, attention, output, torch.tensor([-1]))
            is_of_source = attention.startswith("encoder") or attention.endswith("cross_attention")
            keys = sentence.source_ids if is_of_source else sentence.target_input_ids
            without = _outputs(opened, sentence, attention, output, torch.arange(len(keys)))
            is_equal = _differs(whole, without) <= _ROUNDINGS * rounding
            # A position that may not be attended to has a share of exactly zero.
            without = torch.where(is_equal, whole.expand_as(without), without)
            found[attention] = shares_of(whole, without).cpu()
    return ValueZeroing(sentence, found)


def _attentions(config: TranslatorConfig) -> dict[str, str]:
    """Return the name of every attention with that of its layer's output, in a trace.

    Raises ConfigError for a model that is not a Transformer.
    """
    if not isinstance(config, TransformerConfig):
        raise ConfigError(
            f"value zeroing needs a Transformer, got model.kind={config.kind}",
            hint="saliency says for every kind which source words a prediction depends on",
        )

    # The last thing that a layer computes is the sum in a pre-norm model, the norm in a post-norm.
    last = "residual" if config.norm == "pre" else "norm"
    ends = {name.rpartition(".")[0]: f"{name}.{last}" for name, _ in sublayers_of(config)}
    return {
        name: ends[name.rpartition(".")[0]] for name, kind in sublayers_of(config) if kind.has_heads
    }


def _outputs(
    opened: Opened, sentence: Sentence, attention: str, output: str, keys: Tensor
) -> Tensor:
    """The layer's output with the value of each of ``keys`` zeroed: (key, query, feature).

    A key of -1 leaves all values as they are.
    """
    source, target_input = sentence.tensors(opened.model)
    at_once = max(1, _PASS_TOKENS // (source.shape[1] + target_input.shape[1]))
    found = []
    for some in torch.split(keys.to(source.device), at_once):
        trace = Trace(output, edits={f"{attention}.value": _zeroing(some)})
        opened.before_pass()
        copies = source.expand(len(some), -1), target_input.expand(len(some), -1)
        opened.model(*copies, trace)
        found.append(trace.values[output].double())
    return torch.cat(found)


def _zeroing(keys: Tensor) -> Edit:
    """An edit of values (sentence, head, key, feature): sentence n loses the key ``keys[n]``."""

    def zeroed(value: Tensor) -> Tensor:
        positions = torch.arange(value.shape[-2], device=value.device)
        is_kept = positions != keys[:, None]  # (sentence, key)
        return value * is_kept[:, None, :, None].to(value)

    return zeroed


def _differs(whole: Tensor, without: Tensor) -> Tensor:
    """How far each row has moved, as a share of its length; (key, query, 1)."""
    moved: Tensor = torch.linalg.vector_norm(without - whole, dim=-1, keepdim=True)
    length: Tensor = torch.linalg.vector_norm(whole, dim=-1, keepdim=True)
    return moved / length.clamp(min=1e-300)
