"""The translations by a run of `pellucid demo` of the sentences that people type first.

    python benchmarks/typed.py runs/demo

Translates the inputs of ``tests/phrasebook/typed.tsv`` one by one and prints how many come out
right, how many of the others have a warning, and each that is not right. Also with the same inputs
in decomposed form (NFD) and with the other apostrophe. Exit code 1 if fewer than 57 of 60 are right
or marked.
"""

import sys
import unicodedata
from pathlib import Path

import pellucid

TYPED = Path(__file__).parents[1] / "tests" / "phrasebook" / "typed.tsv"
ENOUGH = 57
WAYS = {
    "as typed": lambda text: text,
    "decomposed": lambda text: unicodedata.normalize("NFD", text),
    "other apostrophe": lambda text: text.translate({0x27: 0x2019, 0x2019: 0x27}),
}


def main() -> int:
    """Print one line for each way to type, and the inputs that were not right."""
    rows = [line.split("\t") for line in TYPED.read_text(encoding="utf-8").splitlines()[1:]]
    translator = pellucid.load(sys.argv[1], engine="torch")
    translator.logs_warnings = False
    fewest = len(rows)
    for name, typed in WAYS.items():
        right = marked = 0
        for source, *wanted in rows:
            found = translator.translate(typed(source))
            is_right = found.text in wanted
            right += is_right
            marked += bool(found.warnings) and not is_right
            if not is_right:
                why = "; ".join(map(str, found.warnings)) or "NOT MARKED"
                print(f"    {source} -> {found.text} ({why})")
        fewest = min(fewest, right + marked)
        print(f"{name}: {right} right, {marked} marked, of {len(rows)}")
    return 0 if fewest >= ENOUGH else 1


if __name__ == "__main__":
    sys.exit(main())
