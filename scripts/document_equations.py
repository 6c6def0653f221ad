"""Write docs/equations (the book), its map, docs/EQUATIONS.md (its numbers) and docs/ERRATA.md.

python scripts/document_equations.py           write the pages
python scripts/document_equations.py --check   fail if a page is not what would be written

What the book says beside docstrings stands in book/pages, the facts of numbers in
docs/equations.toml and docs/errata.toml; what implements a number and which test settles it is
found by reading the code. Only the examples of the book are run.
"""

import re
import sys
from pathlib import Path
from typing import Any

from draw_architecture import PALETTES, draw
from equation_book import (
    entries_by_number,
    entries_of_erratum,
    erratum_anchor,
    figures_of,
    find_ties_once,
    pages_of_the_book,
)
from equation_evidence import (
    EQUATION_COUNT,
    ERRATUM_COUNT,
    ROOT,
    Evidence,
    Place,
    evidence,
    kind_of,
    numbers,
    read_table,
    tests,
)

NOT_YET = "**not yet**"

EQUATIONS_INTRODUCTION = """\
# Equations by number

<!-- Written by scripts/document_equations.py: from the code and equations.toml. -->

To read about an equation, open [the book of equations](equations/index.md): it is in the order of
the paper and has an index of common names. This page finds an entry of the book by its number, such
as the EQ-50 of a docstring, a setting or a report. The short names of the texts are in
[sources.md](sources.md); where a text is wrong, see [ERRATA.md](ERRATA.md).

**Run**: the program calls the function. **Law**: the program computes it in another, faster way,
and a test holds the two equal. **Notation**: another way to write it, tested and run by nothing.
**Program**: it is a part of the program itself, not a function of `pellucid/equations`.
A test *by hand* has what is expected written into it; *another program's* compares with what
another library answers; a *property* holds for numbers drawn at random; the *others* compare two
equations, or the program with an equation. A test may be several of these; its author says which.
"""
ERRATA_INTRODUCTION = """\
# Errata

<!-- Written by scripts/document_equations.py: from the tests and errata.toml. -->

Pellucid was written from five texts that explain the Transformer: **Agarwal**, **Single Page**,
**Bayesuvius**, **Transformers report** and **Lee**; [sources.md](sources.md) has their authors and
titles. This page lists where these five are wrong, disagree, or leave out what a program needs;
what is right; and the tests that settle it (they name their entry as `ER-05`). It says nothing
about other texts. Every entry has a test, or else the reason why nothing can be tested.
The equations themselves are in [the book of equations](equations/index.md).
"""


def equations_page(found: dict[int, Evidence]) -> str:
    """The whole of docs/EQUATIONS.md."""
    table = read_table("equations.toml", "EQ", EQUATION_COUNT)
    tested = {n for n, e in found.items() if e.tests}
    by_hand = {n for n, e in found.items() if any(kind_of(test).by_hand for test in e.tests)}
    refereed = {n for n, e in found.items() if any(kind_of(test).referees for test in e.tests)}
    built = {n for n, entry in table.items() if _built(found[n]) or "of" in entry}
    parts = [
        EQUATIONS_INTRODUCTION,
        f"Of {EQUATION_COUNT} numbers, **{len(built)}** have a function, module or command,"
        f" **{len(tested)}** a test that names them; **{len(by_hand)}** have"
        f" a test by hand, **{len(refereed)}** a test against another program.\n",
        f"- Without a function: {_listed('EQ', set(found) - built)}",
        f"- Without a test: {_listed('EQ', set(found) - tested)}",
        f"- Without a test by hand: {_listed('EQ', tested - by_hand)}\n",
        "| number | entry of the book | in the sources | how it is kept | tests |",
        "|---|---|---|---|---|",
    ]
    parts += [_equation(number, entry, found[number]) for number, entry in table.items()]
    return "\n".join(parts) + "\n"


def _built(found: Evidence) -> bool:
    return bool(found.functions or found.twins or found.users)


def _equation(number: int, entry: dict[str, Any], found: Evidence) -> str:
    where = entries_by_number()[number]
    ties = find_ties_once()
    kinds = {ties[p.module_name].kind for p in found.functions if p.module_name in ties}
    words = {"run": "run", "twin": "law", "notation": "notation"}
    kept = [words[kind] for kind in words if kind in kinds] or ["program"]
    if not _built(found) and "of" not in entry:
        kept = [NOT_YET]
    of = [kind_of(test) for test in found.tests]
    counts = {
        "by hand": sum(kind.by_hand for kind in of),
        "another program's": sum(bool(kind.referees) for kind in of),
        "properties": sum(kind.is_property for kind in of),
        "others": sum(not (k.by_hand or k.referees or k.is_property) for k in of),
    }
    tested = ", ".join(f"{count} {label}" for label, count in counts.items() if count) or NOT_YET
    return (
        f"| EQ-{number:02} | [{entry['title']}](equations/{where.link}) | {entry['place']} |"
        f" {', '.join(kept)} | {tested} |"
    )


def errata_page() -> str:
    """The whole of docs/ERRATA.md; refuses an entry without test and reason, or with both."""
    table = read_table("errata.toml", "ER", ERRATUM_COUNT)
    settled: dict[int, list[Place]] = {number: [] for number in table}
    for test in tests():
        for number in numbers("ER", test.docstring):
            settled[number].append(test)
    tested = {number for number, each in settled.items() if each}
    parts = [
        ERRATA_INTRODUCTION,
        f"Of {ERRATUM_COUNT} entries, **{len(tested)}** are settled by a test.\n",
        f"- Not testable: {_listed('ER', set(table) - tested)}\n",
    ]
    for number, entry in table.items():
        if (number in tested) == ("untested" in entry):
            raise ValueError(
                f"ER-{number:02} must have either a test that names it or, in docs/errata.toml, the"
                f" reason why it is `untested`, got {'both' if number in tested else 'neither'}"
            )
        lines = [
            f"## ER-{number:02} ({entry['kind']}; {entry['source']})",
            "",
            f"- It says: {entry['says']}",
            f"- {'But' if entry['kind'] == 'trap' else 'Right'}: {entry['right']}",
            f"- Pellucid: {entry['handles']}",
            f"- Test: {_links(settled[number]) or 'none, for this is ' + entry['untested']}",
        ]
        links = [f"[{each.title}](equations/{each.link})" for each in entries_of_erratum(number)]
        if links:
            lines.append(f"- In the book: {', '.join(links)}")
        figures = figures_of(entry)
        if figures:
            lines += ["", "| as printed | computed |", "|---|---|"]
            lines += [f"| {printed} | {computed} |" for printed, computed in figures]
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def link_numbers(text: str) -> str:
    """``text`` for a page in docs, where each number such as EQ-27 leads to its entry."""
    return re.sub(r"\b(?:EQ|ER)-\d{2,3}\b", lambda found: _linked(found[0]), text)


def _linked(number: str) -> str:
    if number.startswith("EQ"):
        return f"[{number}](equations/{entries_by_number()[int(number[3:])].link})"
    entry = read_table("errata.toml", "ER", ERRATUM_COUNT)[int(number[3:])]
    return f"[{number}](ERRATA.md#{erratum_anchor(int(number[3:]), entry)})"


def _links(places: list[Place]) -> str:
    return ", ".join(dict.fromkeys(place.link() for place in places))


def _listed(kind: str, which: set[int]) -> str:
    return ", ".join(f"{kind}-{number:02}" for number in sorted(which)) or "none"


def pages() -> dict[Path, str]:
    """Every page, by where it belongs."""
    docs, found = ROOT / "docs", evidence()
    written = {docs / "EQUATIONS.md": equations_page(found), docs / "ERRATA.md": errata_page()}
    for mode in PALETTES:
        written[docs / "pictures" / f"transformer-{mode}.svg"] = draw(mode)
    return written | {docs / "equations" / n: t for n, t in pages_of_the_book(found).items()}


def main() -> int:
    """Write the pages or check them; the exit code."""
    stale = 0
    for page, text in pages().items():
        name = page.relative_to(ROOT)
        if "--check" in sys.argv[1:]:
            fresh = page.is_file() and page.read_text(encoding="utf-8") == text
            stale += not fresh
            print(f"{name} is {'up to date' if fresh else 'stale'}")
        else:
            page.parent.mkdir(exist_ok=True)
            page.write_text(text, encoding="utf-8")
            print(f"wrote {name}")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
