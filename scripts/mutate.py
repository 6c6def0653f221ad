"""Break the program in many small ways and see whether its tests notice.

    python scripts/mutate.py                        what changed since the last figures
    python scripts/mutate.py --fresh                everything
    python scripts/mutate.py --only beam --all      every mutant of one module; writes nothing

What is broken, and how, stands in mutants.py; which files, and which tests belong to them, in
AREAS. Of each area a sample is taken: the same mutants every time, as each is chosen by a number
made from its own text. Two shares are reported. **Any test**: the mutant is noticed by a test of
the folders below. **Its own tests**: of an equation, those that name one of its numbers or are
named by the ``Law:`` of its docstring, and the laws that hold the page of equations to the program;
elsewhere, those of the folders and files of its area.

The tests run once as they are, under coverage, which shows the lines that each of them executes;
that is kept per test file in --cache. Each mutant then lives in a forked process, in which the
functions of the loaded module get the mutated code, and runs the tests that execute the broken
statement, its own first and quick ones before slow ones, until the first failure. A mutant is given
tests for about 60 seconds; one that none of these noticed has survived, though a slower test might
have noticed it, so that both shares are lower bounds. The files on disk are never touched.

Mutants that nobody can notice stand in equivalent_mutants.toml with the reason.
"""

import argparse
import ast
import gc
import hashlib
import importlib
import json
import os
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
import types
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from inspect import unwrap
from pathlib import Path
from typing import Any

import coverage
import pytest
from mutants import Mutant, content_hash, hand_made, mutants
from mutation_results import (
    ROOT,
    FileResult,
    equivalents,
    print_table,
    read_result,
    write_result,
)

SECONDS_OF_TESTS = 60.0
"""What the tests of one mutant may take together, by the time they took unbroken."""
LAWS = (
    "accelerator_equals_cpu",
    "accumulated_equals_one_batch",
    "clear_equals_fast",
    "fused_equals_clear",
    "fused_in_any_shape",
    "fused_views_equal_clear",
    "model_laws",
    "nothing_is_nan",
    "recurrent_equals_clear",
    "recurrent_updates",
    "searches_equal_the_page",
    "skipgram_equals_clear",
    "updates_equal_the_page",
)
"""Without those that start processes, which a mutant does not reach."""
TESTS = (
    "equations",
    *(f"laws/test_{name}.py" for name in LAWS),
    "model",
    "decoding",
    "training/test_averaging.py",
    "training/test_checkpoints.py",
    "training/test_loss_scale.py",
    "training/test_gradient_noise.py",
    "training/test_objective.py",
    "training/test_optimizers.py",
    "training/test_plateau.py",
    "training/test_schedule.py",
    "training/test_spikes.py",
    "training/test_teacher.py",
    "training/test_waiting.py",
)
"""The tests that count as *any*; those of servers, engines and commands see even more."""
PYTEST_OPTIONS = ["-q", "-n0", "--tb=short", "-p", "no:cacheprovider", "-p", "no:cov", "-s"]
PYTEST_OPTIONS += ["-o", "timeout=120"]
KILLED, SURVIVED, UNABLE = 1, 0, 3
MUTANT = "<mutant>"
"""What code of a mutant says that it was written in; ``dataclass`` generates other methods."""


@dataclass(frozen=True)
class Area:
    """Files that are broken together, and the tests that belong to them."""

    folder: str
    """Below the package; files are found by name wherever they lie in it."""
    modules: tuple[str, ...]
    """Names of files without their ending; all if none is given."""
    tests: tuple[str, ...]
    """Folders and files of tests that belong to it."""
    share: float
    """Of its mutants, those that are tried."""


AREAS = {
    "equations": Area(
        "equations",
        (),
        tuple(
            f"laws/test_{name}.py"
            for name in (
                "accelerator_equals_cpu",
                "clear_equals_fast",
                "fused_in_any_shape",
                "recurrent_equals_clear",
                "searches_equal_the_page",
                "updates_equal_the_page",
            )
        ),
        1 / 35,
    ),
    "model": Area("model", (), ("model", "laws", "equations"), 1 / 46),
    "update": Area(
        "training",
        ("step", "objective", "precision", "averaging"),
        ("training", "laws", "model/test_dropout.py"),
        1 / 9,
    ),
    "decoding": Area(
        "decoding",
        (),
        ("decoding", "laws/test_searches_equal_the_page.py", "laws/test_model_laws.py"),
        1 / 58,
    ),
}
LEFT_OUT = {"__init__"}
BY_HAND = "by hand"
"""The area of the breaks in breaks.toml, whose own test is the one that each names."""


def files_of(area: Area) -> list[Path]:
    """The files of an area, relative to the repository."""
    found = sorted((ROOT / "pellucid" / area.folder).rglob("*.py"))
    wanted = [p for p in found if not area.modules or p.stem in area.modules]
    return [path.relative_to(ROOT) for path in wanted if path.stem not in LEFT_OUT]


def put_in_place(mutant: Mutant) -> bool:
    """Give the loaded module the mutant's code, for all who imported from it; whether that went."""
    module = importlib.import_module(".".join(mutant.path.with_suffix("").parts))
    changed = {"__name__": module.__name__}
    try:
        exec(compile(mutant.source(), MUTANT, "exec"), changed)  # noqa: S102  our own
    except Exception:
        os._exit(KILLED)  # it cannot even be imported
    if not mutant.function:
        [name] = [target.id for target in mutant.changed.targets]  # type: ignore[attr-defined]
        return replace_constant(name, vars(module)[name], changed[name])

    owner_name, _, name = mutant.function.rpartition(".")
    owner: Any = module
    new_owner: Any = types.SimpleNamespace(**changed)
    if owner_name:
        owner, new_owner = getattr(owner, owner_name), getattr(new_owner, owner_name)
    if not name or isinstance(vars(new_owner)[name], type):
        return False
    return replace_function(owner, name, vars(owner)[name], vars(new_owner)[name])


def replace_constant(name: str, old: object, new: object) -> bool:
    """Set a constant wherever it was imported."""
    for module in list(sys.modules.values()):
        if module.__name__.startswith("pellucid") and vars(module).get(name) is old:
            setattr(module, name, new)
    return True


def replace_function(owner: Any, name: str, old: Any, new: Any) -> bool:
    """Make one function do what a mutant's does, beneath the checks of shapes."""
    if isinstance(old, property):
        return replace_function(owner, name, old.fget, new.fget)
    old, new = getattr(old, "func", old), getattr(new, "func", new)
    old, new = getattr(old, "__func__", old), getattr(new, "__func__", new)
    if hasattr(old, "cache_clear"):
        old.cache_clear()
    function, mutated = unwrap(old), unwrap(new)
    if not isinstance(function, types.FunctionType) or mutated.__code__.co_filename != MUTANT:
        return False
    if len(function.__code__.co_freevars) != len(mutated.__code__.co_freevars):
        # It names its class no more (super), so it has to be another function.
        mutated = types.FunctionType(
            mutated.__code__, function.__globals__, name, mutated.__defaults__
        )
        mutated.__kwdefaults__ = unwrap(new).__kwdefaults__
        setattr(owner, name, mutated)
        return True
    function.__code__ = mutated.__code__
    function.__defaults__, function.__kwdefaults__ = mutated.__defaults__, mutated.__kwdefaults__
    return True


class Executed:
    """Which test executes which lines, kept for each test file until that file changes."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.tests: dict[str, dict[str, Any]] = {}
        """For each test its seconds, the lines by file content, and the functions."""

    def read(self, path: Path) -> bool:
        """Take what is kept about a test file, if it is as it was."""
        kept = self._kept(path)
        if not kept.exists():
            return False
        name = path.relative_to(ROOT).as_posix()
        found = json.loads(kept.read_text())
        self.tests |= {f"{name}::{test.partition('::')[2]}": found[test] for test in found}
        return True

    def write(self, path: Path, found: dict[str, dict[str, Any]]) -> None:
        """Keep what was found about a test file."""
        self._kept(path).write_text(json.dumps(found))
        self.tests |= found

    def verdict_of(self, mutant: Mutant) -> Path:
        """Where it stands which test noticed a mutant."""
        place = f"{mutant.path.stem} {mutant.function}"
        text = f"{content_hash(mutant.path)} {place} {mutant.kind} {mutant.before} {mutant.after}"
        return self.folder / f"{hashlib.sha256(text.encode()).hexdigest()[:24]}.verdict"

    def _kept(self, path: Path) -> Path:
        content = path.read_bytes() + path.name.encode()
        return self.folder / f"{hashlib.sha256(content).hexdigest()[:24]}.json"

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
            inside = [name for name, _, _ in functions_of(mutant.path)]
            return set().union(*(self.of_function.get(name, set()) for name in inside))
        inside = self.of_function.get(mutant.function)
        if inside is None:
            # A function that is new, or has another name: whatever executes others of its file.
            names = [name for name, _, _ in functions_of(mutant.path)]
            return set().union(*(self.of_function.get(name, set()) for name in names))
        content = hash_of(mutant.path)
        lines = self.of_file.get(content, {})
        first, last = mutant.statement
        exact = set().union(*(lines.get(line, set()) for line in range(first, last + 1)))
        if mutant.is_default:
            return inside
        # Of a test that was watched before the file changed, only the functions are known.
        return exact | {test for test in inside if content not in self.tests[test]["lines"]}


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
    return [_context_of(each) for each in wide]


def _context_of(definition: Any) -> str:
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


class OwnTests:
    """Which tests belong to a mutant."""

    def __init__(self) -> None:
        self.named: dict[int, set[str]] = defaultdict(set)
        """For each number of an equation the tests whose docstring names it, as ``file::test``."""
        self.settling: dict[str, set[str]] = defaultdict(set)
        """The same for each erratum, as ``ER-05``."""
        for path in sorted((ROOT / "tests").rglob("test_*.py")):
            name = path.relative_to(ROOT).as_posix()
            for test, text in _docstrings(path):
                for number in _numbers(text):
                    self.named[number].add(f"{name}::{test}")
                for erratum in _errata(f"{test} {text}"):
                    self.settling[erratum].add(f"{name}::{test}")

    def includes(self, mutant: Mutant, area: str, test: str) -> bool:
        """Whether ``test`` is one of the mutant's own."""
        plain = test.partition("[")[0]
        if area == BY_HAND:
            return plain.endswith(f"::{mutant.test}") or plain in self.settling[mutant.test]
        if area != "equations":
            return any(plain.startswith(f"tests/{each}") for each in AREAS[area].tests)
        tests, laws = self._of_equation(mutant.path, mutant.function)
        everywhere = (f"tests/{each}" for each in AREAS[area].tests)
        return plain in tests or plain.startswith((*laws, *everywhere))

    def _of_equation(self, path: Path, function: str) -> tuple[set[str], set[str]]:
        key = path, function.partition(".")[0]
        if key not in self._known:
            self._known[key] = self._find(*key)
        return self._known[key]

    @cached_property
    def _known(self) -> dict[tuple[Path, str], tuple[set[str], set[str]]]:
        return {}

    def _find(self, path: Path, function: str) -> tuple[set[str], set[str]]:
        """Tests that name a number of the function, and its laws; a helper has its callers'.

        What has no number in the catalogue has all tests of equations.
        """
        tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
        tops = [n for n in tree.body if isinstance(n, ast.FunctionDef | ast.ClassDef)]
        mentions = {
            top.name: {n.id for n in ast.walk(top) if isinstance(n, ast.Name)} for top in tops
        }
        wanted, waiting = {function}, [function]
        while waiting:
            name = waiting.pop()
            callers = {each for each, used in mentions.items() if name in used} - wanted
            if not name.startswith("_"):
                continue
            wanted |= callers
            waiting += callers
        texts = {
            top.name: "\n".join(
                ast.get_docstring(n) or ""
                for n in ast.walk(top)
                if isinstance(n, ast.FunctionDef | ast.ClassDef)
            )
            for top in tops
            if top.name in wanted
        }
        numbers = {number for text in texts.values() for number in _declared(text)}
        laws = {law for text in texts.values() for law in re.findall(r"tests/[\w/]+\.py", text)}
        tests = set().union(*(self.named[number] for number in numbers))
        return tests, laws if numbers else {*laws, "tests/equations"}


def _docstrings(path: Path) -> Iterator[tuple[str, str]]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            yield node.name, ast.get_docstring(node) or ""


def _numbers(text: str) -> set[int]:
    """The equations that a test names: ``EQ-27``, ``EQ-40 to EQ-44``, ``EQ-106, 121``."""
    found: set[int] = set()
    for first, last in re.findall(r"EQ-(\d+)(?: to (?:EQ-)?(\d+))?", text):
        found.update(range(int(first), int(last or first) + 1))
    for more in re.findall(r"EQ-\d+((?:, \d{1,3}\b)+)", text):
        found.update(int(number) for number in re.findall(r"\d+", more))
    return found | _declared(text)


def _errata(text: str) -> set[str]:
    """The errata that a test names: ``ER-05``, ``ER-16 to ER-18``, ``ER-05, 07``."""
    found: set[int] = set()
    for first, last in re.findall(r"ER-(\d+)(?: (?:to|and) (?:ER-)?(\d+))?", text):
        found.update(range(int(first), int(last or first) + 1))
    for more in re.findall(r"ER-\d+((?:, \d{1,3}\b)+)", text):
        found.update(int(number) for number in re.findall(r"\d+", more))
    return {f"ER-{number:02}" for number in found}


def _declared(text: str) -> set[int]:
    lists = re.findall(r"\bEQ: (\d{2,3}\b(?:, \d{2,3}\b)*)", text)
    return {int(number) for each in lists for number in re.findall(r"\d+", each)}


class Experiment:
    """A pytest plugin that runs the collected tests once for every mutant."""

    def __init__(self, todo: dict[str, list[Mutant]], executed: Executed, jobs: int) -> None:
        self.todo, self.executed, self.jobs = todo, executed, jobs
        self.own = OwnTests()
        self.verdicts: dict[Mutant, dict[str, Any]] = {}
        self.kills: Counter[str] = Counter()
        """How many mutants each test has noticed; one that noticed some will notice more."""
        self.running: dict[int, tuple[Mutant, int, set[str], int]] = {}
        self.watch: Watch | None = None
        self.is_broken = False

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """In place of running the tests once."""
        self.look(session.items)
        items = {item.nodeid: item for item in session.items}
        gc.freeze()  # so that a fork shares what was loaded
        everything = [(area, mutant) for area, each in self.todo.items() for mutant in each]
        print(f"{len(everything)} mutants", file=sys.stderr, flush=True)
        for number, (area, mutant) in enumerate(everything):
            if self.remember(mutant, area, items):
                continue
            while len(self.running) >= self.jobs:
                self.finish_one()
            own, others = self.in_order(mutant, area, items)
            self.start(mutant, own, others)
            if number % 50 == 49:
                print(f"{number + 1} of {len(everything)} tried", file=sys.stderr, flush=True)
        while self.running:
            self.finish_one()
        return True

    def remember(self, mutant: Mutant, area: str, items: dict[str, pytest.Item]) -> bool:
        """Take the verdict of an earlier run on the same code if the test that noticed is there.

        What survived is tried again: tests may have been written since.
        """
        kept = self.executed.verdict_of(mutant)
        by = json.loads(kept.read_text()) if kept.exists() else ""
        if by not in items:
            return False
        is_own = self.own.includes(mutant, area, by)
        if not is_own and self.in_order(mutant, area, items)[0]:
            return False
        self.kills[by] += 1
        self.verdicts[mutant] = {"verdict": "noticed", "by": by, "is_own": is_own}
        if not is_own:
            print(f"only by others  {mutant}  {by}", flush=True)
        return True

    def look(self, items: list[pytest.Item]) -> None:
        """Run the tests about which nothing is known yet."""
        by_file: dict[Path, list[pytest.Item]] = defaultdict(list)
        for item in items:
            by_file[item.path].append(item)
        unknown = [path for path in by_file if not self.executed.read(path)]
        files = [path for area in AREAS.values() for path in files_of(area)]
        for path in unknown:
            print(f"watching {path.relative_to(ROOT)}", file=sys.stderr, flush=True)
            self.watch = Watch(files)
            self.watch.run(by_file[path])
            self.executed.write(path, self.watch.found(by_file[path]))
            self.watch = None

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Any:
        """What a shared fixture executes counts for all tests that have it."""
        if self.watch is None or fixturedef.scope == "function":
            return (yield)
        self.watch.enter(_context_of(fixturedef))
        try:
            return (yield)
        finally:
            self.watch.leave()

    def seconds(self, test: str) -> float:
        """What a test took; 1 if nothing is known about it."""
        return float(self.executed.tests.get(test, {"seconds": 1.0})["seconds"])

    def in_order(
        self, mutant: Mutant, area: str, items: dict[str, pytest.Item]
    ) -> tuple[list[pytest.Item], list[pytest.Item]]:
        """The tests that execute the broken statement: its own and the others, quick ones first."""
        able = [test for test in self.executed.tests_of(mutant) if test in items]
        if area == BY_HAND:
            named = {test for test in items if self.own.includes(mutant, area, test)}
            able = sorted({*able, *(named if not mutant.test.startswith("ER-") else ())})
        seconds = {test: self.seconds(test) for test in able}
        able.sort(key=lambda test: (seconds[test] / (1 + self.kills[test]) ** 2, test))
        chosen: tuple[list[pytest.Item], list[pytest.Item]] = [], []
        for which, is_own in enumerate((True, False)):
            left = SECONDS_OF_TESTS
            for test in able:
                if self.own.includes(mutant, area, test) == is_own:
                    left -= seconds[test]
                    if left < 0 and chosen[which]:
                        break
                    chosen[which].append(items[test])
        return chosen

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """The first failure is enough; a test that fails unbroken is left out, and named."""
        if report.failed and not self.is_broken:
            assert self.watch is not None
            self.watch.failed.add(report.nodeid)
            print(f"fails as it is, so left out: {report.nodeid}", file=sys.stderr, flush=True)
        elif report.failed:
            os.write(self.pipe, report.nodeid.encode())
            os._exit(KILLED)

    def start(self, mutant: Mutant, own: list[pytest.Item], others: list[pytest.Item]) -> None:
        """Fork, break, and test."""
        reader, self.pipe = os.pipe()
        process = os.fork()
        if process:
            os.close(self.pipe)
            names = {item.nodeid for item in own}
            self.running[process] = mutant, reader, names, len(own) + len(others)
            return
        self.is_broken = True
        limit = round(5 * SECONDS_OF_TESTS)
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))
        signal.signal(signal.SIGXCPU, signal.SIG_DFL)
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        try:
            is_placed = put_in_place(mutant)
        except BaseException:
            is_placed = False
        if not is_placed:
            os._exit(UNABLE)
        try:
            items = [*own, *others]
            for item, following in zip(items, [*items[1:], None], strict=bool(items)):
                item.ihook.pytest_runtest_protocol(item=item, nextitem=following)
        except BaseException:
            os._exit(KILLED)
        os._exit(SURVIVED)

    def finish_one(self) -> None:
        """Wait for a process to end, and take note of its verdict."""
        process, status = os.wait()
        mutant, reader, own, count = self.running.pop(process)
        noticed_by = os.read(reader, 10_000).decode()
        os.close(reader)
        code = os.waitstatus_to_exitcode(status)
        verdict = {KILLED: "noticed", SURVIVED: "survived", UNABLE: "unable"}.get(code, "noticed")
        is_own = noticed_by in own or (verdict == "noticed" and not noticed_by)
        self.verdicts[mutant] = {"verdict": verdict, "by": noticed_by, "is_own": is_own}
        self.kills[noticed_by] += 1
        if noticed_by:
            self.executed.verdict_of(mutant).write_text(json.dumps(noticed_by))
        if verdict != "noticed":
            print(f"{verdict} {count:4} tests  {mutant}", flush=True)
        elif not is_own:
            print(f"only by others  {mutant}  {noticed_by}", flush=True)


def samples(
    areas: list[str], everything: bool = False
) -> Iterator[tuple[str, Path, list[Mutant], int]]:
    """Of each area and file the mutants to be tried, and how many there are."""
    for name in areas:
        if name == BY_HAND:
            breaks = hand_made(sorted(Path("pellucid").rglob("*.py")))
            for path in sorted({each.path for each in breaks}):
                own = [each for each in breaks if each.path == path]
                yield name, path, own, len(own)
            continue
        share = 1.0 if everything else AREAS[name].share
        for path in files_of(AREAS[name]):
            yield name, path, *mutants(path, share)


def tests_of_last_time(known: dict[str, Any], results: list[FileResult]) -> list[str]:
    """The tests that noticed the mutants of these files before they changed; those of the area for
    a file that is new.
    """
    before = {(each["area"], Path(each["file"]).stem): each["tests"] for each in known["files"]}
    found: set[str] = set()
    for result in results:
        if result.is_new:
            own = [f"tests/{each}" for each in getattr(AREAS.get(result.area), "tests", TESTS)]
            found.update(before.get((result.area, Path(result.file).stem)) or own)
    return sorted(each for each in found if (ROOT / each).exists())


def main() -> int:
    """Print a table, and write it down unless the run was of single modules."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--fresh", action="store_true", help="also what has not changed")
    parser.add_argument("--area", choices=[BY_HAND, *AREAS], nargs="*")
    parser.add_argument("--only", nargs="*", help="names of modules; nothing is written")
    parser.add_argument("--watch", action="store_true", help="only see what each test executes")
    parser.add_argument("--all", action="store_true", help="no sample; nothing is written")
    parser.add_argument("--tests", nargs="*", help="files and folders below tests")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results")
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "executed")
    options = parser.parse_args()
    os.chdir(ROOT)
    scratch = Path(tempfile.mkdtemp(prefix="mutants-"))
    os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = str(scratch / "hypothesis")
    # Shapes in signatures are not checked at every call, which takes longer than the tests.
    os.environ["JAXTYPING_DISABLE"] = "1"

    known = {} if options.fresh else read_result(options.out)
    results: list[FileResult] = []
    todo: dict[str, list[Mutant]] = {}
    for name, path, chosen, count in samples(options.area or [BY_HAND, *AREAS], options.all):
        if options.only and path.stem not in options.only:
            continue
        content = content_hash(
            path, "".join(each.after + each.test for each in chosen if each.test)
        )
        result = FileResult(name, path.as_posix(), content, count, chosen)
        results.append(result)
        if options.only or not result.take(known):
            todo.setdefault(name, []).extend(chosen)
    experiment = Experiment(todo, Executed(options.cache), options.jobs)
    if options.watch:
        experiment.todo = {}
    if any(todo.values()):
        tests = [f"tests/{each}" for each in options.tests or TESTS]
        if known and not options.tests:
            tests = tests_of_last_time(known, results)
        arguments = [*PYTEST_OPTIONS, f"--basetemp={scratch / 'pytest'}", *tests]
        code = pytest.main(arguments, plugins=[experiment])
        shutil.rmtree(scratch, ignore_errors=True)
        if code in (pytest.ExitCode.INTERRUPTED, pytest.ExitCode.INTERNAL_ERROR, 2, 3, 4):
            return int(code)
    if options.watch:
        return 0
    for result in results:
        result.fill(experiment.verdicts)
    unnoticeable = equivalents(results)
    print_table(results, unnoticeable)
    if not options.only and not options.all:
        write_result(options.out, results, unnoticeable, known)
    return 0


if __name__ == "__main__":
    sys.exit(main())
