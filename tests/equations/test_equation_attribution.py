import pytest
import torch
from equation_checks import close
from hypothesis import given, settings
from hypothesis import strategies as st

from pellucid.core.errors import ConfigError, ShapeError
from pellucid.equations.attention import attention_weights
from pellucid.equations.attribution import (
    attended_parts,
    decoder_contributions,
    direct_logit_attribution,
    direction_before_norm,
    normalize_part,
    token_contributions,
    value_zeroing,
)
from pellucid.equations.heads import merge_heads
from pellucid.equations.normalization import normalize
from pellucid.equations.notation.entrywise import head_contributions

NORMS = ("layer", "rms", "l2", "l2_centered")


@pytest.mark.by_hand
def test_parts_of_a_norm_by_hand():
    """x = (5, 1) has mean 3 and deviation 2; its part (4, 0) becomes (2, -2) / 2 = (1, -1)."""
    x = torch.tensor([5.0, 1])
    parts = torch.tensor([[4.0, 0], [1, 1]])
    close(normalize_part(parts, x, "layer"), [[1.0, -1], [0, 0]])
    close(normalize_part(parts, x, "layer", torch.tensor([3.0, 10])), [[3.0, -10], [0, 0]])
    # the mean square of (1, 7) is 25, the length of (3, 4) is 5, of (8, 2) without its mean 3√2
    close(normalize_part(parts[0], torch.tensor([1.0, 7]), "rms"), [0.8, 0])
    close(normalize_part(parts[0], torch.tensor([3.0, 4]), "l2"), [0.8, 0])
    root = 2.0**0.5
    close(
        normalize_part(parts[0], torch.tensor([8.0, 2]), "l2_centered"),
        [2 / (3 * root), -2 / (3 * root)],
    )


@pytest.mark.property
@settings(max_examples=50, deadline=None)
@given(
    kind=st.sampled_from(NORMS),
    size=st.integers(2, 9),
    count=st.integers(1, 5),
    eps=st.sampled_from([0.0, 1e-5, 0.5]),
    seed=st.integers(0, 1000),
)
def test_parts_of_a_norm_sum_to_the_norm_and_directions_go_back(kind, size, count, eps, seed):
    """Σ N(pᵢ) = norm(Σ pᵢ), and p · d′ = N(p) · d for every part and direction."""
    generator = torch.Generator().manual_seed(seed)
    parts = torch.randn(count, size, generator=generator, dtype=torch.float64)
    gain, direction = torch.randn(2, size, generator=generator, dtype=torch.float64)
    x = parts.sum(0)

    normalized = normalize_part(parts, x, kind, gain, eps)
    has_gain = kind in ("layer", "rms")
    expected = normalize(x, kind, gain if has_gain else None, None, eps)
    close(normalized.sum(0) / (1.0 if has_gain else gain), expected, 1e-9)

    before = direction_before_norm(direction, x, kind, gain, eps)
    torch.testing.assert_close(parts @ before, normalized @ direction, rtol=1e-9, atol=1e-9)


@pytest.mark.by_hand
def test_a_direction_before_a_norm_by_hand():
    """x = (5, 1), d = (1, 0): centered (½, -½), over the deviation 2."""
    x, direction = torch.tensor([5.0, 1]), torch.tensor([1.0, 0])
    close(direction_before_norm(direction, x, "layer"), [0.25, -0.25])
    close(direction_before_norm(direction, x, "layer", torch.tensor([8.0, 1])), [2.0, -2])


@pytest.mark.by_hand
def test_what_a_head_brings_from_each_word_by_hand():
    """EQ-81: two heads, one query, two keys: a quarter of (4, 0) W^O of head 0, and so on."""
    weights = torch.tensor([[[0.25, 0.75]], [[1.0, 0]]])
    value = torch.tensor([[[[4.0], [8]]], [[[1.0], [5]]]])
    w_o = torch.tensor([[1.0, 10], [100, 0]])
    parts = attended_parts(weights, value, w_o)
    close(parts, [[[[1.0, 10], [6, 60]]], [[[100.0, 0], [0, 0]]]])


@pytest.mark.property
def test_what_a_head_brings_from_all_words_is_what_it_adds():
    """EQ-81: Σⱼ over the keys is headᵢ W^O₍ᵢ₎, for any number of batch axes."""
    query, key = torch.randn(2, 3, 4, 5), torch.randn(2, 3, 6, 5)
    value, w_o = torch.randn(2, 3, 6, 2), torch.randn(6, 7)
    weights = attention_weights(query, key)
    parts = attended_parts(weights, value.unsqueeze(-3), w_o)
    assert parts.shape == (2, 3, 4, 6, 7)
    close(parts.sum(-2), head_contributions(weights @ value, w_o))
    close(parts.sum((-2, -4)), merge_heads(weights @ value) @ w_o)


@pytest.mark.by_hand
def test_direct_logit_attribution_by_hand():
    """Words (1, 0) and (0, 1): what the parts (3, 1) and (0, 5) add is 3 - 1 and 0 - 5."""
    direction = torch.tensor([1.0, 0]) - torch.tensor([0.0, 1])
    close(direct_logit_attribution(torch.tensor([[3.0, 1], [0, 5]]), direction), [2.0, -5])


@pytest.mark.by_hand
def test_contributions_of_tokens_by_hand():
    """y = (4, 2), ‖y‖ = 6: (3, 1) is 2 away and (1, 1) 4, so 4 : 2; (0, -9) is farther than 0."""
    parts = torch.tensor([[3.0, 1], [1, 1], [0, -9]])
    close(token_contributions(parts, torch.tensor([4.0, 2])), [2 / 3, 1 / 3, 0])


@pytest.mark.by_hand
def test_parts_that_bring_nothing_nearer_count_by_their_lengths():
    """Both lead away from y = (1, 0): 3 : 1; nothing at all contributes nothing."""
    whole = torch.tensor([1.0, 0])
    close(token_contributions(torch.tensor([[-3.0, 0], [0, 1]]), whole), [0.75, 0.25])
    close(token_contributions(torch.zeros(2, 2), whole), [0.0, 0])


@pytest.mark.by_hand
def test_contributions_of_a_decoder_layer_by_hand():
    """Word 1 is half word 0; 0.4 of it stays in the stream, the rest is read from two sources."""
    prefix, source = decoder_contributions(
        prefix=torch.eye(2),
        source=torch.zeros(2, 2),
        attended=torch.tensor([[1.0, 0], [0.5, 0.5]]),
        crossed=torch.tensor([[0.0, 0, 1], [0.5, 0.1, 0.4]]),
        encoder=torch.tensor([[1.0, 0], [0.5, 0.5]]),
    )
    close(prefix, [[1.0, 0], [0.2, 0.2]])
    close(source, [[0.0, 0], [0.55, 0.05]])


@pytest.mark.property
def test_contributions_of_source_and_prefix_sum_to_one():
    """Rows that sum to one are mixed into rows that do."""
    shares = [torch.rand(*size).softmax(-1) for size in ((3, 7), (3, 3), (3, 5), (4, 4))]
    prefix, source = decoder_contributions(
        shares[0][:, :3], shares[0][:, 3:], shares[1], shares[2], shares[3]
    )
    close(prefix.sum(-1) + source.sum(-1), torch.ones(3))


@pytest.mark.usefixtures("unchecked_shapes")
def test_what_does_not_fit_is_named():
    two, three = torch.zeros(2), torch.zeros(3)
    for call, name in [
        (lambda: normalize_part(two, three, "layer"), "part and x must have the same size"),
        (lambda: direction_before_norm(two, three, "rms"), "direction and x must have the same"),
        (lambda: direct_logit_attribution(two, three), "parts and direction must have the same"),
        (lambda: token_contributions(two[None], three), "parts and whole must have the same size"),
        (
            lambda: attended_parts(torch.ones(1, 1, 1), torch.ones(1, 1, 1, 2), torch.ones(3, 2)),
            r"w_o must have heads \* value_size = 2 rows",
        ),
        (
            lambda: decoder_contributions(*torch.ones(5, 2, 2)),
            "crossed must have a column for each source word and one for the stream",
        ),
    ]:
        with pytest.raises(ShapeError, match=name):
            call()


@pytest.mark.usefixtures("unchecked_shapes")
def test_a_norm_without_a_known_part_is_refused():
    with pytest.raises(ConfigError, match="known for every norm_kind but 'l1'"):
        normalize_part(torch.ones(2), torch.ones(2), "l1")


@pytest.mark.by_hand
def test_value_zeroing_by_hand():
    """y = (1, 0); without the first value it is (0, 2), a right angle; without the second (3, 3).

    Distances 1 and 1 - 1/√2; nothing turned is no share, and so is an output that only shrinks.
    """
    root = 0.5**0.5
    shares = value_zeroing(torch.tensor([[1.0, 0]]), torch.tensor([[[0.0, 2]], [[3, 3]]]))
    close(shares, [[1 / (2 - root), (1 - root) / (2 - root)]])
    silent = value_zeroing(torch.tensor([[1.0, 0]]), torch.tensor([[[0.5, 0]], [[2.0, 0]]]))
    assert silent.tolist() == [[0, 0]]
    # an output of zeros has no direction
    assert value_zeroing(torch.eye(2)[:1], torch.zeros(1, 1, 2)).tolist() == [[1]]


@pytest.mark.by_hand
def test_value_zeroing_and_alti_differ_where_parts_are_parallel():
    """y = (3, 1) + (3, 1) + (0, 2) = (6, 4).

    By ALTI 4 : 4 : 2, by how near each part comes to y. Without one of the two parallel parts
    (3, 3) is left, without the third (6, 2): the third turns y by far the most.
    """
    parts = torch.tensor([[3.0, 1], [3, 1], [0, 2]])
    whole = parts.sum(0)
    close(token_contributions(parts, whole), [0.4, 0.4, 0.2])
    shares = value_zeroing(whole[None], (whole - parts)[:, None])[0]
    turned = [1 - 30 / 52**0.5 / 18**0.5, 1 - 44 / 52**0.5 / 40**0.5]
    total = 2 * turned[0] + turned[1]
    close(shares, [turned[0] / total, turned[0] / total, turned[1] / total])
    assert shares[2] > shares[0]


@pytest.mark.usefixtures("unchecked_shapes")
def test_outputs_of_different_width_are_refused():
    with pytest.raises(ShapeError, match="whole and without must have the same size"):
        value_zeroing(torch.ones(1, 2), torch.ones(1, 1, 3))
