"""Train a model by a config: prepare, resume if asked, learn, leave bundles behind."""

import dataclasses
import logging
from pathlib import Path

import numpy as np
import torch

from pellucid.core.errors import InputMissingError
from pellucid.model import SequenceModel, build_any_model
from pellucid.model.skipgram import SkipGram
from pellucid.training.averaging import Average
from pellucid.training.board import with_board
from pellucid.training.checkpoint import load_checkpoint, newest_intact
from pellucid.training.config import RunConfig
from pellucid.training.data import TrainingData, prepare_data
from pellucid.training.failures import rate_begins_anew
from pellucid.training.folder import RunFolder
from pellucid.training.journal import Journal, Listener
from pellucid.training.loop import StopRequest, learn
from pellucid.training.memory import refuse_what_cannot_fit
from pellucid.training.objective import build_objective
from pellucid.training.parent import copy_parameters, freeze, learned_tensors, load_parent
from pellucid.training.precision import resolve_precision
from pellucid.training.progress import Progress
from pellucid.training.run import Run
from pellucid.training.step import build_optimizer
from pellucid.training.teacher import check_tokenizers, given_tokenizers, load_teacher
from pellucid.training.torch_setup import torch_for_training
from pellucid.training.vectors import start_from_vectors

_log = logging.getLogger("pellucid")


@dataclasses.dataclass(frozen=True)
class TrainingResult:
    """How a run ended."""

    folder: Path
    reason: str
    """The limit that was reached, or what ``should_stop`` said."""
    progress: Progress


def _never() -> None:
    return None


def train(
    config: RunConfig,
    out: Path,
    *,
    resume: bool = False,
    listener: Listener | None = None,
    should_stop: StopRequest = _never,
) -> TrainingResult:
    """Train the model that ``config`` describes into the run folder ``out``.

    With ``resume`` an earlier run in ``out`` goes on from its newest intact checkpoint, as if it
    had never stopped (law: resumed = unbroken); an empty folder begins anew. ``listener`` hears
    every journal event; ``should_stop`` is asked after each update and ends the run with a
    checkpoint.

    Raises OutputExistsError, LockedError, ConfigError (also for other training text or a model too
    large for the memory there is), DataError, WriteError, DivergedError, MissingExtraError.
    """
    if config.training.tensorboard:
        listener = with_board(out, listener)
    with torch_for_training(config), RunFolder(out, config, resume=resume) as folder:
        journal = Journal(folder.journal_path, listener)
        run = set_up_run(config, folder, journal)
        if resume:
            _resume(run)
        journal.write("start", _about(run))
        reason = learn(run, should_stop)
        journal.write("end", {"reason": reason, **run.progress.state()})
    return TrainingResult(out, reason, run.progress)


def set_up_run(config: RunConfig, folder: RunFolder, journal: Journal) -> Run:
    """A run before its first update, with its data prepared in ``folder``."""
    parent = load_parent(config)
    teacher = load_teacher(config)
    data = prepare_data(config, folder.path, given_tokenizers(parent, teacher))
    if teacher is not None:
        check_tokenizers(teacher, (data.source_tokenizer, data.target_tokenizer))
    device = _device(config)
    sizes = data.source_tokenizer.vocabulary_size, data.target_tokenizer.vocabulary_size
    refuse_what_cannot_fit(config, *sizes, device)
    model = build_any_model(config.model, *sizes, seed=config.training.seed)
    _begin_from_data(model, data, config)
    model = model.to(device)
    model.dropout_source.seed(config.training.seed)
    if parent is not None:
        copy_parameters(model, parent)
    freeze(model, config.training.freeze)
    return Run(
        config=config,
        folder=folder,
        journal=journal,
        data=data,
        model=model,
        optimizer=build_optimizer(model, config.training),
        average=Average(config.training, learned_tensors(model)),
        sampler=data.sampler(),
        objective=build_objective(
            config.training, None if teacher is None else teacher.model.to(device)
        ),
        progress=Progress(),
        precision=resolve_precision(config.training.precision, device),
    )


def _begin_from_data(model: SequenceModel, data: TrainingData, config: RunConfig) -> None:
    """What the first parameters take from the text or from earlier vectors."""
    if isinstance(model, SkipGram):
        model.count(torch.from_numpy(ids) for ids in data.target_ids())
    if config.model.pretrained_vectors is not None:
        tokenizers = data.source_tokenizer, data.target_tokenizer
        start_from_vectors(model, tokenizers, Path(config.model.pretrained_vectors))


def _resume(run: Run) -> None:
    folder = newest_intact(run.folder.path)
    if folder is None:
        _log.warning("no checkpoint in %s yet: beginning anew", run.folder.path)
        return
    state = load_checkpoint(folder, run.model, run.optimizer, run.average)
    run.data.refuse_other(state.get("data", {}))
    run.restore(state)
    if state.get("pace", run.pace) != run.pace:
        rate_begins_anew(run)
    if state["threads"] != torch.get_num_threads():
        _log.warning(
            "resuming with %d CPU threads, not %d: sums round differently",
            torch.get_num_threads(),
            state["threads"],
        )
    _log.info("resumed from %s", folder.name)


def _device(config: RunConfig) -> str:
    wanted = config.training.device
    if wanted == "cuda" and not torch.cuda.is_available():
        raise InputMissingError(
            "training.device is cuda, but PyTorch sees no CUDA device",
            hint="use training.device=auto, or install a CUDA build of PyTorch",
        )
    if wanted == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    return wanted


def _about(run: Run) -> dict[str, object]:
    parameters = sum(parameter.numel() for parameter in run.model.parameters())
    return {
        "step": run.progress.step,
        "parameters": parameters,
        "pairs": len(run.data.rows),
        "batches_per_epoch": run.sampler.epoch_batch_count,
        "source_vocabulary": run.data.source_tokenizer.vocabulary_size,
        "target_vocabulary": run.data.target_tokenizer.vocabulary_size,
        "device": str(next(run.model.parameters()).device),
        "precision": run.precision,
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "data_fingerprint": run.data.fingerprint,
        "dropped_pairs": run.data.store.report.empty + run.data.store.report.too_long,
    }
