"""Equations on numbers small enough to follow in the head; most stand in the book as examples."""

import math

import pytest
import torch
from equation_checks import close

from pellucid.equations.alignment import attentional_state, general_attention
from pellucid.equations.attention import attention, attention_weights
from pellucid.equations.embedding import embed, embed_one_hot, output_logits, scaled_embedding
from pellucid.equations.feed_forward import feed_forward
from pellucid.equations.heads import merge_heads, multi_head_attention, split_heads
from pellucid.equations.losses import sequence_log_prob
from pellucid.equations.masks import causal_mask
from pellucid.equations.normalization import layer_norm
from pellucid.equations.notation.angles import angle_weights
from pellucid.equations.notation.columns import (
    attention_columns,
    embed_columns,
    feed_forward_columns,
    matrix_product,
    merge_heads_columns,
    project_columns,
    scores_columns,
    to_columns,
    weights_columns,
)
from pellucid.equations.notation.entrywise import (
    attention_head,
    attention_vector,
    head_contributions,
    mask_scores,
    project_qkv,
)
from pellucid.equations.positions import (
    add_positions,
    learned_positions,
    one_hot_positions,
    sinusoidal_positions,
    summed_positions,
)
from pellucid.equations.residual import residual
from pellucid.equations.search import most_likely
from pellucid.equations.softmax import softmax

pytestmark = pytest.mark.by_hand

INF = math.inf
LOG_3 = math.log(3)
"""A score of log 3 against 0 gives weights of ¾ and ¼."""
SURE = math.e / (math.e + 1)
"""The larger weight of two scores that differ by 1."""


def tensor(numbers: object) -> torch.Tensor:
    return torch.tensor(numbers, dtype=torch.float64)


def test_embedding_takes_rows():
    """EQ-14, EQ-16, EQ-18: ids 2 and 1 take rows 2 and 1; in columns they are columns."""
    weight = tensor([[0, 0], [1, 2], [3, 4]])
    close(embed(torch.tensor([2, 1]), weight), [[3.0, 4], [1, 2]])
    close(embed_one_hot(tensor([[0, 0.5, 0.5]]), weight), [[2.0, 3]])
    close(embed_columns(tensor([[0, 0], [0, 1], [1, 0]]), weight.T), [[3.0, 1], [4, 2]])


def test_tied_logits_are_dot_products_with_the_embeddings():
    """EQ-19: (1, 2) against (0, 0), (1, 2) and (3, 4)."""
    weight = tensor([[0, 0], [1, 2], [3, 4]])
    close(output_logits(tensor([[1, 2]]), weight.T), [[0.0, 5, 11]])


def test_the_input_of_the_first_block():
    """EQ-29, EQ-107: √4 times the row of word 1, plus the sines and cosines of position 1."""
    x = scaled_embedding(torch.tensor([1]), tensor([[9, 9, 9, 9], [0.5, 0.5, 1, 0]]))
    p = sinusoidal_positions(1, 4, start=1)
    close(
        add_positions(x, p),
        [[1.0 + math.sin(1), 1 + math.cos(1), 2 + math.sin(0.01), math.cos(0.01)]],
    )


def test_positions_by_rows():
    """EQ-21, EQ-23, EQ-30: a one-hot row appended; two networks added; a row of a table."""
    x = tensor([[0.5, 0.25], [0.75, 1]])
    close(one_hot_positions(x), [[0.5, 0.25, 1, 0], [0.75, 1, 0, 1]])
    w_e, ten = tensor([[1, -1], [-2, 3]]), 10 * torch.eye(2)
    close(summed_positions(x, torch.eye(2), torch.eye(2), w_e, ten), [[10.5, 0.25], [0.75, 31]])
    close(learned_positions(1, tensor([[0.1, 0.2], [0.3, 0.4]]), start=1), [[0.3, 0.4]])


def test_heads_are_cut_and_put_side_by_side():
    """EQ-33, EQ-34, EQ-68: the first head gets the first columns; in columns it stands on top."""
    rows = tensor([[1, 2, 3, 4], [5, 6, 7, 8]])
    close(split_heads(rows, 2), [[[1.0, 2], [5, 6]], [[3, 4], [7, 8]]])
    close(merge_heads(tensor([[[1], [5]], [[3], [7]]])), [[1.0, 3], [5, 7]])
    close(merge_heads_columns(tensor([[[1, 5]], [[3, 7]]])), [[1.0, 5], [3, 7]])


def test_products_and_columns():
    """EQ-36, EQ-37: 1 · 3 + 2 · 4 = 11; a row becomes a column."""
    close(matrix_product(tensor([[1, 2]]), tensor([[3], [4]])), [[11.0]])
    close(to_columns(tensor([[1, 2]])), [[1.0], [2.0]])


def test_the_softmax_runs_over_the_keys():
    """EQ-39, EQ-53: over the last axis of rows, over the first of columns."""
    close(softmax(tensor([[LOG_3, 0], [0, LOG_3]])), [[0.75, 0.25], [0.25, 0.75]])
    close(softmax(tensor([[LOG_3, LOG_3], [0, 0]]), 0), [[0.75, 0.75], [0.25, 0.25]])
    close(attention_weights(tensor([[LOG_3]]), tensor([[1], [0]])).sum(-1), [1.0])


def test_one_query_gets_the_mean_of_two_values():
    """EQ-55, EQ-56, EQ-63: ¾ of (4, 0) and ¼ of (0, 8)."""
    query, keys, values = tensor([LOG_3]), tensor([[1], [0]]), tensor([[4, 0], [0, 8]])
    close(attention_vector(query, keys, values), [3.0, 2])
    close(attention(query[None], keys, values), [[3.0, 2]])


def test_weights_from_lengths_and_angles():
    """EQ-58: lengths 2 and log 3, angles 0 and 90°, dₖ = 4: scores log 3 and 0."""
    query, keys = tensor([[2, 0, 0, 0]]), tensor([[LOG_3, 0, 0, 0], [0, 7, 0, 0]])
    close(angle_weights(query, keys), [[0.75, 0.25]])


def test_projections_of_a_row():
    """EQ-62, EQ-64, EQ-78: (1, 2, 3) through three matrices of one column."""
    x, first = tensor([[1, 2, 3]]), tensor([[1], [0], [0]])
    q, k, v = project_qkv(x, first, 10 * first, tensor([[0], [1], [1]]))
    close(torch.cat((q, k, v), dim=-1), [[1.0, 10, 5]])
    close(attention_head(x, x, x, first, first, 7 * first), [[7.0]])
    close(project_columns(first.T[None], x.T), [[[1.0]]])


def test_attention_of_two_words_in_columns():
    """EQ-65, EQ-66, EQ-67: two keys with scores log 3 and 0: ¾ above ¼."""
    query, key, value = tensor([[LOG_3]]), tensor([[1, 0]]), tensor([[4, 8]])
    close(scores_columns(query, key), [[LOG_3 * 1.0], [0.0]])
    close(weights_columns(query, key), [[0.75], [0.25]])
    close(weights_columns(query, key).sum(0), [1.0])
    close(attention_columns(query, key, value), [[5.0]])


def test_masked_scores():
    """EQ-71, EQ-72: what stands above the diagonal becomes -∞."""
    close(mask_scores(tensor([[1, 2], [3, 4]])), [[1.0, -INF], [3, 4]])


def test_two_heads_of_one_column():
    """EQ-77, EQ-79, EQ-82, EQ-88: each head sees one column of (1, 0), (0, 1)."""
    x, one, columns = torch.eye(2), torch.eye(2), torch.eye(2)[:, :, None]
    parts = columns, columns, columns, one
    close(multi_head_attention(x, x, x, *parts), [[SURE, 0.5], [0.5, SURE]])


def test_two_masked_heads():
    """EQ-83: the first word sees itself only."""
    x, columns = torch.eye(2), torch.eye(2)[:, :, None]
    parts = columns, columns, columns, torch.eye(2)
    close(multi_head_attention(x, x, x, *parts, causal_mask(2)), [[1.0, 0], [0.5, SURE]])


def test_two_heads_across():
    """EQ-89: queries of one side, keys and values of the other; of one key all get its value."""
    columns = torch.eye(2)[:, :, None]
    memory = tensor([[3, -5]])
    parts = columns, columns, columns, tensor([[1, 0], [0, 2]])
    close(multi_head_attention(torch.eye(2), memory, memory, *parts), [[3.0, -10], [3, -10]])


def test_what_two_heads_add():
    """EQ-81: 1 · (10, 0) and 2 · (5, 5) make (20, 10)."""
    added = head_contributions(tensor([[[1]], [[2]]]), tensor([[10, 0], [5, 5]]))
    close(added, [[[10.0, 0]], [[10, 10]]])


def test_rows_are_normalized_alone():
    """EQ-94: (0, 2) and (10, 30) both become (-1, 1)."""
    close(layer_norm(tensor([[0, 2], [10, 30]])), [[-1.0, 1], [-1, 1]])


def test_a_residual_is_a_sum():
    """EQ-95, EQ-97: (1, 2) + (½, -2)."""
    close(residual(tensor([1, 2]), tensor([0.5, -2])), [1.5, 0.0])


def test_a_feed_forward_network_row_by_row_and_in_columns():
    """EQ-101 to EQ-103: (1, 2) → (1, 2, 0) → (1, 2) + ½; (-1, 0) → (0, 0, 2) → (10, 10) + ½."""
    w_1, b_1 = tensor([[1, 0, -1], [0, 1, -1]]), tensor([0, 0, 1])
    w_2, b_2 = tensor([[1, 0], [0, 1], [5, 5]]), tensor([0.5, 0.5])
    x = tensor([[1, 2], [-1, 0]])
    close(feed_forward(x, w_1, b_1, w_2, b_2), [[1.5, 2.5], [10.5, 10.5]])
    close(feed_forward_columns(x.T, w_1.T, b_1, w_2.T, b_2), [[1.5, 10.5], [2.5, 10.5]])


def test_the_probability_of_two_words():
    """EQ-117: ½ and 1/10 make 1/20; padding does not count."""
    logits = tensor([[[0.5, 0.5, 0], [0.8, 0.1, 0.1], [1, 0, 0]]]).log()
    close(sequence_log_prob(logits, torch.tensor([[1, 2, 0]]), pad_id=0), [math.log(0.05)])


def test_the_likeliest_word():
    """EQ-114: of (½, 1, ½) the second; of two that tie the first."""
    assert most_likely(tensor([0.5, 1, 0.5])).item() == 1
    assert most_likely(tensor([1, 1])).item() == 0


def test_attention_of_luong():
    """EQ-136: the matrix turns (1, 0) to (0, log 3), so the second state gets ¾."""
    states, w = torch.eye(2), tensor([[0, LOG_3], [0, 0]])
    close(general_attention(tensor([[1, 0]]), states, states, w), [[0.25, 0.75]])
    mixed = attentional_state(tensor([1, 2]), tensor([3]), tensor([[0, 1], [1, 0], [0, 1]]))
    close(mixed, [math.tanh(2.0), math.tanh(4.0)])
