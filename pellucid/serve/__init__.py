"""Translation over HTTP: ``service`` knows models only, ``http`` only how it is asked."""
