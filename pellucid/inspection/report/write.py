"""From a model and a sentence to a report on disk."""

from pathlib import Path

from pellucid.core.files import write_file
from pellucid.inspection.capture import Capture, capture_of
from pellucid.inspection.report.content import report_content
from pellucid.inspection.report.glances import look_around
from pellucid.inspection.report.page import render_page
from pellucid.inspection.sentence import Openable, open_model, read_sentence


def make_report(opened: Openable, source: str, target: str | None = None) -> str:
    """The HTML page that walks ``source`` through the model, to its own translation or ``target``.

    Raises DataError if a side is not text or too long, and what ``load_bundle`` raises.
    """
    inside = open_model(opened)
    capture = capture_of(inside, read_sentence(inside, source, target), ("*",))
    glances = look_around(inside, capture, with_search=target is None)
    return render_page(report_content(capture, inside.model, glances))


def write_report(
    opened: Openable | Capture, path: Path | str, source: str = "", target: str | None = None
) -> None:
    """Write the page of ``make_report``, or that of a capture made before, which knows no weights.

    Raises WriteError, and what ``make_report`` raises.
    """
    if isinstance(opened, Capture):
        page = render_page(report_content(opened))
    else:
        page = make_report(opened, source, target)
    write_file(Path(path), page.encode("utf-8"))
