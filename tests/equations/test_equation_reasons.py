"""The reasons that the chapters give: each claim with a number or an algebra is computed here."""

import math
import re
from pathlib import Path

import pytest
import torch
from torch import Tensor

from book.complexity import stored
from pellucid.equations.attention import attention, attention_scores, attention_weights
from pellucid.equations.complexity import feed_forward_operations, projection_operations
from pellucid.equations.heads import multi_head_attention
from pellucid.equations.losses import smooth_labels, smoothed_cross_entropy
from pellucid.equations.notation.elman import rnn_cell
from pellucid.equations.positions import sinusoidal_positions
from pellucid.equations.recurrent import lstm_cell
from pellucid.equations.relative import alibi_bias, alibi_slopes, rotary_positions
from pellucid.equations.softmax import softmax
from pellucid.equations.subwords import merge_pair, pair_counts, segmentations

BOOK = Path(__file__).parents[2] / "docs" / "equations"


def chapter(name: str) -> str:
    return (BOOK / f"{name}.md").read_text("utf-8")


def matrices(formula: str) -> list[Tensor]:
    """The matrices in formulas that consist of numbers."""
    found = re.findall(r"\\begin\{pmatrix\}([\d.&\\-]+)\\end\{pmatrix\}", formula)
    return [
        torch.tensor([[float(cell) for cell in row.split("&")] for row in each.split(r"\\")])
        for each in found
    ]


@pytest.mark.by_hand
def test_one_matrix_for_queries_and_keys_would_make_a_symmetric_table():
    x, w = torch.randn(5, 4), torch.randn(4, 2)
    table = x @ w @ (x @ w).T
    torch.testing.assert_close(table, table.T)
    assert (table.diag() >= 0).all()
    # with two, it is X M Xᵀ, and of M only the rank is bounded
    other = torch.randn(4, 2)
    asked = attention_scores(x @ w, x @ other) * math.sqrt(2)
    torch.testing.assert_close(asked, x @ (w @ other.T) @ x.T)
    assert torch.linalg.matrix_rank(w @ other.T) == 2
    assert not torch.allclose(asked, asked.T)


@pytest.mark.by_hand
@pytest.mark.parametrize("others", [1, 8, 500])
def test_attention_becomes_a_look_up_if_one_score_is_far_above_the_others(others: int):
    """10 above each of n others: 1 / (1 + n e⁻¹⁰) of the weight, above 1 - n e⁻¹⁰."""
    weight = softmax(torch.cat([torch.tensor([10.0]), torch.zeros(others)]))[0].item()
    assert weight == pytest.approx(1 / (1 + others * math.exp(-10)))
    assert weight > 1 - others * math.exp(-10)


@pytest.mark.by_hand
def test_one_head_averages_a_subject_and_an_object_that_two_heads_tell_apart():
    """A verb that needs both: columns are "is the subject", "is the object", and what it is."""

    def verb(subject: float, object_: float, roles: Tensor) -> Tensor:
        nouns = torch.tensor([[1.0, 0, subject], [0, 1, object_]])
        heads = len(roles)
        w_q, w_k = torch.ones(heads, 3, 1), 100 * roles[:, :, None]
        w_v = torch.eye(3)[None, :, 2:].expand(heads, 3, 1)
        return multi_head_attention(
            torch.ones(1, 3), nouns, nouns, w_q, w_k, w_v, torch.eye(heads, 3)
        )[0, :2]

    both, each = torch.tensor([[1.0, 1, 0]]), torch.eye(3)[:2]
    assert verb(1, 5, both).tolist() == verb(5, 1, both).tolist() == [3, 0]
    assert verb(1, 5, each).tolist() == [1, 5]
    assert verb(5, 1, each).tolist() == [5, 1]


def test_the_matrices_of_the_chapter_are_those_of_its_session():
    query = torch.eye(2)
    key = torch.tensor([[1.0, 0], [0, 1], [1, 1]])
    value = torch.tensor([[1.0, 2], [3, 4], [5, 6]])
    weights, values, output, q, k_t, products, scores = matrices(chapter("attention"))
    expected = {
        "A": (weights, attention_weights(query, key)),
        "V": (values, value),
        "A V": (output, attention(query, key, value)),
        "Q": (q, query),
        "Kᵀ": (k_t, key.T),
        "Q Kᵀ": (products, query @ key.T),
        "S": (scores, attention_scores(query, key)),
    }
    for name, (shown, computed) in expected.items():
        torch.testing.assert_close(shown, computed, rtol=0, atol=5e-4, msg=name)


@pytest.mark.property
def test_reordered_scores_are_a_table_in_the_new_order():
    """softmax(Π S Πᵀ) Π V = Π softmax(S) V."""
    swap, s, v = torch.eye(4)[[2, 0, 3, 1]], torch.randn(4, 4), torch.randn(4, 2)
    torch.testing.assert_close(softmax(swap @ s @ swap.T) @ (swap @ v), swap @ softmax(s) @ v)


def test_the_norm_decides_which_block_gets_the_gradient():
    """Printed by the session: post-norm gives the last block 8 times as much, pre-norm under 2."""
    rows = {
        name: [float(each) for each in numbers.split()]
        for name, numbers in re.findall(
            r"^(post|pre ) ((?:\d\.\d+ ?){6})$", chapter("stacks"), re.M
        )
    }
    assert 7.5 < rows["post"][-1] / rows["post"][0] < 8.5
    assert rows["post"] == sorted(rows["post"])
    assert max(rows["pre "]) < 2 * min(rows["pre "])


@pytest.mark.by_hand
def test_smoothed_labels_have_a_best_lead_of_the_true_word():
    """|𝒱| = 8000, ε = 0.1: log(0.9000125 / 0.0000125) = 11.18, where the gradient is zero."""
    lead = math.log((0.9 + 0.1 / 8000) / (0.1 / 8000))
    assert f"a finite lead, {lead:.1f} for" in chapter("regularization")
    logits = torch.zeros(1, 8000, dtype=torch.float64)
    logits[0, 3] = lead
    logits.requires_grad_()
    label = torch.tensor([3])
    [gradient] = torch.autograd.grad(smoothed_cross_entropy(logits, label, 0.1), logits)
    assert gradient.abs().max() < 1e-9
    assert softmax(logits)[0, 3].item() == pytest.approx(0.9 + 0.1 / 8000)
    sure = logits.detach() + 0.5 * smooth_labels(label, 8000, 0.0, torch.float64)
    sure.requires_grad_()
    [gradient] = torch.autograd.grad(smoothed_cross_entropy(sure, label, 0.1), sure)
    assert gradient[0, 3] > 0  # surer than it was taught: descent makes it less sure


@pytest.mark.by_hand
def test_two_percent_of_wrong_words_leave_half_of_the_long_sentences_right():
    right = 0.98**30
    assert right == pytest.approx(0.545, abs=1e-3)
    assert "At e = 2% that is 55% for 30 words" in chapter("loss")


@pytest.mark.by_hand
def test_every_merge_shortens_a_text_by_the_occurrences_of_its_pair():
    words = {tuple(word): count for word, count in (("low", 5), ("lower", 2), ("newest", 6))}

    def length(text: dict[tuple[str, ...], int]) -> int:
        return sum(len(word) * count for word, count in text.items())

    for pair, count in pair_counts(words).items():
        merged = {merge_pair(word, pair): number for word, number in words.items()}
        assert length(words) - length(merged) == count
    # no merge shortens it more than that of the most frequent pair
    assert pair_counts(words).most_common(1) == [(("w", "e"), 8)]
    every = {"abcd"[i:j]: 0.0 for i in range(4) for j in range(i + 1, 5)}
    assert len(segmentations("abcd", every)) == 8


@pytest.mark.by_hand
def test_a_cell_passes_its_gradient_through_the_forget_gate_and_a_state_through_its_matrix():
    """∂c′/∂c = diag(σ(f)) with the gates held; Elman: ∂h′/∂h = diag(1 - h′²) W_h."""
    x, hidden, cell = torch.randn(3), torch.randn(2), torch.randn(2)
    w_ih, w_hh, bias = torch.randn(8, 3), torch.randn(8, 2), torch.randn(8)

    def next_cell(c: Tensor) -> Tensor:
        return lstm_cell(x, hidden, c, w_ih, w_hh, bias, torch.zeros(8))[1]

    forget = (w_ih @ x + w_hh @ hidden + bias)[2:4].sigmoid()
    found = torch.autograd.functional.jacobian(next_cell, cell)
    torch.testing.assert_close(found, torch.diag(forget))

    def next_state(h: Tensor) -> Tensor:
        return rnn_cell(x, h, w_ih[:2], w_hh[:2], bias[:2], torch.zeros(2))

    found = torch.autograd.functional.jacobian(next_state, hidden)
    torch.testing.assert_close(found, torch.diag(1 - next_state(hidden) ** 2) @ w_hh[:2])


@pytest.mark.by_hand
@pytest.mark.parametrize("heads", [1, 2, 6, 8, 12, 20])
def test_the_slopes_of_alibi_are_those_that_are_written_out(heads: int):
    """m_h = 2^(-8h/2^p) up to the power 2^p of two below H, then 2^(-4(2h-1)/2^p)."""
    lower = 2 ** math.floor(math.log2(heads))
    slopes = [2 ** (-8 * h / lower) for h in range(1, lower + 1)]
    slopes += [2 ** (-4 * (2 * h - 1) / lower) for h in range(1, heads - lower + 1)]
    assert alibi_slopes(heads) == pytest.approx(slopes)
    # every other slope of twice as many heads
    assert set(alibi_slopes(heads)) <= {*alibi_slopes(lower), *alibi_slopes(2 * lower)[::2]}


@pytest.mark.by_hand
def test_a_penalty_makes_a_weight_smaller_by_a_power_of_the_distance():
    """e^(-m |j - i|): two heads have the slopes 1/16 and 1/256."""
    weights = softmax(alibi_bias(2, 1, 4))
    ratio = weights[0, 0, 3] / weights[0, 0, 0]
    assert ratio.item() == pytest.approx(math.exp(-3 / 16), rel=1e-6)


@pytest.mark.property
def test_rotations_leave_the_distance_alone():
    """q R_m · k R_n depends on m - n."""
    q, k = torch.randn(4).expand(9, 4), torch.randn(4).expand(9, 4)
    table = rotary_positions(q) @ rotary_positions(k).T
    torch.testing.assert_close(table[:-1, :-1], table[1:, 1:])


@pytest.mark.property
def test_no_update_of_spectral_norm_one_lowers_the_loss_more_than_the_orthogonal_one():
    gradient = torch.randn(4, 6)
    u, values, v_t = torch.linalg.svd(gradient, full_matrices=False)
    best = (gradient.T @ -(u @ v_t)).trace()
    torch.testing.assert_close(best, -values.sum())
    for _ in range(50):
        update = torch.randn(4, 6)
        update /= torch.linalg.matrix_norm(update, 2)
        assert (gradient.T @ update).trace() >= best
    torch.testing.assert_close(gradient @ gradient.T @ gradient, u @ torch.diag(values**3) @ v_t)


@pytest.mark.by_hand
def test_half_of_a_decoder_block_is_its_feed_forward_network():
    """d = 512, d_ff = 2048: 2,099,712 of 4 · 2 · d² + 2,099,712 + 3 norms."""
    network, attention_, norm = 2 * 512 * 2048 + 2048 + 512, 4 * 512**2, 2 * 512
    decoder = network / (network + 2 * attention_ + 3 * norm)
    encoder = network / (network + attention_ + 2 * norm)
    assert f"which has two attentions, {decoder:.2%}." in chapter("feed-forward")
    assert encoder == pytest.approx(2 / 3, abs=1e-3)


@pytest.mark.by_hand
@pytest.mark.parametrize(("d", "slower"), [(512, "9,647"), (4, "100")])
def test_the_slowest_clock_is_slower_by_what_is_written(d: int, slower: str):
    """The angle from one position to the next is asin of the even feature at position 1."""
    first = sinusoidal_positions(2, d, dtype=torch.float64)[1]
    ratio = 1 / math.asin(first[-2].item())
    assert f"{ratio:,.0f}" == slower
    assert f"{slower} times" in chapter("positions")


def test_the_measured_times_bear_out_what_is_said_of_them():
    rows = {(each.model, each.length): each for each in stored()}
    slow, fast = rows["rnn-attention", 512], rows["transformer", 512]
    assert f"takes {slow.seconds / fast.seconds:.0f} times as long" in chapter("complexity")
    assert slow.multiplications < fast.multiplications / 2
    for length in (8, 16, 32, 64, 128, 256, 512):
        plain, whole = rows["rnn", length], rows["transformer", length]
        assert plain.multiplications < whole.multiplications
        assert length > 256 or 0.5 < plain.seconds / whole.seconds < 2


@pytest.mark.by_hand
def test_the_parameters_beside_the_cost_of_a_word_are_those_of_the_base_model():
    """Matrices only: 25 million in the decoder's blocks, 3 of which rest, and 19 behind them."""
    d, d_ff = 512, 2048
    blocks = 6 * (2 * projection_operations(1, 1, d) + feed_forward_operations(1, d, d_ff))
    resting = 6 * 2 * d**2
    assert (blocks, resting, d * 37_000) == (25_165_824, 3_145_728, 18_944_000)
    text = chapter("complexity")
    assert "The decoder has 25 million parameters in its blocks" in text
    assert "cross-attention (3 million) rest" in text
    assert "the last linear map has 19 million" in text
