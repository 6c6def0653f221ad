"""Shapes written in signatures are checked: the hook is installed before pellucid is imported.

One Chromium serves all tests that need a browser: a process can hold no second one. Hypothesis
draws the same examples in every run; ``make explore`` draws others. Files of tests lie in memory
where there is room: a run syncs each checkpoint, and a disk takes milliseconds for each file.
"""

import asyncio
import gc
import logging
import os
import shutil
import sys
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

os.environ.setdefault("OMP_NUM_THREADS", "1")  # tests run side by side; two cores are shared

import shapes
import side_by_side

MEMORY = Path("/dev/shm")
ROOM = 4 << 30
"""What must be free in memory; all tests together leave some 300 MB."""
if MEMORY.is_dir() and "TMPDIR" not in os.environ:
    may_execute = not os.statvfs(MEMORY).f_flag & os.ST_NOEXEC
    if may_execute and shutil.disk_usage(MEMORY).free > ROOM:
        os.environ["TMPDIR"] = tempfile.tempdir = str(MEMORY)

# What programs cache, such as converted models, is kept from one session of tests to the next.
os.environ["XDG_CACHE_HOME"] = str(Path(tempfile.gettempdir(), f"pellucid-tests-{os.getuid()}"))

# How long an example takes says nothing on a busy machine.
_PATIENT = {"deadline": None, "suppress_health_check": [hypothesis.HealthCheck.too_slow]}
hypothesis.settings.register_profile("steady", derandomize=True, **_PATIENT)
hypothesis.settings.register_profile("explore", derandomize=False, print_blob=True, **_PATIENT)
hypothesis.settings.load_profile("steady")

shapes.install(["pellucid.decoding", "pellucid.equations", "pellucid.model"])

WHOLE_RUNS = {
    "cli",
    "distributed",
    "faults",
    "learning",
    "readme",
    "serve",
    "serve_page",
    "training",
}
"""Folders of tests that train or serve whole models, in which checking would take most of the time.
The other folders run every function that has a shape in its signature."""

OWN_SHAPES = {"architecture", "decoding", "equations", "laws", "model"}
"""Folders whose tests are about functions with shapes: each test begins the count of checked calls.
Elsewhere a file does: a tenth of the time of its tests would be checks of the same."""

FEW_COLLECTIONS = 20_000
"""After so many new objects a collection begins; Python's own 700 took a thirteenth of all time."""

FEW_VARIANTS = {"paper", "alibi, pre-norm", "additive, not fed"}
FEW_SETTINGS = 3


def pytest_addoption(parser: pytest.Parser) -> None:
    side_by_side.add_option(parser)
    parser.addoption(
        "--few-variants",
        action="store_true",
        help=f"hold the laws of models to {sorted(FEW_VARIANTS)} and {FEW_SETTINGS} configs alone",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--few-variants"):
        return
    left_out = [item for item in items if not _is_of_few(item)]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if _is_of_few(item)]


def _is_of_few(item: pytest.Item) -> bool:
    call = getattr(item, "callspec", None)
    if call is None:
        return True
    variant = call.params.get("variant", "paper")
    numbers = [int(part) for part in call.id.split("-") if part.isdigit()]
    is_later = "settings" in call.params and max(numbers, default=0) >= FEW_SETTINGS
    return not is_later and (not isinstance(variant, str) or variant in FEW_VARIANTS)


def pytest_configure(config: pytest.Config) -> None:
    """Collect no garbage while the tests are imported, which took a quarter of that time."""
    gc.disable()
    side_by_side.register(config)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Take what all tests together have imported out of every later collection of garbage.

    Forks share also what PyTorch imports late: with the first optimizer, and to compare tensors.
    """
    if session.config.getoption("--workers") and "torch" in sys.modules:
        import torch._dynamo
        import torch.distributed.tensor  # noqa: F401
    _let_loggers_of_torch_propagate()
    gc.enable()
    gc.collect()
    gc.freeze()
    gc.set_threshold(FEW_COLLECTIONS)


def _let_loggers_of_torch_propagate() -> None:
    """pytest hears of them at the root; else it visits all forty, six times in each test."""
    for name, logger in logging.root.manager.loggerDict.items():
        if name.split(".")[0] == "torch" and isinstance(logger, logging.Logger):
            logger.propagate = True


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    folder = item.path.relative_to(Path(__file__).parent).parts[0]
    shapes.check(
        is_on=folder not in WHOLE_RUNS and "resumed_equals" not in item.path.name,
        scope=item.nodeid if folder in OWN_SHAPES else str(item.path),
    )


_browsers_loop: asyncio.AbstractEventLoop | None = None
"""The browser's event loop, while it is hidden."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Hide the browser's event loop from tests without a browser, which may start their own.

    Playwright's loop stays the running loop of the thread between two calls of it.
    """
    global _browsers_loop
    if _has_browser(item):
        return (yield)
    _browsers_loop = asyncio._get_running_loop()
    asyncio._set_running_loop(None)
    try:
        return (yield)
    finally:
        asyncio._set_running_loop(_browsers_loop)
        _browsers_loop = None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(
    item: pytest.Item, nextitem: pytest.Item | None
) -> Generator[None, object, object]:
    """Give the loop back where the last test of a file closes the page that other tests had."""
    is_last = nextitem is None or nextitem.path != item.path
    if _browsers_loop is None or not is_last:
        return (yield)
    of_file = (each for each in item.session.items if each.path == item.path)
    if any(map(_has_browser, of_file)):
        asyncio._set_running_loop(_browsers_loop)
    return (yield)


def _has_browser(item: pytest.Item) -> bool:
    return "browser" in getattr(item, "fixturenames", ())


@pytest.fixture(scope="session")
def tiny_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trained run, to be read; see ``tiny_runs``."""
    import tiny_runs  # training is imported where a test needs it

    return tiny_runs.tiny_run(tmp_path_factory.getbasetemp())


@pytest.fixture(scope="session")
def browser() -> "Iterator[Browser]":
    # the first draws no windows, and its pages take two thirds of the time
    programs = "chromium-headless-shell", "chromium", "google-chrome"
    path = next(filter(None, map(shutil.which, programs)), None)
    if path is None:
        pytest.skip("no Chromium on this machine: apt-get install chromium-headless-shell")
    from playwright.sync_api import expect, sync_playwright

    # on a busy machine a browser may wait for seconds until it gets a processor
    expect.set_options(timeout=30_000)
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        running = asyncio._get_running_loop()
        yield chromium
        asyncio._set_running_loop(running)  # the last test of the session may have hidden it
        chromium.close()
