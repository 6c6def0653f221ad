"""The application of ``pellucid serve``: joins models, service and routes to the server."""

import dataclasses
import logging
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from pellucid.backends.load import is_marian_folder
from pellucid.bundle import open_any_bundle
from pellucid.core.errors import PellucidError, place_of
from pellucid.core.system import thread_count
from pellucid.decoding.cache import TranslationCache
from pellucid.serve.http.app import make_app
from pellucid.serve.limits import Limits
from pellucid.serve.metrics import Metrics
from pellucid.serve.models import ModelPlace, open_model
from pellucid.serve.server.guard import Policy
from pellucid.serve.server.process import Application
from pellucid.serve.service import Service

_LOG = logging.getLogger("pellucid.serve")

_SMALL_MODEL = 10_000_000
"""Parameters of a model that gains nothing by another thread."""


@dataclasses.dataclass(frozen=True)
class Serving:
    """Models to serve, and how; ``open`` is called in each worker process."""

    places: Sequence[ModelPlace]
    limits: Limits
    policy: Policy
    batch_wait_seconds: float = 0.005
    threads: int | None = None
    """Threads of one operation; None chooses by the cores and the models."""
    workers: int = 1
    """How many processes share the cores."""
    cache_bytes: int = 0
    """Bytes of translations that each worker remembers; 0 remembers none."""

    read_keys: Callable[[], list[str]] | None = None
    """Reads the API keys again, with the models; None keeps those of the policy."""
    shared: Path | None = None
    """The folder where several processes at the same address keep their documents."""

    def open(self) -> Application:
        """Load the models. Raises what loading them raised."""
        # This worker may replace one that died, long after the server read its keys.
        self._renew_keys()
        threads = self.threads or self._fitting_threads()
        # Read by CTranslate2's engine now, and by torch when it is imported.
        os.environ["OMP_NUM_THREADS"] = str(threads)
        if "torch" in sys.modules:
            sys.modules["torch"].set_num_threads(threads)

        cache = TranslationCache(self.cache_bytes) if self.cache_bytes else None
        service = Service(
            self.limits, Metrics(), batch_wait_seconds=self.batch_wait_seconds, cache=cache
        )
        for place in self.places:
            service.put(open_model(place, cache))
        service.is_ready = True

        return Application(
            asgi=make_app(service, self.policy, shared=self.shared),
            reload=lambda: self._reload(service, cache),
            note_refusal=service.metrics.note_refusal,
            drain=service.drain,
            stop=service.stop,
        )

    def _renew_keys(self) -> None:
        """Read the API keys again; if that fails, the old ones stay."""
        if self.read_keys is None:
            return
        try:
            self.policy.keys.replace(self.read_keys())
        except PellucidError as error:
            _LOG.error("kept the old API keys: %s", error)

    def _fitting_threads(self) -> int:
        """The threads of an operation: the share of this worker, which leaves connections a core.

        Threads wait for each other in every operation. Where connections take turns with one of
        them, all are late: two threads on two cores answered half as many requests at four times
        the capacity as one thread did. A large model needs them all the same.
        """
        if "OMP_NUM_THREADS" in os.environ:
            return thread_count()
        share = max(1, thread_count() // self.workers)
        is_small = all(
            not is_marian_folder(place.path)  # those have 74 million parameters
            and open_any_bundle(place.path).parameter_count <= _SMALL_MODEL
            for place in self.places
        )
        return max(1, share - 1) if is_small else share

    def _reload(self, service: Service, cache: TranslationCache | None) -> None:
        """Read keys and models again; what cannot be read leaves the old one in place."""
        self._renew_keys()
        for place in self.places:
            try:
                service.put(open_model(place, cache))
                _LOG.info("read %s again", place.name)
            except PellucidError as error:
                _LOG.error("kept the old %s: %s", place.name, error)
            except Exception as error:  # of an engine, or MemoryError: the others are still read
                _LOG.error("kept the old %s: %s", place.name, place_of(error))
