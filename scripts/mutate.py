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
that is kept per test file in --cache (executed_lines.py). Each mutant then lives in a forked
process with a temporary folder of its own, in which the functions of the loaded module get the
mutated code, and runs the tests that execute the broken statement, its own first and quick ones
before slow ones, until the first failure. A failure counts if the same test passes in such a
process without a mutant. A mutant is given its own tests for about 60 seconds and the others for
as long; one that none of these noticed has survived, though a slower test might have noticed it,
so that both shares are lower bounds. The files on disk are never touched.

Which test noticed a mutant is kept in --cache as well, until the code of the broken file or of the
test's file changes. What survived is tried again every time.

Mutants that nobody can notice stand in equivalent_mutants.toml with the reason.
"""

import argparse
import ast
import gc
import importlib
import os
import re
import resource
import shutil
import signal
import sys
import tempfile
import types
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from inspect import unwrap
from pathlib import Path
from typing import Any

import pytest
from executed_lines import Executed, Watch, context_of
from mutants import Mutant, content_hash, hand_made, mutants
from mutation_results import (
    EQUIVALENT,
    ROOT,
    FileResult,
    equivalents,
    print_table,
    read_result,
    refuted_reasons,
    write_result,
)

SECONDS_OF_TESTS = 60.0
"""What a mutant's own tests may take together, by the time they took when they were watched, and
the others again."""
SECONDS_IF_EQUIVALENT = 10.0
"""The same for a mutant that stands in equivalent_mutants.toml: its reason is what counts, and the
tests only look whether one of them refutes it."""
ALSO_IMPORTED = {"_pytest", "hypothesis", "numpy", "pellucid", "safetensors", "sympy", "torch"}
"""Packages that start no threads when they are imported, which a fork would lose."""
LAWS = (
    "accelerator_equals_cpu",
    "accumulated_equals_one_batch",
    "averages_equal_the_page",
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
    "inspection/test_why.py",
    "training/test_averaging.py",
    "training/test_checkpoints.py",
    "training/test_loss_scale.py",
    "training/test_merging.py",
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
                "averages_equal_the_page",
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
        ("step", "objective", "precision", "averaging", "merging"),
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


@dataclass
class Trial:
    """A process in which tests run, with a mutant in place or as the program is."""

    mutant: Mutant | None
    pipe: int
    folder: Path
    items: list[pytest.Item]
    own: set[str]
    area: str


class Experiment:
    """A pytest plugin that runs the collected tests once for every mutant."""

    def __init__(
        self, todo: dict[str, list[Mutant]], executed: Executed, jobs: int, scratch: Path
    ) -> None:
        self.todo, self.executed, self.jobs, self.scratch = todo, executed, jobs, scratch
        self.own = OwnTests()
        self.reasons = equivalents()
        self.verdicts: dict[Mutant, dict[str, Any]] = {}
        self.kills: Counter[str] = Counter()
        """How many mutants each test has noticed; one that noticed some will notice more."""
        self.running: dict[int, Trial] = {}
        self.passes: dict[str, bool] = {}
        """Whether a test that noticed something passes alone as the program is."""
        self.watch: Watch | None = None
        self.pipe: int | None = None
        self.folders = 0

    def pytest_configure(self) -> None:
        """The same examples for every mutant, and none that another has found."""
        import hypothesis  # not before pytest, which rewrites its assertions

        hypothesis.settings.register_profile("mutants", database=None, derandomize=True)
        hypothesis.settings.load_profile("mutants")

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """In place of running the tests once."""
        self.session = session
        self.look(session.items)
        self.import_what_tests_import()
        items = {item.nodeid: item for item in session.items}
        gc.freeze()  # so that a fork shares what was loaded
        everything = [(area, mutant) for area, each in self.todo.items() for mutant in each]
        print(f"{len(everything)} mutants", file=sys.stderr, flush=True)
        for number, (area, mutant) in enumerate(everything):
            if self.remember(mutant, area, items):
                continue
            while len(self.running) >= self.jobs:
                self.finish_one()
            self.start(mutant, area, *self.in_order(mutant, area, items))
            if number % 50 == 49:
                print(f"{number + 1} of {len(everything)} tried", file=sys.stderr, flush=True)
        while self.running:
            self.finish_one()
        return True

    def remember(self, mutant: Mutant, area: str, items: dict[str, pytest.Item]) -> bool:
        """Take the verdict of an earlier run on the same code if the test that noticed is there.

        What survived is tried again: tests may have been written since.
        """
        by = self.executed.verdict(mutant)
        if by not in items:
            return False
        is_own = self.own.includes(mutant, area, by)
        if not is_own and self.in_order(mutant, area, items)[0]:
            return False
        self.kills[by] += 1
        self.verdicts[mutant] = {"verdict": "noticed", "by": by, "is_own": is_own, "seconds": 0.0}
        if not is_own:
            print(f"only by others  {mutant}  {by}", flush=True)
        return True

    def look(self, items: list[pytest.Item]) -> None:
        """Run the tests about which nothing is known yet, each file in a process of its own."""
        by_file: dict[Path, list[pytest.Item]] = defaultdict(list)
        for item in items:
            by_file[item.path].append(item)
        unknown = [path for path in by_file if not self.executed.read(path)]
        # The longest first, so that no process is left alone with it at the end.
        unknown.sort(key=lambda path: len(by_file[path]), reverse=True)
        running: dict[int, Path] = {}
        for path in [*unknown, *[None] * self.jobs]:
            while running and (path is None or len(running) >= self.jobs):
                watched = running.pop(os.wait()[0])
                failed = self.executed.read_failures(watched)
                if failed is None:
                    failed = [f"{watched.relative_to(ROOT)}, as its process died"]
                for each in failed:
                    print(f"fails as it is, so left out: {each}", file=sys.stderr, flush=True)
            if path is None:
                continue
            print(f"watching {path.relative_to(ROOT)}", file=sys.stderr, flush=True)
            folder = self.new_folder()
            if process := os.fork():
                running[process] = path
                continue
            self.isolate(folder)
            before = set(sys.modules)
            self.watch = Watch([path for area in AREAS.values() for path in files_of(area)])
            self.watch.run(by_file[path])
            imported = [name for name in sys.modules if name not in before]
            self.executed.write(path, self.watch.found(by_file[path]), self.watch.failed, imported)
            os._exit(0)

    def import_what_tests_import(self) -> None:
        """Import once, before forking, what every process would import again for its tests."""
        for name in self.executed.modules:
            if name.partition(".")[0] in ALSO_IMPORTED:
                try:
                    importlib.import_module(name)
                except Exception:  # noqa: S112  a module of ``six.moves`` and its like
                    continue

    def new_folder(self) -> Path:
        """A folder that one process alone writes to."""
        self.folders += 1
        folder = self.scratch / str(self.folders)
        folder.mkdir(parents=True)
        return folder

    def isolate(self, folder: Path) -> None:
        """Let this forked process share no file with the others, and print nothing.

        Tests keep runs in pytest's base folder, which every process would else empty before its
        first test, and in which the tests of one mutant would read the run of another.
        """
        factory = self.session.config._tmp_path_factory  # type: ignore[attr-defined]
        factory._basetemp = folder / "pytest"
        factory._basetemp.mkdir()
        tempfile.tempdir = str(folder)
        os.environ["TMPDIR"] = str(folder)
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Any:
        """What a shared fixture executes counts for all tests that have it."""
        if self.watch is None or fixturedef.scope == "function":
            return (yield)
        self.watch.enter(context_of(fixturedef))
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
        able = {test for test in self.executed.tests_of(mutant) if test in items}
        if area == BY_HAND and not mutant.test.startswith("ER-"):
            able |= {test for test in items if self.own.includes(mutant, area, test)}
        ordered = [test for test in able if self.passes.get(test, True)]
        seconds = {test: self.seconds(test) for test in ordered}
        ordered.sort(key=lambda test: (seconds[test] / (1 + self.kills[test]) ** 2, test))
        chosen: tuple[list[pytest.Item], list[pytest.Item]] = [], []
        has_reason = (mutant.path.stem, mutant.before, mutant.after) in self.reasons
        for which, is_own in enumerate((True, False)):
            left = SECONDS_IF_EQUIVALENT if has_reason else SECONDS_OF_TESTS
            for test in ordered:
                if self.own.includes(mutant, area, test) == is_own:
                    left -= seconds[test]
                    if left < 0 and chosen[which]:
                        break
                    chosen[which].append(items[test])
        return chosen

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """The first failure is enough; a test that fails as the program is gets left out."""
        if not report.failed:
            return
        if self.watch is not None:
            self.watch.failed.add(report.nodeid)
        elif self.pipe is not None:
            os.write(self.pipe, report.nodeid.encode())
            os._exit(KILLED)

    def start(
        self, mutant: Mutant | None, area: str, own: list[pytest.Item], others: list[pytest.Item]
    ) -> int:
        """Fork, break, and test; without a mutant, test the program as it is."""
        reader, writer = os.pipe()
        folder, items = self.new_folder(), [*own, *others]
        process = os.fork()
        if process:
            os.close(writer)
            names = {item.nodeid for item in own}
            self.running[process] = Trial(mutant, reader, folder, items, names, area)
            return process
        os.close(reader)
        self.pipe = writer
        limit = round(5 * SECONDS_OF_TESTS)
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))
        signal.signal(signal.SIGXCPU, signal.SIG_DFL)
        self.isolate(folder)
        try:
            is_placed = mutant is None or put_in_place(mutant)
        except BaseException:
            is_placed = False
        if not is_placed:
            os._exit(UNABLE)
        try:
            for item, following in zip(items, [*items[1:], None], strict=bool(items)):
                item.ihook.pytest_runtest_protocol(item=item, nextitem=following)
        except BaseException:
            os._exit(KILLED)
        os._exit(SURVIVED)

    def wait(self, process: int = -1) -> tuple[Trial, str, str, float]:
        """Wait for a process to end: its trial, the verdict, the test that failed, CPU seconds."""
        process, status, used = os.wait4(process, 0)
        trial = self.running.pop(process)
        failed = os.read(trial.pipe, 10_000).decode()
        os.close(trial.pipe)
        shutil.rmtree(trial.folder, ignore_errors=True)
        code = os.waitstatus_to_exitcode(status)
        verdict = {KILLED: "noticed", SURVIVED: "survived", UNABLE: "unable"}.get(code, "noticed")
        return trial, verdict, failed, used.ru_utime + used.ru_stime

    def passes_unbroken(self, item: pytest.Item) -> bool:
        """Whether a test passes alone, as the program is, in a process like those of mutants."""
        if item.nodeid not in self.passes:
            _, verdict, _, _ = self.wait(self.start(None, "", [item], []))
            self.passes[item.nodeid] = verdict == "survived"
            if verdict != "survived":
                print(f"fails unbroken, so left out: {item.nodeid}", file=sys.stderr, flush=True)
        return self.passes[item.nodeid]

    def finish_one(self) -> None:
        """Wait for a process to end, and take note of its verdict."""
        trial, verdict, by, seconds = self.wait()
        mutant = trial.mutant
        assert mutant is not None
        if by:
            [noticed] = [item for item in trial.items if item.nodeid == by]
            if not self.passes_unbroken(noticed):
                items = {item.nodeid: item for item in trial.items}
                self.start(mutant, trial.area, *self.in_order(mutant, trial.area, items))
                return
            self.executed.keep_verdict(mutant, by)
        is_own = by in trial.own or (verdict == "noticed" and not by)
        self.verdicts[mutant] = {
            "verdict": verdict,
            "by": by,
            "is_own": is_own,
            "seconds": round(seconds, 1),
        }
        self.kills[by] += 1
        line = f"{seconds:4.0f} s {len(trial.items):4} tests  {mutant}"
        if verdict != "noticed":
            print(f"{verdict} {line}", flush=True)
        elif not is_own:
            print(f"only by others  {line}  {by}", flush=True)


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
    # Shapes in signatures are not checked at every call, which takes longer than the tests.
    os.environ["JAXTYPING_DISABLE"] = "1"

    known = {} if options.fresh else read_result(options.out)
    results: list[FileResult] = []
    reasons = equivalents()
    todo: dict[str, list[Mutant]] = {}
    for name, path, chosen, count in samples(options.area or [BY_HAND, *AREAS], options.all):
        if options.only and path.stem not in options.only:
            continue
        content = content_hash(
            path, "".join(each.after + each.test for each in chosen if each.test)
        )
        result = FileResult(name, path.as_posix(), content, count, chosen)
        results.append(result)
        if options.only or not result.take(known, reasons):
            todo.setdefault(name, []).extend(chosen)
    experiment = Experiment(todo, Executed(options.cache), options.jobs, scratch)
    if options.watch:
        experiment.todo = {}
    if any(todo.values()):
        tests = [f"tests/{each}" for each in options.tests or TESTS]
        arguments = [*PYTEST_OPTIONS, f"--basetemp={scratch / 'pytest'}", *tests]
        code = pytest.main(arguments, plugins=[experiment])
        shutil.rmtree(scratch, ignore_errors=True)
        if code in (pytest.ExitCode.INTERRUPTED, pytest.ExitCode.INTERNAL_ERROR, 2, 3, 4):
            return int(code)
    if options.watch:
        return 0
    for result in results:
        result.fill(experiment.verdicts)
    refuted = refuted_reasons(results, experiment.reasons)
    print_table(results, experiment.reasons)
    if not options.only and not options.all:
        budget = {"seconds": SECONDS_OF_TESTS, "seconds_if_equivalent": SECONDS_IF_EQUIVALENT}
        write_result(options.out, results, experiment.reasons, known, budget)
    for each in refuted:
        print(f"{EQUIVALENT}: noticed after all: {each}", file=sys.stderr)
    return 1 if refuted else 0


if __name__ == "__main__":
    sys.exit(main())
