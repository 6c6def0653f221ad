"""Models that were fine-tuned from the same bundle, averaged into one: a "model soup"."""

import dataclasses
import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from pellucid.bundle import LONGEST_KEY, Bundle, save_bundle
from pellucid.core.errors import ConfigError, list_problems
from pellucid.core.files import read_manifest, refuse_to_overwrite
from pellucid.core.run_names import BUNDLES_FOLDER
from pellucid.decoding.sentences import SHARE_KEY
from pellucid.decoding.suspicious import USUAL_KEY
from pellucid.equations.averages import mean_of_parameters
from pellucid.model.build import build_unfilled
from pellucid.model.seq2seq import SequenceModel
from pellucid.model.stored import model_tensors
from pellucid.text.seen_words import all_seen
from pellucid.training.card import average_card
from pellucid.training.parent import fixed_settings, section_of

_log = logging.getLogger("pellucid")


def average_bundles(
    bundles: Sequence[Bundle[SequenceModel]], weights: Sequence[float] | None = None
) -> Bundle[SequenceModel]:
    """A model in which every parameter is the mean of that parameter in the models of ``bundles``.

    Means are computed in float64 and stored in float32. Tokenizers and settings are those of the
    first bundle; a word is seen if any of them has seen it. ``weights``, all equal unless given,
    need not sum to 1. A warning is logged if the models are not known to be of one run or to be
    fine-tuned from the same bundle.

    Raises ConfigError for fewer than two bundles, for one that is given twice, for models with
    different settings or tokenizers, naming each difference, and for weights that
    ``mean_of_parameters`` refuses.
    """
    if len(bundles) < 2:
        raise ConfigError(
            f"an average needs at least two models, got {len(bundles)}",
            hint="name the bundles of a run one by one, such as runs/de/bundles/step-*",
        )
    first = bundles[0]

    problems = [*_differences(bundles), *_repetitions(bundles)]
    if problems:
        raise ConfigError(
            f"these models cannot be averaged: {list_problems(problems)}",
            hint="average bundles of one run, or of runs that began with the same bundle (--init)",
        )
    if not _have_one_origin(bundles):
        _log.warning(
            "these models are not known to be fine-tuned from the same bundle: averages of models"
            " with different initializations are usually useless"
        )

    tensors = [model_tensors(each.model) for each in bundles]
    sizes = first.source_tokenizer.vocabulary_size, first.target_tokenizer.vocabulary_size
    model = build_unfilled(first.config, *sizes)
    with torch.no_grad():
        for name, parameter in model_tensors(model).items():
            values = torch.stack([own[name].double() for own in tensors])
            parameter.copy_(mean_of_parameters(values, weights))
    model.eval().requires_grad_(False)

    return dataclasses.replace(
        first,
        held=model,
        settings=_settings_of_all(bundles),
        manifest={},
        path=None,
        seen_words=all_seen(each.seen_words for each in bundles),
    )


def save_average(
    path: Path | str,
    bundles: Sequence[Bundle[SequenceModel]],
    weights: Sequence[float] | None = None,
) -> Bundle[SequenceModel]:
    """Write the average of ``bundles`` to the new folder ``path``, and return it.

    Its model card and manifest name the bundles that it was made of. Raises as ``average_bundles``
    and ``save_bundle`` do, OutputExistsError if ``path`` is not free, and ConfigError if a bundle
    was not read from a folder.
    """
    refuse_to_overwrite(Path(path))
    unsaved = [
        str(number)
        for number, each in enumerate(bundles, 1)
        if each.path is None or "sha256" not in each.manifest
    ]
    if unsaved:
        raise ConfigError(
            f"an average names the bundles it is made of, but {', '.join(unsaved)} of"
            f" {len(bundles)} was never saved",
            hint="save it with save_bundle and open it with load_any_bundle",
        )
    # plain numbers: a manifest holds no others, such as numpy's
    shares = [1.0] * len(bundles) if weights is None else [float(each) for each in weights]
    average = average_bundles(bundles, None if weights is None else shares)

    hashes = [str(each.manifest["sha256"]) for each in bundles]
    members = list(zip(hashes, shares, strict=True))
    details: dict[str, Any] = {
        "averaged": [{"sha256": digest, "weight": share} for digest, share in members]
    }
    # A translator splits its input into sentences if the training text had one in a line.
    for key in (SHARE_KEY, USUAL_KEY, LONGEST_KEY):
        if key in bundles[0].manifest:
            details[key] = bundles[0].manifest[key]

    names = [each.path.name if each.path is not None else "" for each in bundles]
    card = average_card(average.config, names, members)
    save_bundle(path, average, card=card, details=details)
    return dataclasses.replace(average, manifest=read_manifest(Path(path)), path=Path(path))


def _differences(bundles: Sequence[Bundle[SequenceModel]]) -> Iterator[str]:
    first = bundles[0]
    for number, other in enumerate(bundles[1:], 2):
        names = str(first.path or "the first"), str(other.path or f"number {number}")
        ours, theirs = fixed_settings(first.config), fixed_settings(other.config)
        for name in sorted(ours.keys() | theirs.keys()):
            if ours.get(name) != theirs.get(name):
                yield (
                    f"model.{name} is {ours.get(name)} in {names[0]},"
                    f" {theirs.get(name)} in {names[1]}"
                )

        for side in ("source", "target"):
            own, others = (getattr(each, f"{side}_tokenizer") for each in (first, other))
            if own.fingerprint != others.fingerprint:
                yield f"{names[0]} and {names[1]} have different {side} tokenizers"


def _repetitions(bundles: Sequence[Bundle[SequenceModel]]) -> Iterator[str]:
    seen: set[object] = set()
    for number, each in enumerate(bundles, 1):
        # by its model if it was never saved
        identity = each.manifest.get("sha256") or id(each.model)
        if identity in seen:
            name = each.path or f"number {number}"
            yield f"{name} is given twice (a weight makes a model count more)"
        seen.add(identity)


def _have_one_origin(bundles: Sequence[Bundle[SequenceModel]]) -> bool:
    """Whether all are of one run, were fine-tuned from the same bundle, or one is that bundle."""
    folders = {each.path.resolve().parent if each.path else None for each in bundles}
    [folder, *others] = folders
    if folder is not None and folder.name == BUNDLES_FOLDER and not others:
        return True

    return bool(set.intersection(*map(_origins, bundles)))


def _origins(bundle: Bundle[SequenceModel]) -> set[str]:
    """Return the digests of the models that a model comes from: itself, the bundle that its run
    fine-tuned, those it averages.

    Manifest and settings may be a stranger's: whatever is no text is left out.
    """
    averaged = bundle.manifest.get("averaged")
    members = averaged if isinstance(averaged, list) else []
    found = [
        bundle.manifest.get("sha256"),
        section_of(bundle.settings, "training").get("parent"),
        *(member.get("sha256") for member in members if isinstance(member, dict)),
    ]
    return {each for each in found if isinstance(each, str)}


def _settings_of_all(bundles: Sequence[Bundle[SequenceModel]]) -> dict[str, Any]:
    """The settings of the first, without its parent unless all have the same."""
    settings = dict(bundles[0].settings)
    first, *others = (section_of(each.settings, "training").get("parent") for each in bundles)
    if "training" in settings and any(each != first for each in others):
        training = section_of(settings, "training").items()
        settings["training"] = {k: value for k, value in training if k not in ("init", "parent")}
    return settings
