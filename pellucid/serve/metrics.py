"""Prometheus metrics of a running server; no label contains text of a client."""

import os
from pathlib import Path

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

from pellucid.serve import SHARED_FIGURES

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_SENTENCES = (1, 2, 4, 8, 16, 32, 64, 128)


class Metrics:
    """The metrics of one worker process, or of all workers if they share a folder."""

    def __init__(self) -> None:
        # Not the global registry, where the names can be registered only once per process.
        registry = CollectorRegistry()
        self._registry = registry
        self.requests = Counter(
            "pellucid_requests_total", "Answers.", ["route", "status"], registry=registry
        )
        self.rejected = Counter(
            "pellucid_rejected_total", "Requests not done.", ["reason"], registry=registry
        )
        self.tokens = Counter(
            "pellucid_tokens_total", "Tokens read and written.", ["side"], registry=registry
        )
        self.sentences = Counter(
            "pellucid_sentences_total", "Sentences translated.", registry=registry
        )
        self.cancelled = Counter(
            "pellucid_cancelled_total", "Sentences dropped or stopped.", registry=registry
        )
        self.request_seconds = Histogram(
            "pellucid_request_seconds", "Request to answer.", buckets=_SECONDS, registry=registry
        )
        self.queue_seconds = Histogram(
            "pellucid_queue_seconds", "Waiting of a sentence.", buckets=_SECONDS, registry=registry
        )
        self.inference_seconds = Histogram(
            "pellucid_inference_seconds", "Work on a batch.", buckets=_SECONDS, registry=registry
        )
        self.batch_sentences = Histogram(
            "pellucid_batch_sentences", "Size of a batch.", buckets=_SENTENCES, registry=registry
        )

        # Of several workers the sum, and only of those that are alive.
        self.queue_depth = Gauge(
            "pellucid_queue_depth",
            "Requests waiting for a model.",
            registry=registry,
            multiprocess_mode="livesum",
        )
        self.inflight = Gauge(
            "pellucid_inflight",
            "Requests being answered.",
            registry=registry,
            multiprocess_mode="livesum",
        )

    def text(self) -> bytes:
        """All metrics in Prometheus' text format."""
        folder = os.environ.get(SHARED_FIGURES)
        if folder is None or not Path(folder).is_dir():
            return generate_latest(self._registry)

        # Each process writes its figures to files in the folder; the collector adds them up.
        shared = CollectorRegistry()
        MultiProcessCollector(shared)  # type: ignore[no-untyped-call]
        return generate_latest(shared)
