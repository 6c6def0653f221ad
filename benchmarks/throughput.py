"""Target tokens per second, from points in time that a trainer's own log gives."""

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any


@dataclasses.dataclass(frozen=True)
class Point:
    """Where a training run stood at one moment."""

    step: int
    """Updates made."""
    seconds: float
    """Time since training began."""
    target_tokens: float
    """Target tokens learned from, stops included, padding left out."""


@dataclasses.dataclass(frozen=True)
class Throughput:
    """The progress of a run between two of its points."""

    tokens_per_second: float
    target_tokens: int
    seconds: float
    steps: int

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


def throughput(points: Sequence[Point], skip_steps: int) -> Throughput:
    """From the first point at or after ``skip_steps`` to the last one, everything included."""
    counted = [point for point in points if point.step >= skip_steps]
    if len(counted) < 2:
        raise SystemExit(
            f"only {len(counted)} of {len(points)} points lie beyond step {skip_steps}:"
            " train longer (--minutes)"
        )
    first, last = counted[0], counted[-1]
    tokens, seconds = last.target_tokens - first.target_tokens, last.seconds - first.seconds
    return Throughput(
        tokens_per_second=round(tokens / seconds, 1),
        target_tokens=round(tokens),
        seconds=round(seconds, 1),
        steps=last.step - first.step,
    )


def read_journal(path: Path) -> list[Point]:
    """The points of a Pellucid run's ``journal.jsonl``."""
    lines = path.read_text(encoding="utf-8").split("\n")
    events = [json.loads(line) for line in lines if line]
    return [
        Point(event["step"], event["seconds"], event["target_tokens"])
        for event in events
        if event["event"] == "train"
    ]
