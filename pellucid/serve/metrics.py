"""The metrics of translation, beside those of requests."""

from prometheus_client import Counter, Gauge, Histogram

from pellucid.serve.server.metrics import SECONDS, RequestMetrics

_SENTENCES = (1, 2, 4, 8, 16, 32, 64, 128)


class Metrics(RequestMetrics):
    """The metrics of one worker process, or of all workers if they share a folder."""

    def __init__(self) -> None:
        super().__init__()
        registry = self.registry

        self.tokens = Counter(
            "pellucid_tokens_total", "Tokens read and written.", ["side"], registry=registry
        )
        self.sentences = Counter(
            "pellucid_sentences_total", "Sentences translated.", registry=registry
        )
        self.warnings = Counter(
            "pellucid_warnings_total",
            "Warnings of translations.",
            ["kind"],  # one of a few words, never text of a client
            registry=registry,
        )
        self.cancelled = Counter(
            "pellucid_cancelled_total", "Sentences dropped or stopped.", registry=registry
        )
        self.cache_hits = Counter(
            "pellucid_cache_hits_total", "Sentences answered from the cache.", registry=registry
        )
        self.cache_misses = Counter(
            "pellucid_cache_misses_total", "Sentences not in the cache.", registry=registry
        )
        self.cache_bytes = Gauge(
            "pellucid_cache_bytes",
            "Memory of the cache.",
            registry=registry,
            multiprocess_mode="livesum",
        )

        self.queue_seconds = Histogram(
            "pellucid_queue_seconds", "Waiting of a sentence.", buckets=SECONDS, registry=registry
        )
        self.inference_seconds = Histogram(
            "pellucid_inference_seconds", "Work on a batch.", buckets=SECONDS, registry=registry
        )
        self.batch_sentences = Histogram(
            "pellucid_batch_sentences", "Size of a batch.", buckets=_SENTENCES, registry=registry
        )

        self.queue_depth = Gauge(
            "pellucid_queue_depth",
            "Requests waiting for a model.",
            registry=registry,
            multiprocess_mode="livesum",
        )
