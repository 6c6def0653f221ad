"""Several models that began as one, averaged into one: a "model soup"."""

import dataclasses
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from pellucid.bundle import BUNDLES_FOLDER, Bundle, save_bundle
from pellucid.core.errors import ConfigError
from pellucid.decoding.sentences import SHARE_KEY
from pellucid.equations.averages import mean_of_parameters
from pellucid.model.build import build_unfilled
from pellucid.model.seq2seq import SequenceModel
from pellucid.model.stored import load_model_tensors, model_tensors
from pellucid.training.card import average_card
from pellucid.training.parent import fixed_settings, parent_hash, section_of

_log = logging.getLogger("pellucid")


def average_bundles(
    bundles: Sequence[Bundle[SequenceModel]], weights: Sequence[float] | None = None
) -> Bundle[SequenceModel]:
    """A model whose every parameter is the mean of that parameter in the models of ``bundles``.

    Means are taken in float64 and stored in float32; tokenizers and settings are those of the first
    bundle. ``weights``, all equal unless given, need not sum to 1. If the
    models are not known to have begun as one, that is logged as a warning: such an average usually
    translates nothing.

    Raises ConfigError for fewer than two bundles, for models or tokenizers that differ, naming each
    difference, and for weights that ``equations.averages.mean_of_parameters`` refuses.
    """
    if len(bundles) < 2:
        raise ConfigError(f"an average needs at least two models, got {len(bundles)}")
    first = bundles[0]

    faults = [fault for other in bundles[1:] for fault in _differences(first, other)]
    if faults:
        raise ConfigError(
            "models of different kinds have no average: " + "; ".join(faults),
            hint="average bundles of one run, or of runs that began with the same bundle (--init)",
        )
    if not _began_as_one(bundles):
        _log.warning(
            "these models are not known to have begun as one: an average of models with different"
            " beginnings translates nothing; score it with pellucid evaluate"
        )

    tensors = [model_tensors(each.model) for each in bundles]
    means = {
        name: mean_of_parameters(torch.stack([own[name].double() for own in tensors]), weights)
        for name in tensors[0]
    }
    sizes = first.source_tokenizer.vocabulary_size, first.target_tokenizer.vocabulary_size
    model = build_unfilled(first.config, *sizes)
    load_model_tensors(model, means, Path("the average"))
    model.eval().requires_grad_(False)
    return dataclasses.replace(first, held=model, manifest={}, path=None)


def save_average(
    path: Path | str,
    bundles: Sequence[Bundle[SequenceModel]],
    weights: Sequence[float] | None = None,
) -> Bundle[SequenceModel]:
    """Write the average of ``bundles`` to the folder ``path``, and return it.

    Model card and manifest name the bundles that it was made of. Raises as ``average_bundles`` and
    ``save_bundle`` do.
    """
    average = average_bundles(bundles, weights)
    hashes = [parent_hash(each) for each in bundles]
    shares = list(weights or [1.0] * len(bundles))

    named = zip(hashes, shares, strict=True)
    details: dict[str, Any] = {
        "averaged": [{"sha256": digest, "weight": share} for digest, share in named]
    }
    if SHARE_KEY in bundles[0].manifest:
        # A translator cuts its input into sentences if the training text was cut so.
        details[SHARE_KEY] = bundles[0].manifest[SHARE_KEY]

    card = average_card(average.config, hashes, shares)
    save_bundle(path, average, card=card, details=details)
    return average


def _differences(first: Bundle[SequenceModel], other: Bundle[SequenceModel]) -> list[str]:
    ours, theirs = fixed_settings(first.config), fixed_settings(other.config)
    faults = [
        f"model.{name} is {ours.get(name)} in {first.path} and {theirs.get(name)} in {other.path}"
        for name in sorted(ours.keys() | theirs.keys())
        if ours.get(name) != theirs.get(name)
    ]

    for side in ("source", "target"):
        own, others = (getattr(each, f"{side}_tokenizer") for each in (first, other))
        if own.fingerprint != others.fingerprint:
            faults.append(f"{first.path} and {other.path} have different {side} tokenizers")
    return faults


def _began_as_one(bundles: Sequence[Bundle[SequenceModel]]) -> bool:
    """Whether all are of one run, began with the same bundle, or one of them is that bundle."""
    folders = {each.path.resolve().parent for each in bundles if each.path is not None}
    if len(folders) == 1 and next(iter(folders)).name == BUNDLES_FOLDER:
        return True

    # What each may have begun as: itself, or the bundle that its run fine-tuned.
    beginnings = [
        {parent_hash(each), section_of(each.settings, "training").get("parent")} - {None}
        for each in bundles
    ]
    return bool(set.intersection(*beginnings))
