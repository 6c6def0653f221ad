"""Other models that a run uses: the bundle it fine-tunes, called its parent, and its teachers.

For each there is a function that completes the config, one that loads the bundle and checks it
against the config, and one that uses it.
"""

import fnmatch
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from pellucid.bundle import Bundle, load_any_bundle
from pellucid.core.config import Config, did_you_mean
from pellucid.core.errors import ConfigError
from pellucid.decoding.config import DecodingConfig
from pellucid.model.config import ModelConfig, TranslatorSettings
from pellucid.model.seq2seq import PredictsTokens, SequenceModel
from pellucid.model.stored import load_model_tensors, model_tensors
from pellucid.text.config import TokenizerConfig
from pellucid.text.tokenizers.tokenizer import Tokenizer
from pellucid.training.config import RunConfig

FREE = {
    "model": ("dropout", "attention_dropout", "activation_dropout", "layer_drop"),
    "tokenizer": ("sampling",),
}
"""Settings that may differ from the parent's: they change no parameter and no vocabulary."""


def parent_hash(bundle: Bundle[SequenceModel]) -> str:
    """The SHA-256 in a bundle's manifest, which identifies the bundle wherever it is."""
    return str(bundle.manifest["sha256"])


def begin_with(
    table: Mapping[str, Any], bundle: Bundle[SequenceModel], chosen: Iterable[str]
) -> dict[str, Any]:
    """The config ``table`` for a run that fine-tunes ``bundle``.

    The settings of model, tokenizer and search are the bundle's. ``chosen`` are the dotted names
    that the user set: of these, dropout, sampling and the search are taken from ``table``. Raises
    ConfigError naming every other setting of model and tokenizer that contradicts the bundle.
    """
    own: dict[str, Config] = {"model": bundle.config, "tokenizer": tokenizer_config(bundle)}
    result, faults = dict(table), []

    for section, config in own.items():
        settings = config.to_table()

        # The bundle's settings, over which only free ones may be laid.
        merged = dict(settings)
        for name in sorted(chosen_names(chosen, section)):
            value = section_of(table, section).get(name)
            if name in FREE[section] or name not in type(config).model_fields:
                merged[name] = value  # parsing reports misspelt names, with all other faults
            elif value != settings.get(name):
                has = settings.get(name, "not set")
                faults.append(f"{section}.{name} is {has} in the bundle, not {value}")
        result[section] = merged

    if faults:
        raise ConfigError(
            f"a run that begins with {bundle.path} must keep its model and tokenizer: "
            + "; ".join(faults),
            hint="leave these settings out, or train without --init",
        )

    # The search is free: it changes nothing that was learned.
    searched = section_of(table, "decoding")
    by_hand = {
        name: searched[name] for name in chosen_names(chosen, "decoding") if name in searched
    }
    own_search = bundle.settings.get("decoding", {})
    result["decoding"] = {**searched, **own_search, **_reads(bundle), **by_hand}

    result["training"] = {
        **section_of(table, "training"),
        "init": str(bundle.path),
        "parent": section_of(table, "training").get("parent", parent_hash(bundle)),
    }
    return result


def _reads(bundle: Bundle[SequenceModel]) -> dict[str, bool]:
    """How a bundle reads lines and terms. Where its training decides that, this is written down,
    because the config of a run that fine-tunes it tells nothing of that training."""
    search = DecodingConfig.of_bundle(bundle.settings, bundle.path or "the bundle")
    settings = {"recase": search.recase, "mark_terms": search.mark_terms}
    return {name: value for name, value in settings.items() if value is not None}


def load_parent(config: RunConfig) -> Bundle[SequenceModel] | None:
    """The bundle that ``config`` fine-tunes, if any.

    Raises ConfigError if its hash or its model is not the one in ``config``, and what opening it
    raises.
    """
    wanted = config.training
    if wanted.init is None:
        return None

    bundle = load_any_bundle(wanted.init)
    faults = []

    # The path may name another bundle by now.
    if wanted.parent is not None and wanted.parent != parent_hash(bundle):
        faults.append(
            f"training.parent is {wanted.parent}, but the bundle in {wanted.init} has"
            f" {parent_hash(bundle)}"
        )

    # Dropout may be another one: it changes no parameter.
    ours, theirs = (fixed_settings(each) for each in (config.model, bundle.config))
    faults += [
        f"model.{name} is {theirs.get(name)} in the bundle, not {ours.get(name)}"
        for name in sorted(ours.keys() | theirs.keys())
        if ours.get(name) != theirs.get(name)
    ]

    if faults:
        raise ConfigError(
            f"this run cannot begin with {wanted.init}: " + "; ".join(faults),
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

    faults, frozen = [], []
    for pattern in patterns:
        matching = [name for name, _ in named if fnmatch.fnmatchcase(name, pattern)]
        if not matching:
            guess = did_you_mean(pattern, [name for name, _ in named], "; {}")
            faults.append(f"{pattern!r} matches no parameter{guess}")
        frozen += matching
    if faults:
        raise ConfigError("training.freeze: " + "; ".join(faults))

    for name, parameter in named:
        if name in frozen:
            parameter.requires_grad_(False)
    if not any(parameter.requires_grad for _, parameter in named):
        raise ConfigError("training.freeze leaves no parameter to learn")
    return frozen


def learned_tensors(model: SequenceModel) -> dict[str, torch.Tensor]:
    """The parameters that training changes, by name."""
    return {name: each for name, each in model_tensors(model).items() if each.requires_grad}


def tokenizer_config(bundle: Bundle[SequenceModel]) -> TokenizerConfig:
    """The tokenizer section of the run that made the bundle, completed from its tokenizers."""
    source, target = bundle.source_tokenizer, bundle.target_tokenizer
    model = bundle.config

    # An imported or older bundle may have no tokenizer section: the tokenizers themselves say what
    # they are.
    sizes = (source.vocabulary_size, target.vocabulary_size)
    # Marian's tokenizers cut differently and share their ids
    shared = source is target or not isinstance(model, TranslatorSettings) or model.share_embeddings

    known: dict[str, object] = {
        "kind": source.kind,
        "shared": shared,
        "normalization": source.normalization,
    }
    if target.kind != source.kind:
        known["target_kind"] = target.kind
    table = {"vocabulary_size": max(sizes), **bundle.settings.get("tokenizer", {}), **known}
    return TokenizerConfig.parse(table, f"{bundle.path}: tokenizer")


def chosen_names(chosen: Iterable[str], section: str) -> set[str]:
    """The settings of one section among dotted names."""
    return {name for each in chosen for head, _, name in [each.partition(".")] if head == section}


def section_of(table: Mapping[str, Any], name: str) -> dict[str, Any]:
    """A section of a config's table; empty if there is none."""
    section = table.get(name, {})
    return section if isinstance(section, dict) else {}


def fixed_settings(config: ModelConfig) -> dict[str, Any]:
    """The settings of a model that decide which parameters it has and what it computes."""
    return {name: each for name, each in config.to_table().items() if name not in FREE["model"]}


Tokenizers = tuple[Tokenizer, Tokenizer]


def taught_by(
    table: Mapping[str, Any], teachers: Sequence[Bundle[SequenceModel]], chosen: Iterable[str]
) -> dict[str, Any]:
    """The config ``table`` for a run with these teachers, at least one, which it records.

    Unless the run fine-tunes another bundle, it uses the first teacher's tokenizers. ``chosen`` are
    the dotted names that the user set. Raises ConfigError naming every setting of the tokenizer
    among them that contradicts the teacher.
    """
    result = dict(table)
    training = section_of(table, "training")
    hashes = [parent_hash(each) for each in teachers]
    result["training"] = {
        **training,
        "teacher": [str(each.path) for each in teachers],
        "teacher_manifest": training.get("teacher_manifest", hashes),
    }
    if training.get("init"):
        return result  # the tokenizers are those of the parent

    bundle = teachers[0]
    wanted, own = section_of(table, "tokenizer"), tokenizer_config(bundle).to_table()
    names = chosen_names(chosen, "tokenizer")

    faults = [
        f"tokenizer.{name} is {own.get(name, 'not set')} in the teacher, not {wanted.get(name)}"
        for name in sorted(names - set(FREE["tokenizer"]))
        if wanted.get(name) != own.get(name)
    ]
    if faults:
        raise ConfigError(
            f"a run that {bundle.path} teaches must have its tokenizers: " + "; ".join(faults),
            hint="leave these settings out, or train without training.teacher",
        )

    free = {name: wanted[name] for name in FREE["tokenizer"] if name in wanted}
    result["tokenizer"] = {**own, **{name: free[name] for name in free if name in names}}
    return result


def load_teachers(config: RunConfig) -> list[Bundle[SequenceModel]]:
    """The teachers of ``config``, if any, in evaluation mode and without gradients.

    Raises ConfigError if a hash is not the one in ``config`` or if one cannot teach that model,
    and what opening it raises.
    """
    named = zip(config.training.teacher, config.training.teacher_manifest, strict=True)
    return [_load_teacher(config, path, expected) for path, expected in named]


def _load_teacher(config: RunConfig, path: str, expected: str) -> Bundle[SequenceModel]:
    bundle = load_any_bundle(path)
    model, faults = bundle.model, []
    if expected != parent_hash(bundle):
        faults.append(
            f"training.teacher_manifest is {expected}, but the bundle has {parent_hash(bundle)}"
        )

    kind = model.config.kind
    if not isinstance(model, PredictsTokens) or model.config.translates != config.model.translates:
        faults.append(f"a {kind} does not predict what a {config.model.kind} does")

    # The teacher reads the same batches: their longest sentence must fit into its positions.
    longest = config.data.max_length + 1
    if model.max_length is not None and longest > model.max_length:
        faults.append(
            f"data.max_length={config.data.max_length} and a stop do not fit into its"
            f" {model.max_length} positions"
        )

    if faults:
        raise ConfigError(f"{path} cannot teach this run: " + "; ".join(faults))

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
    faults = [
        f"its {side} tokenizer is {that.kind} {that.fingerprint[:16]}, this run's is {this.kind}"
        f" {this.fingerprint[:16]}"
        for side, this, that in zip(("source", "target"), own, theirs, strict=True)
        if this.fingerprint != that.fingerprint
    ]
    if faults:
        raise ConfigError(
            f"{teacher.path} cannot teach this run: " + "; ".join(faults),
            hint="teach a new run, which takes the teacher's tokenizers, or let the teacher"
            " translate the training text by pellucid distill, which needs no like tokenizers",
        )
