"""Prepares a corpus for training runs: cleaned text, tokenizers, and the store of its ids.

    OUT/text/         the good pairs, one file for each side
    OUT/cache/        the tokenizers of the config, trained on them, and the store, which a run with
                      OUT/config.toml finds and streams
    OUT/config.toml   the config, with the cleaned text and the cache

Each folder appears when it is whole; called again after a kill, what is there is checked and used,
and what the killed process left is removed. One process at a time works in OUT.
"""

import dataclasses
import os
from pathlib import Path

from pellucid.core.config import write_toml
from pellucid.core.errors import ConfigError
from pellucid.core.files import remove_leftovers, write_errors, write_file
from pellucid.core.locks import take_lock
from pellucid.core.run_names import CONFIG_FILE, LOCK_FILE
from pellucid.text.corpus.chunks import InOrder
from pellucid.text.corpus.cleaning import (
    CleanText,
    Rules,
    clean_corpus,
    cleaned_files,
)
from pellucid.text.corpus.pairs import PairFiles, training_files
from pellucid.text.corpus.store import TokenStore
from pellucid.training.config import RunConfig
from pellucid.training.preparation import prepared_tokenizers, tokenized_files

TEXT_FOLDER = "text"
CACHE_FOLDER = "cache"


@dataclasses.dataclass(frozen=True)
class Prepared:
    """A corpus that is ready to be trained on."""

    config: Path
    text: CleanText
    store: TokenStore


def prepare(
    config: RunConfig, out: Path, rules: Rules, in_order: InOrder | None = None
) -> Prepared:
    """Clean the text of ``config`` and tokenize it into the folder ``out``.

    ``in_order`` does the work, on Ray for example; by default this machine does. The files are the
    same whoever does it. Raises ConfigError for a config without pairs of files or with shares,
    LockedError if another process prepares ``out``, and as ``clean_corpus`` and ``build_store`` do.
    """
    data = config.data
    if not data.source or data.weights or data.temperature is not None:
        raise ConfigError(
            "a corpus is prepared from data.source and data.target, without shares"
            " (data.weights, data.temperature)",
            hint="--set data.source=train.en --set data.target=train.de",
        )

    # Both directions are those of the cleaned pairs; the config that is written has the setting.
    files = training_files(data.model_copy(update={"both_directions": False}))
    prepared = _prepared_config(config, cleaned_files(files, out / TEXT_FOLDER), out / CACHE_FOLDER)

    with write_errors(out):
        out.mkdir(parents=True, exist_ok=True)
    lock = take_lock(out / LOCK_FILE)
    try:
        for folder in (out, out / CACHE_FOLDER):
            # A run may be using the cache too, with another vocabulary: what it writes is not old.
            remove_leftovers(folder, unless_held=True)
        return _prepare(prepared, files, out, rules, in_order)
    finally:
        os.close(lock)


def _prepared_config(config: RunConfig, cleaned: PairFiles, cache: Path) -> RunConfig:
    """The config with the cleaned text and the cache. Raises ConfigError, before any work."""
    data = config.data
    if data.format not in ("auto", "plain") and data.valid_source:
        raise ConfigError(
            f"data.format={data.format} would hold for the cleaned text too, which is plain",
            hint="without data.format, validation files are read by their suffix, such as .tsv",
        )

    table = config.to_table()
    table["data"] = table.get("data", {}) | {
        "source": [str(cleaned.sources[0])],
        "target": [str(cleaned.targets[0])],
        "format": "auto",
        "cache": str(cache),
    }
    return RunConfig.parse(table, origin="the prepared corpus")


def _prepare(
    prepared: RunConfig, files: PairFiles, out: Path, rules: Rules, in_order: InOrder | None
) -> Prepared:
    text = clean_corpus(files, out / TEXT_FOLDER, rules, in_order or map)
    _, store = tokenized_files(prepared, prepared_tokenizers(prepared), None, in_order)

    # Last: a config that is there names text and a store that are whole.
    path = out / CONFIG_FILE
    write_file(path, write_toml(prepared.to_table()).encode())
    return Prepared(path, text, store)
