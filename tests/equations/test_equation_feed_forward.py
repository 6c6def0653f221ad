import math

import pytest
import torch
from equation_checks import close

from pellucid.equations.feed_forward import feed_forward, gelu, relu, silu
from pellucid.equations.notation.waves import is_permutation_equivariant

W_1, B_1 = torch.tensor([[1.0, -1, 0], [0, 1, 1]]), torch.tensor([0, 0.5, -1])
W_2, B_2 = torch.tensor([[1.0, 0], [0, 1], [1, 1]]), torch.tensor([0.1, -0.1])
PARAMETERS = [parameter.double() for parameter in (W_1, B_1, W_2, B_2)]


@pytest.mark.by_hand
def test_relu_by_hand():
    """EQ-99: (-1, 0, 2) → (0, 0, 2); a second time changes nothing."""
    close(relu(torch.tensor([-1.0, 0, 2])), [0.0, 0, 2])
    x = torch.randn(3, 4)
    assert relu(relu(x)).equal(relu(x))
    assert relu(x).equal(torch.relu(x))


@pytest.mark.by_hand
@pytest.mark.parametrize(
    ("x", "expected"),
    [
        # (1, 2): hidden (1, -1+2+.5, 2-1) = (1, 1.5, 1), all kept
        ([1.0, 2], [1 + 1 + 0.1, 1.5 + 1 - 0.1]),
        # (1, -2): hidden (1, -2.5, -3) → (1, 0, 0)
        ([1.0, -2], [1 + 0.1, -0.1]),
    ],
)
def test_two_features_by_hand(x, expected):
    """EQ-100: max(0, xW₁ + b₁)W₂ + b₂."""
    close(feed_forward(torch.tensor(x), *PARAMETERS), expected, tolerance=1e-7)


@pytest.mark.property
def test_each_position_is_alone():
    """EQ-101: every row goes through the same network; order does not matter."""
    x = torch.randn(2, 3, 2)
    output = feed_forward(x, *PARAMETERS)
    for i in range(2):
        for j in range(3):
            close(output[i, j], feed_forward(x[i, j], *PARAMETERS))
    order = torch.tensor([2, 0, 1])
    assert is_permutation_equivariant(lambda x: feed_forward(x, *PARAMETERS), x, order)


@pytest.mark.referee
@pytest.mark.parametrize(
    ("ours", "theirs"),
    [(relu, torch.nn.ReLU()), (gelu, torch.nn.GELU()), (silu, torch.nn.SiLU())],
)
def test_feed_forward_is_two_linear_layers_of_torch(ours, theirs):
    """EQ-100, EQ-102: referee nn.Linear, with each activation."""
    first, second = torch.nn.Linear(4, 7), torch.nn.Linear(7, 4)
    x = torch.randn(3, 4)
    output = feed_forward(x, first.weight.T, first.bias, second.weight.T, second.bias, ours)
    close(output, second(theirs(first(x))))


@pytest.mark.by_hand
def test_smooth_activations_by_hand():
    """GELU(1) = Φ(1) = (1 + erf(1/√2))/2, SiLU(1) = 1/(1 + 1/e); both are 0 at 0."""
    close(gelu(torch.tensor([1.0, 0])), [(1 + math.erf(math.sqrt(0.5))) / 2, 0])
    close(silu(torch.tensor([1.0, 0])), [1 / (1 + math.exp(-1)), 0])
