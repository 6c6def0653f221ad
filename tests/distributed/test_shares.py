"""Which process learns from which pairs of an update."""

import numpy as np
import pytest
import torch
from tiny_models import tiny_model

from pellucid.core.errors import CorruptError
from pellucid.core.special import PAD_ID
from pellucid.core.world import World
from pellucid.text.batching import Batch
from pellucid.training import distributed
from pellucid.training.distributed import ProcessGroup


def shares(sizes: list[int], count: int) -> list[list[list[int]]]:
    """By process and share: the numbers of the sentences that are learned from."""
    numbers = iter(range(sum(sizes)))
    batches = [np.array([next(numbers) for _ in range(size)]) for size in sizes]
    by_process = [ProcessGroup(World(rank, count)).share(batches) for rank in range(count)]
    for share in (each for process in by_process for each in process):
        assert set(share.indices) <= set(batches[share.place])
    return [
        [[] if share.is_blank else share.indices.tolist() for share in process]
        for process in by_process
    ]


def test_one_process_learns_from_the_batches_as_they_are():
    assert shares([2, 3, 1], 1) == [[[0, 1], [2, 3, 4], [5]]]


def test_whole_batches_are_dealt_out_while_there_is_one_for_everybody():
    assert shares([2, 3, 1, 2], 2) == [[[0, 1], [5]], [[2, 3, 4], [6, 7]]]


def test_the_sentences_of_what_is_left_over_are_dealt_out_singly():
    assert shares([2, 1, 5], 2) == [[[0, 1], [3, 5, 7]], [[2], [4, 6]]]
    assert shares([5], 3) == [[[0, 3]], [[1, 4]], [[2]]]


@pytest.mark.parametrize("sizes", [[1], [2, 1], [1, 1, 1, 4, 2], [7, 3]])
@pytest.mark.parametrize("count", [2, 3, 4])
def test_every_sentence_is_learned_from_once_and_all_pass_equally_often(
    sizes: list[int], count: int
):
    found = shares(sizes, count)
    learned = sorted(number for share in found for batch in share for number in batch)
    assert learned == list(range(sum(sizes)))
    assert {len(share) for share in found} == {len(sizes) // count + len(sizes) % count}


def test_a_process_without_a_sentence_is_given_one_that_teaches_nothing():
    (share,) = ProcessGroup(World(1, 2)).share([np.array([5])])
    assert share.indices.tolist() == [5]
    ids = torch.tensor([[7, 2]])
    nothing = share.taught(Batch(ids, ids, ids, 2))
    assert nothing.source.tolist() == [[7, 2]]
    assert nothing.labels.tolist() == [[PAD_ID, PAD_ID]]
    assert nothing.target_token_count == 0


def test_tensors_travel_in_buckets_of_one_dtype_that_are_not_too_large(monkeypatch):
    monkeypatch.setattr(distributed, "_BUCKET_SIZE", 5)
    tensors = [torch.zeros(size) for size in (2, 3, 1, 4, 9, 1)] + [torch.zeros(1).double()]
    buckets = [[each.numel() for each in bucket] for bucket in distributed._buckets(tensors)]
    assert buckets == [[2, 3], [1, 4], [9], [1], [1]]


@pytest.mark.parametrize("bad", [None, 5, "", "xyz"])
def test_what_is_no_state_of_a_generator_is_refused(bad: object):
    model = tiny_model()
    own = {"dropout": model.dropout_source.state(), "cpu": bad, "cuda": ""}
    with pytest.raises(CorruptError, match="must be bytes in hexadecimal"):
        distributed.restore_stream(model, {"streams": [own]}, 1, World())
