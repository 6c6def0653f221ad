"""Shapes in signatures are no comments: while checks are on, a call with other shapes fails."""

from collections.abc import Callable

import pytest
import shapes
import torch
from jaxtyping import TypeCheckError
from torch import Tensor

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


def test_checks_can_be_switched_off():
    shapes.check(is_on=False)
    with pytest.raises(RuntimeError, match="cannot be multiplied"):  # PyTorch's own words
        linear(ones(2, 3), ones(4, 5), None)
