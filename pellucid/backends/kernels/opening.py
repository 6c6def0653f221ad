"""A bundle opened by the kernels: rounded, packed, and checked before it is used.

The check needs no torch. On three lines of random ids the library must give the numbers of its
equation to the last bit, which proves its instructions on this processor, and these must be close
to those of the same functions with the bundle's own matrices, which tests hold equal to torch.
"""

import numpy as np

from pellucid.backends.capability import KERNELS
from pellucid.backends.kernels.equation import forced_log_probs
from pellucid.backends.kernels.library import Library, Model, Search
from pellucid.backends.kernels.weights import Exact, Tensors, Weights, read_weights
from pellucid.bundle import Bundle, StoredModel
from pellucid.core.errors import BundleError
from pellucid.core.special import SPECIAL_COUNT
from pellucid.model.config import TransformerConfig

_LENGTHS = ((1, 2), (7, 5), (12, 16))
"""Tokens of the source and of the target of each line."""
_TOLERANCE = 0.5
"""The largest difference of a log-probability, relative to the largest, that rounding to 8 bits may
make; the same as for CTranslate2's int8. 0.16 was seen, of a random model."""


def kernel_problems(bundle: Bundle) -> list[str]:
    """Every reason why the kernels cannot express ``bundle``; empty if they can."""
    return KERNELS.model_problems(bundle.config)


def open_model(bundle: Bundle, library: Library, instructions: str | None = None) -> Model:
    """The packed model. Raises BundleError if it cannot be expressed or fails its check."""
    problems = kernel_problems(bundle)
    if problems:
        raise BundleError("the kernels cannot express this model: " + "; ".join(problems))

    config = bundle.config
    assert isinstance(config, TransformerConfig), "other kinds are problems"
    tensors = _tensors(bundle)
    weights = read_weights(tensors, config)
    model = library.open(weights, instructions)
    _prove(model, weights, read_weights(tensors, config, Exact))
    return model


def _tensors(bundle: Bundle) -> Tensors:
    """The parameters, from the file if the model was not read yet: torch is not needed for it."""
    if isinstance(bundle.held, StoredModel):
        arrays = bundle.held.arrays()
        if arrays is not None:
            return arrays
    # each under all of its names: a shared parameter may be asked for by any
    named = bundle.model.named_parameters(remove_duplicate=False)
    return {name: each.detach().cpu().float().numpy() for name, each in named}


def _prove(model: Model, rounded: Weights, exact: Weights) -> None:
    """Raise BundleError if the library computes something else than its equation, or if rounding
    changes the model too much."""
    draw = np.random.default_rng(0)
    sizes = [len(each.weight) for each in (exact.source, exact.target) if isinstance(each, Exact)]
    longest = (model.position_count or max(max(each) for each in _LENGTHS) + 1) - 1
    largest, distance = 1.0, 0.0
    for lengths in _LENGTHS:
        source, target = (
            draw.integers(min(SPECIAL_COUNT, size - 1), size, min(length, longest), dtype=np.int32)
            for size, length in zip(sizes, lengths, strict=True)
        )
        search = Search(
            sources=[source.tolist()],
            limits=[len(target)],
            penalties=np.ones(len(target) + 3, np.float32),
            forced=[target.tolist()],
        )
        [[(_, found)]] = model.search(search)
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
