import math

import numpy as np
import pytest
import torch
from equation_checks import close

from pellucid.core.errors import ShapeError
from pellucid.equations.feed_forward import relu
from pellucid.equations.notation.entrywise import masked_attention
from pellucid.equations.notation.waves import (
    is_permutation_equivariant,
    position_shift,
    wavelength,
    wavelength_positions,
)
from pellucid.equations.positions import (
    add_positions,
    joint_positions,
    learned_positions,
    network_embedding,
    one_hot_positions,
    sinusoidal_positions,
    summed_positions,
    tensor2tensor_positions,
)


@pytest.mark.by_hand
def test_four_positions_of_width_four_by_hand():
    """EQ-24: sin n, cos n, sin n/100, cos n/100, for 10000^(2/4) = 100."""
    rows = [[math.sin(n), math.cos(n), math.sin(n / 100), math.cos(n / 100)] for n in range(4)]
    close(sinusoidal_positions(4, 4), rows)


@pytest.mark.by_hand
@pytest.mark.parametrize("d_model", [1, 5, 512])
def test_every_entry_is_the_formula(d_model):
    """EQ-25: case form of Single Page and Transformers report, as a loop; odd widths too."""
    expected = np.empty((100, d_model))
    for i in range(100):
        for j in range(d_model):
            if j % 2 == 0:
                expected[i, j] = math.sin(i / 10000 ** (j / d_model))
            else:
                expected[i, j] = math.cos(i / 10000 ** ((j - 1) / d_model))
    close(sinusoidal_positions(100, d_model), torch.from_numpy(expected))


@pytest.mark.by_hand
def test_positions_may_start_anywhere_and_have_any_type():
    """EQ-24: rows 7, 8, 9 of the whole; float32 is the rounded float64, not its own sum."""
    close(sinusoidal_positions(3, 6, start=7), sinusoidal_positions(10, 6)[7:])
    single = sinusoidal_positions(5000, 8, dtype=torch.float32)
    assert single.equal(sinusoidal_positions(5000, 8).float())
    torch.set_default_dtype(torch.float32)
    assert sinusoidal_positions(2, 4).dtype == torch.float32
    assert wavelength_positions(2, 4).dtype == torch.float32
    assert position_shift(2, 4).dtype == torch.float32
    exact = position_shift(999, 64, dtype=torch.float64)
    assert position_shift(999, 64).equal(exact.float())
    assert float(exact[0, 0]) == pytest.approx(math.cos(999), abs=1e-14)
    waves = wavelength_positions(1000, 6, dtype=torch.float64)
    assert float(waves[999, 2]) == pytest.approx(math.sin(999 / 10000 ** (2 / 6)), abs=1e-13)
    assert sinusoidal_positions(2, 4, device="meta").device.type == "meta"


def test_wavelengths_say_the_same():
    """EQ-26: sin(2πβ/λ) with λ = 2π·10^(4δ/d)."""
    close(wavelength_positions(50, 16), sinusoidal_positions(50, 16))
    close(wavelength_positions(3, 5, start=7), sinusoidal_positions(3, 5, start=7))


@pytest.mark.by_hand
def test_wavelengths_by_hand():
    """EQ-26, EQ-27: 2π for the first pair; 2π·100 for the second at d = 4; pairs share theirs."""
    assert [wavelength(feature, 4) for feature in range(4)] == pytest.approx(
        [2 * math.pi, 2 * math.pi, 200 * math.pi, 200 * math.pi]
    )
    assert wavelength(62, 64) == pytest.approx(2 * math.pi * 7498.94, abs=0.1)
    assert wavelength(510, 512) == pytest.approx(2 * math.pi * 9646.62, abs=0.1)


@pytest.mark.by_hand
def test_a_feature_repeats_after_its_wavelength():
    """EQ-26: moving on by λ(δ) leaves entry δ unchanged, for the whole-numbered λ ≈ 2π · 7/44 …"""
    d_model = 16
    for feature in range(d_model):
        length = wavelength(feature, d_model)
        theta = 2 * math.pi * (3 + length) / length
        trigonometric = math.cos if feature % 2 else math.sin
        close(
            torch.tensor(trigonometric(theta)), sinusoidal_positions(4, d_model)[3, feature], 1e-9
        )


@pytest.mark.by_hand
def test_moving_on_is_a_rotation():
    """EQ-32: p_{n+k} = p_n R_k; every row has squared length d/2."""
    rows = sinusoidal_positions(50, 16)
    close(rows[5:], rows[:45] @ position_shift(5, 16))
    close(rows.square().sum(-1), torch.full((50,), 8.0))
    shift = position_shift(5, 16)
    close(shift @ shift.T, torch.eye(16))
    close(position_shift(2, 16) @ position_shift(3, 16), shift)


@pytest.mark.by_hand
def test_positions_agree_by_distance_only():
    """EQ-32: p₃·p₁₀ = p₂₀·p₂₇ = Σᵢ cos(7 / 10000^(2i/16))."""
    rows = sinusoidal_positions(28, 16)
    expected = sum(math.cos(7 / 10000 ** (2 * i / 16)) for i in range(8))
    close(rows[3] @ rows[10], expected)
    close(rows[20] @ rows[27], expected)


def test_an_odd_width_has_no_rotation():
    """EQ-32: the last sine lacks its cosine."""
    with pytest.raises(ShapeError) as caught:
        position_shift(1, 5)
    assert str(caught.value) == "d_model must be even, for features go in pairs, got 5"


@pytest.mark.property
def test_positions_are_added_once():
    """EQ-29, EQ-107: X' - X = P, and zeros become P."""
    x, p = torch.randn(2, 5, 4), sinusoidal_positions(5, 4)
    close(add_positions(x, p) - x, p.expand(2, 5, 4))
    assert add_positions(torch.zeros(5, 4), p).equal(p)


@pytest.mark.usefixtures("unchecked_shapes")
def test_positions_that_do_not_fit_are_named():
    """EQ-29: one row per word, as wide as the embedding."""
    with pytest.raises(ShapeError) as caught:
        add_positions(torch.zeros(2, 5, 4), torch.zeros(6, 4))
    assert str(caught.value) == (
        "positions must fit x (each axis equal or 1; axis -2 does not),"
        " got shapes (6, 4) and (2, 5, 4)"
    )


@pytest.mark.property
def test_one_hot_positions_append_the_identity():
    """EQ-21: (x_n, e_n), m columns wider."""
    x = torch.randn(2, 3, 4)
    wider = one_hot_positions(x)
    assert wider.shape == (2, 3, 7)
    assert wider[..., :4].equal(x)
    assert wider[1, :, 4:].equal(torch.eye(3))
    assert one_hot_positions(x, max_length=5)[0, :, 4:].equal(torch.eye(5)[:3])
    assert one_hot_positions(x, 5, start=2)[0, :, 4:].equal(torch.eye(5)[2:])
    assert one_hot_positions(x, start=2)[0, :, 4:].equal(torch.eye(5)[2:])
    assert one_hot_positions(x.float()).dtype == torch.float32


@pytest.mark.property
def test_joint_positions_are_one_network_over_word_and_one_hot_position():
    """EQ-22: ReLU((x, e)(W_x; W_e)) W_z."""
    x, w_x, w_e, w_z = torch.randn(2, 3, 4), torch.randn(4, 6), torch.randn(5, 6), torch.randn(6, 4)
    stacked = torch.cat((w_x, w_e))
    close(joint_positions(x, w_x, w_e, w_z), relu(one_hot_positions(x, 5) @ stacked) @ w_z)
    close(
        joint_positions(x, w_x, w_e, w_z, start=2),
        relu(one_hot_positions(x, 5, 2) @ stacked) @ w_z,
    )


@pytest.mark.by_hand
def test_joint_positions_by_hand():
    """EQ-22: x = (1, -3), e₀: ReLU(1 + 2, -3 + 1) = (3, 0), times 10."""
    x, one = torch.tensor([[1.0, -3]]), torch.eye(2)
    close(joint_positions(x, one, torch.tensor([[2.0, 1]]), 10 * one), [[30.0, 0]])


@pytest.mark.property
def test_summed_positions_are_two_networks_added():
    """EQ-23, EQ-28: the position's part does not depend on the word."""
    x, y = torch.randn(3, 4), torch.randn(3, 4)
    w_x, w_zx, w_e, w_ze = (torch.randn(*s) for s in [(4, 6), (6, 4), (5, 6), (6, 4)])
    z = summed_positions(x, w_x, w_zx, w_e, w_ze)
    position_part = z - network_embedding(x, w_x, w_zx)
    close(position_part, relu(w_e[:3]) @ w_ze)
    close(
        summed_positions(y, w_x, w_zx, w_e, w_ze), network_embedding(y, w_x, w_zx) + position_part
    )
    later = summed_positions(x, w_x, w_zx, w_e, w_ze, start=2) - network_embedding(x, w_x, w_zx)
    close(later, relu(w_e[2:]) @ w_ze)


@pytest.mark.property
def test_joint_and_summed_agree_where_nothing_is_cut_off():
    """EQ-23: all pre-activations ≥ 0 and one W_z make ReLU linear."""
    x, w_x, w_e, w_z = torch.rand(3, 4), torch.rand(4, 6), torch.rand(3, 6), torch.randn(6, 4)
    close(summed_positions(x, w_x, w_z, w_e, w_z), joint_positions(x, w_x, w_e, w_z))


@pytest.mark.by_hand
def test_network_embedding_by_hand():
    """EQ-28: x = (1, -3): ReLU gives (1, 0), times 10; two positions differ by pₙ - pₙ'."""
    one = torch.eye(2)
    close(network_embedding(torch.tensor([[1.0, -3]]), one, 10 * one), [[10.0, 0]])
    p = sinusoidal_positions(2, 2)
    same = network_embedding(torch.ones(2, 2), one, one)
    z = add_positions(same, p)
    close(z[1] - z[0], p[1] - p[0])


@pytest.mark.property
def test_learned_positions_are_rows_and_only_these_learn():
    """EQ-30: e_n P = P[n]; rows that were not used get no gradient."""
    table = torch.randn(5, 4, requires_grad=True)
    assert learned_positions(3, table).equal(table[:3])
    assert learned_positions(2, table, start=3).equal(table[3:])
    [gradient] = torch.autograd.grad(learned_positions(2, table, start=1).sum(), table)
    assert gradient.sum(-1).tolist() == [0, 4, 4, 0, 0]


@pytest.mark.parametrize(
    ("kind", "call"),
    [
        ("learned", lambda x, m: learned_positions(3, torch.zeros(*m), start=1)),
        ("one-hot", lambda x, m: one_hot_positions(x, m[0], start=1)),
        ("joint", lambda x, m: joint_positions(x, torch.eye(3), torch.zeros(*m), torch.eye(3), 1)),
        (
            "summed",
            lambda x, m: summed_positions(
                x, torch.eye(3), torch.eye(3), torch.zeros(*m), torch.eye(3), 1
            ),
        ),
    ],
)
def test_a_sentence_beyond_the_last_position_is_refused(kind, call):
    """EQ-21, EQ-22, EQ-23, EQ-30: four positions, of which there are three; and what to do."""
    x = torch.zeros(3, 3)
    call(x, (4, 3))
    with pytest.raises(ShapeError) as caught:
        call(x, (3, 3))
    assert str(caught.value) == (
        f"{kind} positions end at 3 (axis 0 of shape (3, 3)), got a sequence of 4"
    )
    assert caught.value.hint == (
        "split the sentence, train with a larger max_length, or use sinusoidal positions"
    )


@pytest.mark.property
def test_positions_end_blindness_to_order():
    """EQ-20: attention without positions is equivariant; with positions or a mask it is not."""
    x, order = torch.randn(2, 5, 4), torch.tensor([4, 2, 0, 1, 3])

    def mix(x: torch.Tensor) -> torch.Tensor:
        return x @ x.transpose(-2, -1) @ x

    p = sinusoidal_positions(5, 4)
    assert is_permutation_equivariant(mix, x, order)
    assert not is_permutation_equivariant(lambda x: mix(add_positions(x, p)), x, order)
    assert not is_permutation_equivariant(lambda x: masked_attention(x, x, x), x, order)
    assert is_permutation_equivariant(lambda x: x + 1e-3 * p, x, order, tolerance=1)


@pytest.mark.by_hand
def test_sinusoids_of_tensor2tensor_by_hand():
    """d = 6: three pairs with the divisors 1, 100 and 10000: the last is the base itself."""
    rows = tensor2tensor_positions(1, 6, start=3)
    angles = 3.0, 3.0 / 100, 3.0 / 10000
    close(rows[0, ::2], [math.sin(each) for each in angles])
    close(rows[0, 1::2], [math.cos(each) for each in angles])


@pytest.mark.property
@pytest.mark.parametrize("d_model", [1, 2, 3, 8, 9])
def test_a_row_of_tensor2tensor_depends_on_its_number_alone(d_model: int):
    start = int(torch.randint(1, 6, ()))
    whole = tensor2tensor_positions(7, d_model)
    assert whole.isfinite().all()
    close(tensor2tensor_positions(7 - start, d_model, start), whole[start:])
    paired = whole[:, : d_model // 2 * 2].unflatten(1, (-1, 2))
    close(paired.square().sum(-1), torch.ones(7, d_model // 2))


@pytest.mark.referee
def test_sinusoids_of_tensor2tensor_as_those_of_m2m100():
    """Which takes them from fairseq, in float32, with all sines before all cosines."""
    from transformers.models.m2m_100.modeling_m2m_100 import M2M100SinusoidalPositionalEmbedding

    theirs = M2M100SinusoidalPositionalEmbedding.get_embedding(40, 8)
    ours = tensor2tensor_positions(40, 8)
    close(torch.cat((ours[:, ::2], ours[:, 1::2]), dim=1), theirs.double(), 1e-5)
