"""What one batch costs: the sums whose gradient an update follows."""

import dataclasses
from typing import Protocol

import torch

from pellucid.core.special import PAD_ID
from pellucid.equations.fused_views import LossTerms, TeacherRows, fused_linear_loss_of_views
from pellucid.model.dropout import drop_words
from pellucid.model.seq2seq import LossSums, PredictsTokens, SequenceModel, loss_sums
from pellucid.text.batching import Batch
from pellucid.training.config import TrainingConfig


class Objective(Protocol):
    """Whatever an update descends; sums over the batch's real target tokens."""

    def __call__(self, model: SequenceModel, batch: Batch) -> LossSums:
        """The cost of ``batch`` for ``model`` as it stands, training or not."""
        ...


@dataclasses.dataclass(frozen=True)
class CrossEntropy:
    """The model's own loss against smoothed labels (EQ-118, EQ-120)."""

    smoothing: float
    """Probability spread evenly over the vocabulary in the labels."""

    def __call__(self, model: SequenceModel, batch: Batch) -> LossSums:
        """What the model says its loss is."""
        if batch.real_places is None or not isinstance(model, PredictsTokens):
            return model.loss(batch.source, batch.target_input, batch.labels, self.smoothing)
        rows = model.output_states(batch.source, batch.target_input)
        return loss_sums(
            rows.hidden, rows.weight, rows.bias, batch.labels, self.smoothing, batch.real_places
        )


@dataclasses.dataclass(frozen=True)
class WithoutSomeWords:
    """Another objective, over inputs some of whose words the model does not get to see."""

    rate: float
    """Probability that an input token is replaced by an unknown one."""
    objective: Objective

    def __call__(self, model: SequenceModel, batch: Batch) -> LossSums:
        """What it costs to say the labels all the same; in evaluation nothing is hidden."""
        return self.objective(model, _hide_words(model, batch, self.rate))


@dataclasses.dataclass(frozen=True)
class Teacher:
    """A model that is not trained, and how much it is listened to."""

    model: SequenceModel
    share: float
    temperature: float


@dataclasses.dataclass(frozen=True)
class Views:
    """One or two passes over a batch, taught the labels, agreement, and what a teacher says.

    The law of its parts: ``fused_linear_loss_of_views``. The teacher reads every word.
    """

    smoothing: float
    r_drop: float
    """α of R-Drop; above 0 the batch is read twice, under different masks."""
    word_dropout: float
    teacher: Teacher | None

    def __call__(self, model: SequenceModel, batch: Batch) -> LossSums:
        """The sums over the batch's tokens, each counted once however many passes there are."""
        assert isinstance(model, PredictsTokens)
        views = 2 if self.r_drop > 0 else 1
        flat = batch.labels.view(-1)
        real = flat != PAD_ID if batch.real_places is None else batch.real_places
        labels = flat[real]
        read = _hide_words(model, _repeat(batch, views), self.word_dropout)
        rows = model.output_states(read.source, read.target_input)
        hidden = rows.hidden.view(views, len(flat), -1)[:, real]
        terms = LossTerms(self.smoothing, self.r_drop, self._taught(batch, real))
        loss, likelihood = fused_linear_loss_of_views(hidden, rows.weight, rows.bias, labels, terms)
        return LossSums(loss, likelihood, labels.shape[0])

    def _taught(self, batch: Batch, real: torch.Tensor) -> TeacherRows | None:
        if self.teacher is None:
            return None
        assert isinstance(self.teacher.model, PredictsTokens)
        with torch.no_grad():
            rows = self.teacher.model.output_states(batch.source, batch.target_input)
        return TeacherRows(
            hidden=rows.hidden.flatten(0, 1)[real],
            weight=rows.weight,
            bias=rows.bias,
            share=self.teacher.share,
            temperature=self.teacher.temperature,
        )


def build_objective(config: TrainingConfig, teacher: SequenceModel | None = None) -> Objective:
    """The objective that ``config`` names; ``teacher`` is the model behind ``training.teacher``."""
    if teacher is None and config.r_drop == 0:
        plain = CrossEntropy(config.label_smoothing)
        return WithoutSomeWords(config.word_dropout, plain) if config.word_dropout else plain
    listened_to = None
    if teacher is not None:
        listened_to = Teacher(teacher, config.teacher_weight, config.teacher_temperature)
    return Views(config.label_smoothing, config.r_drop, config.word_dropout, listened_to)


def _repeat(batch: Batch, views: int) -> Batch:
    """The same sentences so many times, one copy after another."""
    if views == 1:
        return batch
    return Batch(
        source=batch.source.repeat(views, 1),
        target_input=batch.target_input.repeat(views, 1),
        labels=batch.labels.repeat(views, 1),
        target_token_count=views * batch.target_token_count,
    )


def _hide_words(model: SequenceModel, batch: Batch, rate: float) -> Batch:
    """Inputs with some words unknown, drawn from the model's own source; labels stay."""
    if rate == 0 or not model.training:
        return batch
    source, target_input = (
        drop_words(each, rate, model.dropout_source) for each in (batch.source, batch.target_input)
    )
    return dataclasses.replace(batch, source=source, target_input=target_input)
