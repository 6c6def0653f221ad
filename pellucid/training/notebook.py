"""The progress of a run in a notebook: a bar with its figures below the cell that trains."""

import html
import sys
from typing import Any

from pellucid.training.journal import Event, Listener

_STYLE = "font-family:monospace;white-space:pre-wrap"


def notebook_listener() -> Listener | None:
    """A listener that shows a bar below the current cell; None outside of a notebook.

    IPython in a terminal is no notebook. Whoever names a listener of their own gets that one alone.
    """
    # A notebook has imported IPython itself; nothing else pays for it.
    module = sys.modules.get("IPython")
    if module is None:
        return None
    shell = module.get_ipython()
    if shell is None or type(shell).__name__ == "TerminalInteractiveShell":
        return None
    return _Bar(module.display).hear


class _Bar:
    """One output of a cell, which is replaced by every event of a run."""

    def __init__(self, output: Any) -> None:
        """``output`` is the module ``IPython.display``."""
        self._output = output
        self._handle: Any = None
        self._share, self._figures, self._validation = 0.0, "", ""

    def hear(self, event: Event) -> None:
        """Show an event of the journal."""
        match event["event"]:
            case "train":
                self._share = event["share_done"]
                loss = "no update applied" if event["loss"] is None else f"loss {event['loss']:.3f}"
                self._figures = (
                    f"update {event['step']:,}  {loss}  {event['tokens_per_second']:,.0f} tokens/s"
                    f"  {_clock(event['seconds'])}"
                )
            case "validation":
                source, _, output = event["sample"]
                scores = f"  BLEU {event['bleu']:.2f}" if "bleu" in event else ""
                self._validation = (
                    f"validation  loss {event['loss']:.3f}{scores}\n{source}  ->  {output}"
                )
            case "end":
                self._figures = f"update {event['step']:,}  {event['reason']}"
            case _:
                return

        self._draw()

    def _draw(self) -> None:
        text = "\n".join(filter(None, (self._figures, self._validation)))
        page = (
            f'<progress max="1" value="{self._share:.4f}" style="width:100%"></progress>'
            f'<div style="{_STYLE}">{html.escape(text)}</div>'
        )
        if self._handle is None:
            self._handle = self._output.display(self._output.HTML(page), display_id=True)
        else:
            self._handle.update(self._output.HTML(page))


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}:{rest:02d}"
