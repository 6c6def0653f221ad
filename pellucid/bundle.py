"""A model on disk: everything needed to use it again, and nothing that could run code.

config.toml          the whole config of the run that made it
model.safetensors    the parameters
source.* target.*    the tokenizers (``shared.*`` when both sides use one)
words.txt            the words of the source text, if they are few
README.md            the model card
manifest.json        size and SHA-256 of each file, fingerprint of each tensor
"""

import dataclasses
import itertools
import logging
import math
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Literal, cast

from typing_extensions import TypeVar

from pellucid.core.config import read_toml, write_toml
from pellucid.core.errors import (
    BundleError,
    ConfigError,
    CorruptError,
    InputMissingError,
    MissingExtraError,
    OutputExistsError,
    PellucidError,
)
from pellucid.core.files import (
    LARGEST_MANIFEST,
    MANIFEST_NAME,
    HeldFile,
    is_sparse,
    manifest_text,
    read_manifest,
    read_plain,
    require_model_folder,
    sha256_of,
    verified_reading,
    write_file,
    write_folder,
)
from pellucid.core.limits import LOAD_SECONDS, Deadline
from pellucid.core.run_names import BUNDLES_FOLDER, CONFIG_FILE
from pellucid.core.system import after_fork
from pellucid.model.config import ModelConfig, parse_model_config
from pellucid.text.seen_words import WORDS_FILE, SeenWords
from pellucid.text.tokenizers.interface import Tokenizer
from pellucid.text.tokenizers.tokenizer import load_tokenizer

if TYPE_CHECKING:
    from pellucid.core.held_tensors import HeldTensors
    from pellucid.model.clear import ClearModel
    from pellucid.model.seq2seq import Seq2Seq, SequenceModel

MODEL_FILE = "model.safetensors"
CARD_FILE = "README.md"
UNSURE_KEY = "unsure_below"
"""The manifest's key for the bound ``Bundle.unsure_below``."""
LONGEST_KEY = "longest_source"
"""The manifest's key for the bound ``Bundle.longest_source``."""
QUALITY_KEY = "quality"
"""The manifest's key for the scale ``Bundle.quality_points``."""
VALIDATION_KEY = "validation"
"""The manifest's key for the scores of the validation text by name, each with its signature."""
_MOST_POINTS = 100
_MOST_ATTEMPTS = 10
"""How often reading is tried again while another process replaces the bundle."""
_TOKENIZER_NAMES = ("shared", "source", "target")

_log = logging.getLogger("pellucid")


ModelT_co = TypeVar("ModelT_co", bound="SequenceModel", default="Seq2Seq", covariant=True)


class StoredModel(Generic[ModelT_co]):
    """A model that is read from its file when it is first used.

    A program that translates with a converted copy never reads it, and so never imports torch. The
    file stays open, so that the model is that of the manifest even if the bundle is replaced or
    removed in the meantime. Safe to use from several threads.
    """

    def __init__(
        self, file: HeldFile, config: ModelConfig, vocabulary_sizes: tuple[int, int], device: str
    ) -> None:
        self.config = config
        self.device = device
        self._file: HeldFile | None = file
        self._sizes = vocabulary_sizes
        self._model: SequenceModel | None = None
        self._waiting: list[Callable[[], None]] = []
        self._lock = threading.RLock()  # reentrant: a callback may read the model
        _stored_models.add(self)

    def in_fork(self) -> None:
        """Take a new lock: a thread of the parent may have held the other. For every fork."""
        self._lock = threading.RLock()

    @property
    def is_read(self) -> bool:
        """Whether the model is in memory."""
        return self._model is not None

    def read(self) -> ModelT_co:
        """The model, frozen and in evaluation mode; the same object each time.

        Raises CorruptError if the file was changed in place, MissingExtraError without torch, and
        as ``load_bundle`` does for a model that does not fit its config.
        """
        with self._lock:
            if self._model is None:
                # imported here: torch is needed from now on
                assert self._file is not None
                try:
                    from pellucid.model.stored import read_model
                except ModuleNotFoundError as error:
                    raise (
                        MissingExtraError.of_training(error, "the model itself") or error
                    ) from None

                path = self._file.path
                try:
                    model = read_model(self._file.read(), path, self.config, self._sizes)
                except ConfigError as error:
                    origin = path.with_name(CONFIG_FILE)
                    raise ConfigError(f"{origin}: {error}", hint=error.hint) from None
                self._model = model.to(self.device)
                self._file = None

            # Inside the lock: the callbacks run before another thread gets the model. One by one:
            # those that a fork, or an error of another, left are called by the next reading.
            while self._waiting:
                self._waiting.pop(0)()
            return cast("ModelT_co", self._model)

    def tensors(self) -> "HeldTensors | None":
        """The parameters, which numpy reads from the file one by one; None if only torch can.

        They are compared with the manifest by ``verify``, which the caller calls when it has read
        what it needs. Raises CorruptError if it is no safetensors file.
        """
        from pellucid.core.held_tensors import HeldTensors

        with self._lock:
            if self._model is not None:
                return None
            assert self._file is not None
            try:
                return HeldTensors(self._file)
            except KeyError:  # a type that numpy does not have, such as bfloat16
                return None

    def parameter_count(self) -> int:
        """The number of parameters; from the header of the file if the model is not read yet.

        Raises CorruptError if the file has no such header.
        """
        from pellucid.core.held_tensors import count_numbers

        with self._lock:
            if self._model is not None:
                return sum(parameter.numel() for parameter in self._model.parameters())
            assert self._file is not None
            return count_numbers(self._file)

    def verify(self) -> None:
        """Compare the file with the manifest, without keeping its content. Raises CorruptError."""
        if self._file is not None:
            self._file.verify()

    def when_read(self, call: Callable[[], None]) -> None:
        """Call ``call`` before ``read`` returns the model; at once if it is already read."""
        with self._lock:
            if self._model is None:
                self._waiting.append(call)
                return
        # outside the lock: the model is there, and a callback may take as long as it likes
        call()


_stored_models: weakref.WeakSet[StoredModel[Any]] = weakref.WeakSet()


def _in_fork() -> None:
    for stored in list(_stored_models):
        stored.in_fork()


after_fork(_in_fork)


@dataclasses.dataclass(frozen=True)
class Bundle(Generic[ModelT_co]):
    """A model with its tokenizers, settings and manifest.

    ``Bundle`` by itself is one that translates, ``Bundle[SequenceModel]`` one of any kind.
    """

    held: "ModelT_co | StoredModel[ModelT_co]"
    """The model, or the file that it is read from on first access."""
    source_tokenizer: Tokenizer
    target_tokenizer: Tokenizer
    settings: dict[str, Any]
    """The whole config, section by section, as it stands in ``config.toml``."""
    manifest: dict[str, Any]
    path: Path | None = None
    seen_words: SeenWords | None = None
    """The words of the source text that it was trained on; None if they were not kept."""

    @property
    def model(self) -> ModelT_co:
        """The torch module; if it was not read yet, raises as ``StoredModel.read`` does."""
        return self.held.read() if isinstance(self.held, StoredModel) else self.held

    @property
    def config(self) -> ModelConfig:
        """The config of the model; known before the model is read."""
        return self.held.config

    @property
    def max_length(self) -> int | None:
        """The longest sequence it can number, in tokens with the stop; None is no limit."""
        return self.config.max_length

    @property
    def unsure_below(self) -> float | None:
        """The mean log-probability of a token below which its translations are unsure.

        It is that of its validation; None if there was none.
        """
        bound = self.manifest.get(UNSURE_KEY)
        return bound if isinstance(bound, float) and bound < 0.0 else None

    @property
    def longest_source(self) -> int | None:
        """The tokens of the longest sources that it learned from, but for a few; None if that is
        unknown."""
        longest = self.manifest.get(LONGEST_KEY)
        return longest if isinstance(longest, int) and longest > 0 else None

    @property
    def quality_points(self) -> tuple[tuple[float, float], ...] | None:
        """The scale by which the quality of a translation is known, as ``decoding.quality`` has it.

        None if it was not calibrated, or if what the manifest has is no rising scale.
        """
        stored = self.manifest.get(QUALITY_KEY)
        if not isinstance(stored, list) or not 0 < len(stored) <= _MOST_POINTS:
            return None
        for pair in stored:
            if not (isinstance(pair, list) and len(pair) == 2):
                return None
            if not all(isinstance(each, float) and math.isfinite(each) for each in pair):
                return None

        points = tuple((log_prob, quality) for log_prob, quality in stored)
        rises = all(
            one[0] < other[0] and one[1] <= other[1] for one, other in itertools.pairwise(points)
        )
        return points if rises and points[0][1] >= 0.0 and points[-1][1] <= 1.0 else None

    @property
    def device(self) -> str:
        """Where the model is, or will be when it is read: ``cpu``, ``cuda``."""
        if isinstance(self.held, StoredModel) and not self.held.is_read:
            return self.held.device
        return next(self.model.parameters()).device.type

    @property
    def parameter_count(self) -> int:
        """The number of parameters; counting them does not read the model."""
        if isinstance(self.held, StoredModel):
            return self.held.parameter_count()
        return sum(parameter.numel() for parameter in self.model.parameters())

    def when_read(self, call: Callable[[], None]) -> None:
        """Call ``call`` once the model is in memory; at once if it already is."""
        if isinstance(self.held, StoredModel):
            self.held.when_read(call)
        else:
            call()


def save_bundle(
    path: Path | str, bundle: "Bundle[SequenceModel]", *, card: str, details: Mapping[str, Any]
) -> None:
    """Write ``bundle`` to the folder ``path`` in one step, with its model card.

    ``details`` (step, score, ...) go into the manifest. A bundle that is there is replaced. Raises
    OutputExistsError if there is anything else or a file that the bundle does not list, WriteError.
    """
    from pellucid.core.tensors import fingerprint, save_tensors
    from pellucid.model.stored import model_tensors

    _refuse_to_replace(Path(path))
    tensors = model_tensors(bundle.model)

    def fill(folder: Path) -> None:
        (folder / CONFIG_FILE).write_text(write_toml(bundle.settings), encoding="utf-8")
        (folder / CARD_FILE).write_text(card, encoding="utf-8")
        save_tensors(folder / MODEL_FILE, tensors)
        save_tokenizers(folder, bundle.source_tokenizer, bundle.target_tokenizer)
        if bundle.seen_words is not None:
            bundle.seen_words.save(folder)

    write_folder(
        Path(path),
        fill,
        details={
            "kind": "bundle",
            **details,
            "tensors": {name: fingerprint(tensor) for name, tensor in tensors.items()},
        },
    )


def note_in_bundle(path: Path | str, details: Mapping[str, Any]) -> Path:
    """Add ``details`` to the manifest of a bundle, or of the best one of a run; returns its folder.

    Raises InputMissingError, CorruptError and WriteError.
    """
    folder = find_bundle(Path(path))
    manifest = read_manifest(folder)
    write_file(folder / MANIFEST_NAME, manifest_text({**manifest, **details}))
    return folder


def _refuse_to_replace(path: Path) -> None:
    """Raise OutputExistsError if replacing ``path`` would remove anything but a bundle."""
    hint = "name another folder, or remove it"
    if not path.is_dir():
        if path.exists() or path.is_symlink():
            raise OutputExistsError(f"{path} is there and is no folder", hint=hint)
        return

    there = {each.name for each in path.iterdir()}
    if not there:
        return

    # A file of parameters says nothing: every folder of Hugging Face has one of the same name.
    try:
        manifest = read_manifest(path)
    except (InputMissingError, CorruptError):
        manifest = {}
    if manifest.get("kind") != "bundle":
        raise OutputExistsError(f"{path} holds something that is no bundle", hint=hint)

    others = sorted(there - manifest["files"].keys() - {MANIFEST_NAME})
    if others:
        raise OutputExistsError(
            f"{path} holds {others[0]}, which is no part of the bundle there", hint=hint
        )


def load_bundle(
    path: Path | str,
    device: str = "cpu",
    seconds: float = LOAD_SECONDS,
    *,
    trainable: bool = False,
) -> Bundle:
    """Open a bundle that translates, or the best one of a run folder, ready for inference.

    Its parameters are frozen and it is in evaluation mode, so that using a model cannot change it.
    With ``trainable`` the parameters require gradients and it is in training mode.

    Raises InputMissingError if there is none, CorruptError naming the file and the tensor that
    differ from what was written, BundleError if the tensors are not those of the config, if the
    model was trained on plain text, or if it is not open after so many ``seconds``.
    """
    bundle = _translating(_open(path, device, seconds, "read"))
    bundle.model.requires_grad_(trainable).train(trainable)
    return bundle


def open_bundle(path: Path | str, device: str = "cpu", seconds: float = LOAD_SECONDS) -> Bundle:
    """Like ``load_bundle``, but the model is read on first access.

    All files are compared with the manifest now; the tensors are compared with the config when the
    model is read.
    """
    return _translating(_open(path, device, seconds, "verified"))


def load_any_bundle(
    path: Path | str, device: str = "cpu", seconds: float = LOAD_SECONDS
) -> "Bundle[SequenceModel]":
    """Open a bundle of any kind as ``load_bundle`` does. Raises its errors, except for the kind."""
    return _open(path, device, seconds, "read")


def open_any_bundle(path: Path | str) -> "Bundle[SequenceModel]":
    """Open a bundle of any kind for its settings and tokenizers.

    Unlike the other files its model is neither read nor compared with the manifest before it is
    used, as hashing it may take seconds. Otherwise raises as ``load_any_bundle`` does.
    """
    return _open(path, "cpu", LOAD_SECONDS, "later")


def clear(bundle: "Bundle[SequenceModel] | Bundle | Path | str") -> "ClearModel":
    """The weights and settings of a bundle, for the pages of ``pellucid.equations``.

    An encoder-decoder comes as ``equations.weights.Transformer``, whose functions are in
    ``equations.transformer``; models of plain text and recurrent translators have their own pages.
    The weights are views of the model's parameters. Raises as ``load_any_bundle`` does, and
    ConfigError for word vectors.
    """
    from pellucid.model.clear import clear_model

    if isinstance(bundle, Path | str):
        bundle = load_any_bundle(bundle)
    return clear_model(bundle.model)


def _open(
    path: Path | str, device: str, seconds: float, model: Literal["read", "verified", "later"]
) -> "Bundle[SequenceModel]":
    """Open a bundle. If another process replaces it meanwhile it is read again, so the result is
    never a mixture of two bundles."""
    deadline = Deadline(seconds)
    if path == "":  # as a Path it would be the current folder
        raise InputMissingError("the name of a model must not be empty")

    for attempts_left in reversed(range(_MOST_ATTEMPTS)):
        folder = find_bundle(Path(path))
        before = _state_of(folder)
        try:
            later = (MODEL_FILE,) if model == "later" else ()
            # the card is for readers, who may write more into it
            card = (CARD_FILE,)
            with verified_reading(folder, deadline, later=later, unchecked=card) as manifest:
                bundle = _read(folder, manifest, device)
                assert isinstance(bundle.held, StoredModel)
                if model == "read":
                    bundle.held.read()
                elif model == "verified":
                    bundle.held.verify()
            _warn_of_other_card(folder, manifest["files"].get(CARD_FILE))
            return bundle
        except (PellucidError, OSError) as error:
            # the error may come from two halves of two bundles, or the one that was found may be
            # gone; only one that is there unchanged is the cause
            if attempts_left and (before is None or _state_of(folder) != before):
                continue
            damaged = _damaged_tensors(folder) if isinstance(error, CorruptError) else []
            if damaged:
                raise CorruptError(f"{error}; damaged: {', '.join(damaged)}") from error
            raise
    raise AssertionError("the last attempt returns or raises")


def _warn_of_other_card(folder: Path, saved: Mapping[str, Any] | None) -> None:
    """Warn if the card was changed or taken away since the bundle was saved. Raises CorruptError if
    something else than a plain file stands in its place."""
    if saved is None:
        return
    path = folder / CARD_FILE
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise CorruptError(f"{path} is not a plain file")
    try:
        # the size first: a file put in its place may be huge
        is_same = path.stat().st_size == saved["size"] and sha256_of(path) == saved["sha256"]
    except OSError:
        is_same = False
    if not is_same:
        _log.warning("%s is not as it was saved; nothing is computed from it", path)


def _translating(bundle: "Bundle[SequenceModel]") -> Bundle:
    if not bundle.config.translates:
        raise BundleError(
            f"{bundle.path} holds a model of kind {bundle.config.kind}, which does not translate",
            hint=f"use it with pellucid {bundle.config.command}",
        )
    return cast("Bundle", bundle)


def _state_of(folder: Path) -> tuple[object, ...] | None:
    """The state that changes when a bundle is replaced: folder, time of change, manifest."""
    try:
        about = folder.stat()
        manifest = read_plain(folder / MANIFEST_NAME, LARGEST_MANIFEST)
        return about.st_dev, about.st_ino, about.st_ctime_ns, manifest
    except OSError:
        return None


def _read(folder: Path, manifest: dict[str, Any], device: str) -> "Bundle[SequenceModel]":
    """The bundle in ``folder``, whose files are checked as they are read."""
    if manifest.get("kind") != "bundle":
        raise BundleError(
            f"{folder} is not a bundle: its manifest is of kind {manifest.get('kind')}",
            hint="name a bundle folder, or the run folder that holds it",
        )

    for name in (CONFIG_FILE, MODEL_FILE):
        if name not in manifest["files"]:
            raise CorruptError(f"{folder / name} cannot be trusted: the manifest does not list it")

    settings = read_toml(folder / CONFIG_FILE)
    source, target = load_tokenizers(folder)

    stored = StoredModel(
        HeldFile(folder / MODEL_FILE, manifest["files"][MODEL_FILE]["sha256"]),
        parse_model_config(settings.get("model", {}), f"{folder / CONFIG_FILE}: model"),
        (source.vocabulary_size, target.vocabulary_size),
        device,
    )

    words = SeenWords.read(folder) if WORDS_FILE in manifest["files"] else None
    return Bundle(stored, source, target, settings, manifest, folder, words)


def save_tokenizers(folder: Path, source: Tokenizer, target: Tokenizer) -> None:
    """Write both tokenizers, or one file for both if they are one object."""
    if source is target:
        target.save(folder, "shared")
    else:
        source.save(folder, "source")
        target.save(folder, "target")


def load_tokenizers(folder: Path) -> tuple[Tokenizer, Tokenizer]:
    """The source and target tokenizers saved in ``folder``; one object if they are shared.

    Raises CorruptError if it holds a tokenizer's file that its manifest does not list.
    """
    # a file that was added later could replace a tokenizer without breaking any hash
    listed = read_manifest(folder)["files"]
    for path in folder.iterdir():
        if path.name.partition(".")[0] in _TOKENIZER_NAMES and path.name not in listed:
            raise CorruptError(f"{path} was put there later: the manifest does not list it")

    if any(name.startswith("shared.") for name in listed):
        shared = load_tokenizer(folder, "shared")
        return shared, shared
    return load_tokenizer(folder, "source"), load_tokenizer(folder, "target")


def find_bundle(path: Path) -> Path:
    """``path`` itself if it is a bundle, else the best bundle of the run folder ``path``.

    The best has the highest score in its manifest, then the highest figures in ``ties``; of
    equals it is the latest step. Scores of another ranking than the latest bundle's, on other text
    or by another figure, are not compared.
    Raises InputMissingError if there is none.
    """
    require_model_folder(path)
    if (path / MODEL_FILE).exists() or (path / MANIFEST_NAME).exists():
        return path

    # bundles with a damaged manifest are skipped, so that the others can still be used
    ranked = []
    for folder in _bundles_of(path):
        try:
            manifest = read_manifest(folder)
        except (CorruptError, InputMissingError) as error:
            _log.warning("skipped %s: %s", folder, error)
            continue
        ranked.append((manifest, folder))

    if not ranked:
        raise InputMissingError(
            f"{path} holds no model",
            hint="name a bundle folder, or a run folder whose training has validated once",
        )
    return best_first(ranked)[0]


def best_first(found: Sequence[tuple[Mapping[str, Any], Path]]) -> list[Path]:
    """The bundles of a run by score, then by ``ties``, then by step; each comes with its manifest.

    Only scores of one ranking are compared: that of the latest bundle with a score. Those of other
    validation text or of another figure are left out.
    """

    def place(manifest: Mapping[str, Any]) -> tuple[float, list[float], float]:
        """The place of a bundle in the order: by score, then ties, then step."""
        ties = manifest.get("ties")
        numbers = ties if isinstance(ties, list) else []
        return (
            _number(manifest, "score"),
            [_number({"tie": each}, "tie") for each in numbers],
            _number(manifest, "step"),
        )

    scored = [manifest for manifest, _ in found if "score" in manifest]
    latest = max(scored, key=lambda manifest: _number(manifest, "step"), default={})

    # Older bundles name no ranking, only the figure.
    compared = [
        each
        for each in found
        if each[0].get("ranking", latest.get("ranking")) == latest.get("ranking")
        and each[0].get("score_by", latest.get("score_by")) == latest.get("score_by")
    ]
    return [folder for _, folder in sorted(compared, key=lambda each: place(each[0]), reverse=True)]


def _number(manifest: Mapping[str, Any], key: str) -> float:
    """An entry to rank by; anything but a number ranks last."""
    value = manifest.get(key)
    return -math.inf if not isinstance(value, int | float) or math.isnan(value) else value


def _bundles_of(path: Path) -> list[Path]:
    return [folder for folder in (path / BUNDLES_FOLDER).glob("[!.]*") if folder.is_dir()]


def _damaged_tensors(folder: Path) -> list[str]:
    """Return the tensors that differ from their fingerprints, as far as the file can be read at
    all, and torch is installed."""
    try:
        from pellucid.core.tensors import fingerprint, load_tensors
    except ImportError:
        return []

    try:
        if is_sparse(folder / MODEL_FILE):
            return []  # or gigabytes of zeros would be read
        expected = read_manifest(folder).get("tensors", {})
        tensors = load_tensors(folder / MODEL_FILE)
    except (CorruptError, InputMissingError, OSError):
        return []
    if not isinstance(expected, dict):  # a stranger's manifest may hold anything
        return []
    return [
        name
        for name in expected
        if name in tensors and fingerprint(tensors[name]) != expected[name]
    ]
