"""Prepares a corpus for training runs: cleaned text, tokenizers, and the store of its ids.

    OUT/text/         the good pairs, one file for each side
    OUT/cache/        the tokenizers of the config, trained on them, and the store, which a run with
                      OUT/config.toml finds and streams
    OUT/config.toml   the config, with the cleaned text and the cache

Each folder appears when it is whole; called again after a kill, what is there is checked and used.
"""

import dataclasses
from pathlib import Path

from pellucid.core.config import write_toml
from pellucid.core.errors import ConfigError
from pellucid.core.files import CONFIG_FILE, write_errors, write_file
from pellucid.text.corpus.cleaning import CleanText, InOrder, Rules, clean_corpus, one_by_one
from pellucid.text.corpus.pairs import training_files
from pellucid.text.corpus.store import TokenStore
from pellucid.training.config import RunConfig
from pellucid.training.data import prepared_tokenizers, tokenized_files

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
    same whoever does it. Raises ConfigError for a config without pairs of files or with shares, and
    as ``clean_corpus`` and ``build_store`` do.
    """
    data = config.data
    if not data.source or data.weights or data.temperature is not None:
        raise ConfigError(
            "a corpus is prepared from data.source and data.target, without shares"
            " (data.weights, data.temperature)",
            hint="--set data.source=train.en --set data.target=train.de",
        )

    with write_errors(out):
        out.mkdir(parents=True, exist_ok=True)
    # Both directions are those of the cleaned pairs; the config that is written has the setting.
    one_way = data.model_copy(update={"both_directions": False})
    text = clean_corpus(training_files(one_way), out / TEXT_FOLDER, rules, in_order or one_by_one)

    table = config.to_table()
    table["data"] = table.get("data", {}) | {
        "source": [str(text.files.sources[0])],
        "target": [str(text.files.targets[0])],
        "format": "plain",
        "cache": str(out / CACHE_FOLDER),
    }
    prepared = RunConfig.parse(table, origin="the prepared corpus")
    _, store = tokenized_files(prepared, prepared_tokenizers(prepared), None, in_order)

    # Last: a config that is there names text and a store that are whole.
    path = out / CONFIG_FILE
    write_file(path, write_toml(prepared.to_table()).encode())
    return Prepared(path, text, store)
