"""Fills a model with stored parameters, once they are known to fit it."""

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from pellucid.core.errors import BundleError, list_problems
from pellucid.core.tensors import parse_tensors
from pellucid.model.build import build_unfilled, parameter_shapes
from pellucid.model.config import ModelConfig
from pellucid.model.seq2seq import SequenceModel


def read_model(
    content: bytes, origin: Path, config: ModelConfig, vocabulary_sizes: tuple[int, int]
) -> SequenceModel:
    """The model of a bundle, frozen and in evaluation mode, from the bytes of the file ``origin``.

    The shapes in the file are compared with those of the config before any memory is taken for
    the model. Raises CorruptError if these are no tensors, BundleError if they are not those of the
    config, ConfigError if the config does not fit the vocabularies.
    """
    tensors = parse_tensors(content, origin)
    # shapes come from the meta device: for a file that does not fit no model is built
    check_tensors(parameter_shapes(config, *vocabulary_sizes), tensors, origin)
    model = build_unfilled(config, *vocabulary_sizes)
    load_model_tensors(model, tensors, origin)

    return model.eval().requires_grad_(False)


def model_tensors(model: SequenceModel) -> dict[str, Tensor]:
    """The parameters by name; a shared parameter appears once, under its first name."""
    return dict(model.named_parameters())


def load_model_tensors(model: SequenceModel, tensors: Mapping[str, Tensor], origin: Path) -> None:
    """Fill ``model`` with ``tensors`` read from ``origin``.

    Raises BundleError listing every tensor that is missing, left over, of another shape or
    no floating-point numbers.
    """
    fill_tensors(model_tensors(model), tensors, origin)


def fill_tensors(
    parameters: Mapping[str, Tensor], tensors: Mapping[str, Tensor], origin: Path
) -> None:
    """Fill each of ``parameters`` with the tensor of its name, read from ``origin``.

    Raises BundleError as ``load_model_tensors`` does.
    """
    check_tensors({name: each.shape for name, each in parameters.items()}, tensors, origin)
    with torch.no_grad():
        for name, parameter in parameters.items():
            # in place, so that shared parameters stay shared and the dtype stays the model's
            parameter.copy_(tensors[name])


def check_tensors(
    shapes: Mapping[str, torch.Size], tensors: Mapping[str, Tensor], origin: Path
) -> None:
    """Raise BundleError, naming every difference, unless ``tensors``, read from ``origin``, have
    these names and shapes and hold floating-point numbers."""
    problems = [f"{name} is missing" for name in shapes if name not in tensors]
    problems += [f"{name} is not part of this model" for name in tensors if name not in shapes]

    for name in shapes.keys() & tensors.keys():
        shape, tensor = tuple(shapes[name]), tensors[name]
        if shape != tuple(tensor.shape):
            problems.append(f"{name} should be {shape}, is {tuple(tensor.shape)}")
        elif not tensor.is_floating_point():
            problems.append(f"{name} should hold floating-point numbers, holds {tensor.dtype}")

    # every problem at once: of a wrong config usually all tensors are of the wrong shape
    if problems:
        raise BundleError(f"{origin} does not fit its config: {list_problems(sorted(problems))}")
