"""A bundle opened by the kernels: rounded, packed, and checked before it is used.

The check needs no torch. On three lines of random ids the library must give the numbers of its
equation to the last bit, which proves its instructions on this processor, and these must be close
to those of the same functions with the bundle's own matrices, which tests hold equal to torch. The
packed model is kept with these numbers, and the next start compares with them alone (``kept``). A
shortlist behind it needs no check: the library compares every guess with all logits.
"""

import logging
from pathlib import Path

import numpy as np

from pellucid.backends.capability import KERNELS
from pellucid.backends.forced_scores import random_lines
from pellucid.backends.kernels.equation import forced_log_probs
from pellucid.backends.kernels.kept import Line, keep, kept_folder, open_kept, search_line
from pellucid.backends.kernels.library import Library, Model, Packed
from pellucid.backends.kernels.shortlist import find_shortlist, may_pay, usual_states
from pellucid.backends.kernels.weights import Rounded, Weights, arrays_of, read_weights
from pellucid.backends.user_cache import locked_folder, remove_unused
from pellucid.bundle import Bundle
from pellucid.core.errors import BundleError, WriteError
from pellucid.core.files import remove_leftovers
from pellucid.core.held_tensors import HeldTensors
from pellucid.model.config import TransformerConfig

_TOLERANCE = 0.5
"""The largest difference of a log-probability, relative to the largest, that rounding to 8 bits may
make; the same as for CTranslate2's int8. 0.16 was seen, of a random model."""

_log = logging.getLogger("pellucid.backends")


def open_model(bundle: Bundle, library: Library, instructions: str | None = None) -> Model:
    """The packed model, from the user's cache or packed now, and then kept there.

    Raises BundleError if it cannot be expressed or fails its check, CorruptError if the bundle was
    changed in its folder.
    """
    problems = KERNELS.model_problems(bundle.config)
    if problems:
        raise BundleError("the kernels cannot express this model: " + "; ".join(problems))

    folder = kept_folder(bundle)
    if folder is None:
        return _pack(bundle, library, instructions)[0]

    found = open_kept(folder, library, instructions)
    if found is not None:
        return found
    try:
        with locked_folder(folder.parent):
            return _pack_and_keep(folder, bundle, library, instructions)
    except OSError as error:
        _log.info(
            "packing the model for the kernels, for this time alone: nothing can be kept in %s"
            " (%s; let XDG_CACHE_HOME name a folder that you may write)",
            folder.parent,
            error.strerror,
        )
        return _pack(bundle, library, instructions)[0]


def _pack_and_keep(
    folder: Path, bundle: Bundle, library: Library, instructions: str | None
) -> Model:
    """The caller holds the lock, and another process may have packed the model before it did."""
    remove_leftovers(folder.parent)
    if folder.exists():
        found = open_kept(folder, library, instructions)
        if found is not None:
            return found

    remove_unused(folder.parent)
    _log.info("packing the model for the kernels, once, into %s", folder)
    model, packed, lines = _pack(bundle, library, instructions)
    try:
        keep(folder, packed, lines)
    except WriteError as error:
        _log.warning("the packed model is not kept: %s", error)
    return model


def _pack(
    bundle: Bundle, library: Library, instructions: str | None
) -> tuple[Model, Packed, list[Line]]:
    """Round, pack and check the model."""
    config = bundle.config
    assert isinstance(config, TransformerConfig), "other kinds are problems"
    tensors = arrays_of(bundle)
    weights = read_weights(tensors, config)
    packed = library.pack(weights)
    model = library.open_packed(packed, instructions)
    lines = _prove(model, weights, read_weights(tensors, config, are_exact=True))
    if isinstance(tensors, HeldTensors):
        tensors.verify()

    output = weights.output
    assert isinstance(output, Rounded)
    if may_pay(output):
        is_shared = weights.target is weights.source
        states = usual_states(model, output, bundle.source_tokenizer, is_shared=is_shared)
        shortlist = find_shortlist(output, states)
        if shortlist is not None:
            packed = library.with_shortlist(packed, shortlist)
            model = library.open_packed(packed, instructions)
    return model, packed, lines


def _prove(model: Model, rounded: Weights, exact: Weights) -> list[Line]:
    """The lines with the numbers of the library.

    Raises BundleError if it computes something else than its equation, or if rounding changes the
    model too much.
    """
    assert isinstance(rounded.source, Rounded)
    assert isinstance(rounded.target, Rounded)
    sizes = len(rounded.source.whole), len(rounded.target.whole)
    largest, distance = 1.0, 0.0
    lines = []
    for source, target in random_lines(sizes, model.position_count):
        found = search_line(model, source.tolist(), target.tolist())
        lines.append(Line(source.tolist(), target.tolist(), found))
        expected = forced_log_probs(rounded, source, target)
        if not np.array_equal(np.array(found, np.float32), expected):
            raise BundleError(
                f"the kernels ({model.instructions}) compute other numbers than their equation:"
                f" log-probabilities differ by {np.abs(found - expected).max():.2g}",
                hint="take another engine, and report this with the name of the processor",
            )

        before = forced_log_probs(exact, source, target)
        largest = max(largest, float(np.abs(before).max()))
        distance = max(distance, float(np.abs(before - expected).max()))

    if not distance <= _TOLERANCE * largest:
        raise BundleError(
            f"8 bits are too few for this model: log-probabilities of up to {largest:.2g} change by"
            f" {distance:.2g}",
            hint="take compute_type=float32",
        )
    return lines
