"""A bundle made of a Marian model file and its vocabulary."""

import logging
from pathlib import Path

import torch

from pellucid.backends.capability import SENTENCES
from pellucid.backends.marian.tensors import features_from_marian
from pellucid.backends.marian_files.items import Floats, Items, read_archive, read_binary
from pellucid.backends.marian_files.layout import (
    OUTPUT_BIAS,
    SHARED,
    SOURCE,
    TARGET,
    array_problems,
    blocks_from_file,
)
from pellucid.backends.marian_files.self_check import prove_equal
from pellucid.backends.marian_files.settings import read_settings
from pellucid.backends.marian_files.vocabulary import NEVER, tokenizer_of_file
from pellucid.bundle import Bundle, save_bundle
from pellucid.core.errors import BundleError, InputMissingError, list_problems
from pellucid.core.files import LARGEST_TABLE, read_plain, refuse_to_overwrite
from pellucid.core.special import BOS_ID, PAD_ID
from pellucid.core.version import __version__
from pellucid.model.build import build_unfilled
from pellucid.model.config import TransformerConfig
from pellucid.model.seq2seq import Seq2Seq
from pellucid.model.stored import fill_tensors, model_tensors
from pellucid.text.tokenizers.marian import MarianTokenizer

_LARGEST_MODEL = 1 << 33
"""Bytes, beyond any model of Marian's."""
_PACKED = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\xfd7zXZ"
"""The first bytes of what gzip, zstd and xz write: Firefox's files come packed."""
_log = logging.getLogger("pellucid")


def import_marian(model: Path, vocabularies: tuple[Path, Path], out: Path) -> Bundle:
    """Read a Marian model and write it as a bundle to the new folder ``out``.

    ``vocabularies`` are the sentencepiece models of source and target, which may be the same file.
    Before anything is written, the bundle's logits on a few sentences are compared with those that
    Marian's definition gives for the arrays as read.

    Raises InputMissingError for files that are not there, CorruptError and BundleError with all
    problems of those that are, OutputExistsError.
    """
    refuse_to_overwrite(out)
    bundle = read_marian(model, vocabularies)
    save_bundle(out, bundle, card=_card(model, bundle), details={"imported": "marian"})
    return bundle


def read_marian(model: Path, vocabularies: tuple[Path, Path]) -> Bundle:
    """Like ``import_marian``, without writing anything."""
    items = read_items(model)
    settings = read_settings(items.settings, str(model))
    config = settings.to_model_config()

    arrays, sizes = items.floats(), settings.vocabulary_sizes
    # a file without a bias adds none
    arrays.setdefault(OUTPUT_BIAS, torch.zeros(1, sizes[1]).numpy())
    problems = array_problems(arrays, config, sizes)
    if settings.is_all_tied and sizes[0] != sizes[1]:
        problems.append(f"one matrix for both sides needs one vocabulary, got {sizes}")
    if problems:
        raise BundleError(f"{model} is not a Marian model: {list_problems(problems)}")

    source, source_rows = _vocabulary(vocabularies[0], sizes[0])
    target, target_rows = _vocabulary(vocabularies[1], sizes[1])
    if source.fingerprint == target.fingerprint:
        source = target  # one object, so that the bundle stores a joint tokenizer once
    elif settings.is_all_tied:
        raise BundleError(f"{model} has one matrix for both sides, and got two vocabularies")
    if source is target and not settings.is_all_tied:
        _log.warning(
            "%s has a matrix for each side, and one vocabulary was given for both: if it came with"
            " two, such as srcvocab and trgvocab, give --vocab twice, the source first",
            model,
        )

    bundle = Bundle(
        held=_build(config, arrays, (source_rows, target_rows), model),
        source_tokenizer=source,
        target_tokenizer=target,
        settings={"model": config.to_table(), "decoding": {"beam_size": 1}},
        manifest={},
    )
    prove_equal(bundle, arrays, settings, (source_rows, target_rows), SENTENCES)
    return bundle


def read_items(path: Path) -> Items:
    """The items of a ``.npz`` or ``.bin`` file, told apart by their first bytes.

    Raises InputMissingError, BundleError.
    """
    content = _content(path, _LARGEST_MODEL)
    is_archive = content.startswith(b"PK")
    return read_archive(content, str(path)) if is_archive else read_binary(content, str(path))


def _content(path: Path, most: int) -> bytes:
    """The bytes of a file. Raises InputMissingError, BundleError for one that is packed."""
    try:
        content = read_plain(path, most)
    except OSError as error:
        raise InputMissingError(f"cannot read {path}: {error.strerror}") from error
    if content.startswith(_PACKED):
        raise BundleError(
            f"{path} is packed (gzip, zstd or xz)", hint="unpack it, and name what is in it"
        )
    return content


def _vocabulary(path: Path, size: int) -> tuple[MarianTokenizer, list[int]]:
    return tokenizer_of_file(_content(path, LARGEST_TABLE), size, str(path))


def _build(
    config: TransformerConfig,
    arrays: dict[str, Floats],
    rows: tuple[list[int], list[int]],
    origin: Path,
) -> Seq2Seq:
    model = build_unfilled(config, len(rows[0]), len(rows[1]))
    assert isinstance(model, Seq2Seq)
    slots = model_tensors(model)

    for name, stored, numbers in (
        ("source_embedding.weight", SOURCE, rows[0]),
        ("target_embedding.weight", TARGET, rows[1]),
        ("output_weight", TARGET, rows[1]),
    ):
        # shared matrices are one parameter, under the first of their names
        if name in slots:
            table = torch.from_numpy(arrays[SHARED if config.share_embeddings else stored])
            tensor = features_from_marian(_with_made_up_rows(table, numbers), 1)
            fill_tensors({name: slots.pop(name)}, {name: tensor}, origin)

    bias = _with_made_up_rows(torch.from_numpy(arrays[OUTPUT_BIAS]).T, rows[1]).flatten()
    bias[[PAD_ID, BOS_ID]] = NEVER
    fill_tensors({"output_bias": slots.pop("output_bias")}, {"output_bias": bias}, origin)

    for name, tensor in blocks_from_file(arrays, config):
        fill_tensors({name: slots.pop(name)}, {name: tensor}, origin)
    assert not slots, f"every parameter has its place in the layout: {sorted(slots)}"
    return model.eval().requires_grad_(False)


def _with_made_up_rows(table: torch.Tensor, rows: list[int]) -> torch.Tensor:
    """The rows by our ids; those that the file does not have are zero."""
    numbers = torch.tensor(rows)
    return torch.where((numbers < 0).unsqueeze(1), 0.0, table[numbers.clamp(min=0)])


def _card(model: Path, bundle: Bundle) -> str:
    config = bundle.model.config
    return f"""# A translation model that came from Marian

Imported with Pellucid {__version__} from the file `{model.name}`; its license and its training
data are those of that model.

- {config.summary()}
- {bundle.source_tokenizer.vocabulary_size:,} source and
  {bundle.target_tokenizer.vocabulary_size:,} target tokens
"""
