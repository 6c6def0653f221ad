"""Training from text files and a number of minutes, without a config: all settings are chosen."""

import contextlib
import math
import numbers
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pellucid.core.errors import ConfigError
from pellucid.core.files import write_file
from pellucid.core.limits import shown
from pellucid.core.run_names import RECIPE_FILE
from pellucid.text.config import DataConfig
from pellucid.text.corpus.facts import PairSample, corpus_facts, sample_pairs
from pellucid.text.corpus.pairs import iterate_pairs, training_files
from pellucid.training.calibration import Bench
from pellucid.training.config import RunConfig
from pellucid.training.folder import refuse_if_used
from pellucid.training.held_out import held_out_count
from pellucid.training.journal import Listener
from pellucid.training.preparation import read_validation
from pellucid.training.presets import read_overrides
from pellucid.training.recipe import Recipe
from pellucid.training.train import TrainingResult, train

DEFAULT_MINUTES = 30.0
"""Enough on one core for some ten thousand short sentences."""


def choose_config(
    source: Path | str,
    target: Path | str | None = None,
    *,
    minutes: float = DEFAULT_MINUTES,
    valid: tuple[Path | str, Path | str] | None = None,
    overrides: Sequence[str] = (),
    has_no_clock: bool = False,
) -> Recipe:
    """A config that suits this corpus, ``minutes`` and this machine, with its reasons.

    ``target`` is left out if ``source`` holds both sides (TSV or JSONL). ``valid`` names text to
    validate on; without it some pairs are held out. ``overrides`` are like those of ``pellucid
    train --set`` and replace what was chosen. With ``has_no_clock`` the passes or updates among
    them alone end the run, and the minutes only choose the size of the model. Choosing takes up to
    half a minute, to time updates.

    Raises ConfigError for invalid minutes or overrides, and what reading the files raises.
    """
    if not isinstance(minutes, numbers.Real):
        raise ConfigError(f"minutes must be a number, got {shown(minutes)}")
    if not 0 < minutes < math.inf:
        raise ConfigError(f"minutes must be positive, got {minutes:g}", hint="minutes=30, say")

    names: dict[str, Path | str | None] = {"source": source, "target": target}
    if valid is not None:
        if not isinstance(valid, tuple | list) or len(valid) != 2:
            raise ConfigError(f"valid must be two files, source and target, got {shown(valid)}")
        names |= {"valid_source": valid[0], "valid_target": valid[1]}
    for name, path in names.items():
        if not isinstance(path, str | Path) and (path is not None or name == "source"):
            raise ConfigError(
                f"{name} must be the path of a file, got {shown(path)}",
                hint="pellucid.Seq2SeqTranslator().fit(sources, targets) trains on lists",
            )
    files = {name: str(path) for name, path in names.items() if path is not None}

    # Before reading the corpus, which takes time: a misspelled setting raises at once.
    given = read_overrides(overrides)
    data = DataConfig.parse(files, origin="the text files")

    # Before the corpus, too: blank validation text is found at once.
    validation = read_validation(data)

    with contextlib.closing(iterate_pairs(training_files(data))) as pairs:
        longest = given.get("data.max_length", data.max_length)
        sample = _without_longer(sample_pairs(pairs), longest)

    # Validation text decides how long a validation takes, and so how often there may be one.
    valid_pairs = held_out_count(sample.total) if validation is None else len(validation.sources)
    bench = Bench(corpus_facts(sample), sample, files, given)
    return bench.recipe(minutes, valid_pairs, has_no_clock=has_no_clock)


def _without_longer(sample: PairSample, longest: object) -> PairSample:
    """The sample without the pairs that have more words than a run reads tokens, which would be
    left out: one line that holds a whole book is most of the words of a small corpus."""
    if not isinstance(longest, int):
        return sample  # parsing the config refuses it
    both = zip(sample.sources, sample.targets, strict=True)
    kept = [pair for pair in both if max(len(text.split()) for text in pair) <= longest]
    if not kept or len(kept) == len(sample.sources):
        return sample  # of none, measuring says why
    total = round(sample.total * len(kept) / len(sample.sources))
    return PairSample(total, *map(list, zip(*kept, strict=True)))


def train_files(
    source: Path | str,
    target: Path | str | None = None,
    *,
    out: Path | str,
    minutes: float = DEFAULT_MINUTES,
    valid: tuple[Path | str, Path | str] | None = None,
    overrides: Sequence[str] = (),
    listener: Listener | None = None,
) -> TrainingResult:
    """Choose a config with ``choose_config`` and train with it into the run folder ``out``.

    The config with its reasons is written to ``recipe.toml`` there, to be edited and trained again.
    Raises as ``choose_config`` and ``train`` do.
    """
    folder = Path(out)
    refuse_if_used(folder)  # before half a minute of measuring

    recipe = choose_config(source, target, minutes=minutes, valid=valid, overrides=overrides)
    return train(config_of(recipe), folder, listener=keeping(recipe, folder, listener))


def config_of(recipe: Recipe) -> RunConfig:
    """The recipe as a config. Raises ConfigError for overrides that do not fit what was chosen."""
    return RunConfig.parse(recipe.table(), origin="--set over what was chosen")


def keeping(recipe: Recipe, out: Path, listener: Listener | None = None) -> Listener:
    """A listener that writes the recipe into the run folder when the run starts.

    Not earlier, because the folder of a new run must be empty. ``listener`` gets every event.
    """

    def hear(event: dict[str, Any]) -> None:
        # The folder has been made and locked by now.
        if event["event"] == "start":
            write_file(out / RECIPE_FILE, recipe.to_toml().encode())
        if listener is not None:
            listener(event)

    return hear
