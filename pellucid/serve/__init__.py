"""Translation over HTTP: ``service`` knows models and no HTTP, ``http`` knows HTTP and no models."""
