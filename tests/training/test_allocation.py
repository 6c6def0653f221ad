"""Freed memory is kept within a run, and given back after it."""

import ctypes
import subprocess
import sys

import pytest

from pellucid.training.allocation import freed_memory_is_kept

_COUNT_PAGE_FAULTS = """
import resource, torch
from pellucid.training.allocation import freed_memory_is_kept

def page_faults_of_a_second_block():
    torch.ones(16 << 20)  # 64 MB: 16,384 pages
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    torch.ones(16 << 20)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

with freed_memory_is_kept():
    within = page_faults_of_a_second_block()
print(within, page_faults_of_a_second_block())
"""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="not glibc")
def test_a_block_that_was_freed_is_there_again_within_and_not_after():
    """In a process of its own: what others left on the heap decides where a block lies."""
    command = [sys.executable, "-c", _COUNT_PAGE_FAULTS]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    within, after = map(int, said.split())
    assert within < 1000
    assert after > 4000


def test_an_error_inside_passes_through():
    with pytest.raises(ZeroDivisionError), freed_memory_is_kept():
        _ = 1 / 0
