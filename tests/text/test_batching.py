"""Every pair once an epoch, never over the budget, in an order that can be taken up again."""

import hashlib

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pellucid.core.errors import ConfigError, CorruptError, DataError
from pellucid.core.special import BOS_ID, EOS_ID, PAD_ID
from pellucid.text.batching import (
    BatchSampler,
    collate,
    collate_pairs,
    collate_sources,
    fixed_lengths,
)
from pellucid.text.corpus.store import TokenStore
from pellucid.text.shuffling import Mixture

LENGTHS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), min_size=1, max_size=300)


def cost(lengths, batch):
    return len(batch) * (int(np.asarray(lengths)[batch].max()) + 1)


def make_lengths(count=2000, seed=0):
    random = np.random.default_rng(seed)
    return random.integers(1, 50, count), random.integers(1, 50, count)


@given(LENGTHS, st.integers(1, 400), st.integers(0, 2**40), st.integers(0, 5))
def test_every_pair_comes_once_an_epoch_and_within_the_budget(pairs, budget, seed, epoch):
    source, target = np.array(pairs).T
    batches = BatchSampler(*fixed_lengths(source, target), budget, seed).epoch_batches(epoch)
    assert sorted(np.concatenate(batches)) == list(range(len(pairs)))
    for batch in batches:
        within = cost(source, batch) <= budget and cost(target, batch) <= budget
        assert within or len(batch) == 1


def test_a_pair_beyond_the_budget_is_a_batch_of_its_own():
    sampler = BatchSampler(*fixed_lengths([3, 500, 3], [3, 3, 3]), batch_tokens=8, seed=1)
    batches = sorted(sorted(batch.tolist()) for batch in sampler.epoch_batches(0))
    assert batches == [[0, 2], [1]]


def test_the_budget_by_hand():
    """Targets 1 1 2 2: two rows of 2+1 cost 6; the two of 1+1 cost 4; three rows would cost 9."""
    batches = BatchSampler(*fixed_lengths([1, 1, 1, 1], [1, 1, 2, 2]), 6, seed=1).epoch_batches(0)
    assert sorted(len(batch) for batch in batches) == [2, 2]
    assert {frozenset(batch.tolist()) for batch in batches} == {
        frozenset((0, 1)),
        frozenset((2, 3)),
    }


def test_little_is_padded():
    """Measured: 0.998 of the target and 0.89 of the source tokens are no padding."""
    source, target = make_lengths(20_000)  # unrelated lengths, harder than any two languages
    batches = BatchSampler(*fixed_lengths(source, target), 2000, seed=1).epoch_batches(0)
    for lengths, least in ((source, 0.85), (target, 0.99)):
        padded = sum(cost(lengths, batch) for batch in batches)
        assert (lengths + 1).sum() / padded > least


def test_epochs_and_seeds_differ_in_batches_and_order():
    lengths = make_lengths()
    sampler = BatchSampler(*fixed_lengths(*lengths), 500, seed=1)
    first = [tuple(batch) for batch in sampler.epoch_batches(0)]
    assert first != [tuple(batch) for batch in sampler.epoch_batches(1)]
    assert first != [
        tuple(batch) for batch in BatchSampler(*fixed_lengths(*lengths), 500, 2).epoch_batches(0)
    ]
    assert set(first) != {tuple(batch) for batch in sampler.epoch_batches(1)}
    longest = [int(lengths[1][list(batch)].max()) for batch in first]
    assert longest != sorted(longest)


def digest(batches):
    return hashlib.sha256(b"|".join(batch.tobytes() for batch in batches)).hexdigest()


def test_the_sequence_depends_on_lengths_budget_and_seed_only():
    source, target = np.arange(100) % 7 + 1, np.arange(100) % 11 + 1
    first = BatchSampler(*fixed_lengths(source, target), 60, seed=5)
    np.random.default_rng(0).random(10)
    torch.manual_seed(99)
    second = BatchSampler(*fixed_lengths(source.tolist(), target.astype(np.int32)), 60, seed=5)
    assert digest(first.epoch_batches(3)) == digest(second.epoch_batches(3))


def test_epochs_follow_one_another_without_end():
    sampler = BatchSampler(*fixed_lengths(*make_lengths(100)), 200, seed=1)
    expected = [*sampler.epoch_batches(0), *sampler.epoch_batches(1)]
    assert sampler.epoch_batch_count == len(sampler.epoch_batches(0))
    got = [next(iter(sampler)) for _ in expected]
    assert digest(got) == digest(expected)
    assert (sampler.epoch, sampler.position) == (2, 0)


@given(st.integers(0, 60))
def test_resumed_is_unbroken(steps):
    lengths = make_lengths(100)
    unbroken = BatchSampler(*fixed_lengths(*lengths), 200, seed=7)
    for _ in range(steps):
        next(unbroken)
    resumed = BatchSampler(*fixed_lengths(*lengths), 200, seed=7)
    resumed.restore(unbroken.state())
    assert resumed.state() == unbroken.state()
    assert digest(next(resumed) for _ in range(40)) == digest(next(unbroken) for _ in range(40))


def test_the_state_is_three_plain_numbers():
    sampler = BatchSampler(*fixed_lengths(*make_lengths(100)), 200, seed=7)
    next(sampler)
    assert sampler.state() == {"epoch": 0, "position": 1, "seed": 7}


@pytest.mark.parametrize(
    ("state", "error", "message"),
    [
        ({"epoch": -1, "position": 0, "seed": 7}, CorruptError, "must not be negative, got -1"),
        ({"epoch": 0, "position": -1, "seed": 7}, CorruptError, "so batch -1 cannot be next"),
        ({"epoch": 0, "position": 999, "seed": 7}, CorruptError, "so batch 999 cannot be next"),
        ({"epoch": 0, "position": 0, "seed": 8}, ConfigError, "drawn with seed 8, not 7"),
    ],
)
def test_a_place_that_does_not_exist_is_refused_and_nothing_moves(state, error, message):
    sampler = BatchSampler(*fixed_lengths(*make_lengths(100)), 200, seed=7)
    next(sampler)
    with pytest.raises(error, match=message):
        sampler.restore(state)
    assert sampler.state() == {"epoch": 0, "position": 1, "seed": 7}


def test_lengths_must_come_in_pairs():
    with pytest.raises(DataError) as caught:
        fixed_lengths([1], [1, 2])
    assert str(caught.value) == "batches need as many source as target lengths, got 1 and 2"


def test_there_must_be_a_pair():
    with pytest.raises(DataError) as caught:
        BatchSampler(*fixed_lengths([], []), 100, seed=1)
    assert str(caught.value) == "batches need at least one pair, got 0"


def test_the_budget_must_be_positive():
    with pytest.raises(ConfigError) as caught:
        BatchSampler(*fixed_lengths([1], [1]), 0, seed=1)
    assert str(caught.value) == "batch_tokens must be positive, got 0"


@pytest.mark.by_hand
def test_a_batch_by_hand():
    """EQ: 106, 121.  The labels are the target and EOS, the input is BOS and the target."""
    store = TokenStore.from_pairs([[10, 11, 12], [13]], [[20], [21, 22]])
    batch = collate(store, [1, 0])
    assert batch.source.tolist() == [[13, EOS_ID, PAD_ID, PAD_ID], [10, 11, 12, EOS_ID]]
    assert batch.target_input.tolist() == [[BOS_ID, 21, 22], [BOS_ID, 20, PAD_ID]]
    assert batch.labels.tolist() == [[21, 22, EOS_ID], [20, EOS_ID, PAD_ID]]
    assert batch.target_token_count == 5
    assert {batch.source.dtype, batch.target_input.dtype, batch.labels.dtype} == {torch.int64}


ROW = st.lists(st.integers(4, 99), max_size=9)


@given(st.lists(st.tuples(ROW, ROW), min_size=1, max_size=9))
def test_padding_loses_nothing(pairs):
    sources, targets = (list(side) for side in zip(*pairs, strict=True))
    batch = collate_pairs(sources, targets)
    assert [[i for i in row if i] for row in batch.source.tolist()] == [
        [*row, EOS_ID] for row in sources
    ]
    assert [[i for i in row if i] for row in batch.labels.tolist()] == [
        [*row, EOS_ID] for row in targets
    ]
    assert [[i for i in row if i] for row in batch.target_input.tolist()] == [
        [BOS_ID, *row] for row in targets
    ]
    assert batch.target_token_count == int((batch.labels != PAD_ID).sum())
    assert torch.equal(collate_sources(sources), batch.source)
    stored = collate(TokenStore.from_pairs(sources, targets), range(len(pairs)))
    assert torch.equal(stored.source, batch.source)
    assert torch.equal(stored.target_input, batch.target_input)
    assert torch.equal(stored.labels, batch.labels)


def in_blocks(source, target):
    return BatchSampler(*fixed_lengths(source, target), 400, seed=3, block=300)


class TestManyPairs:
    """Planned a block at a time."""

    def test_every_pair_comes_once_an_epoch_and_within_the_budget(self):
        source, target = make_lengths(2000)
        sampler = in_blocks(source, target)
        batches = sampler.epoch_batches(1)
        assert sorted(np.concatenate(batches)) == list(range(2000))
        assert max(max(cost(source, each), cost(target, each)) for each in batches) <= 400
        assert batches[0].tolist() != sampler.epoch_batches(2)[0].tolist()

    def test_each_block_is_a_sample_of_all(self):
        """The first 286 pairs of seven blocks: their numbers, 0 to 1999, have a mean near 1000.

        The mean of 286 has a standard deviation of 577 / sqrt(286) = 34.
        """
        sampler = in_blocks(*make_lengths(2000))
        first = np.concatenate(sampler._block_batches(0, 0))
        assert len(first) == 285
        assert abs(first.mean() - 1000) < 4 * 34

    def test_batches_come_as_planned_and_any_place_is_found_again(self):
        lengths = make_lengths(2000)
        unbroken = in_blocks(*lengths)
        planned = [*unbroken.epoch_batches(0), *unbroken.epoch_batches(1)]
        for number, batch in enumerate(planned):
            if number % 50 == 0:
                resumed = in_blocks(*lengths)
                resumed.restore(unbroken.state())
                assert resumed.state() == unbroken.state()
                assert next(resumed).tolist() == batch.tolist()
            assert next(unbroken).tolist() == batch.tolist()
        assert (unbroken.epoch, unbroken.position) == (2, 0)

    def test_the_number_of_batches_is_about_right(self):
        sampler = in_blocks(*make_lengths(2000))
        count = len(sampler.epoch_batches(0))
        assert abs(sampler.epoch_batch_count - count) < 0.1 * count

    def test_only_the_block_of_the_place_is_planned_on_resuming(self, monkeypatch):
        lengths = make_lengths(2000)
        sampler = in_blocks(*lengths)
        for _ in range(200):
            next(sampler)
        resumed = in_blocks(*lengths)
        planned = []
        plan = BatchSampler._block_batches
        monkeypatch.setattr(
            BatchSampler,
            "_block_batches",
            lambda self, *place: planned.append(place) or plan(self, *place),
        )
        resumed.restore(sampler.state())
        assert planned == [(0, sampler.state()["block"])]
        assert sampler.state()["block"] > 0

    @pytest.mark.parametrize(
        "change", [{"block": 7}, {"block": -1}, {"block_start": 0}, {"position": 0}]
    )
    def test_a_place_that_does_not_exist_is_refused(self, change):
        sampler = in_blocks(*make_lengths(2000))
        while sampler.state()["block"] < 3:
            next(sampler)
        with pytest.raises(CorruptError, match=r"so batch \d+ cannot be next"):
            sampler.restore({**sampler.state(), **change})


@pytest.mark.parametrize("block", [200, 300])
def test_corpora_come_in_their_shares_and_resume_where_they_were(block):
    """In five blocks, and in one."""
    lengths = make_lengths(1000)

    def fresh():
        return BatchSampler(
            *fixed_lengths(*lengths), 400, 3, Mixture.by_weights([100, 900], [1, 1], 3), block
        )

    sampler = fresh()
    numbers = np.concatenate(sampler.epoch_batches(0))
    assert (numbers < 100).sum() == (numbers >= 100).sum() == 500
    for _ in range(70):
        next(sampler)
    resumed = fresh()
    resumed.restore(sampler.state())
    assert [next(resumed).tolist() for _ in range(9)] == [next(sampler).tolist() for _ in range(9)]


def test_batches_of_more_than_sixteen_pairs_have_a_multiple_of_that():
    """So that a CPU meets the same numbers of rows again and again; all but the last one."""
    batches = BatchSampler(*fixed_lengths(*make_lengths(2000)), 2000, seed=7).epoch_batches(0)
    sizes = [len(batch) for batch in batches]
    assert sum(size > 16 for size in sizes) > len(sizes) / 2
    assert sum(size > 16 and size % 16 != 0 for size in sizes) <= 1
    assert sorted(np.concatenate(batches)) == list(range(2000))


def test_the_order_of_a_small_corpus_is_that_of_the_first_round_batches():
    """Written down on 2026-11-21, so that a checkpoint's place stays where it was."""
    batches = BatchSampler(*fixed_lengths(*make_lengths(2000)), 400, seed=7).epoch_batches(1)
    digest = hashlib.sha256(b"".join(each.astype("<i8").tobytes() for each in batches))
    assert digest.hexdigest()[:16] == "8ec790a259b8d843"


def test_a_batch_moves_to_a_device_as_a_whole():
    batch = collate_pairs([[4]], [[5, 6]]).to("meta")
    assert {t.device.type for t in (batch.source, batch.target_input, batch.labels)} == {"meta"}
    assert batch.target_token_count == 3
