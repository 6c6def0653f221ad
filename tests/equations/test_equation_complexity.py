"""Operations, steps and paths by hand, and against graphs of who reads whom."""

import pytest
import torch

from pellucid.core.errors import ConfigError
from pellucid.equations.complexity import (
    LAYERS,
    cached_numbers,
    convolution_operations,
    crossing_length,
    feed_forward_operations,
    path_length,
    projection_operations,
    recurrence_operations,
    restricted_attention_operations,
    self_attention_operations,
    sequential_steps,
    token_operations,
)


@pytest.mark.by_hand
def test_three_words_of_two_features():
    """Q Kᵀ: nine dot products of two; W V: six of three. A matrix of 2 × 2 times 3 rows: 12."""
    assert self_attention_operations(3, 3, 2) == 9 * 2 + 6 * 3
    assert projection_operations(3, 3, 2) == 4 * 12
    assert projection_operations(1, 3, 2) == 2 * 4 + 2 * 12
    assert recurrence_operations(3, 2, gates=1) == 2 * 12
    assert recurrence_operations(3, 2, gates=4) == 8 * 12
    assert convolution_operations(3, 2, kernel=5) == 5 * 12
    assert restricted_attention_operations(3, 2, window=2) == 2 * 3 * 2 * 2
    assert restricted_attention_operations(3, 2, 9) == self_attention_operations(3, 3, 2)
    assert feed_forward_operations(3, 2, 8) == 2 * 3 * 16


@pytest.mark.by_hand
def test_attention_and_recurrence_cross_where_the_length_is_the_width():
    """d = 512: at n = 512 both are 2 · 512³; one word more and attention is dearer."""
    assert crossing_length(512, gates=1) == 512
    assert self_attention_operations(512, 512, 512) == recurrence_operations(512, 512, 1)
    assert self_attention_operations(513, 513, 512) > recurrence_operations(513, 512, 1)
    four = crossing_length(64, gates=4)
    assert self_attention_operations(four, four, 64) == recurrence_operations(four, 64, 4)


@pytest.mark.by_hand
def test_a_token_of_a_small_decoder():
    """One layer, d = 2, d_ff = 8, 5 words of source, the third of target, 10 words known.

    16 + 2·3·2, 8 + 2·5·2, 32 and 20.
    """
    assert token_operations(1, 5, 3, 2, 8, 10) == 16 + 12 + 8 + 20 + 32 + 20
    assert cached_numbers(layers=2, source=5, target=3, width=4) == 2 * 2 * 8 * 4


def reached(reads: torch.Tensor, steps: int) -> int:
    """How many layers until the first row has read the last, by multiplying who reads whom."""
    seen = torch.eye(len(reads))
    for layer in range(1, steps + 1):
        seen = (reads @ seen > 0).double()
        if seen[0, -1] > 0:
            return layer
    raise AssertionError(f"not within {steps} layers")


@pytest.mark.parametrize("length", [2, 5, 9, 17])
@pytest.mark.parametrize("reach", [3, 5])
def test_the_path_is_what_the_graph_of_reading_says(length: int, reach: int):
    distance = (torch.arange(length)[:, None] - torch.arange(length)).abs()
    near = (distance <= reach // 2).double()
    for layer in ("convolution", "restricted attention"):
        assert path_length(layer, length, reach) == reached(near, length)
    assert path_length("recurrence", length) == reached((distance <= 1).double(), length)
    assert path_length("self-attention", length) == reached(torch.ones(length, length), 1)


@pytest.mark.by_hand
def test_dilated_layers_see_powers_of_the_kernel():
    """k = 3: 3, 9 and 27 words after one, two and three layers."""
    paths = [path_length("dilated convolution", n, 3) for n in (1, 3, 4, 9, 10, 27, 28)]
    assert paths == [0, 1, 2, 2, 3, 3, 4]


def test_only_a_recurrence_has_to_wait():
    assert [sequential_steps(layer, 7) for layer in LAYERS] == [1, 7, 1, 1, 1]


def test_what_is_no_layer_of_the_table_is_refused():
    with pytest.raises(ConfigError, match=r"layer must be one of self-attention, .*, got 'pool'"):
        sequential_steps("pool", 3)
    with pytest.raises(ConfigError, match="got 'pool'"):
        path_length("pool", 3)
    with pytest.raises(ConfigError, match=r"convolution must see at least 2 words .* got reach=1"):
        path_length("convolution", 3, 1)
