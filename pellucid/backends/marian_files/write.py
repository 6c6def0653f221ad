"""A bundle as Marian's own files: the model, its vocabulary, and a configuration of the decoder."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from pellucid.backends.capability import (
    MARIAN_FILES,
    SENTENCES,
    advice_to_export,
    shown_setting,
)
from pellucid.backends.ctranslate2.search import EXPONENTS
from pellucid.backends.marian.tensors import features_to_marian
from pellucid.backends.marian.vocabulary import SubwordTokenizer
from pellucid.backends.marian_files.calibration import activation_factors, quantized_names
from pellucid.backends.marian_files.items import (
    Floats,
    Items,
    Quantized,
    quantize,
    read_archive,
    read_binary,
    write_archive,
    write_binary,
)
from pellucid.backends.marian_files.layout import (
    OUTPUT_BIAS,
    SHARED,
    SOURCE,
    TARGET,
    blocks_to_file,
)
from pellucid.backends.marian_files.self_check import prove_equal
from pellucid.backends.marian_files.settings import FileSettings
from pellucid.backends.marian_files.shortlist import (
    Shortlist,
    learn_shortlist,
    write_shortlist,
)
from pellucid.backends.marian_files.vocabulary import (
    FileVocabulary,
    is_unigram,
    vocabulary_for_file,
)
from pellucid.bundle import Bundle
from pellucid.core.errors import BundleError
from pellucid.core.files import refuse_to_overwrite, write_folder
from pellucid.decoding.config import DecodingConfig, length_limits
from pellucid.model.config import TransformerConfig

_log = logging.getLogger("pellucid")

FileKind = Literal["npz", "bin", "int8"]
NAMES: Mapping[FileKind, str] = {
    "npz": "model.npz",
    "bin": "model.bin",
    "int8": "model.intgemm.alphas.bin",
}
"""The names of the model files; the last is the one by which Firefox's models are called."""


def export_marian(
    bundle: Bundle,
    out: Path,
    kind: FileKind,
    text: Sequence[str] = (),
    shortlist: Shortlist | Iterable[tuple[str, str]] | None = None,
    search: DecodingConfig | None = None,
) -> None:
    """Write ``bundle`` to the new folder ``out`` for Marian, or for Firefox's engine.

    ``text`` are sentences of the source language, which ``int8`` needs: they are translated, and
    the factors of the activations are taken from what occurs. Blank ones do not count. The files
    are read again and compared with the model before they are written. ``shortlist`` is a lexical
    shortlist, or pairs of sentences from which one is learned. ``decoder.yml`` has the beam and the
    length penalty of ``search``, by default the bundle's own; a warning names what Marian lacks.

    Raises BundleError with every reason why Marian cannot express the model, or for a shortlist of
    another vocabulary, OutputExistsError if ``out`` holds something, WriteError.
    """
    refuse_to_overwrite(out)
    config = bundle.model.config
    problems, options = MARIAN_FILES.model_problems(config), MARIAN_FILES.options(config)
    tokenizers = {"source": bundle.source_tokenizer, "target": bundle.target_tokenizer}
    numbered: list[FileVocabulary] = []
    for side, tokenizer in tokenizers.items():
        try:
            numbered.append(vocabulary_for_file(tokenizer, side))
        except BundleError as error:
            problems.append(str(error))
    if not all(isinstance(each, SubwordTokenizer) for each in tokenizers.values()):
        options = f"{options} --set tokenizer.kind=unigram".strip()
    if problems:
        raise BundleError(
            "Marian's files cannot express this model: " + "; ".join(problems),
            hint=f"train with {options}" if options else advice_to_export(config),
        )
    assert isinstance(config, TransformerConfig)  # of any other kind there are problems
    text = [line for line in text if line.strip()]
    if kind == "int8" and not text:
        raise BundleError(
            "int8 needs sentences of the source language, by which activations are scaled",
            hint="pass a file of some hundred sentences with --text",
        )

    if search is None:
        search = DecodingConfig.of_bundle(bundle.settings, bundle.path or "this model")
    lost = _lost(search, config)
    if lost:
        _log.warning(
            "not exported of the search settings, as Marian has none like them: %s",
            ", ".join(lost),
        )

    source, target = numbered
    if kind != "npz" and not is_unigram(source.model):
        # as fxtranslate 0.5 does: a BPE model is read, and cut in another way than it has learned
        _log.warning(
            "Firefox's engine cuts text by unigram models alone, and this model's tokenizer is bpe:"
            " train with --set tokenizer.kind=unigram; Marian reads the file as it is"
        )

    settings = FileSettings.of_config(config, (len(source.ours), len(target.ours)))
    arrays = _arrays(bundle, config, source, target)
    prove_equal(bundle, arrays, settings, (_rows(source), _rows(target)), SENTENCES)

    if kind == "int8":
        content = write_binary(Items(settings.to_yaml(), _in_eight_bits(bundle, arrays, text)))
        _check_quantized(read_binary(content, NAMES[kind]), arrays)
    elif kind == "bin":
        content = write_binary(Items(settings.to_yaml(), {**arrays}))
        _check_same(read_binary(content, NAMES[kind]), arrays)
    else:
        content = write_archive(Items(settings.to_yaml(), {**arrays}))
        _check_same(read_archive(content, NAMES[kind]), arrays)

    vocabularies = {"source.spm": source.model, "target.spm": target.model}
    if source.model == target.model:
        vocabularies = {"vocab.spm": source.model}
    if shortlist is not None and not isinstance(shortlist, Shortlist):
        both = bundle.source_tokenizer, bundle.target_tokenizer
        shortlist = learn_shortlist(shortlist, both, (source, target))
    if shortlist is not None and (problem := shortlist.problem(settings.vocabulary_sizes)):
        raise BundleError(f"the shortlist is not one of this model: {problem}")

    def fill(folder: Path) -> None:
        (folder / NAMES[kind]).write_bytes(content)
        for name, model in vocabularies.items():
            (folder / name).write_bytes(model)
        decoder = _decoder_yaml(kind, [*vocabularies], search)
        if shortlist is not None:
            (folder / shortlist.name).write_bytes(write_shortlist(shortlist))
            decoder += f"shortlist:\n  - {shortlist.name}\n  - true\n"
        (folder / "decoder.yml").write_text(decoder, "utf-8")

    write_folder(out, fill, details={"kind": "marian"})


def _lost(search: DecodingConfig, config: TransformerConfig) -> list[str]:
    """The search settings that Marian's configuration of the decoder cannot have, for a person."""
    is_greedy = search.beam_size == 1
    if is_greedy:  # patience ends a beam search, and a greedy one never
        search = search.model_copy(update={"patience": 1.0})
    lost = [shown_setting(name, getattr(search, name)) for name in MARIAN_FILES.lacking(search)]
    if not is_greedy and search.length_penalty_kind == "gnmt" and search.length_penalty != 0:
        lost.append(
            f"length_penalty={search.length_penalty:g} of length_penalty_kind='gnmt' (Marian has"
            f" length^α alone, and gets the nearest, α={_exponent(search):g})"
        )

    aligning = {"align_layer": search.align_layer, "align_head": search.align_head}
    shown = [f"{name}={value}" for name, value in aligning.items() if value is not None]
    if shown and [*aligning.values()] != [config.decoder_layers - 1, 0]:
        lost.append(
            f"{' with '.join(shown)} (Marian and Firefox align by the first head of the last layer)"
        )
    return lost


def _exponent(search: DecodingConfig) -> float:
    """The exponent of the length by which Marian is to divide a log-probability."""
    return EXPONENTS[search.length_penalty_kind] * search.length_penalty


def _decoder_yaml(kind: FileKind, vocabularies: list[str], search: DecodingConfig) -> str:
    source, target = vocabularies[0], vocabularies[-1]
    # Marian's limit is a multiple of the source with its stop. It must not cut what we would not,
    # and the shortest source, of one token, needs the largest multiple.
    [longest] = length_limits([1], search, None)
    factor = max(longest / 2, search.max_length_ratio)
    return (
        f"relative-paths: true\nmodels:\n  - {NAMES[kind]}\nvocabs:\n  - {source}\n  - {target}\n"
        f"beam-size: {search.beam_size}\nnormalize: {_exponent(search)}\nword-penalty: 0\n"
        f"max-length-factor: {factor}\n"
    )


def _rows(vocabulary: FileVocabulary) -> list[int]:
    """Marian's id for each of ours; -1 for PAD and BOS."""
    rows = [-1] * (len(vocabulary.ours) + 2)
    for theirs, ours in enumerate(vocabulary.ours):
        rows[ours] = theirs
    return rows


def _arrays(
    bundle: Bundle, config: TransformerConfig, source: FileVocabulary, target: FileVocabulary
) -> dict[str, Floats]:
    named = dict(bundle.model.named_parameters(remove_duplicate=False))
    ours = {name: tensor.detach().cpu().float() for name, tensor in named.items()}
    arrays = blocks_to_file(ours, config)

    def embedding(name: str, vocabulary: FileVocabulary) -> Floats:
        return _array(features_to_marian(ours[name][list(vocabulary.ours)], 1))

    if config.share_embeddings:
        arrays[SHARED] = embedding("target_embedding.weight", target)
    else:
        arrays[SOURCE] = embedding("source_embedding.weight", source)
        arrays[TARGET] = embedding("target_embedding.weight", target)
    bias = ours.get("output_bias", torch.zeros(bundle.model.target_vocabulary_size))
    arrays[OUTPUT_BIAS] = _array(bias[list(target.ours)].unsqueeze(0))
    return arrays


def _array(tensor: Tensor) -> Floats:
    return np.ascontiguousarray(tensor.numpy())


def _in_eight_bits(
    bundle: Bundle, arrays: Mapping[str, Floats], text: Sequence[str]
) -> dict[str, Floats | Quantized]:
    names = quantized_names(arrays)
    found: dict[str, Floats | Quantized] = {
        name: quantize(each) if name in names else each for name, each in arrays.items()
    }
    for name, factor in activation_factors(bundle, text).items():
        found[f"{name}_QuantMultA"] = np.array([factor], np.float32)
    return found


def _check_same(items: Items, arrays: Mapping[str, Floats]) -> None:
    read = items.floats()
    if read.keys() != arrays.keys() or any(
        not np.array_equal(read[name], each) for name, each in arrays.items()
    ):
        raise BundleError("the file that was written does not hold what the model does")


def _check_quantized(items: Items, arrays: Mapping[str, Floats]) -> None:
    """Each number of a matrix in eight bits is at most half a step from the model's."""
    for name, each in arrays.items():
        stored = items.arrays[name]
        if isinstance(stored, Quantized):
            # a little more than half a step, as the product was rounded to float32
            near = np.abs(stored.widened() - each).max() <= 0.501 / stored.multiplier
        else:
            near = np.array_equal(stored, each)
        if not near:
            raise BundleError(f"the file that was written does not hold {name} of the model")
