"""The application of ``pellucid serve``: joins models, service and routes to the server."""

import dataclasses
import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from pellucid.core.errors import PellucidError, place_of
from pellucid.serve.http.app import make_app
from pellucid.serve.limits import Limits
from pellucid.serve.metrics import Metrics
from pellucid.serve.models import ModelPlace, open_model
from pellucid.serve.server.guard import Policy
from pellucid.serve.server.process import Application
from pellucid.serve.service import Service

_LOG = logging.getLogger("pellucid.serve")


@dataclasses.dataclass(frozen=True)
class Serving:
    """Models to serve, and how; ``open`` is called in each worker process."""

    places: Sequence[ModelPlace]
    limits: Limits
    policy: Policy
    batch_wait_seconds: float = 0.005
    threads: int | None = None
    """Threads of one operation; None leaves the number to the engine."""

    shared: Path | None = None
    """The folder where several processes at the same address keep their documents."""

    def open(self) -> Application:
        """Load the models. Raises what loading them raised."""
        if self.threads is not None:
            # Read by CTranslate2's engine now, and by torch when it is imported.
            os.environ["OMP_NUM_THREADS"] = str(self.threads)
            if "torch" in sys.modules:
                sys.modules["torch"].set_num_threads(self.threads)

        service = Service(self.limits, Metrics(), batch_wait_seconds=self.batch_wait_seconds)
        for place in self.places:
            service.put(open_model(place))
        service.is_ready = True

        return Application(
            asgi=make_app(service, self.policy, shared=self.shared),
            reload=lambda: self._reload(service),
            note_refusal=service.metrics.note_refusal,
            drain=service.drain,
            stop=service.stop,
        )

    def _reload(self, service: Service) -> None:
        """Load all models again; one that cannot be read leaves the old one in place."""
        for place in self.places:
            try:
                service.put(open_model(place))
                _LOG.info("read %s again", place.name)
            except PellucidError as error:
                _LOG.error("kept the old %s: %s", place.name, error)
            except Exception as error:  # of an engine, or MemoryError: the others are still read
                _LOG.error("kept the old %s: %s", place.name, place_of(error))
