"""Count the figures of docs/architecture.md: how large the code is and how far a reader walks.

    python scripts/house_figures.py            print the tables
    python scripts/house_figures.py --write    put them into docs/architecture.md

Importers are other files of the package that import a file. The
files on the way of a sentence and of a training pair are those of which a function runs: while a
tiny Transformer translates one sentence by beam search, and while it makes one update.
Nothing holds the code to these figures; they are here to be looked at.
"""

import argparse
import ast
import io
import re
import statistics
import sys
import tempfile
import tokenize
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from types import FrameType

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "pellucid"
PAGE = ROOT / "docs" / "architecture.md"
BEGIN, END = "<!-- figures of the house -->\n", "<!-- end of the figures -->\n"
_LONG_BODY = 15


def main() -> None:
    """Print the figures, or write them into the page."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--write", action="store_true", help="put them into docs/architecture.md")
    options = parser.parse_args()

    text = "\n".join([*_by_area(), "", *_whole(), "", *_extension_points()])
    if options.write:
        before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
        after = rest.split(END)[1]
        PAGE.write_text(f"{before}{BEGIN}\n{text}\n\n{END}{after}", encoding="utf-8")
    else:
        print(text)


def _files() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def _by_area() -> list[str]:
    lines: dict[str, list[int]] = defaultdict(list)
    for path in _files():
        parts = path.relative_to(PACKAGE).parts
        area = parts[0] if len(parts) > 1 else "pellucid/*.py"
        lines[area].append(_line_count(path))
    rows = ["| area | files | lines | median |", "|---|---|---|---|"]
    for area, counts in sorted(lines.items(), key=lambda each: -sum(each[1])):
        rows.append(
            f"| `{area}` | {len(counts)} | {sum(counts):,} | {statistics.median(counts):.0f} |"
        )
    return rows


def _whole() -> list[str]:
    files = _files()
    counts = [_line_count(path) for path in files]
    total = sum(counts)
    importers = _importers(files)
    comments = sum(map(_comment_lines, files))
    bodies = [body for path in files for body in _long_bodies(path)]
    blank = sum(sum(not line.strip() for line in _text(path).splitlines()) for path in files)
    sentence, pair = _ways()
    rows = [
        (
            "lines of Python; files; median",
            f"{total:,}; {len(files)}; {statistics.median(counts):.0f}",
        ),
        (
            "files under 60 lines; over 600",
            f"{sum(n < 60 for n in counts)}; {sum(n > 600 for n in counts)}",
        ),
        ("files with exactly one importer", str(sum(n == 1 for n in importers.values()))),
        ("comment lines; blank lines", f"{comments / total:.1%}; {blank / total:.1%}"),
        (
            f"bodies of {_LONG_BODY} lines and more without a blank line",
            f"{sum(not has_blank for has_blank in bodies)} of {len(bodies)}"
            f" ({sum(not each for each in bodies) / len(bodies):.0%})",
        ),
        ("files on the way of a sentence to its translation", _way(sentence)),
        ("files on the way of a training pair to its update", _way(pair)),
    ]
    return ["| figure | now |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows)]


def _extension_points() -> list[str]:
    """The files that each recipe of CONTRIBUTING.md changes; a test applies its patch."""
    rows = ["| to add | files to touch |", "|---|---|"]
    for section in _text(ROOT / "CONTRIBUTING.md").split("\n### ")[1:]:
        name = section.partition("\n")[0].partition(":")[0]
        patch = section.partition("```diff\n")[2].partition("\n```\n")[0]
        paths = re.findall(r"^--- (.+)$", patch, flags=re.MULTILINE)
        if paths:
            files = ", ".join(map(_named, paths))
            rows.append(f"| {name[0].lower() + name[1:]} | {len(paths)}: {files} |")
    return rows


def _named(path: str) -> str:
    """A file as the table names it; a recipe may make one that the package does not have."""
    name = path.removeprefix("pellucid/")
    return f"`{name}`" if (ROOT / path).exists() else f"a new one in `{Path(name).parent}`"


def _way(files: set[str]) -> str:
    by_area = Counter(Path(name).relative_to(PACKAGE).parts[0] for name in files)
    lines = sum(_line_count(Path(name)) for name in files)
    areas = ", ".join(f"{area} {count}" for area, count in by_area.most_common())
    return f"{len(files)} with {lines:,} lines ({areas})"


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _line_count(path: Path) -> int:
    return len(_text(path).splitlines())


def _comment_lines(path: Path) -> int:
    """Lines that hold a comment and nothing else."""
    tokens = tokenize.generate_tokens(io.StringIO(_text(path)).readline)
    return sum(
        token.type == tokenize.COMMENT and not token.line[: token.start[1]].strip()
        for token in tokens
    )


def _long_bodies(path: Path) -> list[bool]:
    """For each function with a long body: whether a blank line divides it."""
    lines = _text(path).splitlines()
    found = []
    for node in ast.walk(ast.parse(_text(path))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            has_docstring = ast.get_docstring(node) is not None
            body = node.body[1:] if has_docstring else node.body
            if body and node.end_lineno is not None:
                first, last = body[0].lineno, node.end_lineno
                if last - first + 1 >= _LONG_BODY:
                    found.append(any(not line.strip() for line in lines[first - 1 : last]))
    return found


def _importers(files: list[Path]) -> dict[str, int]:
    """How many other files import each module."""
    names = {_module(path) for path in files if path.name != "__init__.py"}
    importers: dict[str, set[str]] = {name: set() for name in names}
    for path in files:
        for node in ast.walk(ast.parse(_text(path))):
            imported: list[str] = []
            if isinstance(node, ast.ImportFrom) and node.module:
                imported = [node.module, *(f"{node.module}.{each.name}" for each in node.names)]
            elif isinstance(node, ast.Import):
                imported = [each.name for each in node.names]
            for name in imported:
                if name in importers and name != _module(path):
                    importers[name].add(_module(path))
    return {name: len(found) for name, found in importers.items()}


def _module(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


def _ways() -> tuple[set[str], set[str]]:
    """Files of which a function runs: for one sentence, and for one update."""
    sys.path.insert(0, str(ROOT))
    import pellucid
    from pellucid.training.presets import read_config
    from pellucid.training.train import train

    small = ["phrasebook.pairs=200", "phrasebook.held_out=8", "model.d_model=16", "model.d_ff=16"]
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        train(read_config("demo", [*small, "training.max_steps=2"]), run)
        translator = pellucid.load(run, engine="torch")
        sentence = _executed(lambda: translator.translate(["je suis ici"]))
        config = read_config("demo", [*small, "training.max_steps=3"])
        pair = _executed(lambda: train(config, run, resume=True), within="_one_update")
    return sentence, pair


def _executed(work: Callable[[], object], within: str | None = None) -> set[str]:
    """Files of the package with a function that runs, inside the function of that name if given."""
    found: set[str] = set()
    depth = 0

    def watch(frame: FrameType, event: str, _: object) -> None:
        nonlocal depth
        if within is not None and frame.f_code.co_name == within:
            depth += {"call": 1, "return": -1}.get(event, 0)
        if event == "call" and (within is None or depth):
            name = frame.f_code.co_filename
            if name.startswith(str(PACKAGE)) and not name.endswith("__init__.py"):
                found.add(name)

    sys.setprofile(watch)
    try:
        work()
    finally:
        sys.setprofile(None)
    return found


if __name__ == "__main__":
    main()
