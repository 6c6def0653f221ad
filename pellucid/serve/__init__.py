"""Translation over HTTP: ``service`` knows models only, ``http`` only how it is asked."""

SHARED_FIGURES = "PROMETHEUS_MULTIPROC_DIR"
"""The variable that names the folder in which prometheus_client adds up the figures of several
processes; it must be set before that package is imported."""
