"""``train``: prepare a run from its config, resume it if asked, train, and save bundles.

``set_up_run`` is the part before the first update; the dry run uses it too.
"""

import contextlib
import dataclasses
import functools
import logging
from pathlib import Path
from typing import get_args

import numpy as np
import torch

from pellucid.bundle import Bundle
from pellucid.core.errors import ConfigError
from pellucid.core.limits import shown
from pellucid.core.phases import begin_phase
from pellucid.core.run_names import CHECKPOINTS_FOLDER
from pellucid.core.world import World, joined, world_of_environment
from pellucid.evaluation.scoring import TITLES
from pellucid.model.build import build_any_model
from pellucid.model.seq2seq import SequenceModel
from pellucid.model.skipgram import SkipGram
from pellucid.text.check.languages import languages_problem, pairs_of
from pellucid.text.languages import languages_of
from pellucid.text.normalization import normalize
from pellucid.training.averaging import Average
from pellucid.training.checkpoint import (
    load_checkpoint,
    newest_intact,
    saved_precision,
)
from pellucid.training.config import RunConfig, validation_search
from pellucid.training.data import TrainingData
from pellucid.training.distributed import (
    ALONE,
    ProcessGroup,
    begin_stream,
    check_can_be_sharded,
    local_tensors,
    process_group_of,
    shard_model,
    whole_model,
)
from pellucid.training.failures import restart_rate
from pellucid.training.folder import RunFolder, goes_on
from pellucid.training.idle_settings import idle_settings
from pellucid.training.journal import Journal, Listener
from pellucid.training.loggers import with_loggers
from pellucid.training.loop import StopRequest, learn
from pellucid.training.memory import refuse_what_cannot_fit
from pellucid.training.notebook import notebook_listener
from pellucid.training.objective import GuidedAlignment, MakeObjective, build_objective
from pellucid.training.pair_vectors import start_from_pairs
from pellucid.training.parent_models import (
    check_tokenizers,
    copy_parameters,
    freeze,
    given_tokenizers,
    learned_tensors,
    load_parent,
    load_teachers,
)
from pellucid.training.precision import LossScale, Precision, resolve_precision
from pellucid.training.preparation import prepare_data
from pellucid.training.recipe import TRANSLATED_SIGNS
from pellucid.training.run import Progress, Run
from pellucid.training.step import build_optimizer
from pellucid.training.teacher_tokens import AskTeachers, teacher_tokens
from pellucid.training.torch_setup import device_of, torch_for_training
from pellucid.training.validation import try_searches
from pellucid.training.vectors import start_from_vectors
from pellucid.training.verdict import Verdict

_log = logging.getLogger("pellucid")


@dataclasses.dataclass(frozen=True)
class TrainingResult:
    """How a run ended."""

    folder: Path
    reason: str
    """The limit that was reached, or what ``should_stop`` returned."""
    progress: Progress
    verdict: Verdict | None = None
    """How good the best model is; None if it was not validated by translations."""


def _checked(config: object, out: object) -> Path:
    """``out`` as a path. Raises ConfigError for arguments of other types."""
    if not isinstance(config, RunConfig):
        name = config if isinstance(config, str) else "demo"
        raise ConfigError(
            f"config must be a RunConfig, got {type(config).__name__}",
            hint=f'pellucid.read_config("{name}") makes one of a preset or a file',
        )
    if not isinstance(out, str | Path):
        raise ConfigError(f"out must be the path of a folder, got {type(out).__name__}")
    return Path(out)


def train(
    config: RunConfig,
    out: Path | str,
    *,
    resume: bool = False,
    listener: Listener | None = None,
    should_stop: StopRequest = lambda: None,
    make_objective: MakeObjective = build_objective,
) -> TrainingResult:
    """Train the model that ``config`` describes into the run folder ``out``.

    With ``resume`` an earlier run in ``out`` continues from its newest intact checkpoint, as if it
    had never stopped (law: resumed = unbroken); in an empty folder it starts from the beginning.
    ``listener`` is called with every journal event; without one a notebook shows a bar.
    ``should_stop`` is called after each update; if it returns a reason, the run ends with a
    checkpoint. ``make_objective`` makes what is minimized, if that is to be another loss than the
    config's. Under torchrun all processes train the one model together (law: several processes =
    one), and a run that torchrun restarts resumes by itself.

    Raises OutputExistsError, LockedError, ConfigError (also for other training text or a model too
    large for the memory there is), DataError, WriteError, DivergedError, MissingExtraError.
    """
    # What can be refused is refused before anything is written and before any process waits.
    out = _checked(config, out)
    check_can_be_sharded(config)
    device = device_of(config)

    listener = listener or notebook_listener()
    with (
        # each process raises if an extra is missing
        with_loggers(out, config, listener) as showing,
        torch_for_training(config),
        joined(world_of_environment(), device) as world,
        contextlib.ExitStack() as stack,
    ):
        if world.is_first:
            listener = showing

        # The first process decides for all, because another may not see a file yet on a network's
        # disk.
        resume = world.from_first(goes_on(out, resume=resume))

        # Only the first process locks the folder and writes the journal; the others check that they
        # see the same folder, as processes on several machines may not.
        folder = RunFolder(out, config, resume=resume)
        world.by_first(lambda: stack.enter_context(folder))
        world.together(lambda: folder.check_seen(world))
        journal = Journal(folder.journal_path, listener) if world.is_first else Journal(None)

        process_group = process_group_of(config.training, world)
        newest: Path | None = None
        if resume:
            # The first process chooses for all: another may not see a file yet on a network's disk.
            intact = world.by_first(lambda: newest_intact(out))
            name = world.from_first(intact and intact.name)
            newest = name and out / CHECKPOINTS_FOLDER / name
        run = set_up_run(config, folder, journal, process_group, make_objective, newest=newest)
        # Before a checkpoint restores the generators: gathering a sharded model draws from them.
        _try_searches(run, is_new=newest is None)
        if newest is not None:
            resume_from(run, newest)
            _log.info("resumed from %s", newest.name)
        elif resume:
            _log.warning("no checkpoint in %s yet: starting from the beginning", folder.path)
        run.process_group.require_equal(run.model)
        run.rank_validations()
        if run.decider.why:
            _log.warning("%s; %s decides what is best", run.decider.why, TITLES[run.decider.name])

        journal.write("start", _about(run))
        reason = learn(run, should_stop)
        found = run.verdict()
        level = found and found.level
        journal.write("end", {"reason": reason, "verdict": level, **run.progress.figures()})

    return TrainingResult(out, reason, run.progress, found)


def _try_searches(run: Run, *, is_new: bool) -> None:
    """Search once as a validation does and, in a new run, as its bundles will by themselves.

    Raises ConfigError for settings of ``decoding`` that do not fit.
    """
    # A run that goes on learns to its end, even if its bundles then need other settings.
    searches = [validation_search(run.config)]
    if is_new:
        own = run.config.decoding
        # documents and pages align, also where no command was asked to
        is_named = own.align_layer is not None or own.align_head is not None
        aligns = own.align or (is_named and own.mask_at_inference)
        searches.append(
            own.changed({"below": None, "align": aligns})
        )  # quality comes by validation

    model = whole_model(run.model, run.process_group)
    run.process_group.world.by_first(lambda: try_searches(model, run.data, searches))


def set_up_run(
    config: RunConfig,
    folder: RunFolder,
    journal: Journal,
    process_group: ProcessGroup = ALONE,
    make_objective: MakeObjective = build_objective,
    ask_teachers: AskTeachers = teacher_tokens,
    newest: Path | None = None,
) -> Run:
    """A run before its first update, with its data prepared in ``folder``.

    ``ask_teachers`` is called if ``training.teacher_top_k`` is set. ``newest`` is the checkpoint
    that the run will go on from: its parameters need no start, and its precision is kept.
    """
    device = device_of(config)
    if newest is None and process_group.world.is_first:  # a run that goes on has been warned before
        for line in idle_settings(config):
            _log.warning("%s", line)
    parent = load_parent(config)
    if parent is not None and newest is None and process_group.world.is_first:
        _warn_of_languages(config, parent)
    teachers = load_teachers(config)

    # The first process writes tokenizers and tokenized text; the others then find them.
    given = given_tokenizers(parent, teachers)
    data = process_group.world.first_then_others(lambda: prepare_data(config, folder.path, given))
    if newest is None and process_group.world.is_first:
        _warn_of_copies(config, data)
    for teacher in teachers:
        check_tokenizers(teacher, (data.source_tokenizer, data.target_tokenizer))

    # The memory is estimated here, when the vocabularies are known and nothing large exists yet.
    sizes = data.source_tokenizer.vocabulary_size, data.target_tokenizer.vocabulary_size
    refuse_what_cannot_fit(
        config, *sizes, device, process_group.world.size if process_group.is_sharded else 1
    )

    begin_phase("building the model")
    model = build_any_model(config.model, *sizes, seed=config.training.seed)
    if isinstance(model, SkipGram):
        model.count(torch.from_numpy(ids) for ids in data.target_ids())
    # From word vectors, if asked for; a parent or a checkpoint replaces all parameters.
    if parent is None and newest is None:
        if config.model.pretrained_vectors is not None:
            tokenizers = data.source_tokenizer, data.target_tokenizer
            start_from_vectors(model, tokenizers, Path(config.model.pretrained_vectors))
        if epochs := config.training.vector_epochs:
            seed = config.training.seed
            start_from_pairs(model, data, epochs, seed, process_group.world, device)
    if parent is not None:
        copy_parameters(model, parent)
    freeze(model, config.training.freeze)

    if process_group.is_sharded:
        # Sharded from the CPU, block by block: the whole model may not fit on the device.
        shard_model(model, process_group.world, device)
    else:
        model = model.to(device)
    begin_stream(model, config.training.seed, process_group.world)

    precision = _precision(config, newest, process_group.world, device)

    models = [each.model.to(device) for each in teachers]
    if config.training.teacher_top_k:
        # The first process computes them; the others then find its files.
        tokens = process_group.world.first_then_others(
            lambda: ask_teachers(data, models, config, folder.path, precision)
        )
        data = dataclasses.replace(data, top_tokens=tokens)
    objective = _for_data(make_objective, config)(config.training, models)

    begin_phase("preparing the optimizer and the batches")
    scale = LossScale() if precision == "fp16" else None
    if scale is not None:
        scale.attach(model)
        objective = scale.scaled(objective)

    return Run(
        config=config,
        folder=folder,
        journal=journal,
        data=data,
        model=model,
        optimizer=build_optimizer(model, config.training),
        average=Average(config.training, local_tensors(learned_tensors(model))),
        sampler=data.sampler(),
        objective=objective,
        progress=Progress(),
        precision=precision,
        process_group=process_group,
        loss_scale=scale,
    )


def _warn_of_languages(config: RunConfig, parent: Bundle[SequenceModel]) -> None:
    """Log a warning if the text is named as in other languages than the parent translates."""
    if config.data.both_directions:
        return
    name = "" if parent.path is None else parent.path.name
    files = (
        (config.data.source or ("the phrasebook",))[0],
        (config.data.target or ("its target",))[0],
    )
    given = languages_of(config.to_table(), "")
    model, learned = languages_of(parent.settings, name), pairs_of(parent.settings)
    problem = languages_problem(model, given, files, learned)
    if problem:
        _log.warning("fine-tuning to other languages: %s", problem)


def _warn_of_copies(config: RunConfig, data: TrainingData) -> None:
    """Log a warning if ``decoding.copy_symbols`` copies sources that have other translations."""
    if not (config.model.translates and config.decoding.copy_symbols):
        return
    is_word = str.isalnum if "digits" in data.usual_warnings else str.isalpha
    pairs = list(zip(data.valid_sources, data.valid_references, strict=True))
    wrong = sum(
        normalize(source) != normalize(reference)
        for source, reference in pairs
        if not any(map(is_word, source))
    )
    if wrong and wrong >= TRANSLATED_SIGNS * len(pairs):
        _log.warning(
            "%s of %s validation sources have no letter and another translation, and are copied:"
            " --set decoding.copy_symbols=false translates them",
            f"{wrong:,}",
            f"{len(pairs):,}",
        )


def _for_data(make_objective: MakeObjective, config: RunConfig) -> MakeObjective:
    """``make_objective`` with the alignments or the enciphered sources that the data bring. Raises
    ConfigError if it is another than the config's."""
    brought = [name for name in ("alignments", "cipher_keys") if getattr(config.data, name)]
    if not brought:
        return make_objective
    if make_objective is not build_objective:
        raise ConfigError(f"data.{brought[0]} is learned by the config's own loss, not by another")
    guided = None
    if config.data.alignments:
        layer = config.decoding.align_layer
        assert layer is not None, "the config is refused without it"
        weight = config.training.alignment_weight
        guided = GuidedAlignment(layer, config.decoding.align_head, weight)
    return functools.partial(
        build_objective, guided=guided, enciphered=bool(config.data.cipher_keys)
    )


def _precision(config: RunConfig, newest: Path | None, world: World, device: str) -> Precision:
    """The checkpoint's precision, else that of the settings, or the one measured to be faster."""

    def choose() -> Precision:
        """By the first process."""
        saved = None if newest is None else saved_precision(newest)
        if saved in get_args(Precision):
            return saved  # type: ignore[return-value]  # one of them
        if config.training.precision == "auto":
            begin_phase("measuring whether bfloat16 is faster")
        return resolve_precision(config.training.precision, device.partition(":")[0])

    # One process chooses for all: two machines may measure different results.
    chosen: Precision = world.from_first(world.by_first(choose))
    return chosen


def resume_from(run: Run, folder: Path) -> None:
    """Bring ``run`` to where the checkpoint in ``folder`` was written.

    Raises CorruptError or BundleError if it is not of this run, ConfigError for other text.
    """
    state = run.process_group.world.together(
        lambda: load_checkpoint(folder, run.model, run.optimizer, run.average, run.process_group)
    )
    run.restore(state)

    # What has changed since: another learning rate is a fresh start for the halvings of rollbacks,
    # and another number of threads adds in another order, so that the last bits differ.
    if state.get("pace", run.pace) != run.pace:
        restart_rate(run)
    threads = torch.get_num_threads()
    if state.get("threads", threads) != threads:
        _log.warning(
            "resuming with %d CPU threads, not %s: sums round differently",
            threads,
            shown(state["threads"]),
        )


def _about(run: Run) -> dict[str, object]:
    """Return the facts that the journal records when a run starts or resumes."""
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
        "processes": run.process_group.world.size,
        "splits_model": run.process_group.is_sharded,
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "data_fingerprint": run.data.fingerprint,
        "decided_by": run.decider.name,
        "expected": run.expected(),
        "dropped_pairs": run.data.store.report.empty + run.data.store.report.too_long,
    }
