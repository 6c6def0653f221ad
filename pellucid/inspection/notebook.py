"""HTML of captures for notebooks: tables, with every word escaped."""

import html
from collections.abc import Sequence

from torch import Tensor

MOST_ROWS, MOST_COLUMNS = 40, 24
"""The largest part of a matrix that is shown; the caption gives the size of the rest."""
_HEADER_STYLE = "text-align:left;font-weight:normal;opacity:.75"


def html_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of strings."""
    body = "".join(_row(row, "td") for row in rows)
    return f"<table><thead>{_row(header, 'th')}</thead><tbody>{body}</tbody></table>"


def html_matrix(
    tensor: Tensor, rows: Sequence[str] | None, columns: Sequence[str] | None, caption: str
) -> str:
    """A matrix, or the first of a stack, with words beside it and colors behind the values."""
    note = ""
    while tensor.dim() > 2:
        note += f"; the first of {len(tensor)}"  # such as one head of several
        tensor = tensor[0]

    if tensor.dim() < 2:
        tensor, rows = tensor.reshape(1, -1), None  # a vector is a matrix of one row

    # A notebook stores every cell in its file, so that a whole embedding would be megabytes.
    shown = tensor[:MOST_ROWS, :MOST_COLUMNS].double()
    if shown.numel() < tensor.numel():
        note += f"; {shown.shape[0]} x {shown.shape[1]} of {tensor.shape[0]} x {tensor.shape[1]}"
    finite = shown[shown.isfinite()]
    largest = float(finite.abs().max()) if finite.numel() else 0.0

    names = [str(n) for n in range(shown.shape[1])] if columns is None else columns
    lines = [_row(["", *names[: shown.shape[1]]], "th")]
    for number, values in enumerate(shown.tolist()):
        name = str(number) if rows is None else rows[number]
        cells = "".join(_cell(value, largest) for value in values)
        lines.append(f'<tr><th style="{_HEADER_STYLE}">{html.escape(name)}</th>{cells}</tr>')

    title = html.escape(caption + note)
    return f"<table><caption>{title}</caption><tbody>{''.join(lines)}</tbody></table>"


def _cell(value: float, largest: float) -> str:
    # Written so that NaN and infinity fail the comparison and get no color.
    share = 0.0 if largest == 0.0 or not abs(value) <= largest else abs(value) / largest
    color = "38,110,190" if value >= 0 else "200,70,40"
    return f'<td style="background:rgba({color},{0.7 * share:.2f})">{value:.3g}</td>'


def _row(cells: Sequence[str], tag: str) -> str:
    opened = f'<{tag} style="text-align:left">'
    return "<tr>" + "".join(f"{opened}{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"
