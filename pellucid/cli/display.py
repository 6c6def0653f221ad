"""Shows a run to the person who started it: a bar on a terminal, plain lines elsewhere."""

import sys
from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn


class Display:
    """A listener for the events of a run; everything goes to stderr."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._console = Console(stderr=True, highlight=False)
        self._bar: Progress | None = None
        if self._console.is_terminal and not quiet:
            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                TaskProgressColumn(),
                TextColumn("{task.fields[figures]}"),
                console=self._console,
            )
            self._task = self._bar.add_task("training", total=1.0, figures="")

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def hear(self, event: dict[str, Any]) -> None:
        """Show one event of the journal."""
        if self._quiet:
            return
        match event["event"]:
            case "start":
                self._say(
                    f"{event['parameters']:,} parameters, {event['pairs']:,} pairs,"
                    f" {event['source_vocabulary']:,} source and"
                    f" {event['target_vocabulary']:,} target tokens,"
                    f" {event['threads']} threads on {event['device']}, {event['precision']}"
                )
            case "train":
                self._show_training(event)
            case "validation":
                source, reference, hypothesis = event["sample"]
                best = "  (best)" if event["is_best"] else ""
                best += "  (rate lowered)" if event["rate_lowered"] else ""
                self._say(
                    f"step {event['step']:,}  {_clock(event['seconds'])}  {_scores(event)}{best}"
                )
                self._say(f"    {source}  ->  {hypothesis}   (reference: {reference})")
            case "skipped":
                self._say(f"step {event['step']:,}: not finite, update left out")
            case "spike":
                self._say(_spike(event))
            case "rollback":
                self._say(
                    f"step {event['step']:,}: {event['reason']}; back to step"
                    f" {event['to_step']:,} with {event['rate_factor']:g} of the learning rate"
                )
            case "end":
                self._say(f"stopped at step {event['step']:,}: {event['reason']}")

    def _show_training(self, event: dict[str, Any]) -> None:
        figures = (
            f"step {event['step']:,}  loss {event['loss']:.3f}"
            f"  {event['tokens_per_second']:,.0f} tokens/s  {_time_left(event)}"
        )
        if self._bar is not None:
            self._bar.update(self._task, completed=event["share_done"], figures=figures)
        else:
            self._say(figures)

    def _say(self, line: str) -> None:
        if self._bar is not None:
            self._bar.console.print(line, markup=False, soft_wrap=True)
        else:
            sys.stderr.write(line + "\n")
            sys.stderr.flush()


def _spike(event: dict[str, Any]) -> str:
    """What came in, and where to look first."""
    done = "update left out" if event["skipped"] else "clipped"
    line = (
        f"step {event['step']:,}: gradient {event['gradient_norm']:.3g} where"
        f" {event['usual_norm']:.3g} is usual, {done}; see spikes.jsonl"
    )
    for suspect in event["suspects"]:
        first, last = suspect["lines"] or (None, None)
        where = "" if first is None else f" (line {first:,}{'' if first == last else ' or later'})"
        line += f"\n    worst pair{where}: {suspect['source']}  ->  {suspect['target']}"
    return line


def _scores(event: dict[str, Any]) -> str:
    if "bleu" not in event:
        return f"loss {event['loss']:.3f}"
    return (
        f"BLEU {event['bleu']:.2f}  chrF {event['chrf']:.2f}"
        f"  exact {event['exact_match']:.1f}%  loss {event['loss']:.3f}"
    )


def _clock(seconds: float) -> str:
    """Minutes and seconds, from one hour on with hours before them."""
    minutes, rest = divmod(int(seconds), 60)
    if minutes < 60:
        return f"{minutes}:{rest:02d}"
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}"


def _time_left(event: dict[str, Any]) -> str:
    share = event["share_done"]
    if share <= 0.0:
        return ""
    return f"{_clock(event['seconds'] * (1.0 - share) / share)} left"
