"""Exports a bundle to CTranslate2, through CTranslate2's own specification classes."""

import dataclasses
import importlib
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from pellucid.backends.capability import KERNELS, advice_to_export
from pellucid.backends.ctranslate2 import Quantization
from pellucid.backends.ctranslate2.support import POSITIONS, ctranslate2_problems, vocabulary_pieces
from pellucid.backends.example_program import example_of, greedy_search_of, pair_in_words
from pellucid.backends.forced_scores import Ids, forced_log_probs, random_lines
from pellucid.backends.kernels.equation import forced_log_probs as in_numpy
from pellucid.backends.kernels.weights import (
    Numbers,
    arrays_of,
    read_weights,
    sinusoids,
    t2t_sinusoids,
)
from pellucid.backends.marian.vocabulary import STOP_PIECE, UNK_PIECE
from pellucid.bundle import Bundle, save_tokenizers
from pellucid.core.errors import BundleError, MissingExtraError
from pellucid.core.files import refuse_to_overwrite, write_folder
from pellucid.core.held_tensors import HeldTensors
from pellucid.core.special import BOS_ID, PAD_ID
from pellucid.core.version import __version__
from pellucid.model.config import TransformerConfig

_PROGRAM = """
import ctranslate2
{imports}

{opened}pieces = {pieces}[:{search.source}]
[found] = ctranslate2.Translator(".").translate_batch(
    [pieces],
    beam_size=1,
    min_decoding_length=0,
    max_decoding_length=min(int(len(pieces) * {search.ratio}) + {search.extra}, {search.target}),
    max_input_length=0,
    suppress_sequences=[["{pad}"], ["{start}"]],
)
pieces = found.hypotheses[0]
print({text})
"""


def readme(bundle: Bundle, quantization: Quantization, example: str = "") -> str:
    """The page of an export as Markdown: what is in the folder, and a program that translates."""
    shown = example_of(bundle, example)
    pieces = vocabulary_pieces(bundle.target_tokenizer)
    search = greedy_search_of(bundle, bundle.max_length or POSITIONS)
    program = _PROGRAM.strip().format(
        imports="\n".join(f"import {each}" for each in shown.imports),
        opened=shown.opened,
        pieces=shown.reading.pieces,
        search=search,
        text=shown.writing.pieces,
        pad=pieces[PAD_ID],
        start=pieces[BOS_ID],
    )
    pair = pair_in_words(bundle)
    return f"""# A translation model for CTranslate2{pair and f": {pair}"}

Exported by Pellucid {__version__}, weights in {quantization}. Without Pellucid, in this folder:

```python
{program}
```

It is a greedy search, and {search.gives(shown.writing.note)}.
Padding and start are never generated: rule them out, as here. A source is cut, and the length of a
translation limited, as the model's settings say. CTranslate2 adds the stop to the source.
"""


def export_ctranslate2(
    bundle: Bundle, out: Path, quantization: Quantization = "float32", example: str = ""
) -> None:
    """Write ``bundle`` to the new folder ``out`` in CTranslate2's format, with its tokenizers.

    The README beside them has a program that translates ``example``, or a sentence that the model
    can read.

    Raises MissingExtraError without ctranslate2, BundleError with every reason why CTranslate2
    cannot express the model or how far the copy is from it, OutputExistsError if ``out`` holds
    something, WriteError.
    """

    def add(folder: Path) -> None:
        """Write the tokenizers and the page."""
        save_tokenizers(folder, bundle.source_tokenizer, bundle.target_tokenizer)
        page = readme(bundle, quantization, example)
        (folder / "README.md").write_text(page, encoding="utf-8")

    convert(bundle, out, quantization, add)


def convert(
    bundle: Bundle,
    out: Path,
    quantization: Quantization = "float32",
    add: Callable[[Path], None] = lambda _: None,
) -> None:
    """Write the model alone to the new folder ``out``, and what ``add`` writes beside it.

    Raises as ``export_ctranslate2`` does.
    """
    try:
        import ctranslate2
    except ImportError:
        raise MissingExtraError("ctranslate2", "fast", "exporting to CTranslate2") from None

    refuse_to_overwrite(out)

    config = bundle.config
    problems = ctranslate2_problems(bundle)
    if problems:
        raise BundleError(
            "CTranslate2 cannot express this model: " + "; ".join(problems),
            hint=advice_to_export(config, but="ctranslate2"),
        )

    assert isinstance(config, TransformerConfig), "other kinds are problems"

    source_pieces = vocabulary_pieces(bundle.source_tokenizer)
    target_pieces = vocabulary_pieces(bundle.target_tokenizer)
    sizes = len(source_pieces), len(target_pieces)
    tensors = _Tensors(arrays_of(bundle), config, sizes)
    spec = _fill(ctranslate2.specs, config, tensors)
    if isinstance(tensors.arrays, HeldTensors):
        tensors.arrays.verify()

    spec.register_source_vocabulary(source_pieces)
    spec.register_target_vocabulary(target_pieces)

    spec.config.unk_token = UNK_PIECE
    spec.config.bos_token = spec.config.decoder_start_token = target_pieces[BOS_ID]
    spec.config.eos_token = STOP_PIECE
    spec.config.add_source_eos = True  # our encoder reads the stop token after a source
    spec.config.layer_norm_epsilon = config.norm_eps

    # Raises for a slot that was left empty, before a file is written.
    spec.validate()
    if quantization != "float32":
        # before the weights are rounded, so that an error is not taken for rounding
        with tempfile.TemporaryDirectory(prefix="pellucid-") as exact:
            spec.save(exact)
            _prove(bundle, tensors, Path(exact), _TOLERANCE)
    # Quantization comes last, because it replaces the weights in place.
    spec.optimize(quantization=quantization)

    def fill(folder: Path) -> None:
        """Write the model and what is beside it."""
        spec.save(str(folder))
        add(folder)
        _prove(
            bundle, tensors, folder, _TOLERANCE if quantization == "float32" else _TOLERANCE_ROUNDED
        )

    write_folder(out, fill, details={"kind": "ctranslate2", "quantization": quantization})


_TOLERANCE, _TOLERANCE_ROUNDED = 1e-4, 0.5
"""The largest difference of a log-probability, relative to the largest: in float32, and with
weights rounded for storage (0.15 was seen, of a random model in int8). A wrong matrix or a
setting that is ignored makes more than the first."""


def _prove(bundle: Bundle, tensors: "_Tensors", folder: Path, tolerance: float) -> None:
    """Check that the converted model gives the log-probabilities of ours on a few lines.

    CTranslate2 computes in float32 with the weights as they are stored, so the processor's int8
    products, which may be wrong (``int8_problem``), have no part in it.

    Raises BundleError if they differ by more than ``tolerance``, relative to the largest.
    """
    import ctranslate2

    read, written = map(vocabulary_pieces, (bundle.source_tokenizer, bundle.target_tokenizer))
    lines = random_lines((len(read), len(written)), bundle.max_length)
    translator = ctranslate2.Translator(
        str(folder), compute_type="float32", inter_threads=1, intra_threads=1
    )
    scored = translator.score_batch(
        [[read[id_] for id_ in source] for source, _ in lines],
        [[written[id_] for id_ in target] for _, target in lines],
        max_input_length=0,
    )

    largest, distance = 1.0, 0.0
    for line, ours, theirs in zip(lines, _log_probs(bundle, tensors, lines), scored, strict=True):
        assert len(ours) == len(line[1]) + 1, "one for each token, and one for the stop"
        largest = max(largest, float(np.abs(ours).max()))
        distance = max(distance, float(np.abs(ours - np.array(theirs.log_probs)).max()))

    if not distance <= tolerance * largest:
        raise BundleError(
            "CTranslate2 computes other scores than this model: log-probabilities of up to"
            f" {largest:.2g} differ by {distance:.2g}",
            hint="use the engine torch, and report this with the config.toml of the model",
        )


def _log_probs(
    bundle: Bundle, tensors: "_Tensors", lines: Sequence[tuple[Ids, Ids]]
) -> list[Numbers]:
    """log p of each token of each line's target and of its stop, as our model gives them.

    By the equations in numpy where they have the model and it is not in memory yet, so that
    converting it imports no torch; else by the model.
    """
    if isinstance(tensors.arrays, HeldTensors) and not KERNELS.model_problems(bundle.config):
        weights = read_weights(tensors.arrays, tensors.config, are_exact=True)
        return [in_numpy(weights, source, target) for source, target in lines]

    try:
        importlib.import_module("torch")
    except ModuleNotFoundError as error:
        purpose = "checking a converted model of this kind"
        raise MissingExtraError.of_training(error, purpose) or error from None

    return [
        forced_log_probs(bundle.model, source.tolist(), target.tolist()) for source, target in lines
    ]


@dataclasses.dataclass(frozen=True)
class _Tensors:
    """A model's parameters in float32, each of the shape that its config gives it."""

    arrays: Mapping[str, npt.NDArray[np.generic]]
    config: TransformerConfig
    vocabulary_sizes: tuple[int, int]

    def take(self, *names: str, shape: tuple[int, ...]) -> Numbers:
        """A copy of a parameter; one that is shared is stored under one of its names.

        A copy, as CTranslate2 quantizes in place. Raises BundleError if there is none of that
        shape: a forged one would have CTranslate2 read what is not its own.
        """
        for name in names:
            if name in self.arrays:
                found = self.arrays[name]
                if found.shape != shape or not np.issubdtype(found.dtype, np.floating):
                    raise BundleError(
                        f"the model does not fit its config: {name} should be {shape} of floating"
                        f"-point numbers, is {found.shape} of {found.dtype}"
                    )
                return np.array(found, np.float32)
        raise BundleError(f"the model does not fit its config: {' or '.join(names)} is missing")

    def embedding(self, side: Literal["source", "target"]) -> Numbers:
        """The vectors of a side's tokens, (token, d_model)."""
        names = [f"{side}_embedding.weight"]
        if self.config.share_embeddings:
            names += ["source_embedding.weight", "target_embedding.weight"]
        if self.config.tie_output and "target_embedding.weight" in names:
            names.append("output_weight")
        size = self.vocabulary_sizes[side == "target"]
        return self.take(*names, shape=(size, self.config.d_model))

    def output(self) -> Numbers:
        """The vectors whose products with a hidden state are the logits, (token, d_model)."""
        if self.config.tie_output:
            return self.embedding("target")
        return self.take("output_weight", shape=(self.vocabulary_sizes[1], self.config.d_model))


def _fill(specs: Any, config: TransformerConfig, tensors: _Tensors) -> Any:
    """A Transformer's specification with every slot filled."""
    spec = _empty(specs, config)

    # Rotary positions have no table: the specification of each layer names them.
    positions = None if config.positions == "rotary" else _positions(config, tensors)
    for side, ours, embeddings in (
        (spec.encoder, "encoder", spec.encoder.embeddings[0]),
        (spec.decoder, "decoder", spec.decoder.embeddings),
    ):
        side.scale_embeddings = config.scale_embeddings
        if positions is not None:
            side.position_encodings.encodings = positions.copy()
        embeddings.weight = tensors.embedding("source" if ours == "encoder" else "target")

        # A post-norm stack ends with the norm of its last block and has no slot for another.
        if config.norm == "pre":
            _norm(side.layer_norm, tensors, f"{ours}.last_norm")
        for index, layer in enumerate(side.layer):
            _layer(layer, tensors, f"{ours}.layers.{index}")

    spec.decoder.start_from_zero_embedding = config.start_symbol == "zero"
    spec.decoder.projection.weight = tensors.output()
    if config.output_bias:
        size = len(spec.decoder.projection.weight)
        spec.decoder.projection.bias = tensors.take("output_bias", shape=(size,))
    return spec


def _empty(specs: Any, config: TransformerConfig) -> Any:
    """The specification before its slots are filled.

    ``rotary_interleave`` rotates neighboring features (0 and 1, 2 and 3, ...) and ``rotary_dim``
    is the whole head, as in our rotary positions.
    """
    activations = specs.Activation
    activation = {
        "relu": activations.RELU,
        "gelu": activations.GELU,
        "swish": activations.SWISH,
    }[config.activation]

    of_transformers = specs.transformer_spec
    encoder, decoder = (
        side(
            layers,
            config.heads,
            pre_norm=config.norm == "pre",
            activation=activation,
            rotary_dim=config.key_size if config.positions == "rotary" else None,
            rotary_interleave=True,
        )
        for side, layers in (
            (of_transformers.TransformerEncoderSpec, config.encoder_layers),
            (of_transformers.TransformerDecoderSpec, config.decoder_layers),
        )
    )
    return specs.TransformerSpec(encoder, decoder)


def _positions(config: TransformerConfig, tensors: _Tensors) -> Numbers:
    """The table that is added to embeddings, (position, d_model)."""
    if config.positions == "learned":
        names = ("target_embedding.positions.learned", "source_embedding.positions.learned")
        return tensors.take(*names, shape=(config.max_positions, config.d_model))
    # Written out, because CTranslate2's own sinusoid is in another order than either.
    if config.positions == "sinusoidal_t2t":
        return t2t_sinusoids(POSITIONS, config.d_model)
    return sinusoids(POSITIONS, config.d_model)


def _layer(layer: Any, tensors: _Tensors, name: str) -> None:
    # CTranslate2 stores a linear layer as PyTorch does, (output, input), so nothing is transposed.
    # Its self-attention packs Q, K and V into one layer in the order of our `w_qkv`.
    attention, config = layer.self_attention, tensors.config
    _norm(attention.layer_norm, tensors, f"{name}.self_attention_norm.norm")
    _linear(attention.linear[0], tensors, f"{name}.self_attention", "qkv")
    _linear(attention.linear[1], tensors, f"{name}.self_attention", "o")

    # Cross-attention projects Q from the decoder, and K and V in one layer from the encoder: the
    # first d_model rows of `w_qkv`, and the others.
    if hasattr(layer, "attention"):
        _norm(layer.attention.layer_norm, tensors, f"{name}.cross_attention_norm.norm")
        own = slice(0, config.d_model)
        memory = slice(config.d_model, None)
        _linear(layer.attention.linear[0], tensors, f"{name}.cross_attention", "qkv", own)
        _linear(layer.attention.linear[1], tensors, f"{name}.cross_attention", "qkv", memory)
        _linear(layer.attention.linear[2], tensors, f"{name}.cross_attention", "o")

    _norm(layer.ffn.layer_norm, tensors, f"{name}.feed_forward_norm.norm")
    for slot, ours, shape in (
        (layer.ffn.linear_0, "inner", (config.d_ff, config.d_model)),
        (layer.ffn.linear_1, "outer", (config.d_model, config.d_ff)),
    ):
        slot.weight = tensors.take(f"{name}.feed_forward.{ours}.weight", shape=shape)
        slot.bias = tensors.take(f"{name}.feed_forward.{ours}.bias", shape=shape[:1])


def _linear(
    slot: Any,
    tensors: _Tensors,
    name: str,
    part: Literal["qkv", "o"],
    rows: slice = slice(None),
) -> None:
    width = tensors.config.d_model
    shape = (3 * width if part == "qkv" else width, width)
    slot.weight = tensors.take(f"{name}.w_{part}", shape=shape)[rows]
    if tensors.config.attention_bias:
        slot.bias = tensors.take(f"{name}.b_{part}", shape=shape[:1])[rows]


def _norm(slot: Any, tensors: _Tensors, name: str) -> None:
    shape = (tensors.config.d_model,)
    slot.gamma = tensors.take(f"{name}.gain", shape=shape)
    slot.beta = tensors.take(f"{name}.bias", shape=shape)
