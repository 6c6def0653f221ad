"""The version of Pellucid, which manifests, signatures and pages name."""

__version__ = "0.1.0"
