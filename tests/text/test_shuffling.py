"""An order without a list is a permutation; shares are drawn as they were asked for."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pellucid.core.errors import ConfigError
from pellucid.text.corpus.rows import Selection
from pellucid.text.shuffling import Mixture, Shuffle


@given(st.integers(1, 3000), st.integers(0, 2**62), st.integers(0, 9))
def test_every_number_stands_in_one_place(count, seed, turn):
    order = Shuffle.of(count, seed).at(np.arange(count), turn)
    assert sorted(order.tolist()) == list(range(count))


def test_a_part_of_an_order_is_had_alone():
    order = Shuffle.of(1000, 3, 4)
    whole = order.at(np.arange(1000))
    assert order.at(np.array([7, 999, 7])).tolist() == whole[[7, 999, 7]].tolist()


def test_keys_and_turns_give_orders_of_their_own():
    places = np.arange(1000)
    first = Shuffle.of(1000, 1, 2)
    orders = [first.at(places), first.at(places, 1), Shuffle.of(1000, 1, 3).at(places)]
    orders.append(Shuffle.of(1000, 2, 2).at(places))
    assert len({tuple(order) for order in orders}) == 4
    turns = np.arange(1000) % 2  # each number with a turn of its own
    mixed = np.where(turns == 0, orders[0], orders[1])
    assert first.at(places, turns).tolist() == mixed.tolist()


def test_an_order_looks_drawn_by_chance():
    """Any stretch is a sample of all: 10,000 of 20 million numbers in 100 boxes, chi-square.

    With 99 degrees of freedom it lies below 160 in all but one of ten thousand draws.
    """
    numbers = Shuffle.of(20_000_000, 5).at(np.arange(4_000_000, 4_010_000))
    boxes = np.histogram(numbers, 100, (0, 20_000_000))[0]
    assert ((boxes - 100.0) ** 2 / 100.0).sum() < 160
    assert abs(np.corrcoef(numbers[1:], numbers[:-1])[0, 1]) < 0.05
    assert abs(np.corrcoef(np.arange(10_000), numbers)[0, 1]) < 0.05


def drawn(mixture, epochs):
    return [mixture.at(epoch, np.arange(len(mixture))) for epoch in range(epochs)]


def test_weights_are_the_shares_of_an_epoch():
    mixture = Mixture.by_weights([100, 300, 600], [1, 1, 2], seed=1)
    assert mixture.draws == (250, 250, 500)
    [numbers] = drawn(mixture, 1)
    corpora = np.searchsorted([100, 400, 1000], numbers, side="right")
    assert np.bincount(corpora).tolist() == [250, 250, 500]


def test_temperature_by_hand():
    """Sizes 100 and 900: shares 0.1 and 0.9 at 1; sqrt gives 10 to 30 at 2."""
    assert Mixture.by_temperature([100, 900], 1.0, 1).draws == (100, 900)
    assert Mixture.by_temperature([100, 900], 2.0, 1).draws == (250, 750)
    assert Mixture.by_temperature([100, 900], 1e9, 1).draws == (500, 500)


def test_a_small_corpus_repeats_evenly_and_a_large_one_takes_turns():
    mixture = Mixture.by_weights([10, 90], [1, 1], seed=4)
    first, second, _ = drawn(mixture, 3)
    assert np.bincount(first[first < 10]).tolist() == [5] * 10
    large = [numbers[numbers >= 10] for numbers in drawn(mixture, 9)]
    assert all(len(set(numbers.tolist())) == 50 for numbers in large[:1])
    assert set(np.bincount(np.concatenate(large) - 10).tolist()) == {5}  # 450 draws of 90
    assert set(first[first >= 10].tolist()) != set(second[second >= 10].tolist())


def test_shares_that_do_not_divide_leave_nobody_out():
    mixture = Mixture.by_weights([10, 10, 10], [1, 1, 1e-9], seed=1)
    assert mixture.draws == (15, 15, 1)
    assert Mixture.by_weights([7, 7], [1, 2], seed=1).draws == (5, 9)  # 4.67 and 9.33


def test_weights_must_match_the_corpora():
    with pytest.raises(ConfigError) as caught:
        Mixture.by_weights([1, 2], [1.0], seed=1)
    assert str(caught.value) == "there must be one weight for each corpus, got 1 for 2"


@given(st.integers(1, 60), st.sets(st.integers(0, 59)))
def test_a_selection_is_all_rows_but_those_left_out(row_count, left_out):
    left_out = sorted(row for row in left_out if row < row_count)
    selection = Selection(row_count, np.array(left_out, dtype=np.int64))
    assert selection.tolist() == [row for row in range(row_count) if row not in left_out]
    assert len(selection) == row_count - len(left_out)
    first = row_count // 3
    sizes = selection.sizes_of((first, row_count - first))
    assert sizes[0] == first - sum(row < first for row in left_out)
    assert sum(sizes) == len(selection)
