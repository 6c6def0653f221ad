"""One server for all tests of the page; a fresh context of the one Chromium for each."""

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from page_server import RECURRENT, serving, write_model
from playwright.sync_api import Browser, ConsoleMessage, Page, Request

import pellucid
from pellucid.decoding.translator import Translator

_NOTE_VIOLATIONS = """
window.violations = [];
document.addEventListener("securitypolicyviolation", (event) =>
  window.violations.push(`${event.violatedDirective} ${event.blockedURI}`));
"""
_LOAD_FAILED = "Failed to load resource"


@dataclasses.dataclass
class Watched:
    """A page, and whatever it did that no page of ours may do."""

    page: Page
    address: str
    errors: list[str] = dataclasses.field(default_factory=list)
    foreign: list[str] = dataclasses.field(default_factory=list)
    asked: list[Request] = dataclasses.field(default_factory=list)
    """Requests for a translation."""

    def on_console(self, message: ConsoleMessage) -> None:
        """Chromium itself notes each failed request; anything else is the page's problem."""
        if message.type in ("error", "warning") and not message.text.startswith(_LOAD_FAILED):
            self.errors.append(message.text)

    def on_request(self, request: Request) -> None:
        if not request.url.startswith(f"{self.address}/"):
            self.foreign.append(request.url)
        if request.url.endswith("/v1/translate"):
            self.asked.append(request)

    def check(self) -> None:
        """Raises AssertionError if the page broke a rule."""
        self.page.evaluate("new Promise(requestAnimationFrame)")  # what styles ask for is asked now
        assert self.errors == []
        assert self.foreign == []
        assert self.page.evaluate("window.violations") == []


@pytest.fixture(scope="session")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("page")
    recurrent = write_model(folder / "recurrent", 0, RECURRENT)
    both = {name: write_model(folder / name, seed) for seed, name in enumerate(("one", "two"))}
    return {**both, "recurrent": recurrent}


@pytest.fixture(scope="session")
def translators(bundles: dict[str, Path]) -> dict[str, Translator]:
    """The same models in this process: what the page must show."""
    return {name: pellucid.load(path) for name, path in bundles.items()}


@pytest.fixture(scope="session")
def server(bundles: dict[str, Path]) -> Iterator[str]:
    terms = bundles["one"].parent / "terms.tsv"
    terms.write_text("source\ttarget\nchat\ttrain|table\n", encoding="utf-8")
    models = [f"{name}={path}" for name, path in bundles.items()]
    with serving(*models, "--glossary", f"cats={terms}") as address:
        yield address


@pytest.fixture
def visit(browser: Browser, server: str) -> Iterator[Callable[..., Watched]]:
    """Opens the page as ``visit(prepare=..., **context options)``; checks it at the end."""
    opened: list[Watched] = []

    def open_page(
        prepare: Callable[[Page], None] = lambda page: None,
        address: str = server,
        **options: Any,
    ) -> Watched:
        context = browser.new_context(**options)
        context.set_default_timeout(30_000)
        context.add_init_script(_NOTE_VIOLATIONS)
        watched = Watched(context.new_page(), address)
        watched.page.on("console", watched.on_console)
        watched.page.on("pageerror", lambda error: watched.errors.append(str(error)))
        watched.page.on("request", watched.on_request)
        prepare(watched.page)
        watched.page.goto(address)
        opened.append(watched)
        return watched

    yield open_page
    for watched in opened:
        if not watched.page.is_closed():
            watched.check()
        watched.page.context.close()


@pytest.fixture
def watched(visit: Callable[..., Watched]) -> Watched:
    return visit()


@pytest.fixture
def page(watched: Watched) -> Page:
    return watched.page
