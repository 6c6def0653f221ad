"""What training changes of its process, it changes back."""

import gc

import pytest
import torch

from pellucid.training.presets import read_config
from pellucid.training.torch_setup import torch_for_training

TINY = torch.tensor([1e-40])


def test_everything_is_as_it_was_even_after_an_error():
    config = read_config("demo", ["training.seed=7"])
    with torch_for_training(config):
        assert torch.initial_seed() == 7
        assert gc.get_freeze_count() > 10_000  # what was imported is not looked through again
        assert float(TINY * 1.0) == 0.0
    assert gc.get_freeze_count() == 0
    assert float(TINY * 1.0) > 0.0
    with pytest.raises(ZeroDivisionError), torch_for_training(config):
        _ = 1 / 0
    assert gc.get_freeze_count() == 0


def test_the_caller_keeps_its_threads_and_its_random_numbers():
    former = torch.get_num_threads()
    torch.set_num_threads(2)
    torch.manual_seed(3)
    expected = torch.rand(4)
    torch.manual_seed(3)
    try:
        with torch_for_training(read_config("demo", ["training.threads=1", "training.seed=7"])):
            assert torch.get_num_threads() == 1
            torch.rand(5)
        assert torch.get_num_threads() == 2
        assert torch.equal(torch.rand(4), expected)
    finally:
        torch.set_num_threads(former)
