"""Break a program in many small ways and see whether its tests notice.

    python scripts/mutate.py pellucid/equations --tests tests/equations
    python scripts/mutate.py pellucid/equations --tests tests/equations tests/laws \
        --out benchmarks/results

What is broken, and how, stands in mutants.py. The tests run once as they are, which shows which
test runs which function. Each mutant then lives in a forked process in which the functions of the
module get the mutated code, and the tests that run the broken function run until the first
failure: the one that noticed it the last time, then those named after the module, then the others,
quick ones first. The files on disk are never touched. A mutant that takes longer than a minute of
processor time is lost in a loop, and so noticed. Tests that fail without a mutant are refused.

Verdicts are kept in --cache and hold as long as the broken file, those it imports and the test that
noticed are what they were; of survivors, all tests.

Mutants that nobody can notice stand in equivalent_mutants.toml with the reason. They count as
survivors, and the share of those that can be noticed is given beside the share of all. One that is
noticed after all, or does not exist, is refused.
"""

import argparse
import importlib
import os
import resource
import sys
import tempfile
import time
import types
from collections import defaultdict
from inspect import unwrap
from pathlib import Path
from types import CodeType, FrameType

import pytest
from mutants import Mutant, mutants
from mutation_results import Verdicts, equivalents, print_table, write_result

SECONDS_PER_MUTANT = 60
PYTEST_OPTIONS = ["-q", "-n0", "--tb=no", "-p", "no:cacheprovider", "-p", "no:cov", "-s"]
KILLED, SURVIVED, UNABLE = 1, 0, 3
MUTANT = "<mutant>"
"""What code of a mutant says that it was written in; ``dataclass`` generates other methods."""


def put_in_place(mutant: Mutant) -> None:
    """Give the functions of the loaded module the mutant's code, for all who imported them."""
    module = importlib.import_module(".".join(mutant.path.with_suffix("").parts))
    changed = {"__name__": module.__name__}
    try:
        exec(compile(mutant.source, MUTANT, "exec"), changed)  # noqa: S102  our own
    except Exception:
        os._exit(KILLED)  # it cannot even be imported
    for name, new in changed.items():
        if getattr(new, "__module__", module.__name__) != module.__name__:
            continue
        if isinstance(new, type):
            for method in set(vars(new)) & set(vars(getattr(module, name))):
                replace_code(vars(getattr(module, name))[method], vars(new)[method])
        elif isinstance(new, int | float):
            setattr(module, name, new)
        else:
            replace_code(getattr(module, name, None), new)


def replace_code(old: object, new: object) -> None:
    """Make one function do what a mutant's does, beneath the checks of shapes."""
    new = getattr(new, "__func__", new)
    if isinstance(new, types.FunctionType) and new.__code__.co_filename == MUTANT:
        function = unwrap(getattr(old, "__func__", old))  # type: ignore[arg-type]
        function.__code__ = new.__code__
        function.__defaults__, function.__kwdefaults__ = new.__defaults__, new.__kwdefaults__


class Experiment:
    """A pytest plugin that runs the collected tests once for every mutant."""

    def __init__(self, todo: list[Mutant], verdicts: Verdicts, jobs: int) -> None:
        self.todo, self.verdicts, self.jobs = todo, verdicts, jobs
        self.running: dict[int, tuple[Mutant, int]] = {}
        self.covered: dict[Path, dict[int, set[str]]] = {m.path: defaultdict(set) for m in todo}
        self.seconds: dict[str, float] = {}
        self.is_broken = False

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """In place of running the tests once."""
        self.verdicts.tests = {str(item.path): item.path for item in session.items}
        for item in session.items:
            self.watch(item)
        todo = [mutant for mutant in self.todo if self.verdicts.known(mutant) is None]
        print(f"{len(todo)} of {len(self.todo)} mutants to be tried", file=sys.stderr, flush=True)
        for number, mutant in enumerate(todo):
            while len(self.running) >= self.jobs:
                self.finish_one()
            self.start(mutant, self.in_order(mutant, session.items))
            if number % 50 == 49:
                print(f"{number + 1} of {len(todo)} tried", file=sys.stderr, flush=True)
        while self.running:
            self.finish_one()
        return True

    def watch(self, item: pytest.Item) -> None:
        """Run a test as it is, and take note of its time and of the functions that it runs."""
        files = {str(path.resolve()): lines for path, lines in self.covered.items()}

        def note(frame: FrameType, event: str, _: object) -> None:
            code: CodeType = frame.f_code
            if event == "call" and code.co_filename in files:
                files[code.co_filename][code.co_firstlineno].add(item.nodeid)

        began = time.process_time()
        sys.setprofile(note)
        item.ihook.pytest_runtest_protocol(item=item, nextitem=None)
        sys.setprofile(None)
        self.seconds[item.nodeid] = time.process_time() - began

    def in_order(self, mutant: Mutant, items: list[pytest.Item]) -> list[pytest.Item]:
        """The tests that run the broken function, the likeliest to notice first."""
        first, last = mutant.within
        lines = self.covered[mutant.path]
        able = set().union(*(lines[line] for line in lines if first <= line <= last))
        last_time = self.verdicts.noticed_by(mutant)

        def place(item: pytest.Item) -> tuple[bool, bool, float]:
            is_named_so = mutant.path.stem in item.path.stem
            return item.nodeid != last_time, not is_named_so, self.seconds[item.nodeid]

        return sorted((item for item in items if item.nodeid in able), key=place)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """The first failure is enough; before anything is broken there must be none."""
        if report.failed and not self.is_broken:
            print(report.longreprtext, file=sys.stderr)
            pytest.exit(f"must pass before anything is broken: {report.nodeid}", returncode=2)
        if report.failed:
            os.write(self.pipe, report.nodeid.encode())
            os._exit(KILLED)

    def start(self, mutant: Mutant, items: list[pytest.Item]) -> None:
        """Fork, break, and test."""
        reader, self.pipe = os.pipe()
        process = os.fork()
        if process:
            os.close(self.pipe)
            self.running[process] = mutant, reader
            return
        self.is_broken = True
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS_PER_MUTANT, SECONDS_PER_MUTANT))
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        try:
            put_in_place(mutant)
        except BaseException:
            os._exit(UNABLE)
        try:
            for item, following in zip(items, [*items[1:], None], strict=bool(items)):
                item.ihook.pytest_runtest_protocol(item=item, nextitem=following)
        except BaseException:
            os._exit(KILLED)
        os._exit(SURVIVED)

    def finish_one(self) -> None:
        """Wait for a process to end, and take note of its verdict."""
        process, status = os.wait()
        mutant, reader = self.running.pop(process)
        noticed_by = os.read(reader, 10_000).decode()
        os.close(reader)
        code = os.waitstatus_to_exitcode(status)
        if code == UNABLE:
            pytest.exit(f"cannot be put in place: {mutant}", returncode=2)
        self.verdicts.record(mutant, killed=code != SURVIVED, by=noticed_by)
        if code == SURVIVED:
            print(f"survived  {mutant}", flush=True)


def main() -> int:
    """Print a table; the exit code is 1 if fewer than ``--at-least`` percent were killed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("target", type=Path, nargs="+", help="files or folders to be broken")
    parser.add_argument("--tests", nargs="+", required=True, help="what has to notice")
    parser.add_argument("--skip", nargs="*", default=["__init__.py"])
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--at-least", type=float, default=95.0, help="percent to be killed")
    parser.add_argument("--out", type=Path, help="folder for mutation.json and mutation.md")
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "mutants")
    options = parser.parse_args()
    paths = [f for t in options.target for f in (sorted(t.glob("*.py")) if t.is_dir() else [t])]
    paths = [path for path in paths if path.name not in options.skip]
    todo = {path: list(mutants(path)) for path in paths}
    paths.sort(key=lambda path: -len(todo[path]))
    everything = [mutant for path in paths for mutant in todo[path]]
    if not everything:
        sys.exit("nothing to break here")
    unnoticeable = equivalents(everything)
    verdicts = Verdicts(options.cache)
    experiment = Experiment(everything, verdicts, options.jobs)
    code = pytest.main([*PYTEST_OPTIONS, *options.tests], plugins=[experiment])
    if code != pytest.ExitCode.OK:
        return int(code)
    alive = [mutant for mutant in everything if verdicts.known(mutant) == "survived"]
    share = print_table(everything, alive, unnoticeable)
    if options.out is not None:
        write_result(options.out, everything, alive, unnoticeable)
    return int(share < options.at_least)


if __name__ == "__main__":
    sys.exit(main())
