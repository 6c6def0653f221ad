"""Imports a Marian model, as transformers and OPUS-MT store it. Does not need transformers."""

import json
import logging
from collections import ChainMap
from collections.abc import Mapping, MutableMapping, Sequence
from pathlib import Path
from typing import Any, get_args

import torch
from torch import Tensor

from pellucid.backends.huggingface.pytorch_file import load_torch_tensors
from pellucid.backends.marian.generation import decoding_table, read_generation
from pellucid.backends.marian.self_check import Converted, prove_equal
from pellucid.backends.marian.settings import MarianSettings
from pellucid.backends.marian.tensors import (
    OUTPUT_BIAS,
    MarianEmbeddings,
    check_tensors,
    features_from_marian,
    layers_from_marian,
)
from pellucid.backends.marian.vocabulary import NORMALIZATION_KEY, ImportedIds, number_for_us
from pellucid.bundle import Bundle, save_bundle
from pellucid.core.errors import (
    BundleError,
    ConfigError,
    CorruptError,
    InputMissingError,
    list_problems,
)
from pellucid.core.files import LARGEST_TABLE, read_plain, refuse_to_overwrite
from pellucid.core.special import BOS_ID
from pellucid.core.tensors import TensorFile
from pellucid.core.version import __version__
from pellucid.model.build import build_unfilled
from pellucid.model.config import TransformerConfig
from pellucid.model.seq2seq import Seq2Seq
from pellucid.model.stored import fill_tensors, model_tensors
from pellucid.text.normalization import Normalization
from pellucid.text.tokenizers.marian import MarianTokenizer

_COPY_BIAS = -100.0
"""Added to the output bias of a BOS that copies another id, so that the copy takes no part in the
softmax: its probability is multiplied by e⁻¹⁰⁰. Unlike minus infinity it is a finite number."""
_ROWS_AT_ONCE = 1 << 12
"""Rows of an embedding that are converted at a time, which bounds the memory of the import."""
_log = logging.getLogger("pellucid")
_SAFE_FILE, _TORCH_FILE = "model.safetensors", "pytorch_model.bin"
_TOKENIZER_FILE = "tokenizer_config.json"


def import_huggingface(folder: Path, out: Path) -> Bundle:
    """Read a Marian model from ``folder`` and write it as a bundle to ``out``.

    Before anything is written, the bundle's logits on a few sentences are compared with those that
    Marian's definition gives for the tensors as read.

    Raises InputMissingError for files that are not there, BundleError with all problems of those
    that are, UnsafeFormatError for weights that are more than tensors, OutputExistsError.
    """
    refuse_to_overwrite(out)
    bundle, lost = _read(folder)
    save_bundle(out, bundle, card=_card(folder, bundle, lost), details={"imported": "huggingface"})
    return bundle


def read_huggingface(folder: Path) -> Bundle:
    """Like ``import_huggingface``, without writing anything."""
    return _read(folder)[0]


def _read(folder: Path) -> tuple[Bundle, list[str]]:
    """The bundle, and the search settings that could not be kept, which are also logged."""
    table = _read_json(folder / "config.json")
    generation_path = folder / "generation_config.json"
    generation, lost = read_generation(
        table, _read_json(generation_path) if generation_path.exists() else None
    )
    if lost:
        _log.warning(
            "%s: not kept of the search settings, as Pellucid has none like them: %s",
            folder,
            ", ".join(lost),
        )

    settings = _parse_settings(table, folder)
    config = settings.to_model_config()

    # All problems of vocabularies and tensors are collected before the error is raised.
    sides, problems = _read_vocabularies(folder, settings)
    # Nothing is in memory yet: a safetensors file is read tensor by tensor below.
    tensors = _read_tensors(folder)
    embeddings, tensor_problems = check_tensors(tensors, settings, config)
    problems += tensor_problems
    if len(sides) < 2 or embeddings is None or problems:
        raise BundleError(f"{folder} is not a Marian model: {list_problems(problems)}")
    if generation.renormalize_logits and [settings.pad_token_id] in generation.bad_words_ids:
        # transformers forbids the padding and renormalizes the rest; a bias of -100 on the padding
        # gives the same probabilities.
        bias = tensors[OUTPUT_BIAS].float().clone()
        # (1, vocabulary), as Marian stores it.
        bias[:, settings.pad_token_id] += _COPY_BIAS
        tensors[OUTPUT_BIAS] = bias

    tokenizers = _read_tokenizers(folder, sides)

    bundle = Bundle(
        held=_build(config, tensors, embeddings, sides, folder),
        source_tokenizer=tokenizers[0],
        target_tokenizer=tokenizers[1],
        settings={
            "model": config.to_table(),
            "decoding": _cut_as_theirs(
                decoding_table(generation, settings, tokenizers[1], sides[1]), folder
            ),
        },
        manifest={},
    )
    prove_equal(
        bundle,
        Converted(ChainMap(embeddings.by_name(config), tensors), torch.float32),
        settings,
        (dict(enumerate(side.rows)) for side in sides),
        _ours_by_row(sides[1]),
    )
    return bundle, lost


def _parse_settings(table: Mapping[str, Any], folder: Path) -> MarianSettings:
    kind = table.get("model_type")
    if kind != "marian":  # nor are its other settings those of Marian
        named = "names no model_type" if kind is None else f"has model_type={kind!r}"
        raise BundleError(
            f"{folder} is no Marian model of transformers: its config.json {named}",
            hint="name a bundle, a run folder, or a Marian model such as those of OPUS-MT; an"
            " export for CTranslate2 is for that program",
        )
    try:
        return MarianSettings.parse(table, str(folder / "config.json"))
    except ConfigError as error:
        raise BundleError(f"this model cannot be imported: {error}") from error


def _read_json(path: Path) -> dict[str, Any]:
    try:
        table = json.loads(read_plain(path, LARGEST_TABLE))
    except OSError as error:
        raise InputMissingError(
            f"cannot read {path}: {error.strerror}",
            hint="name the folder of a Marian model, such as a downloaded OPUS-MT one",
        ) from error
    except (ValueError, RecursionError) as error:
        raise CorruptError(f"{path} is not JSON: {error}") from error
    if not isinstance(table, dict):
        raise CorruptError(f"{path} must hold a table, got {type(table).__name__}")
    return table


def _read_vocabularies(
    folder: Path, settings: MarianSettings
) -> tuple[list[ImportedIds], list[str]]:
    """The source and the target vocabulary, without those that have problems, and the problems."""
    names = ["vocab.json", "vocab.json"]
    if (folder / "target_vocab.json").exists():
        names[1] = "target_vocab.json"  # written by transformers if the sides do not share one

    sides, problems = [], []
    for name, target in zip(names, (False, True), strict=True):
        ids, wrong = number_for_us(_read_json(folder / name), name, settings, target=target)
        problems += [problem for problem in wrong if problem not in problems]
        sides += [] if ids is None else [ids]
    if len(sides) == len(names) and settings.share_encoder_decoder_embeddings:
        if sides[0].vocabulary != sides[1].vocabulary:
            problems.append("a shared embedding needs the same special ids on both sides")

        # One embedding has one numbering; only the target's has the right BOS.
        # Source text never holds a BOS, so the encoder does not notice.
        sides[0] = sides[1]
    return sides, problems


def _read_tensors(folder: Path) -> MutableMapping[str, Tensor]:
    """The tensors by name; those of a safetensors file are read one at a time, when asked for.

    What is assigned to the mapping stays in memory.
    """
    if (folder / _SAFE_FILE).exists():
        # ChainMap writes to its first mapping only, so the file may be read-only.
        return ChainMap({}, TensorFile(folder / _SAFE_FILE))  # type: ignore[arg-type]
    if (folder / _TORCH_FILE).exists():
        return load_torch_tensors(folder / _TORCH_FILE)
    raise InputMissingError(
        f"{folder} must hold {_SAFE_FILE} or {_TORCH_FILE}, has neither",
        hint="models in several files (*.index.json) must be joined first",
    )


def _read_tokenizers(
    folder: Path, sides: list[ImportedIds]
) -> tuple[MarianTokenizer, MarianTokenizer]:
    """Both tokenizers; one object if they are the same."""
    names = "source.spm", "target.spm"
    normalizations = _read_normalizations(folder / _TOKENIZER_FILE)
    tokenizers = []
    for name, side, normalization in zip(names, sides, normalizations, strict=True):
        path = folder / name
        try:
            model = read_plain(path, LARGEST_TABLE)
        except OSError as error:
            raise InputMissingError(f"cannot read {path}: {error.strerror}") from error
        tokenizers.append(MarianTokenizer(model, side.vocabulary, normalization, str(path)))

    source, target = tokenizers
    # One object, so that the bundle stores a joint tokenizer once.
    return (source, source) if source.fingerprint == target.fingerprint else (source, target)


def _cut_as_theirs(decoding: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The settings of a search, with a source cut where ``model_max_length`` cuts it."""
    path = folder / _TOKENIZER_FILE
    longest = (_read_json(path) if path.exists() else {}).get("model_max_length")
    if not isinstance(longest, int) or longest < 2:  # it counts the stop
        return decoding
    return {**decoding, "max_source_tokens": min(decoding["max_source_tokens"], longest - 1)}


def _read_normalizations(path: Path) -> list[Normalization]:
    """The normalization of the source and of the target side: none unless we exported one."""
    table = _read_json(path) if path.exists() else {}
    sides = table.get(NORMALIZATION_KEY, {"source": "none", "target": "none"})
    names: tuple[Normalization, ...] = get_args(Normalization)

    # Compared with each name, so that a name out of a file becomes one of the literals.
    found = [
        name
        for side in ("source", "target")
        for name in names
        if isinstance(sides, dict) and sides.get(side) == name
    ]

    if len(found) != 2 or len(sides) != 2:
        raise BundleError(
            f"{path}: {NORMALIZATION_KEY} must give nfc or none to source and to target,"
            f" got {repr(sides)[:100]}"
        )
    return found


def _build(
    config: TransformerConfig,
    tensors: Mapping[str, Tensor],
    embeddings: MarianEmbeddings,
    sides: list[ImportedIds],
    folder: Path,
) -> Seq2Seq:
    source, target = sides

    source_rows, target_rows = list(source.rows), list(target.rows)

    bias = tensors[OUTPUT_BIAS].float().flatten()[target_rows]  # stored as (1, vocabulary)
    if target.start_is_copy:
        bias[BOS_ID] += _COPY_BIAS

    model = build_unfilled(config, len(source_rows), len(target_rows))
    assert isinstance(model, Seq2Seq)

    # Tensor by tensor, and embeddings in blocks of rows: a second, reordered copy of
    # the model is never in memory.
    slots = model_tensors(model)
    for name, table, rows in (
        ("source_embedding.weight", embeddings.source, source_rows),
        ("target_embedding.weight", embeddings.target, target_rows),
        ("output_weight", embeddings.output, target_rows),
    ):
        # Shared and tied matrices are one parameter, under the first of their names.
        if name not in slots:  # tied to an earlier one
            continue

        slot = slots.pop(name).detach()
        for begin in range(0, len(rows), _ROWS_AT_ONCE):
            part = slice(begin, begin + _ROWS_AT_ONCE)
            # Rows in the order of our ids, columns in the order of our features.
            tensor = features_from_marian(table[rows[part]], 1)
            fill_tensors({name: slot[part]}, {name: tensor}, folder)

    fill_tensors({"output_bias": slots.pop("output_bias")}, {"output_bias": bias}, folder)
    for name, tensor in layers_from_marian(Converted(tensors, torch.float32), config):
        fill_tensors({name: slots.pop(name)}, {name: tensor}, folder)
    assert not slots, "every parameter has its place in the layout"
    # As ``load_bundle`` returns it: nobody trains by mistake what was opened to translate.
    return model.eval().requires_grad_(False)


def _ours_by_row(side: ImportedIds) -> list[int]:
    """Our id for each Marian id. A BOS that copies another id stands for no Marian id itself."""
    ours = {row: id_ for id_, row in enumerate(side.rows) if id_ != BOS_ID}
    return [ours.get(row, BOS_ID) for row in range(len(set(side.rows)))]


def _card(folder: Path, bundle: Bundle, lost: Sequence[str]) -> str:
    config = bundle.model.config
    assert isinstance(config, TransformerConfig)
    searched = f"\nNot kept of its search settings: {', '.join(lost)}.\n" if lost else ""
    return f"""# A translation model that came from Marian

Imported with Pellucid {__version__} from the Hugging Face folder `{folder.name}`; its license and
its training data are those of that model.

- {config.encoder_layers} encoder and {config.decoder_layers} decoder layers, width
  {config.d_model}, feed-forward {config.d_ff}, {config.heads} heads, {config.activation}
- {bundle.source_tokenizer.vocabulary_size:,} source and
  {bundle.target_tokenizer.vocabulary_size:,} target tokens
{searched}"""
