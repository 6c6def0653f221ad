"""Break the program as people break it, one mistake of breaks.toml at a time: its test must fail.

    python scripts/breaks.py                all of them, some minutes
    python scripts/breaks.py rotary beam    those with one of these words in their name

Each break is made in a copy of the package. Python and torch start once; a forked process for each
break imports the copy and runs the test that has to notice. Exit code 1 if one did not.
"""

import ast
import functools
import os
import re
import shutil
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).resolve().parents[1]
OPTIONS = ["-q", "-x", "-p", "no:cacheprovider", "-p", "no:randomly", "-o", "timeout=300"]


def read_breaks() -> list[dict[str, str]]:
    """The hand-made breaks: name, function (``within``), text ``before`` and ``after``, test."""
    text = (ROOT / "scripts" / "breaks.toml").read_text(encoding="utf-8")
    found: list[dict[str, str]] = tomllib.loads(text)["break"]
    return found


def broken_file(each: dict[str, str]) -> tuple[Path, str]:
    """The file of a break, relative to the repository, and its text with the break.

    Raises ValueError unless exactly one such function holds the text, once.
    """
    places = []
    for path, text in _files().items():
        if each["before"] in text:
            lines = text.splitlines(keepends=True)
            for name, node in _functions(ast.parse(text)):
                body = "".join(lines[node.lineno - 1 : node.end_lineno])
                if name == each["within"] and body.count(each["before"]) == 1:
                    body = body.replace(each["before"], each["after"])
                    changed = [*lines[: node.lineno - 1], body, *lines[node.end_lineno :]]
                    places.append((path.relative_to(ROOT), "".join(changed)))
    if len(places) != 1:
        raise ValueError(f"{each['name']}: {each['within']} holds the text {len(places)} times")
    return places[0]


@functools.cache
def _files() -> dict[Path, str]:
    """Every file of the package with its text, read once for all breaks."""
    paths = sorted((ROOT / "pellucid").rglob("*.py"))
    return {path: path.read_text(encoding="utf-8") for path in paths}


def _functions(
    node: ast.Module | ast.ClassDef, prefix: str = ""
) -> Iterator[tuple[str, ast.FunctionDef]]:
    for child in node.body:
        if isinstance(child, ast.ClassDef):
            yield from _functions(child, f"{prefix}{child.name}.")
        elif isinstance(child, ast.FunctionDef):
            yield f"{prefix}{child.name}", child


def test_passes(test: str, package: Path) -> bool:
    """Whether a test passes, in all its cases, with the package in this folder."""
    files = [
        str(path)
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        if re.search(rf"^ *def {test}\(", path.read_text(encoding="utf-8"), re.MULTILINE)
    ]
    pid = os.fork()
    if pid == 0:
        silent = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silent, 1)
        os.dup2(silent, 2)
        sys.path.insert(0, str(package))
        os._exit(int(pytest.main([*OPTIONS, *files, "-k", test])))
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        raise SystemExit(f"{test} could not be run: pytest ended with {code}")
    return code == pytest.ExitCode.OK


def main() -> None:
    """Try the breaks whose names hold one of the given words; print each that nobody noticed."""
    torch.set_num_threads(1)
    os.chdir(ROOT)
    words = sys.argv[1:]
    chosen = [b for b in read_breaks() if not words or any(word in b["name"] for word in words)]
    missed = []
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        shutil.copytree(ROOT / "pellucid", copy / "pellucid")
        for test in sorted({each["test"] for each in chosen}):
            if not test_passes(test, copy):
                raise SystemExit(f"{test} fails with the code as it is")
        for each in chosen:
            path, text = broken_file(each)
            (copy / path).write_text(text, encoding="utf-8")
            if test_passes(each["test"], copy):
                missed.append(each["name"])
                print(f"not noticed by {each['test']}: {each['name']} ({path})", flush=True)
            shutil.copyfile(ROOT / path, copy / path)
    print(f"{len(chosen) - len(missed)} of {len(chosen)} breaks noticed")
    raise SystemExit(bool(missed))


if __name__ == "__main__":
    main()
