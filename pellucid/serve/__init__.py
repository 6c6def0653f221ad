"""Translation over HTTP: ``service`` knows nothing of HTTP, which ``http`` handles."""

SHARED_FIGURES = "PROMETHEUS_MULTIPROC_DIR"
"""The environment variable with the folder where prometheus_client adds up the metrics of several
processes. It must be set before that package is imported."""
