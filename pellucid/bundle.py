"""A model on disk: everything needed to use it again, and nothing that could run code.

config.toml          the whole config of the run that made it
model.safetensors    the parameters
source.* target.*    the tokenizers (``shared.*`` when both sides use one)
README.md            the model card
manifest.json        size and SHA-256 of each file, fingerprint of each tensor
"""

import dataclasses
import logging
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Generic

import torch
from torch import Tensor
from typing_extensions import TypeVar

from pellucid.core.config import read_toml, write_toml
from pellucid.core.errors import (
    BundleError,
    ConfigError,
    CorruptError,
    InputMissingError,
    PellucidError,
    list_faults,
)
from pellucid.core.files import (
    LARGEST_MANIFEST,
    MANIFEST_NAME,
    is_sparse,
    read_manifest,
    read_plain,
    verified_reading,
    write_folder,
)
from pellucid.core.layout import BUNDLES_FOLDER as BUNDLES_FOLDER
from pellucid.core.layout import CONFIG_FILE as CONFIG_FILE
from pellucid.core.limits import LOAD_SECONDS, Deadline
from pellucid.core.tensors import fingerprint, load_tensors, save_tensors
from pellucid.model.build import build_unfilled, parameter_shapes
from pellucid.model.clear import ClearModel, clear_model
from pellucid.model.config import ModelConfig
from pellucid.model.seq2seq import Seq2Seq, SequenceModel
from pellucid.text.tokenizers.tokenizer import Tokenizer, load_tokenizer

MODEL_FILE = "model.safetensors"
CARD_FILE = "README.md"
_MOST_ATTEMPTS = 10
"""How often a bundle is read that is replaced each time."""
_TOKENIZER_NAMES = ("shared", "source", "target")

_log = logging.getLogger("pellucid")


ModelT_co = TypeVar("ModelT_co", bound=SequenceModel, default=Seq2Seq, covariant=True)


@dataclasses.dataclass(frozen=True)
class Bundle(Generic[ModelT_co]):
    """A model, the tokenizers it was trained with, and how it came to be.

    ``Bundle`` by itself is one that translates, ``Bundle[SequenceModel]`` one of any kind.
    """

    model: ModelT_co
    source_tokenizer: Tokenizer
    target_tokenizer: Tokenizer
    settings: dict[str, Any]
    """The whole config, section by section, as it stands in ``config.toml``."""
    manifest: dict[str, Any]
    path: Path | None = None


def save_bundle(
    path: Path | str, bundle: Bundle[SequenceModel], *, card: str, details: Mapping[str, Any]
) -> None:
    """Write ``bundle`` to the folder ``path`` in one step, with its model card.

    ``details`` (step, score, ...) go into the manifest. Raises WriteError.
    """
    tensors = model_tensors(bundle.model)

    def fill(folder: Path) -> None:
        (folder / CONFIG_FILE).write_text(write_toml(bundle.settings), encoding="utf-8")
        (folder / CARD_FILE).write_text(card, encoding="utf-8")
        save_tensors(folder / MODEL_FILE, tensors)
        save_tokenizers(folder, bundle.source_tokenizer, bundle.target_tokenizer)

    write_folder(
        Path(path),
        fill,
        details={
            "kind": "bundle",
            **details,
            "tensors": {name: fingerprint(tensor) for name, tensor in tensors.items()},
        },
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
    bundle = load_any_bundle(path, device, seconds)
    if not isinstance(bundle.model, Seq2Seq):
        kind = bundle.model.config.kind
        command = {"encoder": "fill", "decoder": "continue", "skipgram": "vectors"}[kind]
        raise BundleError(
            f"{bundle.path} holds a model of kind {kind}, which does not translate",
            hint=f"use it with pellucid {command}",
        )
    model: Seq2Seq = bundle.model.requires_grad_(trainable).train(trainable)
    tokenizers = bundle.source_tokenizer, bundle.target_tokenizer
    return Bundle(model, *tokenizers, bundle.settings, bundle.manifest, bundle.path)


def clear(bundle: Bundle[SequenceModel] | Bundle | Path | str) -> ClearModel:
    """The weights and settings of a bundle as the pages of ``pellucid.equations`` take them.

    An encoder-decoder comes as ``equations.weights.Transformer``, whose functions stand in
    ``equations.transformer``; models of plain text and recurrent translators have their own pages.
    The weights are views of the model's parameters. Raises as ``load_any_bundle`` does, and
    ConfigError for word vectors.
    """
    if isinstance(bundle, Path | str):
        bundle = load_any_bundle(bundle)
    return clear_model(bundle.model)


def load_any_bundle(
    path: Path | str, device: str = "cpu", seconds: float = LOAD_SECONDS
) -> Bundle[SequenceModel]:
    """Open a bundle of any kind as ``load_bundle`` does. Raises as it does, save for the kind.

    A bundle that another process replaces meanwhile is read again: what comes back is one bundle
    or the other.
    """
    deadline = Deadline(seconds)
    for attempts_left in reversed(range(_MOST_ATTEMPTS)):
        folder = find_bundle(Path(path))
        before = _state_of(folder)
        try:
            with verified_reading(folder, deadline) as manifest:
                return _read(folder, manifest, device)
        except (PellucidError, OSError) as error:
            if attempts_left and _state_of(folder) != before:
                continue
            damaged = _damaged_tensors(folder) if isinstance(error, CorruptError) else []
            if damaged:
                raise CorruptError(f"{error}; damaged: {', '.join(damaged)}") from error
            raise
    raise AssertionError("the last attempt returns or raises")


def _state_of(folder: Path) -> tuple[object, ...] | None:
    """What changes when a bundle is replaced: the folder, its time of change, its manifest."""
    try:
        about = folder.stat()
        manifest = read_plain(folder / MANIFEST_NAME, LARGEST_MANIFEST)
        return about.st_dev, about.st_ino, about.st_ctime_ns, manifest
    except OSError:
        return None


def _read(folder: Path, manifest: dict[str, Any], device: str) -> Bundle[SequenceModel]:
    """The bundle in ``folder``, whose files are checked as they are read."""
    if manifest.get("kind") != "bundle":
        raise BundleError(
            f"{folder} is not a bundle but a {manifest.get('kind')}",
            hint="name a bundle folder, or the run folder that holds it",
        )
    for name in (CONFIG_FILE, MODEL_FILE):
        if name not in manifest["files"]:
            raise CorruptError(f"{folder / name} cannot be trusted: the manifest does not list it")
    settings = read_toml(folder / CONFIG_FILE)
    source_tokenizer, target_tokenizer = load_tokenizers(folder)
    sizes = source_tokenizer.vocabulary_size, target_tokenizer.vocabulary_size
    model = _build(folder, settings.get("model", {}), *sizes)
    model.to(device).eval().requires_grad_(False)
    return Bundle(model, source_tokenizer, target_tokenizer, settings, manifest, folder)


def _build(folder: Path, table: Any, source_size: int, target_size: int) -> SequenceModel:
    """The model in ``folder``; its sizes are held to the file before memory is taken for them."""
    origin = folder / MODEL_FILE
    config = ModelConfig.parse(table, f"{folder / CONFIG_FILE}: model")
    tensors = load_tensors(origin)
    try:
        _check_tensors(parameter_shapes(config, source_size, target_size), tensors, origin)
    except ConfigError as error:
        raise ConfigError(f"{folder / CONFIG_FILE}: {error}", hint=error.hint) from None
    model = build_unfilled(config, source_size, target_size)
    load_model_tensors(model, tensors, origin)
    return model


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

    The best has the highest score in its manifest; of equals, the latest step.
    Raises InputMissingError if there is none.
    """
    if not path.is_dir():
        raise InputMissingError(f"there is no folder {path}")
    if (path / MODEL_FILE).exists() or (path / MANIFEST_NAME).exists():
        return path
    ranked = []
    for folder in _bundles_of(path):
        try:
            manifest = read_manifest(folder)
        except (CorruptError, InputMissingError) as error:
            _log.warning("skipped %s: %s", folder, error)
            continue
        ranked.append((_number(manifest, "score"), _number(manifest, "step"), folder))
    if not ranked:
        raise InputMissingError(
            f"{path} holds no model",
            hint="name a bundle folder, or a run folder whose training has validated once",
        )
    return max(ranked)[2]


def model_tensors(model: SequenceModel) -> dict[str, Tensor]:
    """The parameters by name, those used in several places under the first name only."""
    return dict(model.named_parameters())


def load_model_tensors(model: SequenceModel, tensors: Mapping[str, Tensor], origin: Path) -> None:
    """Fill ``model`` with ``tensors`` read from ``origin``.

    Raises BundleError listing every tensor that is missing, left over, of another shape or
    no floating-point numbers.
    """
    fill_tensors(model_tensors(model), tensors, origin)


def fill_tensors(slots: Mapping[str, Tensor], tensors: Mapping[str, Tensor], origin: Path) -> None:
    """Fill each of ``slots`` with the one of ``tensors``, read from ``origin``, that has its name.

    Raises BundleError as ``load_model_tensors`` does.
    """
    _check_tensors({name: slot.shape for name, slot in slots.items()}, tensors, origin)
    with torch.no_grad():
        for name, slot in slots.items():
            slot.copy_(tensors[name])


def _check_tensors(
    shapes: Mapping[str, torch.Size], tensors: Mapping[str, Tensor], origin: Path
) -> None:
    faults = [f"{name} is missing" for name in shapes if name not in tensors]
    faults += [f"{name} is not part of this model" for name in tensors if name not in shapes]
    for name in shapes.keys() & tensors.keys():
        shape, tensor = tuple(shapes[name]), tensors[name]
        if shape != tuple(tensor.shape):
            faults.append(f"{name} should be {shape}, is {tuple(tensor.shape)}")
        elif not tensor.is_floating_point():
            faults.append(f"{name} should hold floating-point numbers, holds {tensor.dtype}")
    if faults:
        raise BundleError(f"{origin} does not fit its config: {list_faults(sorted(faults))}")


def _number(manifest: Mapping[str, Any], key: str) -> float:
    """An entry to rank by; what is no number ranks last."""
    value = manifest.get(key)
    return -math.inf if not isinstance(value, int | float) or math.isnan(value) else value


def _bundles_of(path: Path) -> list[Path]:
    return [folder for folder in (path / BUNDLES_FOLDER).glob("[!.]*") if folder.is_dir()]


def _damaged_tensors(folder: Path) -> list[str]:
    """Which tensors differ from their fingerprints, as far as the file can be read at all."""
    try:
        if is_sparse(folder / MODEL_FILE):
            return []  # and gigabytes of zeros are not read to find out
        expected = read_manifest(folder).get("tensors", {})
        tensors = load_tensors(folder / MODEL_FILE)
    except (CorruptError, InputMissingError, OSError):
        return []
    return [
        name
        for name in expected
        if name in tensors and fingerprint(tensors[name]) != expected[name]
    ]
