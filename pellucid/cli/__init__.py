"""The command line: one short file per command, each importing what it needs when it runs."""

from pellucid.cli.main import main

__all__ = ["main"]
