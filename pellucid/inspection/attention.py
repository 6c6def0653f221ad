"""Who looks at whom: attention weights of one translated sentence, with the words beside them."""

import dataclasses

import torch
from torch import Tensor

from pellucid.bundle import Bundle
from pellucid.core.special import START_ID, STOP_ID
from pellucid.model import Trace

STOP_MARK = "</s>"
"""How the stop token is shown."""


@dataclasses.dataclass(frozen=True)
class AttentionMap:
    """The cross-attention of one sentence pair (EQ-89, EQ-139)."""

    weights: Tensor
    """(layer, head, target, source); each row sums to one."""
    source_tokens: tuple[str, ...]
    target_tokens: tuple[str, ...]
    """What the decoder says at each row, the stop included."""


def cross_attention(bundle: Bundle, source: str, target: str) -> AttentionMap:
    """The weights with which each target token looked at the source while it was said."""
    source_ids = [*bundle.source_tokenizer.encode(source), STOP_ID]
    target_ids = bundle.target_tokenizer.encode(target)
    device = next(bundle.model.parameters()).device
    trace = Trace("decoder.layers.*.cross_attention.weights")
    with torch.inference_mode():
        bundle.model(
            torch.tensor([source_ids], device=device),
            torch.tensor([[START_ID, *target_ids]], device=device),
            trace,
        )
    layers = [trace.values[name][0] for name in sorted(trace.values, key=_layer_number)]
    return AttentionMap(
        weights=torch.stack(layers).cpu(),
        source_tokens=(*bundle.source_tokenizer.tokens(source_ids[:-1]), STOP_MARK),
        target_tokens=(*bundle.target_tokenizer.tokens(target_ids), STOP_MARK),
    )


def _layer_number(name: str) -> int:
    return int(name.split(".")[2])
