"""Training objectives: cross-entropy alone, or with other inputs, other labels or a second pass.

An objective maps a model and a batch to sums over target tokens. ``build_objective`` chooses one.
"""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Literal, Protocol

import torch
from torch.nn import functional

from pellucid.core.special import PAD_ID
from pellucid.equations.fused_views import (
    LossTerms,
    TeacherRows,
    TopKRows,
    fused_linear_loss_of_views,
)
from pellucid.equations.losses import guided_alignment_loss
from pellucid.equations.regularization import cut_tokens
from pellucid.model.dropout import chosen_words, drop_words, switch_words
from pellucid.model.layers import widened
from pellucid.model.seq2seq import LossSums, OutputStates, PredictsTokens, SequenceModel
from pellucid.model.trace import UNWATCHED, Edit, Trace
from pellucid.text.batching import Batch
from pellucid.training.config import TrainingConfig


class Objective(Protocol):
    """A loss to minimize, as sums over the target tokens of a batch that are not padding."""

    def __call__(self, model: SequenceModel, batch: Batch) -> LossSums:
        """The sums for ``batch``; ``model`` may be in training or in evaluation mode."""
        ...


@dataclasses.dataclass(frozen=True)
class CrossEntropy:
    """The model's own loss against smoothed labels (EQ-118, EQ-120)."""

    smoothing: float
    """Probability spread evenly over the vocabulary in the labels."""

    def __call__(self, model: SequenceModel, batch: Batch) -> LossSums:
        """The sums of the model's own loss."""
        # On an accelerator the batch brings the positions of its labels: finding them there would
        # make the host wait for the device.
        return model.loss(
            batch.source, batch.target_input, batch.labels, self.smoothing, batch.non_padding
        )


@dataclasses.dataclass(frozen=True)
class SwitchOut:
    """Input tokens replaced by others of the vocabulary (Wang et al., 2018)."""

    tau: float
    """τ: the larger, the more of them."""
    sides: Literal["both", "source", "target"] = "both"

    def __call__(self, model: SequenceModel, batch: Batch) -> Batch:
        """The batch with other tokens in the inputs; in evaluation mode as it is."""
        if not model.training:
            return batch
        source, target_input = batch.source, batch.target_input
        if self.sides != "target":
            size = model.source_vocabulary_size
            source = switch_words(source, self.tau, size, model.dropout_source)
        if self.sides != "source":
            size = model.target_vocabulary_size
            target_input = switch_words(target_input, self.tau, size, model.dropout_source)
        return dataclasses.replace(batch, source=source, target_input=target_input)


@dataclasses.dataclass(frozen=True)
class WithoutSomeWords:
    """Another objective, with input tokens replaced: hidden (word dropout) or switched."""

    rate: float
    """Probability that an input token is replaced by an unknown one."""
    objective: Objective
    switch: SwitchOut | None = None

    def __call__(self, model: SequenceModel, batch: Batch) -> LossSums:
        """The other objective's sums; in evaluation mode no token is replaced."""
        switched = batch if self.switch is None else self.switch(model, batch)
        return self.objective(model, _hide_words(model, switched, self.rate))


@dataclasses.dataclass(frozen=True)
class Teacher:
    """Models that are not trained, whose probabilities are learned from (Hinton et al., 2015).

    Several teach as an ensemble does in a search, by the mean of their log-probabilities. That is
    the softmax of the mean of their logits, as a softmax ignores what is added to a whole row: one
    linear map of their hidden states side by side, so that any number costs one softmax.
    """

    models: Sequence[SequenceModel]
    share: float
    """Weight of the teacher's probabilities in the loss; the labels have the rest."""
    temperature: float

    def predictions(self, batch: Batch, real: torch.Tensor) -> TeacherRows | TopKRows:
        """The predictions of the models at ``real``, all positions with a label.

        The models read the batch, unless it brings their likeliest tokens.
        """
        top = batch.top_tokens
        if top is None:
            return self.rows(batch, real)
        return TopKRows(top.logits, top.ids, self.share, self.temperature)

    def rows(self, batch: Batch, real: torch.Tensor) -> TeacherRows:
        """The models' hidden states at the positions ``real``, side by side."""
        with torch.no_grad():
            each = [self._states(model, batch) for model in self.models]

        count, biases = len(each), [rows.bias for rows in each if rows.bias is not None]
        return TeacherRows(
            hidden=torch.cat([rows.hidden.flatten(0, 1)[real] for rows in each], dim=1),
            weight=torch.cat([rows.weight / count for rows in each], dim=1),
            bias=torch.stack(biases).sum(dim=0) / count if biases else None,
            share=self.share,
            temperature=self.temperature,
        )

    @staticmethod
    def _states(model: SequenceModel, batch: Batch) -> OutputStates:
        assert isinstance(model, PredictsTokens)
        return model.output_states(batch.source, batch.target_input)


@dataclasses.dataclass(frozen=True)
class GuidedAlignment:
    """The attention of one decoder layer that learns the given word alignments.

    Source: Chen et al. (2016); Garg et al. (2019).
    """

    layer: int
    head: int | None
    """The head that learns; None for the mean of all."""
    weight: float

    @property
    def name(self) -> str:
        """The name of the layer's attention weights in a trace."""
        return f"decoder.layers.{self.layer}.cross_attention.weights"

    def loss(self, trace: Trace, links: torch.Tensor, views: int) -> torch.Tensor | float:
        """The weighted loss of a batch that was read under ``trace``; the mean of its passes."""
        found = trace.values.get(self.name)
        if found is None:  # LayerDrop left the layer out
            return 0.0
        weights = widened(found.mean(dim=1) if self.head is None else found[:, self.head])
        weights = weights.view(views, -1, *weights.shape[1:])  # (view, sentence, target, source)
        given = torch.zeros_like(weights, dtype=torch.bool)
        given[:, links[:, 0], links[:, 1], links[:, 2]] = True
        return self.weight / views * guided_alignment_loss(weights, given)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Views:
    """R-Drop, SimCut, ciphers and distillation: passes over a batch under different dropout.

    Source: Liang et al. (2021) for R-Drop; Gao et al. (2022) for SimCut; Kambhatla et al. (2022)
    for ciphers; Hinton et al. (2015) for the teacher. The loss is ``fused_linear_loss_of_views``.
    The teacher reads every word, and plain sources.
    """

    smoothing: float
    r_drop: float
    """α of R-Drop; above 0 the batch is read twice, with different dropout masks."""
    word_dropout: float
    teacher: Teacher | None = None
    simcut: float = 0.0
    """α of SimCut; above 0 the batch is read twice, the second time without some words."""
    cut_rate: float = 0.05
    """Probability that the second pass of SimCut reads zeros in place of a token's embedding."""
    guided: GuidedAlignment | None = None
    cipher: float | None = None
    """α between plain and enciphered sources, if batches bring both: then the first pass reads the
    plain ones, and the second the enciphered ones."""
    switch: SwitchOut | None = None

    def __call__(self, model: SequenceModel, batch: Batch) -> LossSums:
        """The sums over the batch's tokens, each counted once however many passes there are."""
        assert isinstance(model, PredictsTokens)
        views = 2 if self.r_drop > 0 or self.simcut > 0 or self.cipher is not None else 1

        # Only positions with a label go on to the logits: padding costs no product with the
        # vocabulary. ``real`` is a mask, or indices where the batch brings them.
        flat = batch.labels.view(-1)  # (sentence · target)
        real = flat != PAD_ID if batch.non_padding is None else batch.non_padding
        labels = flat[real]

        # Both views go through the model as one batch: dropout draws a mask for each row by itself.
        twice = _repeat(batch, views) if self.cipher is None else _also_enciphered(batch)
        switched = twice if self.switch is None else self.switch(model, twice)
        read = _hide_words(model, switched, self.word_dropout)
        guided = self.guided if batch.links is not None else None
        edits = self._cuts(model, read) if self.simcut > 0 and model.training else {}
        watched = () if guided is None else (guided.name,)
        trace = Trace(*watched, edits=edits) if watched or edits else UNWATCHED
        rows = model.output_states(read.source, read.target_input, trace)
        hidden = rows.hidden.view(views, len(flat), -1)[:, real]  # (view, token, d_model)

        taught = None if self.teacher is None else self.teacher.predictions(batch, real)
        alpha = self.r_drop if self.cipher is None else self.cipher
        terms = LossTerms(self.smoothing, alpha, taught, self.simcut)
        loss, likelihood = fused_linear_loss_of_views(hidden, rows.weight, rows.bias, labels, terms)
        if guided is not None:
            assert batch.links is not None
            loss = loss + guided.loss(trace, batch.links, views)
        return LossSums(loss, likelihood, labels.shape[0])

    def _cuts(self, model: SequenceModel, read: Batch) -> dict[str, Edit]:
        """Edits by which the second half of the batch misses the embeddings of some tokens."""
        edits: dict[str, Edit] = {}
        for side, ids in (("encoder", read.source), ("decoder", read.target_input)):
            is_cut = chosen_words(ids, self.cut_rate, model.dropout_source)
            is_cut[: len(ids) // 2] = False  # the first pass reads everything
            edits[f"{side}.lookup"] = functools.partial(cut_tokens, is_cut=is_cut)
        return edits


MakeObjective = Callable[[TrainingConfig, Sequence[SequenceModel]], Objective]
"""Makes an objective from the settings and the teachers, as ``build_objective`` does."""


def build_objective(
    config: TrainingConfig,
    teachers: Sequence[SequenceModel] = (),
    guided: GuidedAlignment | None = None,
    *,
    enciphered: bool = False,
) -> Objective:
    """The objective that ``config`` names; ``teachers`` are the models of ``training.teacher``,
    ``guided`` the attention that learns the alignments of the data, and ``enciphered`` says whether
    batches bring the sources enciphered too."""
    # Without a second view or a teacher the loss is the model's own, whatever kind it is.
    is_plain = config.r_drop == 0 and config.simcut == 0 and not enciphered
    switch = None
    if config.switch_out:
        switch = SwitchOut(config.switch_out, config.switch_out_sides)
    if is_plain and not teachers and guided is None:
        plain = CrossEntropy(config.label_smoothing)
        if switch is None and config.word_dropout == 0:
            return plain
        return WithoutSomeWords(config.word_dropout, plain, switch)

    teacher = None
    if teachers:
        teacher = Teacher(teachers, config.teacher_weight, config.teacher_temperature)
    return Views(
        smoothing=config.label_smoothing,
        r_drop=config.r_drop,
        word_dropout=config.word_dropout,
        teacher=teacher,
        simcut=config.simcut,
        cut_rate=config.simcut_rate,
        guided=guided,
        cipher=config.cipher_weight if enciphered else None,
        switch=switch,
    )


def _also_enciphered(batch: Batch) -> Batch:
    """The batch twice, first with the plain sources and then with the enciphered ones."""
    assert batch.enciphered is not None, "made by a Drawing with data.cipher_keys"
    sides = batch.source, batch.enciphered
    width = max(side.shape[1] for side in sides)
    padded = [functional.pad(side, (0, width - side.shape[1]), value=PAD_ID) for side in sides]
    return dataclasses.replace(_repeat(batch, 2), source=torch.cat(padded))


def _repeat(batch: Batch, views: int) -> Batch:
    """The batch repeated ``views`` times, one whole copy after another."""
    if views == 1:
        return batch
    return Batch(
        source=batch.source.repeat(views, 1),
        target_input=batch.target_input.repeat(views, 1),
        labels=batch.labels.repeat(views, 1),
        target_token_count=views * batch.target_token_count,
    )


def _hide_words(model: SequenceModel, batch: Batch, rate: float) -> Batch:
    """Replace some input tokens by the unknown one; the labels stay."""
    if rate == 0 or not model.training:
        return batch

    # The random numbers come from the model's dropout source, whose state checkpoints keep.
    source, target_input = (
        drop_words(each, rate, model.dropout_source) for each in (batch.source, batch.target_input)
    )
    return dataclasses.replace(batch, source=source, target_input=target_input)
