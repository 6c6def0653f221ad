"""Shapes in signatures are no comments: while checks are on, a call with other shapes fails."""

from collections.abc import Callable

import pytest
import shapes
import torch
from jaxtyping import Float, TypeCheckError
from torch import Tensor

from pellucid.core.errors import ShapeError
from pellucid.decoding.search.candidates import best_candidates
from pellucid.equations.attention import dot_products
from pellucid.model.layers import linear

WRONG_CALLS: dict[str, Callable[[], object]] = {
    "equations: queries and keys of different widths": lambda: dot_products(ones(2, 3), ones(4, 5)),
    "model: a weight of another width than its input": lambda: linear(ones(2, 3), ones(4, 5), None),
    "decoding: one dimension too many": lambda: best_candidates(ones(2, 3, 4), 1),
}


def ones(*shape: int) -> Tensor:
    return torch.ones(shape)


@pytest.mark.parametrize("name", WRONG_CALLS)
def test_a_call_with_a_wrong_shape_fails_by_its_signature(name: str):
    with pytest.raises(TypeCheckError):
        WRONG_CALLS[name]()


def test_the_first_calls_of_each_test_are_checked():
    for _ in range(shapes.MOST_CALLS - 1):
        dot_products(ones(2, 3), ones(4, 3))
    with pytest.raises(TypeCheckError):
        dot_products(ones(2, 3), ones(4, 5))


def test_a_scope_that_goes_on_is_not_counted_anew():
    """Where shapes are no longer checked, the equation refuses the product itself."""
    for scope in ("a file", "another file"):
        shapes.check(is_on=True, scope=scope)
        with pytest.raises(TypeCheckError):
            dot_products(ones(2, 3), ones(4, 5))
        for _ in range(shapes.MOST_CALLS - 1):
            dot_products(ones(2, 3), ones(4, 3))

        shapes.check(is_on=True, scope=scope)
        with pytest.raises(ShapeError):
            dot_products(ones(2, 3), ones(4, 5))


def test_what_was_found_right_is_right_for_these_shapes_and_this_result_alone():
    dropped = 0

    @shapes.checked
    def shortened(x: Float[Tensor, "row column"], width: int) -> Float[Tensor, "row {width}"]:
        return x[: len(x) - dropped, :width]

    def again(*arguments) -> Tensor:
        shapes.check(is_on=True)
        return shortened(*arguments)

    assert torch.equal(again(ones(2, 3), 3), again(2 * ones(2, 3) / 2, 3))
    wrong = [(ones(2, 3, 1), 3), (ones(2, 3).int(), 3), (ones(2, 3), 4)]
    for arguments in wrong:
        with pytest.raises(TypeCheckError):
            again(*arguments)
    dropped = 1
    for _ in range(2):
        with pytest.raises(TypeCheckError):
            again(ones(2, 3), 3)


def test_checks_can_be_switched_off():
    shapes.check(is_on=False)
    with pytest.raises(RuntimeError, match="cannot be multiplied"):  # PyTorch's own words
        linear(ones(2, 3), ones(4, 5), None)
