"""Phases: the present activity of a long piece of work, reported through logging.

A phase is a record at INFO of the logger ``pellucid`` that is marked as one: whoever shows progress
gets it without being passed through every function, and everybody else has a line in the log.
"""

import logging

_log = logging.getLogger("pellucid")

_MARK = "pellucid_phase"


def begin_phase(name: str) -> None:
    """Report that ``name``, such as ``tokenizing``, begins, and the phase before it is over."""
    _log.info(name, extra={_MARK: True})


def is_phase(record: logging.LogRecord) -> bool:
    """Whether a record of the log says that a phase begins."""
    return hasattr(record, _MARK)
