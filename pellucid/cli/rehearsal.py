"""What ``pellucid train --dry-run`` prints."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from pellucid.training.config import RunConfig


def show_rehearsal(config: "RunConfig", out: Path, *, quiet: bool) -> int:
    """Rehearse the run; what is tried goes to stderr, the forecast to stdout."""
    from pellucid.training.rehearsal import rehearse

    def say(line: str) -> None:
        if not quiet:
            click.echo(line, err=True)

    found = rehearse(config, out, say)
    sooner = ", or sooner (training.patience)" if config.training.patience else ""
    rows = {
        "updates": f"{found.updates:,} (training.{found.ends_by}){sooner}",
        "time": _duration(found.seconds),
        "epochs": f"{found.epochs:,.1f}",
        "speed": f"{found.tokens_per_second:,.0f} target tokens/s",
        "memory": f"{found.memory_bytes / 1e6:,.0f} MB",
        "disk": f"{found.disk_bytes / 1e6:,.0f} MB for checkpoints and bundles",
    }
    for name, text in rows.items():
        click.echo(f"{name:8} {text}")
    return 0


def _duration(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {seconds:02d} s"
