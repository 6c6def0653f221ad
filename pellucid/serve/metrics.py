"""The metrics of translation, beside those of requests."""

from pellucid.serve.server.metrics import RequestMetrics

_SENTENCES = (1, 2, 4, 8, 16, 32, 64, 128)


class Metrics(RequestMetrics):
    """The metrics of one worker process, or of all workers if they share a folder."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = self.counter("pellucid_tokens_total", "Tokens read and written.", "side")
        self.sentences = self.counter("pellucid_sentences_total", "Sentences translated.")
        # the kind is one of a few words, never text of a client
        self.warnings = self.counter("pellucid_warnings_total", "Warnings of translations.", "kind")
        self.cancelled = self.counter("pellucid_cancelled_total", "Sentences dropped or stopped.")
        self.cache_hits = self.counter(
            "pellucid_cache_hits_total", "Sentences answered from the cache."
        )
        self.cache_misses = self.counter(
            "pellucid_cache_misses_total", "Sentences not in the cache."
        )
        self.cache_bytes = self.gauge("pellucid_cache_bytes", "Memory of the cache.")
        self.queue_depth = self.gauge("pellucid_queue_depth", "Requests waiting for a model.")
        self.queue_seconds = self.histogram("pellucid_queue_seconds", "Waiting of a sentence.")
        self.inference_seconds = self.histogram("pellucid_inference_seconds", "Work on a batch.")
        self.batch_sentences = self.histogram(
            "pellucid_batch_sentences", "Size of a batch.", _SENTENCES
        )
