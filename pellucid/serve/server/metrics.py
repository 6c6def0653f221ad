"""Prometheus metrics of requests, and of all workers together; no label holds text of a client."""

import os
from collections.abc import Sequence
from pathlib import Path

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

from pellucid.serve.server import SHARED_FIGURES

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""The buckets of histograms of time."""


class RequestMetrics:
    """The metrics of one worker process, or of all workers if they share a folder."""

    def __init__(self) -> None:
        # Not the global registry, where the names can be registered only once per process.
        self.registry = CollectorRegistry()
        self.requests = self.counter("pellucid_requests_total", "Answers.", "route", "status")
        self.rejected = self.counter("pellucid_rejected_total", "Requests not done.", "reason")
        self.request_seconds = self.histogram("pellucid_request_seconds", "Request to answer.")
        self.inflight = self.gauge("pellucid_inflight", "Requests being answered.")

    def counter(self, name: str, meaning: str, *labels: str) -> Counter:
        """A figure that only grows."""
        return Counter(name, meaning, labels, registry=self.registry)

    def gauge(self, name: str, meaning: str) -> Gauge:
        """A figure that rises and falls; of several workers the sum over those that are alive."""
        return Gauge(name, meaning, registry=self.registry, multiprocess_mode="livesum")

    def histogram(self, name: str, meaning: str, buckets: Sequence[float] = SECONDS) -> Histogram:
        """How often a figure lay in each bucket."""
        return Histogram(name, meaning, buckets=buckets, registry=self.registry)

    def note_refusal(self, status: int) -> None:
        """Count an answer of the connection itself, before there was a request."""
        self.rejected.labels(str(status)).inc()

    def text(self) -> bytes:
        """All metrics in Prometheus' text format."""
        folder = os.environ.get(SHARED_FIGURES)
        if folder is None or not Path(folder).is_dir():
            return generate_latest(self.registry)

        # Each process writes its figures to files in the folder; the collector adds them up.
        shared = CollectorRegistry()
        MultiProcessCollector(shared)  # type: ignore[no-untyped-call]
        return generate_latest(shared)
