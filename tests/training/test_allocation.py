"""Freed memory is kept within a run, and given back after it."""

import ctypes
import resource

import pytest
import torch

from pellucid.training.allocation import freed_memory_is_kept

_BLOCK = (16 << 20,)  # 64 MB of float32: 16,384 pages


def _page_faults_of_a_second_block() -> int:
    torch.ones(_BLOCK)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    torch.ones(_BLOCK)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="not glibc")
def test_a_block_that_was_freed_is_there_again_within_and_not_after():
    with freed_memory_is_kept():
        within = _page_faults_of_a_second_block()
    assert within < 1000
    assert _page_faults_of_a_second_block() > 4000


def test_an_error_inside_passes_through():
    with pytest.raises(ZeroDivisionError), freed_memory_is_kept():
        _ = 1 / 0
