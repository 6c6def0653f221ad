"""Checks that tensors fit together, with messages that name both shapes and the axis."""

from torch import Tensor

from pellucid.core.errors import ShapeError

Number = int | float
"""A real number; written out because the checks in the tests do not take an int for a float."""

NamedAxis = tuple[str, Tensor, int]
"""A tensor, what it is called in the message, and which of its axes is meant."""


def require_same_size(axis_name: str, first: NamedAxis, second: NamedAxis) -> None:
    """Raise ShapeError unless the two axes have the same size."""
    first_name, first_tensor, first_axis = first
    second_name, second_tensor, second_axis = second
    if _size(first_tensor, first_axis) != _size(second_tensor, second_axis):
        raise ShapeError(
            f"{first_name} and {second_name} must have the same {axis_name}"
            f" (axis {first_axis} of {first_name}, axis {second_axis} of {second_name}),"
            f" got shapes {tuple(first_tensor.shape)} and {tuple(second_tensor.shape)}"
        )


def require_same_batch(first_name: str, first: Tensor, second_name: str, second: Tensor) -> None:
    """Raise ShapeError unless the axes before the last two can stand side by side."""
    # from the right, as broadcasting aligns axes; missing ones on the left fit anything
    pairs = zip(reversed(first.shape[:-2]), reversed(second.shape[:-2]), strict=False)
    if not all(left == right or 1 in (left, right) for left, right in pairs):
        raise ShapeError(
            f"{first_name} and {second_name} must have the same batch axes"
            f" (all but the last two), got shapes {tuple(first.shape)} and {tuple(second.shape)}"
        )


def require_fits(name: str, tensor: Tensor, whole_name: str, whole: Tensor) -> None:
    """Raise ShapeError unless ``tensor`` can be repeated to the shape of ``whole``."""
    pairs = list(zip(reversed(tensor.shape), reversed(whole.shape), strict=False))
    # negative axes, counted from the right as the pairs are
    broken = [-1 - axis for axis, (part, full) in enumerate(pairs) if part not in (1, full)]
    if broken or tensor.dim() > whole.dim():
        axis = broken[0] if broken else -1 - whole.dim()
        raise ShapeError(
            f"{name} must fit {whole_name} (each axis equal or 1; axis {axis} does not),"
            f" got shapes {tuple(tensor.shape)} and {tuple(whole.shape)}"
        )


def _size(tensor: Tensor, axis: int) -> int:
    if tensor.dim() < -axis:
        return -1  # no such axis: equal to no size
    return tensor.shape[axis]
