"""Measures a run in small: an update, and a validation of a few pairs.

What is measured is thrown away. ``pellucid.training.calibration`` chooses settings by it, and
``pellucid.training.dry_run`` forecasts a run.
"""

import dataclasses
import time
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import torch

from pellucid.model.seq2seq import SequenceModel
from pellucid.text.batching import Batch
from pellucid.training.config import RunConfig
from pellucid.training.data import TrainingData
from pellucid.training.objective import Objective
from pellucid.training.precision import Precision
from pellucid.training.step import StepReport, update
from pellucid.training.validation import Validation, validate

_RATE = 1e-5
"""Learning rate of updates that are thrown away."""


def timed_update(
    model: SequenceModel,
    optimizer: torch.optim.Optimizer,
    make_batches: Callable[[], Sequence[Batch]],
    objective: Objective,
    config: RunConfig,
    precision: Precision,
) -> tuple[float, StepReport]:
    """The seconds of an update, its batches included, and its report.

    With subword regularization making a batch takes a good part.
    """
    began = time.perf_counter()
    batches = make_batches()
    report = update(model, optimizer, batches, objective, config.training, _RATE, precision)
    return time.perf_counter() - began, report


def timed_validation(
    model: SequenceModel, data: TrainingData, config: RunConfig, count: int
) -> tuple[float, Validation]:
    """The seconds for a pair, and the validation of ``count`` pairs, spread over all lengths.

    An untrained model hardly predicts EOS, so translations are cut at the length of the longest
    reference, if the run allows for as many tokens.
    """
    few = some_validated(data, count)
    longest, most = int(few.valid.target_lengths.max()), config.decoding.max_length
    decoding = config.decoding.having(max_length=longest if most is None else min(longest, most))
    validation = validate(model, few, config.model_copy(update={"decoding": decoding}), 0)
    return validation.seconds / len(few.valid_sources), validation


def some_validated(data: TrainingData, count: int) -> TrainingData:
    """The data with ``count`` of its validation pairs, spread over all lengths, and as many of the
    pairs with given alignments.
    """
    texts = _spread([len(text) for text in data.valid_sources], count)
    aligned = data.valid_alignments
    if aligned is not None:
        lengths = aligned.store.longer_lengths[aligned.rows]
        aligned = dataclasses.replace(aligned, rows=aligned.rows[_spread(lengths, count)])
    return dataclasses.replace(
        data,
        valid=data.valid.some(_spread(data.valid.target_lengths, count)),
        valid_sources=[data.valid_sources[row] for row in texts],
        valid_references=[data.valid_references[row] for row in texts],
        valid_alignments=aligned,
    )


def _spread(lengths: npt.ArrayLike, count: int) -> npt.NDArray[np.int64]:
    """At most ``count`` row numbers, evenly spread from the shortest row to the longest."""
    order = np.argsort(np.asarray(lengths), kind="stable")
    places = np.linspace(0, len(order) - 1, min(len(order), count))
    return order[places.astype(np.int64)]
