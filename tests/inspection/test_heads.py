"""Which head aligns best."""

import dataclasses
import math

import pytest
import torch
from tiny_models import tiny_bundle

from pellucid.core.errors import DataError
from pellucid.inspection.capture import Capture, inspect
from pellucid.inspection.heads import rank_heads

HEADS = "decoder.layers.0.cross_attention.heads"


def capture_with(*heads: list[list[float]]) -> Capture:
    """A capture of two words and the stop, in which each head has these weights."""
    capture = inspect(tiny_bundle(), "a b", "c d", only=("decoder.layers.0.cross_attention.*",))
    entries = {}
    template = capture.entry(f"{HEADS}.0.weights")
    for number, rows in enumerate(heads):
        name = f"{HEADS}.{number}.weights"
        stop_row = [0.0, 0.0, 1.0]
        weights = torch.tensor([*rows, stop_row])
        entries[name] = dataclasses.replace(template, name=name, tensor=weights)
    return dataclasses.replace(capture, entries=entries)


FORWARDS = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
MOSTLY = [[0.8, 0.1, 0.1], [0.2, 0.7, 0.1]]
BACKWARDS = [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]


def test_with_a_given_alignment_the_head_that_follows_it_wins():
    capture = capture_with(MOSTLY, BACKWARDS, FORWARDS)
    ranks = rank_heads([capture], [[(1, 0), (0, 1)]])
    assert [rank.name for rank in ranks] == [f"{HEADS}.{n}.weights" for n in (1, 0, 2)]
    assert [round(rank.agreement, 6) for rank in ranks] == [1.0, 0.15, 0.0]


def test_without_one_a_head_is_held_against_all_the_others():
    """Four go forwards, one backwards; each is held against the sum of the other four."""
    ranks = rank_heads([capture_with(FORWARDS, BACKWARDS, MOSTLY, MOSTLY, MOSTLY)])
    assert ranks[0].name == f"{HEADS}.0.weights"
    assert ranks[0].agreement == 1.0
    assert [round(rank.agreement, 6) for rank in ranks[1:4]] == [0.75, 0.75, 0.75]
    assert ranks[-1].name == f"{HEADS}.1.weights"
    assert ranks[-1].agreement == 0.0


def test_a_head_is_no_witness_of_its_own():
    """Of two heads that contradict each other neither agrees with the other."""
    ranks = rank_heads([capture_with(FORWARDS, BACKWARDS)])
    assert [rank.agreement for rank in ranks] == [0.0, 0.0]


def test_entropy_is_zero_for_one_token_and_log_2_for_two_alike():
    halves = [[0.5, 0.5, 0.0], [0.5, 0.5, 0.0]]
    ranks = {rank.name: rank for rank in rank_heads([capture_with(FORWARDS, halves)])}
    assert ranks[f"{HEADS}.0.weights"].entropy == 0.0
    assert ranks[f"{HEADS}.1.weights"].entropy == pytest.approx(math.log(2))


def test_captures_are_pooled_token_by_token():
    one, other = capture_with(FORWARDS), capture_with(BACKWARDS)
    [rank] = rank_heads([one, other], [[(0, 0), (1, 1)], [(0, 0)]])
    assert rank.agreement == pytest.approx(2 / 3)


def test_every_head_of_a_model_is_ranked_and_a_recurrent_one_has_one():
    capture = inspect(tiny_bundle(), "a b c", "c a")
    assert len(rank_heads([capture])) == 4
    assert len(rank_heads([inspect(tiny_bundle("additive"), "a b c", "c a")])) == 1


def test_where_nothing_was_said_or_linked_no_head_is_ranked():
    """Not one with the agreement NaN, which no JSON can carry."""
    nothing = inspect(tiny_bundle(), "a b c", "")
    assert rank_heads([nothing]) == []
    assert rank_heads([capture_with(FORWARDS, BACKWARDS)], [[]]) == []
    assert rank_heads([nothing, inspect(tiny_bundle(), "a b c", "c a")]) != []


def test_without_cross_attention_there_is_nothing_to_rank():
    capture = inspect(tiny_bundle("lstm"), "a b", "c d")
    with pytest.raises(DataError, match="ranking heads needs weights of cross-attention"):
        rank_heads([capture])


def test_a_link_to_no_token_and_a_missing_alignment_are_told():
    capture = capture_with(FORWARDS)
    with pytest.raises(DataError) as caught:
        rank_heads([capture], [[(3, 0)]])
    assert str(caught.value) == (
        "a link must join one of 3 source tokens with one of 2 target tokens, got 3-0"
    )
    with pytest.raises(DataError, match="each capture needs its alignment, got 1 captures and 0"):
        rank_heads([capture], [])


def test_heads_that_attend_to_the_stop_of_the_source_are_no_witnesses():
    to_stop = [[0.05, 0.05, 0.9], [0.05, 0.05, 0.9]]
    ranks = rank_heads([capture_with(to_stop, FORWARDS, to_stop, MOSTLY)])
    assert ranks[0].name == f"{HEADS}.1.weights"
    assert {rank.name for rank in ranks[2:]} == {f"{HEADS}.0.weights", f"{HEADS}.2.weights"}
