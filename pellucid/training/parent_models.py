"""The other models that a run uses: opened, held to its config, and copied from or asked."""

import fnmatch
from collections.abc import Iterable, Sequence
from pathlib import Path

import torch

from pellucid.bundle import Bundle, load_any_bundle
from pellucid.core.errors import ConfigError
from pellucid.core.near_names import did_you_mean
from pellucid.model.seq2seq import PredictsTokens, SequenceModel
from pellucid.model.stored import load_model_tensors, model_tensors
from pellucid.training.config import RunConfig
from pellucid.training.data import Tokenizers
from pellucid.training.parent import fixed_settings, parent_hash


def load_parent(config: RunConfig) -> Bundle[SequenceModel] | None:
    """The bundle that ``config`` fine-tunes, if any.

    Raises ConfigError for another hash or model than ``config`` has, and what opening it raises.
    """
    wanted = config.training
    if wanted.init is None:
        return None

    bundle = load_any_bundle(wanted.init)
    problems = []

    # The path may name another bundle by now.
    if wanted.parent is not None and wanted.parent != parent_hash(bundle):
        problems.append(
            f"training.parent is {wanted.parent}, but the bundle in {wanted.init} has"
            f" {parent_hash(bundle)}"
        )

    # Dropout may be another one: it changes no parameter.
    ours, theirs = (fixed_settings(each) for each in (config.model, bundle.config))
    problems += [
        f"model.{name} is {theirs.get(name)} in the bundle, not {ours.get(name)}"
        for name in sorted(ours.keys() | theirs.keys())
        if ours.get(name) != theirs.get(name)
    ]

    if problems:
        raise ConfigError(
            f"this run cannot begin with {wanted.init}: " + "; ".join(problems),
            hint="make the config by read_config(..., init=...) or pellucid train --init",
        )
    return bundle


def copy_parameters(model: SequenceModel, parent: Bundle[SequenceModel]) -> None:
    """Copy the parent's parameters to ``model``. Raises BundleError if they do not fit."""
    load_model_tensors(model, model_tensors(parent.model), parent.path or Path("the bundle"))


def freeze(model: SequenceModel, patterns: Iterable[str]) -> list[str]:
    """Exclude the parameters that match a shell-style pattern from training; return their names.

    A shared matrix has several names, and matching one of them is enough. Raises ConfigError for a
    pattern that matches nothing, or if no parameter is left to train.
    """
    # With duplicates: a tied matrix may be named by either of its names.
    named = list(model.named_parameters(remove_duplicate=False))

    problems, frozen = [], []
    for pattern in patterns:
        matching = [name for name, _ in named if fnmatch.fnmatchcase(name, pattern)]
        if not matching:
            guess = did_you_mean(pattern, [name for name, _ in named], "; {}")
            problems.append(f"{pattern!r} matches no parameter{guess}")
        frozen += matching
    if problems:
        raise ConfigError("training.freeze: " + "; ".join(problems))

    for name, parameter in named:
        if name in frozen:
            parameter.requires_grad_(False)
    if not any(parameter.requires_grad for _, parameter in named):
        raise ConfigError("training.freeze leaves no parameter to learn")
    return frozen


def learned_tensors(model: SequenceModel) -> dict[str, torch.Tensor]:
    """The parameters that training changes, by name."""
    return {name: each for name, each in model_tensors(model).items() if each.requires_grad}


def load_teachers(config: RunConfig) -> list[Bundle[SequenceModel]]:
    """The teachers of ``config``, if any, in evaluation mode and without gradients.

    Raises ConfigError if a hash is not the one in ``config`` or if one cannot teach that model,
    and what opening it raises.
    """
    named = zip(config.training.teacher, config.training.teacher_manifest, strict=True)
    return [_load_teacher(config, path, expected) for path, expected in named]


def _load_teacher(config: RunConfig, path: str, expected: str) -> Bundle[SequenceModel]:
    bundle = load_any_bundle(path)
    model, problems = bundle.model, []
    if expected != parent_hash(bundle):
        problems.append(
            f"training.teacher_manifest is {expected}, but the bundle has {parent_hash(bundle)}"
        )

    kind = model.config.kind
    if not isinstance(model, PredictsTokens) or model.config.translates != config.model.translates:
        problems.append(f"a {kind} does not predict what a {config.model.kind} does")

    # The teacher reads the same batches: their longest sentence must fit into its positions.
    longest = config.data.max_length + 1
    if model.max_length is not None and longest > model.max_length:
        problems.append(
            f"data.max_length={config.data.max_length} and a stop do not fit into its"
            f" {model.max_length} positions"
        )

    if problems:
        raise ConfigError(f"{path} cannot teach this run: " + "; ".join(problems))

    # Its dropout would be noise in what is learned, and its gradients would take memory for
    # nothing.
    model.eval().requires_grad_(False)
    return bundle


def given_tokenizers(
    parent: Bundle[SequenceModel] | None, teachers: Sequence[Bundle[SequenceModel]]
) -> Tokenizers | None:
    """The tokenizers of the parent, or else of the first teacher."""
    giver = parent or next(iter(teachers), None)
    return None if giver is None else (giver.source_tokenizer, giver.target_tokenizer)


def check_tokenizers(teacher: Bundle[SequenceModel], own: Tokenizers) -> None:
    """Raise ConfigError unless the teacher's ids mean the same tokens as this run's (EQ-11)."""
    theirs = teacher.source_tokenizer, teacher.target_tokenizer
    problems = [
        f"its {side} tokenizer is {that.kind} {that.fingerprint[:16]}, this run's is {this.kind}"
        f" {this.fingerprint[:16]}"
        for side, this, that in zip(("source", "target"), own, theirs, strict=True)
        if this.fingerprint != that.fingerprint
    ]
    if problems:
        raise ConfigError(
            f"{teacher.path} cannot teach this run: " + "; ".join(problems),
            hint="teach a new run, which takes the teacher's tokenizers, or let the teacher"
            " translate the training text by pellucid distill, which needs no like tokenizers",
        )
