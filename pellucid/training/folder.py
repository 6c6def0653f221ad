"""The folder of a run: its layout, its lock for one writing process, and which bundles it keeps.

config.toml     the complete, resolved config
tokenizer/      the tokenizers
data/           tokenized training text
checkpoints/    states to resume from
bundles/        models to translate with, the best by score and the latest
film/           the parameters at some updates, if asked for
journal.jsonl   one event in each line
"""

import contextlib
import logging
import os
import shutil
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pellucid.bundle import best_first
from pellucid.core import system
from pellucid.core.config import by_dotted_name, read_toml, write_toml
from pellucid.core.errors import (
    ConfigError,
    CorruptError,
    DataError,
    InputMissingError,
    OutputExistsError,
    UnsupportedSystemError,
)
from pellucid.core.files import (
    read_manifest,
    remove_folder,
    remove_leftovers,
    write_errors,
    write_file,
)
from pellucid.core.locks import lock_holder, locked_error, take_lock
from pellucid.core.run_names import (
    BUNDLES_FOLDER,
    CHECKPOINTS_FOLDER,
    CONFIG_FILE,
    DATA_FOLDER,
    FILM_FOLDER,
    JOURNAL_FILE,
    LOCK_FILE,
    TOKENIZER_FOLDER,
    step_name,
    steps_in,
)
from pellucid.text.config import file_format
from pellucid.text.corpus.addresses import address_of
from pellucid.training.config import RunConfig

if TYPE_CHECKING:
    from pellucid.core.world import World


def _names(sections: dict[str, str]) -> frozenset[str]:
    return frozenset(f"{name}.{key}" for name, keys in sections.items() for key in keys.split())


MAY_CHANGE = _names(
    {
        "data": "workers",
        "tokenizer": "training_lines",
        "training": "max_steps max_epochs max_minutes patience keep_bundles keep_checkpoints"
        " film_every log_every save_every log_to validate_beam_size learning_rate warmup_steps"
        " clip_norm init teacher sharding",
    }
)
"""Settings that may differ when a run is resumed. They decide when it ends, what it keeps, and how
it continues from the last good checkpoint after the loss became NaN or infinite. ``data.workers``
and ``tokenizer.training_lines`` only affect tokenizing, which is done. ``validate_beam_size``
changes later scores and no parameter. ``sharding`` changes where parameters lie and not what they
are. ``init`` and ``teacher`` may point to a new path, as ``training.parent`` and
``training.teacher_manifest`` hold the hashes that they must match."""
MAY_MOVE = _names(
    {
        "data": "source target text valid_source valid_target valid_text cache alignments"
        " valid_alignments"
    }
)
"""Files whose text and not whose path decides, once a checkpoint has recorded its hashes: it is
compared when the run has read it. Other training text is refused, other validation text is ranked
again."""

_FOLDERS = (CHECKPOINTS_FOLDER, BUNDLES_FOLDER, FILM_FOLDER, DATA_FOLDER)

_log = logging.getLogger("pellucid")


class RunFolder:
    """A run folder that this process alone has locked inside the ``with`` block.

    Raises LockedError if another process has locked it, OutputExistsError if it is not empty and
    not to be resumed, ConfigError if it is to be resumed with another config.
    """

    def __init__(self, path: Path, config: RunConfig, *, resume: bool) -> None:
        self.path = path
        self.journal_path = path / JOURNAL_FILE
        self.data_path = path / DATA_FOLDER
        self._config = config
        self._resume = resume
        self._lock = -1
        self._former: bytes | None = None
        """The config of the run that is resumed."""

    def __enter__(self) -> Self:
        """Create or open the folder and take its lock."""
        if not self._resume:
            refuse_if_used(self.path)

        # Locked before anything is read or removed: another process may still be at work.
        with write_errors(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
        self._lock = take_lock(self.path / LOCK_FILE)

        try:
            with write_errors(self.path):
                (self.path / CHECKPOINTS_FOLDER).mkdir(exist_ok=True)
                (self.path / BUNDLES_FOLDER).mkdir(exist_ok=True)
            config_path = self.path / CONFIG_FILE

            # Without a config the earlier run was killed before it had written one.
            if self._resume and config_path.exists():
                has_saved = any((self.path / CHECKPOINTS_FOLDER).glob("step-*"))
                _refuse_other_config(self._config, read_toml(config_path), may_move=has_saved)
                self._former = config_path.read_bytes()
            for folder in (self.path, *(self.path / name for name in _FOLDERS)):
                remove_leftovers(folder)
            write_file(config_path, write_toml(self._config.to_table()).encode())
        except BaseException as error:
            self._leave(error)
            raise
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        """Release the lock; if the run failed before it saved anything, clear the folder."""
        # Text that is not the run's is noticed when it has been read.
        if isinstance(error, ConfigError | DataError) and self._former is not None:
            write_file(self.path / CONFIG_FILE, self._former)

        self._leave(error)

    def _leave(self, error: BaseException | None) -> None:
        # Ctrl-C is no failure: what was prepared until then stays, to be resumed.
        saved = (self.path / name for name in (CHECKPOINTS_FOLDER, BUNDLES_FOLDER))
        holds_work = self.journal_path.exists() or any(any(folder.glob("*")) for folder in saved)
        if not self._resume and isinstance(error, Exception) and not holds_work:
            # What this process made, so that the corrected command finds the folder empty.
            for name in (TOKENIZER_FOLDER, *_FOLDERS):
                shutil.rmtree(self.path / name, ignore_errors=True)
            for name in (CONFIG_FILE, LOCK_FILE):
                (self.path / name).unlink(missing_ok=True)
        os.close(self._lock)

    def check_seen(self, world: "World") -> None:
        """Raise ConfigError unless the folder has this process's own config.

        Every process calls this: on several machines ``out`` may be a different disk on each.
        """
        path = self.path / CONFIG_FILE
        who = f"process {world.rank} of {world.size} on {socket.gethostname()}"
        try:
            differing = _differing(self._config, read_toml(path))
        except InputMissingError:
            raise ConfigError(
                f"{who} does not find the run folder {self.path} that the first one has made",
                hint="choose an --out that lies on a disk of all machines",
            ) from None
        if differing:
            raise ConfigError(
                f"{who} was started with other settings than the first: {', '.join(differing)}",
                hint="start all of them with the same command",
            )

    def checkpoint_path(self, step: int) -> Path:
        """Where the checkpoint of ``step`` belongs."""
        return self.path / CHECKPOINTS_FOLDER / step_name(step)

    def bundle_path(self, step: int) -> Path:
        """Where the bundle made at ``step`` belongs."""
        return self.path / BUNDLES_FOLDER / step_name(step)

    def frame_path(self, step: int) -> Path:
        """Where the frame of the film at ``step`` belongs."""
        return self.path / FILM_FOLDER / step_name(step)

    def remove_models_after(self, step: int) -> None:
        """Delete the bundles and the frames of the film made after the update ``step``."""
        for kind in (BUNDLES_FOLDER, FILM_FOLDER):
            for made_at, folder in steps_in(self.path / kind):
                if made_at > step:
                    remove_folder(folder)


def goes_on(path: Path, *, resume: bool) -> bool:
    """Whether the run in ``path`` goes on: as ``resume`` asks, or because torchrun restarted it.

    A run that was restarted has left its lock file. A folder without one holds something else,
    which the first attempt has refused and the second must refuse too.
    """
    was_restarted = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") != "0"
    return resume or (was_restarted and (path / LOCK_FILE).exists())


def refuse_if_used(path: Path) -> None:
    """Raise LockedError if a run is at work in ``path``, OutputExistsError if it is not empty, and
    UnsupportedSystemError on Windows.
    """
    if system.LACKS_POSIX:
        raise UnsupportedSystemError("training")
    holder = lock_holder(path / LOCK_FILE)
    if holder is not None:
        raise locked_error(path / LOCK_FILE, holder)
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise OutputExistsError(
            f"{path} already holds something",
            hint="choose another --out, or go on with the run in it by --resume",
        )


def _refuse_other_config(config: RunConfig, saved: dict[str, Any], *, may_move: bool) -> None:
    # A setting that did not exist yet when the run began has its default. A config that is none any
    # longer is compared as it is, which names what differs.
    with contextlib.suppress(ConfigError):
        saved = RunConfig.parse(saved, CONFIG_FILE).to_table()
    new, old = by_dotted_name(config.to_table()), by_dotted_name(saved)
    differing = _differing(config, saved)

    # A run that held out pairs of its own has no validation file that could have moved, and a file
    # that is named in two ways is read in two ways: train.tsv is not train.txt.
    moved = {
        key for key in MAY_MOVE if may_move and _suffixes(new.get(key)) == _suffixes(old.get(key))
    }
    forbidden = [key for key in differing if key not in MAY_CHANGE | moved]
    if forbidden:
        changes = "; ".join(f"{key}: {old.get(key)} -> {new.get(key)}" for key in forbidden)
        raise ConfigError(
            f"cannot resume with other settings: {changes}",
            hint="resume with the settings of the run, or start another in a new --out",
        )

    for key in differing:
        _log.warning("resuming with %s = %s (was %s)", key, new.get(key), old.get(key))


def _suffixes(names: object) -> list[tuple[str, str]] | None:
    """How the files of a setting are read, by their names; None if it names none."""
    if not names or not isinstance(names, str | list | tuple):
        return None
    every = [names] if isinstance(names, str) else [str(name) for name in names]
    return [(file_format(name), address_of(name).column) for name in every]


def _differing(config: RunConfig, saved: dict[str, Any]) -> list[str]:
    """The dotted names of the settings that differ from the saved config."""
    new, old = by_dotted_name(config.to_table()), by_dotted_name(saved)
    return sorted(key for key in new.keys() | old.keys() if new.get(key) != old.get(key))


def remove_worse(run: Path, keep: int) -> None:
    """Delete all bundles of a run but the ``keep`` best and the latest.

    A bundle with a damaged manifest is not deleted; a warning names it. Nor is one that the run did
    not make, which has no score, or one whose score is of other validation text or of another
    figure. The one that was saved before the first validation is deleted.
    """
    found = []
    for step, folder in steps_in(run / BUNDLES_FOLDER):
        try:
            manifest = read_manifest(folder)
        except (CorruptError, InputMissingError) as error:
            _log.warning("left as it is: %s", error)
            continue

        if "score" in manifest or manifest.get("validated") is False:
            found.append((manifest, step, folder))

    # The latest is kept, as it may be wanted although an earlier one scored better.
    latest = max((step for _, step, _ in found), default=None)
    scored = [(manifest, folder) for manifest, _, folder in found if "score" in manifest]
    worse = {*best_first(scored)[keep:], *(path for each, _, path in found if "score" not in each)}
    for _, step, folder in found:
        if folder in worse and step != latest:
            remove_folder(folder)
