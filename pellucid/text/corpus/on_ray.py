"""Runs functions on a Ray cluster, in order (extra ``ray``)."""

import contextlib
import itertools
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from pellucid.core.errors import DataError, InputMissingError, MissingExtraError, PellucidError
from pellucid.text.corpus.chunks import InOrder

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")
_AHEAD = 4
"""Items for each core that are waiting or worked on; a chunk has half a megabyte."""


@contextlib.contextmanager
def ray_workers(address: str, cores: int | None = None) -> Iterator[InOrder]:
    """Functions run on the cluster at ``address``; ``local`` starts one of ``cores`` here.

    Items and results go through Ray's object store, a bounded number at a time, so the memory does
    not grow with the corpus. Raises MissingExtraError without ray, InputMissingError if the cluster
    does not answer.
    """
    try:
        import ray
    except ImportError:
        raise MissingExtraError("ray", "ray", "working on Ray") from None

    try:
        ray.init(
            address=None if address == "local" else address,
            num_cpus=cores if address == "local" else None,
            include_dashboard=False if address == "local" else None,
            log_to_driver=False,
            configure_logging=False,
        )
    except (ConnectionError, ValueError, RuntimeError) as error:
        reason = str(error).split("\n", 1)[0]
        raise InputMissingError(f"no Ray cluster answers at {address}: {reason}") from error

    cores_of: Callable[[], dict[str, float]] = ray.cluster_resources

    @ray.remote
    def call(function: Callable[[Any], Any], item: Any) -> Any:
        # An error of ours comes back as a value: Ray wraps what is raised.
        try:
            return function(item)
        except PellucidError as error:
            return _Failed(str(error), error.hint)

    def in_order(function: Callable[[_Item], _Result], items: Iterable[_Item]) -> Iterator[_Result]:
        """The results of the items, in their order, computed on the cluster."""
        # Sent once, not with every item: it may carry tokenizers.
        sent = ray.put(function)
        most = _AHEAD * max(1, int(cores_of().get("CPU", 1)))
        iterator = iter(items)
        waiting = deque(call.remote(sent, item) for item in itertools.islice(iterator, most))
        while waiting:
            result = ray.get(waiting.popleft())
            if isinstance(result, _Failed):
                raise DataError(result.message, hint=result.hint)
            yield result
            waiting.extend(call.remote(sent, item) for item in itertools.islice(iterator, 1))

    try:
        yield in_order
    finally:
        ray.shutdown()


class _Failed:
    """An error of a worker."""

    def __init__(self, message: str, hint: str) -> None:
        self.message = message
        self.hint = hint
