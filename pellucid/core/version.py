"""The version of Pellucid, which manifests, signatures and pages name."""

__version__ = "0.2.0"
