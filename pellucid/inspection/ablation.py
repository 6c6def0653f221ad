"""Ablation: what a model loses in quality without one of its heads or layers."""

import copy
import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn

from pellucid.bundle import Bundle
from pellucid.core.errors import ConfigError
from pellucid.evaluation.metrics import accepted, bleu, check_lines
from pellucid.evaluation.scoring import scoring_of
from pellucid.evaluation.signature import origin_signature
from pellucid.evaluation.tokenizers import TokenizerName
from pellucid.inspection.parts import sublayers_of
from pellucid.inspection.sentence import Openable, Opened, open_model
from pellucid.model.attention import MultiHeadAttention
from pellucid.model.config import RnnAttentionConfig, TransformerConfig, TranslatorConfig
from pellucid.model.recurrent import RecurrentSeq2Seq
from pellucid.model.seq2seq import Seq2Seq
from pellucid.model.ssru import Ssru
from pellucid.model.transformer import Transformer


@dataclasses.dataclass(frozen=True)
class Ablation:
    """The quality of a model without one of its parts."""

    part: str
    """The name of the part, such as ``encoder.layers.0.self_attention.heads.3``, or
    ``decoder.layers.1`` for a layer."""
    bleu: float
    """In percent."""
    loss: float
    """Mean negative log-likelihood of a reference token, the stop included, in nats."""


@dataclasses.dataclass(frozen=True)
class AblationStudy:
    """The quality of a whole model, and of the model without each of its parts."""

    bleu: float
    """The BLEU of the whole model, in percent."""
    loss: float
    """The mean negative log-likelihood of a reference token under the whole model, in nats."""
    signature: str
    """The signature of the BLEU scores."""
    sentences: int
    parts: tuple[Ablation, ...]
    """In the order of computation; layers after heads."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values under the names of the fields."""
        return dataclasses.asdict(self)


def ablate(
    opened: Openable,
    sources: Sequence[str],
    references: Sequence[str],
    *,
    parts: Sequence[str] | None = None,
    done: Callable[[int, int], None] = lambda _done, _all: None,
) -> AblationStudy:
    """Translate and score with each head zeroed and each layer skipped, one at a time.

    A head is switched off by zeroing its output; a layer is left out of the stack. The model itself
    is not changed. ``parts`` are names of ``ablation_parts``, by default all; ``done`` is called
    with the number of finished parts and of all. Source: Michel et al. (2019), §3; Voita et al.
    (2019).

    Raises ConfigError for a part that the model does not have, DataError if the line counts differ.
    """
    check_lines({"sources": sources, "references": references})
    inside = open_model(opened)
    chosen = ablation_parts(inside.model.config) if parts is None else list(parts)
    _require_parts(chosen, inside.model.config)

    # Measured with the same search and the same lines as each part, so that the difference is the
    # part's.
    tokenize = scoring_of(accepted(references)).tokenize
    whole_bleu, whole_loss = _measure(inside, inside.model, sources, references, tokenize)
    done(0, len(chosen))

    measured = []
    for number, part in enumerate(chosen, start=1):
        changed = model_without(inside.model, part)
        measured.append(Ablation(part, *_measure(inside, changed, sources, references, tokenize)))
        done(number, len(chosen))

    translator = inside.translator
    manifest = translator.bundle.manifest if isinstance(translator.bundle, Bundle) else {}
    origin = origin_signature(
        translator.settings, manifest, sources, references, glossary=translator.glossary
    )
    return AblationStudy(
        bleu=whole_bleu,
        loss=whole_loss,
        # The signature depends on the references and on sacreBLEU, not on what was translated.
        signature=f"{bleu(references, references, tokenize).signature}|{origin}",
        sentences=len(sources),
        parts=tuple(measured),
    )


def ablation_parts(config: TranslatorConfig) -> list[str]:
    """Every head and SSRU, then every layer that can be switched off; a plain rnn has none.

    In a recurrent model only attention can be switched off: each layer needs its neighbors' states.
    """
    if isinstance(config, RnnAttentionConfig):
        return list(config.cross_attentions)
    if not isinstance(config, TransformerConfig):
        return []

    layers: dict[str, None] = {}
    heads: list[str] = []
    for name, kind in sublayers_of(config):
        layers[name.rpartition(".")[0]] = None
        if kind.has_heads:
            heads += [f"{name}.heads.{head}" for head in range(config.heads)]
        elif kind.family == "ssru":
            heads.append(name)
    return [*heads, *layers]


def model_without(model: Seq2Seq, part: str) -> Seq2Seq:
    """A model without ``part`` that shares all other parameters with ``model``.

    Raises ConfigError for a part that the model does not have.
    """
    _require_parts([part], model.config)

    # deepcopy takes what its memo holds for copied already, so tensors are shared.
    shared = {id(tensor): tensor for tensor in [*model.parameters(), *model.buffers()]}
    changed = copy.deepcopy(model, shared)

    stem, mark, head = part.partition(".heads.")
    if isinstance(changed, RecurrentSeq2Seq):
        attention = changed.decoder.cross_attention
        assert attention is not None
        weight = attention.w_output.detach().clone()
        weight[: weight.shape[0] // 2] = 0.0  # the first half multiplies the context
        # A new parameter in place of the shared one: the original model keeps its own.
        attention.w_output = nn.Parameter(weight, requires_grad=False)
    elif mark:
        heads = changed.get_submodule(stem)
        assert isinstance(heads, MultiHeadAttention)
        width = heads.value_width // heads.heads
        weight = heads.w_o.detach().clone()
        # The columns of W^O that multiply the head's output (EQ-81).
        weight[:, int(head) * width : (int(head) + 1) * width] = 0.0
        heads.w_o = nn.Parameter(weight, requires_grad=False)
    elif isinstance(unit := changed.get_submodule(part), Ssru):
        # nothing is added to cells that begin at zero, so they stay there, and so does the output
        zeros = torch.zeros_like(unit.candidate.weight)
        unit.candidate.weight = nn.Parameter(zeros, requires_grad=False)
    else:
        assert isinstance(changed, Transformer)
        side, _, index = part.partition(".layers.")
        stack = changed.encoder if side == "encoder" else changed.decoder
        # The residual stream passes unchanged where the layer was.
        stack.layers = nn.ModuleList(
            layer for number, layer in enumerate(stack.layers) if number != int(index)
        )

    return changed


def _measure(
    opened: Opened,
    model: Seq2Seq,
    sources: Sequence[str],
    references: Sequence[str],
    tokenize: TokenizerName,
) -> tuple[float, float]:
    """BLEU in percent, and the mean loss per reference token in nats."""
    inner = opened.translator.bundle
    bundle = (
        # With the words of its training text: capitals are read by them.
        dataclasses.replace(inner, held=model)
        if isinstance(inner, Bundle)
        else Bundle(model, opened.source_tokenizer, opened.target_tokenizer, {}, {})
    )
    # Our own search: other engines compute with a converted copy of the whole model.
    # The scale of quality is that of the whole model.
    own = opened.translator.settings.changed({"below": None})
    settings = own.best_alone()  # only the first translation is scored
    translator = opened.translator.with_model(bundle, settings)
    # The search may recover what a part gave; the loss below shows the model alone.
    hypotheses = [each.text for each in translator.translate(list(sources), split=False)]

    # Teacher-forced scores of the references, with the stop of each.
    log_probs = [
        log_prob
        for scored in translator.score(sources, references)
        for log_prob in scored.token_log_probs
    ]

    # fsum, so that a small difference between two parts is no rounding error.
    return bleu(hypotheses, references, tokenize).score, -math.fsum(log_probs) / len(log_probs)


def _require_parts(parts: Sequence[str], config: TranslatorConfig) -> None:
    known = ablation_parts(config)
    unknown = [part for part in parts if part not in known]
    if unknown:
        raise ConfigError(
            f"each part must be a head or layer of this model, got {', '.join(unknown)}",
            hint=f"such as {known[0]} or {known[-1]}" if known else f"{config.kind} has none",
        )
