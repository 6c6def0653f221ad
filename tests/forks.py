"""A fork of a test's process, which may hold engines with threads of their own."""

import gc
import os


def fork() -> int:
    """``os.fork``; the child never collects what the parent has left.

    An engine collected in the child would wait for threads that only the parent has.
    """
    child = os.fork()
    if child == 0:
        gc.freeze()
    return child
