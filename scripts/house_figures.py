"""Count how large the code is and how far a reader walks.

    python scripts/house_figures.py            print the tables
    python scripts/house_figures.py --write    put them into benchmarks/results/house.md

Importers are other files of the package that import a file. A way holds the files of which a
function runs, and those functions, in all threads, with what is done once (cold): a bundle is
opened and translates a sentence, a run is prepared and makes one update, a server that has opened a
model answers its first request, a page is exported. Each runs in a process of its own with a tiny
Transformer. The two warm ways are one more sentence, and one more update.
Nothing holds the code to these figures; they are here to be looked at.
"""

import argparse
import ast
import contextlib
import importlib
import inspect
import io
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import tokenize
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "pellucid"
REPORT = ROOT / "benchmarks" / "results" / "house.md"
_LONG_BODY = 15


_HEADER = """# Figures of the house

Written by `python scripts/house_figures.py --write`; no test holds the code to them.
"""


def main() -> None:
    """Print the figures, or write them into the report."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--write", action="store_true", help="put them into the report")
    parser.add_argument("--way", choices=_WAYS, help="print one way, as this script asks itself to")
    parser.add_argument("--run", type=Path, help="of --way: the run of a tiny Transformer")
    options = parser.parse_args()

    if options.way is not None:
        json.dump(_traced(options.way, options.run), sys.stdout)
        return
    text = "\n".join([*_by_area(), "", *_whole(), "", *_extension_points()])
    if options.write:
        REPORT.write_text(f"{_HEADER}\n{text}\n", encoding="utf-8")
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
        *((f"files and functions on the way of {what}", way) for what, way in _ways().items()),
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


_WAYS = {
    "sentence": "a sentence, cold",
    "warm sentence": "one more sentence",
    "pair": "a training pair, cold",
    "warm pair": "one more update",
    "request": "a request, cold",
    "page": "an exported page, cold",
}
_SMALL = ["phrasebook.pairs=200", "phrasebook.held_out=8", "model.d_model=16", "model.d_ff=16"]


def _ways() -> dict[str, str]:
    """How many files and functions each way passes, and the files by area."""
    sys.path.insert(0, str(ROOT))
    from pellucid.training.presets import read_config
    from pellucid.training.train import train

    found = {}
    with tempfile.TemporaryDirectory() as folder:
        train(read_config("demo", [*_SMALL, "training.max_steps=2"]), Path(folder) / "run")
        for name, what in _WAYS.items():
            # A copy each: what one way keeps beside the bundle, the next must not find.
            run = Path(folder) / name / "run"
            shutil.copytree(Path(folder) / "run", run)
            command = [sys.executable, __file__, "--way", name, "--run", str(run)]
            # A cache of its own: what an earlier call converted is no part of a cold way.
            cold = {**os.environ, "XDG_CACHE_HOME": str(run.parent / "cache")}
            made = subprocess.run(command, stdout=subprocess.PIPE, check=True, env=cold)  # noqa: S603
            functions = json.loads(made.stdout)

            files = {name for name, _ in functions}
            by_area = Counter(Path(name).parts[0] for name in files)
            areas = ", ".join(f"{area} {count}" for area, count in by_area.most_common())
            found[what] = f"{len(files)} / {len(functions)} ({areas})"
    return found


def _traced(way: str, run: Path) -> list[tuple[str, int]]:
    """The functions that run on a way: the file of each within the package, and its line."""
    sys.path.insert(0, str(ROOT))
    match way:
        case "sentence":
            return _executed(lambda: pellucid().load(run).translate(["je suis ici"]))
        case "warm sentence":
            translator = pellucid().load(run)
            translator.translate(["il est ici"])
            return _executed(lambda: translator.translate(["je suis ici"]))
        case "pair":
            return _executed(lambda: _train(run.parent / "new", 1))
        case "warm pair":
            return _executed(lambda: _train(run, 3), within="_one_update")
        case "request":
            return _request(run)
        case _:
            return _executed(lambda: _export(run))


def pellucid() -> Any:
    """The package, imported after its folder was put on the path."""
    return importlib.import_module("pellucid")


def _train(run: Path, steps: int) -> None:
    from pellucid.training.presets import read_config
    from pellucid.training.train import train

    config = read_config("demo", [*_SMALL, f"training.max_steps={steps}"])
    train(config, run, resume=run.exists())


def _request(run: Path) -> list[tuple[str, int]]:
    """The first request to an application, without a socket."""
    from pellucid.serve.models import ModelPlace, open_model

    sys.path.insert(0, str(ROOT / "tests" / "serve"))
    served = importlib.import_module("served_models")
    with contextlib.ExitStack() as stack:
        clients = []

        def opened() -> None:
            service = served.make_service(None, open_model(ModelPlace("demo", run)))
            clients.append(stack.enter_context(served.client_of(service)))

        def asked() -> None:
            clients[0].post("/v1/translate", json={"text": "je suis ici"}).raise_for_status()

        return _executed(asked, before=opened)


def _export(run: Path) -> None:
    from pellucid.backends.web.export import export_web

    export_web(pellucid().load_bundle(run), run.parent / "page.html")


def _executed(
    work: Callable[[], object],
    within: str | None = None,
    before: Callable[[], object] = lambda: None,
) -> list[tuple[str, int]]:
    """Functions of the package that run, inside the function of that name if given.

    What runs in ``before`` does not count; threads that it starts do, afterwards.
    """
    found: set[tuple[str, int]] = set()
    depth = 0

    def watch(frame: FrameType, event: str, _: object) -> None:
        nonlocal depth
        code = frame.f_code
        if within is not None and code.co_name == within:
            depth += {"call": 1, "return": -1}.get(event, 0)
        if event != "call" or not (within is None or depth) or code.co_name == "<module>":
            return
        # The body of a class runs once, when its file is imported.
        if code.co_filename.startswith(f"{PACKAGE}/") and code.co_flags & inspect.CO_NEWLOCALS:
            found.add((str(Path(code.co_filename).relative_to(PACKAGE)), code.co_firstlineno))

    threading.setprofile(watch)
    sys.setprofile(watch)
    try:
        before()
        found.clear()
        work()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return sorted(found)


if __name__ == "__main__":
    main()
