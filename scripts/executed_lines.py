"""Which test executes which lines of the program, watched once and kept in a folder.

Every file of tests is watched in a process of its own, as it is and under coverage, so that
the process that the mutants fork from has run no test: what they find in memory and on disk is the
same whether the file was watched in this run or an earlier one.
"""

import ast
import hashlib
import json
import os
import time
from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import coverage
import pytest
from mutants import Mutant, content_hash
from mutation_results import ROOT


class Executed:
    """Which test executes which lines, kept for each test file until that file changes."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.tests: dict[str, dict[str, Any]] = {}
        """For each test its seconds, the lines by file content, and the functions."""
        self.modules: dict[str, None] = {}
        """What the tests import while they run, in that order."""

    def read(self, path: Path) -> bool:
        """Take what is kept about a test file, if it is as it was and none of its tests failed."""
        found = self._kept(path)
        if found is None or found["failed"]:
            return False
        self._take(path, found)
        return True

    def read_failures(self, path: Path) -> list[str] | None:
        """Take what was just kept; the tests that failed, or None if nothing was kept."""
        found = self._kept(path)
        if found is None:
            return None
        self._take(path, found)
        failed: list[str] = found["failed"]
        return failed

    def write(
        self, path: Path, tests: dict[str, Any], failed: set[str], modules: list[str]
    ) -> None:
        """Keep what was found about a test file."""
        text = json.dumps({"tests": tests, "failed": sorted(failed), "modules": modules})
        beside = self._place(path).with_suffix(f".{os.getpid()}")
        beside.write_text(text)
        beside.rename(self._place(path))

    def verdict(self, mutant: Mutant) -> str:
        """The test that noticed a mutant of the same code, or nothing if its file has changed."""
        place = self._verdict(mutant)
        if not place.exists():
            return ""
        kept = json.loads(place.read_text())
        by: str = kept["by"]
        path = ROOT / by.partition("::")[0]
        return by if path.exists() and content_hash(path) == kept["content"] else ""

    def keep_verdict(self, mutant: Mutant, by: str) -> None:
        """Keep which test noticed a mutant."""
        content = content_hash(ROOT / by.partition("::")[0])
        self._verdict(mutant).write_text(json.dumps({"by": by, "content": content}))

    def _verdict(self, mutant: Mutant) -> Path:
        place = f"{mutant.path.stem} {mutant.function}"
        text = f"{content_hash(mutant.path)} {place} {mutant.kind} {mutant.before} {mutant.after}"
        return self.folder / f"{hashlib.sha256(text.encode()).hexdigest()[:24]}.noticed"

    def _place(self, path: Path) -> Path:
        content = path.read_bytes() + path.name.encode()
        return self.folder / f"{hashlib.sha256(content).hexdigest()[:24]}.watched"

    def _kept(self, path: Path) -> dict[str, Any] | None:
        place = self._place(path)
        return json.loads(place.read_text()) if place.exists() else None

    def _take(self, path: Path, found: dict[str, Any]) -> None:
        name = path.relative_to(ROOT).as_posix()
        for test, about in found["tests"].items():
            self.tests[f"{name}::{test.partition('::')[2]}"] = about
        self.modules |= dict.fromkeys(found["modules"])

    @cached_property
    def of_file(self) -> dict[str, dict[int, set[str]]]:
        """For each file content and line, the tests that execute it."""
        found: dict[str, dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
        for test, about in self.tests.items():
            for content, lines in about["lines"].items():
                for line in lines:
                    found[content][line].add(test)
        return found

    @cached_property
    def of_function(self) -> dict[str, set[str]]:
        """For each function, by its name and that of its class, the tests that execute it."""
        found: dict[str, set[str]] = defaultdict(set)
        for test, about in self.tests.items():
            for function in about["functions"]:
                found[function].add(test)
        return found

    def tests_of(self, mutant: Mutant) -> set[str]:
        """The tests that execute the broken statement, or its function if the file has changed."""
        if not mutant.function:
            return self._tests_of_file(mutant.path)
        inside = self.of_function.get(mutant.function)
        if inside is None:
            # A function that is new, or has another name: whatever executes others of its file.
            return self._tests_of_file(mutant.path)
        content = hash_of(mutant.path)
        lines = self.of_file.get(content, {})
        first, last = mutant.statement
        exact = set[str]().union(*(lines.get(line, set()) for line in range(first, last + 1)))
        if mutant.is_default:
            return inside
        # Of a test that was watched before the file changed, only the functions are known.
        return exact | {test for test in inside if content not in self.tests[test]["lines"]}

    def _tests_of_file(self, path: Path) -> set[str]:
        names = [name for name, _, _ in functions_of(path)]
        return set[str]().union(*(self.of_function.get(name, set()) for name in names))


def hash_of(path: Path) -> str:
    """A fingerprint of every byte of a file."""
    return hashlib.sha256((ROOT / path).read_bytes()).hexdigest()[:16]


class Watch:
    """Runs tests as they are and takes note of the lines they execute."""

    def __init__(self, files: list[Path]) -> None:
        self.files = files
        self.coverage = coverage.Coverage(
            data_file=None, config_file=False, include=[str(ROOT / each) for each in files]
        )
        self.coverage.set_option("run:disable_warnings", ["no-data-collected"])
        self.contexts = [""]
        self.seconds: dict[str, float] = defaultdict(float)
        self.failed: set[str] = set()

    def run(self, items: list[pytest.Item]) -> None:
        """Every test once, in the order in which they were collected."""
        self.coverage.start()
        for item, following in zip(items, [*items[1:], None], strict=True):
            self.enter(item.nodeid)
            item.ihook.pytest_runtest_protocol(item=item, nextitem=following)
            self.leave()
        self.coverage.stop()

    def enter(self, context: str) -> None:
        """From now on lines and seconds count for ``context``."""
        self._turn()
        self.contexts.append(context)
        self.coverage.switch_context(context)

    def leave(self) -> None:
        """Back to the context before."""
        self._turn()
        self.contexts.pop()
        self.coverage.switch_context(self.contexts[-1])

    def _turn(self) -> None:
        now = time.monotonic()
        self.seconds[self.contexts[-1]] += now - getattr(self, "since", now)
        self.since = now

    def found(self, items: list[pytest.Item]) -> dict[str, dict[str, Any]]:
        """What each test executes, the fixtures that it shares with others included."""
        data = self.coverage.get_data()
        by_context: dict[str, list[tuple[Path, int]]] = defaultdict(list)
        for path in self.files:
            for line, contexts in data.contexts_by_lineno(str(ROOT / path)).items():
                for context in contexts:
                    by_context[context].append((path, line))
        spans = {path: list(functions_of(path)) for path in self.files}

        found = {}
        for item in items:
            if item.nodeid in self.failed:
                continue
            contexts = [item.nodeid, *_shared_fixtures(item)]
            lines: dict[str, set[int]] = defaultdict(set)
            functions = set()
            for path, line in {each for context in contexts for each in by_context[context]}:
                lines[hash_of(path)].add(line)
                functions |= {n for n, first, last in spans[path] if first <= line <= last}
            found[item.nodeid] = {
                "seconds": round(sum(self.seconds[context] for context in contexts), 4),
                "lines": {content: sorted(numbers) for content, numbers in lines.items()},
                "functions": sorted(functions),
            }
        return found


def _shared_fixtures(item: pytest.Item) -> list[str]:
    """The contexts of the fixtures that ``item`` shares with other tests."""
    info = item._fixtureinfo  # type: ignore[attr-defined]
    definitions = [info.name2fixturedefs.get(name, ()) for name in info.names_closure]
    wide = [each for found in definitions for each in found if each.scope != "function"]
    return [context_of(each) for each in wide]


def context_of(definition: Any) -> str:
    """What the lines of a shared fixture are counted under."""
    return f"fixture {definition.baseid} {definition.argname}"


def functions_of(path: Path) -> Iterator[tuple[str, int, int]]:
    """Each function and method of a file with its first and last line."""

    def visit(node: ast.AST, prefix: str) -> Iterator[tuple[str, int, int]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ClassDef):
                yield from visit(child, f"{prefix}{child.name}.")
            elif isinstance(child, ast.FunctionDef):
                yield f"{prefix}{child.name}", child.lineno, child.end_lineno or child.lineno
            else:
                yield from visit(child, prefix)

    yield from visit(ast.parse((ROOT / path).read_text(encoding="utf-8")), "")
