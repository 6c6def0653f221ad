"""Freed memory is kept within a run, and given back after it."""

import ctypes
import subprocess
import sys

import pytest

from pellucid.training.allocation import freed_memory_is_kept

_COUNT_PAGE_FAULTS = """
import resource, statistics, torch
from pellucid.training.allocation import freed_memory_is_kept

def page_faults_of_a_block():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    torch.ones(16 << 20)  # 64 MB: 16,384 pages
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

def usual_page_faults():
    faults = [page_faults_of_a_block() for _ in range(40)]
    return int(statistics.median(faults[20:]))

with freed_memory_is_kept():
    within = usual_page_faults()
print(within, usual_page_faults())
"""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="not glibc")
def test_a_block_that_was_freed_is_there_again_within_and_not_after():
    """In a process of its own, once it has settled: at most nine blocks are new before.

    glibc's aligned_alloc asks for a little more than it hands out, so that a block given back is
    too short for the next like it, until free neighbors have grown together.
    """
    command = [sys.executable, "-c", _COUNT_PAGE_FAULTS]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    within, after = map(int, said.split())
    assert within < 1000
    assert after > 4000


def test_an_error_inside_passes_through():
    with pytest.raises(ZeroDivisionError), freed_memory_is_kept():
        _ = 1 / 0
