"""Activation patching: intermediates of one sentence put into the forward pass of another."""

import dataclasses
from collections.abc import Sequence

from torch import Tensor

from pellucid.core.errors import ConfigError
from pellucid.inspection.entries import locate, select
from pellucid.inspection.parts import parts_of
from pellucid.inspection.sentence import (
    Openable,
    Sentence,
    log_probabilities,
    open_model,
    read_sentence,
    run,
)
from pellucid.model.config import (
    RnnAttentionConfig,
    RnnConfig,
    TranslatorConfig,
)
from pellucid.model.trace import UNWATCHED, Edit, Trace


@dataclasses.dataclass(frozen=True)
class Patched:
    """Three passes over one target: sentence A, sentence B, and B with intermediates of A."""

    names: tuple[str, ...]
    """The intermediates that were taken from A's pass."""
    position: int | None
    """The position that was taken; None for all positions."""
    sentence_a: Sentence
    sentence_b: Sentence
    logits_a: Tensor
    """(target token, vocabulary)."""
    logits_b: Tensor
    logits: Tensor
    """The logits of B's pass with A's intermediates in it."""

    @property
    def log_probs(self) -> tuple[Tensor, Tensor, Tensor]:
        """log p of each target token in nats: in A's pass, in B's, and in the patched pass of B."""
        sentence = self.sentence_b
        a, b, patched = (
            log_probabilities(logits, sentence)
            for logits in (self.logits_a, self.logits_b, self.logits)
        )
        return a, b, patched


def patch(
    opened: Openable,
    source_a: str,
    source_b: str,
    names: str | Sequence[str],
    *,
    position: int | None = None,
    target: str | None = None,
) -> Patched:
    """Run the model on B, with the intermediates that match ``names`` taken from a run on A.

    Both passes have the same ``target``; by default the translation of A. ``position`` takes a
    single position, counted from 0. Without it, intermediates with an axis of source tokens need
    A and B to have the same number of tokens. Source: Vig et al. (2020), §3; Meng et al. (2022),
    §2.1.

    Raises ConfigError if a name matches nothing, cannot be replaced in this kind of model, or does
    not fit; otherwise as ``inspect`` does.
    """
    inside = open_model(opened)
    config = inside.model.config
    chosen = select(parts_of(config), [names] if isinstance(names, str) else names)
    # Before the passes, so that a name without effect fails at once and not with equal numbers.
    _require_way_on(chosen, config)
    sentence_a = read_sentence(inside, source_a, target)
    # The ids and not the text of A's target: a tokenizer need not cut its own output in the same
    # way.
    read_b = read_sentence(inside, source_b, sentence_a.text)
    sentence_b = dataclasses.replace(
        sentence_a,
        source=read_b.source,
        source_ids=read_b.source_ids,
        source_tokens=read_b.source_tokens,
        warnings=read_b.warnings,
    )
    donor = Trace(*{locate(name)[0] for name in chosen})
    logits_a = run(inside, sentence_a, donor)

    # The trace holds all heads of an attention as one tensor, so several edits may meet there.
    edits: dict[str, list[Edit]] = {}
    for name in chosen:
        stack_name, head = locate(name)
        edit = _replacement(name, donor.values[stack_name], head, position)
        edits.setdefault(stack_name, []).append(edit)

    receiver = Trace(edits={name: _one_after_another(steps) for name, steps in edits.items()})
    return Patched(
        names=tuple(chosen),
        position=position,
        sentence_a=sentence_a,
        sentence_b=sentence_b,
        logits_a=logits_a,
        logits_b=run(inside, sentence_b, UNWATCHED),
        logits=run(inside, sentence_b, receiver),
    )


def _replacement(name: str, donor: Tensor, head: int | None, position: int | None) -> Edit:
    """An edit that copies ``donor``'s head and position; positions are the axis before the last."""

    def edit(value: Tensor) -> Tensor:
        """A copy of ``value``, of the same shape, with the donor's part in place."""
        # An edit must not change the tensor in place: earlier modules may still hold it.
        patched = value.clone()
        # Views of the clone, so that copy_ writes into it. Heads are the axis after the batch.
        to, given = (patched, donor) if head is None else (patched[:, head], donor[:, head])
        # The axes are (batch, [head,] position, feature), so positions are the last but one.
        if position is not None:
            # Sentences may differ in length: a position must exist in both.
            rows = min(to.shape[-2], given.shape[-2])
            if not 0 <= position < rows:
                raise ConfigError(
                    f"position must be from 0 to {rows - 1} for {name} of these two sentences,"
                    f" got {position}"
                )
            to, given = to[..., position, :], given[..., position, :]

        if to.shape != given.shape:
            raise ConfigError(
                f"{name} must have the same shape in both sentences, got {tuple(given.shape)} and"
                f" {tuple(to.shape)}",
                hint="choose sentences of equally many tokens, or name a position",
            )

        to.copy_(given)
        return patched

    return edit


def _one_after_another(steps: Sequence[Edit]) -> Edit:
    def edit(value: Tensor) -> Tensor:
        for step in steps:
            value = step(value)
        return value

    return edit


def _require_way_on(names: Sequence[str], config: TranslatorConfig) -> None:
    """Raise ConfigError for intermediates that no later one uses, or inside a fused kernel."""
    problems = [name for name in names if not _goes_on(name, config)]
    if problems:
        raise ConfigError(
            f"nothing can be put in the place of {', '.join(problems)} in a model of kind"
            f" {config.kind}",
            hint="the last softmax leads nowhere, and recurrent kernels go from word to word"
            " without stopping",
        )


def _goes_on(name: str, config: TranslatorConfig) -> bool:
    """Whether the rest of the pass is computed from the traced tensor of this name."""
    if name == "probabilities":
        return False
    match config:
        case RnnConfig():  # the decoder reads the encoder's last state alone, which no name holds
            inside = name.startswith("encoder.layers") or name == "encoder.output"
            return not inside and not name.startswith("decoder.layers")
        case RnnAttentionConfig():
            return not name.startswith(("decoder.layers", *config.cross_attentions))
        case _:
            return True
