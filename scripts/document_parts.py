"""Write the table of a model's parts into docs/inspection.md, from pellucid/inspection/parts.py.

python scripts/document_parts.py           write the table
python scripts/document_parts.py --check   fail if the page is not what would be written
"""

import sys
from pathlib import Path

from document_equations import link_numbers

from pellucid.inspection.parts import TABLE, Part

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "inspection.md"
BEGIN = "<!-- Written by scripts/document_parts.py from pellucid/inspection/parts.py. -->\n"
END = "<!-- End of what scripts/document_parts.py writes. -->\n"


def table() -> str:
    """The rows of ``TABLE``, those that add to another below it."""
    lines = ["| part | axes | equations | formula | what it is |", "|---|---|---|---|---|"]
    lines += [_row(name, part) for name, part in TABLE.items()]
    return "\n".join(lines) + "\n"


def _row(name: str, part: Part) -> str:
    if " + " in name:
        start, _, choice = name.partition(" + ")
        shown = f"`{start}`, also with `{choice}`"
    elif " | " in name:
        start, _, choice = name.partition(" | ")
        shown = f"`{start}` with `{choice}`"
    else:
        shown = f"`{name}`"
    cells = (
        shown,
        ", ".join(part.axes),
        link_numbers(part.equation_names),
        part.formula.replace("|", "\\|"),
        part.meaning,
    )
    return f"| {' | '.join(cells)} |"


def document() -> str:
    """The page as it should be."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{table()}\n{END}{after}"


def main() -> int:
    """Write the page, or with ``--check`` say whether it is up to date."""
    text = document()
    if "--check" in sys.argv[1:]:
        fresh = PAGE.read_text(encoding="utf-8") == text
        print(f"{PAGE.name} is {'up to date' if fresh else 'stale'}")
        return 0 if fresh else 1
    PAGE.write_text(text, encoding="utf-8")
    print(f"wrote {PAGE.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
