"""Embeddings and positions, and how far each kind of positions reaches."""

import pytest
import torch

from pellucid.core.errors import ShapeError
from pellucid.equations.positions import sinusoidal_positions
from pellucid.model.build import build_model
from pellucid.model.config import parse_model_config
from pellucid.model.embedding import Positions
from pellucid.model.seq2seq import Seq2Seq

TINY = {"d_model": 8, "d_ff": 12, "heads": 2, "encoder_layers": 1, "decoder_layers": 1}


def tiny(**settings: object) -> Seq2Seq:
    return build_model(parse_model_config({**TINY, **settings}), 9, 9).eval()


@pytest.mark.parametrize(("start", "length"), [(0, 3), (5, 1), (510, 2), (511, 2), (600, 3)])
def test_sinusoids_go_on_beyond_the_table_that_is_kept(start: int, length: int):
    """The table has 512 rows; the rows after it are computed when they are asked for."""
    rows = Positions(parse_model_config(TINY))(torch.zeros(1, length, 8), start)[0]
    expected = sinusoidal_positions(start + length, 8)[start:]
    torch.testing.assert_close(rows, expected, rtol=1e-6, atol=1e-6)


def test_sinusoids_follow_the_model_to_another_precision():
    model = tiny().double()
    for ids in (torch.full((1, 3), 4), torch.full((1, 600), 4)):
        assert model.encode(ids).states.dtype == torch.float64


def test_an_embedding_is_scaled_and_added_to_its_place():
    """ER-50: by √8, or by nothing if the config says so."""
    model = tiny()
    embedding = model.target_embedding
    got = embedding(torch.tensor([[5, 6]]), start=3)
    expected = 8**0.5 * embedding.weight[[5, 6]] + sinusoidal_positions(2, 8, start=3)
    torch.testing.assert_close(got[0], expected)
    plain = tiny(scale_embeddings=False)
    got = plain.target_embedding(torch.tensor([[5]]))
    torch.testing.assert_close(
        got[0], plain.target_embedding.weight[[5]] + sinusoidal_positions(1, 8)
    )


def test_padding_teaches_the_embedding_nothing():
    model = tiny(tie_output=False)
    model.target_embedding(torch.tensor([[5, 0, 0]])).sum().backward()
    gradient = model.target_embedding.weight.grad
    assert (gradient[0] == 0).all()
    assert (gradient[5] != 0).all()


def test_learned_positions_end_where_the_config_says():
    model = tiny(positions="learned", max_positions=4)
    assert model.max_length == 4
    assert tiny().max_length is None
    model.encode(torch.full((1, 4), 5))
    with pytest.raises(ShapeError) as caught:
        model.encode(torch.full((1, 5), 5))
    assert str(caught.value) == "learned positions number 4 tokens, got length 5"
    assert caught.value.hint == (
        "train with a larger model.max_positions or use sinusoidal positions"
    )


def test_a_step_beyond_the_last_learned_position_is_refused():
    model = tiny(positions="learned", max_positions=2)
    state = model.start(model.encode(torch.tensor([[5, 3]])))
    for _ in range(2):
        _, state = model.step(torch.tensor([[2]]), state)
    with pytest.raises(ShapeError, match="number 2 tokens, got length 3"):
        model.step(torch.tensor([[2]]), state)


def test_source_and_target_share_their_learned_positions():
    model = tiny(positions="learned", share_embeddings=False)
    assert model.source_embedding.positions is model.target_embedding.positions
    assert model.source_embedding.weight is not model.target_embedding.weight


def test_without_encoder_blocks_the_memory_is_the_embedding():
    """EQ-105 with N = 0."""
    model = tiny(encoder_layers=0)
    ids = torch.tensor([[4, 5, 3]])
    assert torch.equal(model.encode(ids).states, model.source_embedding(ids))
