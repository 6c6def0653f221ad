"""Exports a bundle to CTranslate2, through CTranslate2's own specification classes."""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from pellucid.backends.ctranslate2 import Quantization
from pellucid.backends.ctranslate2.support import POSITIONS, ctranslate2_problems, vocabulary_pieces
from pellucid.backends.forced_scores import forced_log_probs, random_lines
from pellucid.backends.marian.vocabulary import STOP_PIECE, UNK_PIECE
from pellucid.bundle import Bundle, save_tokenizers
from pellucid.core.errors import BundleError, MissingExtraError
from pellucid.core.files import refuse_to_overwrite, write_folder
from pellucid.core.special import BOS_ID
from pellucid.equations.positions import sinusoidal_positions
from pellucid.model.config import TransformerConfig


def export_ctranslate2(bundle: Bundle, out: Path, quantization: Quantization = "float32") -> None:
    """Write ``bundle`` to the new folder ``out`` in CTranslate2's format, with its tokenizers.

    Raises MissingExtraError without ctranslate2, BundleError with every reason why CTranslate2
    cannot express the model or how far the copy is from it, OutputExistsError if ``out`` holds
    something, WriteError.
    """
    try:
        import ctranslate2
    except ImportError:
        raise MissingExtraError("ctranslate2", "fast", "exporting to CTranslate2") from None

    refuse_to_overwrite(out)

    config = bundle.config
    problems = ctranslate2_problems(bundle)
    if problems:
        raise BundleError("CTranslate2 cannot express this model: " + "; ".join(problems))

    assert isinstance(config, TransformerConfig), "other kinds are problems"

    # Tied parameters appear under each of their names: CTranslate2 has a slot for each.
    named = bundle.model.named_parameters(remove_duplicate=False)
    # float32 first, whatever the bundle stores: CTranslate2 quantizes from there.
    tensors = {name: tensor.detach().cpu().float() for name, tensor in named}
    spec = _fill(ctranslate2.specs, config, tensors)

    target_pieces = vocabulary_pieces(bundle.target_tokenizer)
    spec.register_source_vocabulary(vocabulary_pieces(bundle.source_tokenizer))
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
            _prove(bundle, Path(exact), _TOLERANCE)
    # Quantization comes last, because it replaces the weights in place.
    spec.optimize(quantization=quantization)

    def fill(folder: Path) -> None:
        spec.save(str(folder))
        save_tokenizers(folder, bundle.source_tokenizer, bundle.target_tokenizer)
        _prove(bundle, folder, _TOLERANCE if quantization == "float32" else _TOLERANCE_ROUNDED)

    write_folder(out, fill, details={"kind": "ctranslate2", "quantization": quantization})


_TOLERANCE, _TOLERANCE_ROUNDED = 1e-4, 0.5
"""The largest difference of a log-probability, relative to the largest: in float32, and with
weights rounded for storage (0.15 was seen, of a random model in int8). A wrong matrix or a
setting that is ignored makes more than the first."""


def _prove(bundle: Bundle, folder: Path, tolerance: float) -> None:
    """Check that the converted model gives the log-probabilities of ours on a few lines.

    CTranslate2 computes in float32 with the weights as they are stored, so the processor's int8
    products, which may be wrong (``int8_problem``), have no part in it.

    Raises BundleError if they differ by more than ``tolerance``, relative to the largest.
    """
    import ctranslate2

    lines = random_lines(bundle)
    read, written = map(vocabulary_pieces, (bundle.source_tokenizer, bundle.target_tokenizer))
    translator = ctranslate2.Translator(
        str(folder), compute_type="float32", inter_threads=1, intra_threads=1
    )
    scored = translator.score_batch(
        [[read[id_] for id_ in source] for source, _ in lines],
        [[written[id_] for id_ in target] for _, target in lines],
        max_input_length=0,
    )

    largest, distance = 1.0, 0.0
    for line, theirs in zip(lines, scored, strict=True):
        ours = forced_log_probs(bundle.model, *line)
        largest = max(largest, ours.abs().max().item())
        distance = max(distance, (ours - torch.tensor(theirs.log_probs)).abs().max().item())

    if not distance <= tolerance * largest:
        raise BundleError(
            "CTranslate2 computes other scores than this model: log-probabilities of up to"
            f" {largest:.2g} differ by {distance:.2g}",
            hint="use the engine torch, and report this with the config.toml of the model",
        )


def _fill(specs: Any, config: TransformerConfig, tensors: dict[str, Tensor]) -> Any:
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
            side.position_encodings.encodings = _own(positions)

        name = "source" if ours == "encoder" else "target"
        embeddings.weight = _own(tensors[f"{name}_embedding.weight"])

        # A post-norm stack ends with the norm of its last block and has no slot for another.
        if config.norm == "pre":
            _norm(side.layer_norm, tensors, f"{ours}.last_norm")
        for index, layer in enumerate(side.layer):
            _layer(layer, tensors, f"{ours}.layers.{index}", config)

    spec.decoder.projection.weight = _own(tensors["output_weight"])
    if config.output_bias:
        spec.decoder.projection.bias = _own(tensors["output_bias"])
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


def _positions(config: TransformerConfig, tensors: dict[str, Tensor]) -> Tensor:
    """The table that is added to embeddings, (position, d_model)."""
    if config.positions == "learned":
        return tensors["target_embedding.positions.learned"]
    # Written out, because CTranslate2's own sinusoid is that of tensor2tensor.
    return sinusoidal_positions(POSITIONS, config.d_model)


def _layer(layer: Any, tensors: dict[str, Tensor], name: str, config: TransformerConfig) -> None:
    # CTranslate2 stores a linear layer as PyTorch does, (output, input), so nothing is transposed.
    # Its self-attention packs Q, K and V into one layer in the order of our `w_qkv`.
    attention = layer.self_attention
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
    for slot, ours in ((layer.ffn.linear_0, "inner"), (layer.ffn.linear_1, "outer")):
        slot.weight = _own(tensors[f"{name}.feed_forward.{ours}.weight"])
        slot.bias = _own(tensors[f"{name}.feed_forward.{ours}.bias"])


def _linear(
    slot: Any, tensors: dict[str, Tensor], name: str, part: str, rows: slice = slice(None)
) -> None:
    slot.weight = _own(tensors[f"{name}.w_{part}"][rows])
    if f"{name}.b_{part}" in tensors:
        slot.bias = _own(tensors[f"{name}.b_{part}"][rows])


def _norm(slot: Any, tensors: dict[str, Tensor], name: str) -> None:
    slot.gamma = _own(tensors[f"{name}.gain"])
    slot.beta = _own(tensors[f"{name}.bias"])


def _own(tensor: Tensor) -> npt.NDArray[np.float32]:
    """A copy as an array: CTranslate2 quantizes in place, and would change the bundle's model."""
    array: npt.NDArray[np.float32] = tensor.numpy().copy()
    return array
