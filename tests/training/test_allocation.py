"""Freed memory is kept within a run, and given back after it."""

import ctypes
import subprocess
import sys

import pytest

from pellucid.training.torch_setup import freed_memory_is_kept

_COUNT = """
import resource, statistics, torch
from pathlib import Path
from pellucid.training.torch_setup import freed_memory_is_kept

def page_problems_of_a_block():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    torch.ones(16 << 20)  # 64 MB: 16,384 pages
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

def resident_mb():
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() >> 20

torch.ones(1)
before = resident_mb()
with freed_memory_is_kept():
    problems = [page_problems_of_a_block() for _ in range(40)]
    kept = resident_mb() - before
print(int(statistics.median(problems[20:])), kept, resident_mb() - before)
"""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="not glibc")
def test_a_block_that_was_freed_is_there_again_within_and_given_back_after():
    """In a process of its own, once it has settled: at most nine blocks are new before.

    glibc's aligned_alloc asks for a little more than it hands out, so that a block given back is
    too short for the next like it, until free neighbors have grown together.
    """
    command = [sys.executable, "-c", _COUNT]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    new_pages, kept, left = map(int, said.split())
    assert new_pages < 1000
    assert kept >= 64
    assert left < 32


def test_an_error_inside_passes_through():
    with pytest.raises(ZeroDivisionError), freed_memory_is_kept():
        _ = 1 / 0
