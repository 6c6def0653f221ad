"""The engine in one page of Chromium, for all tests."""

import functools

import pytest
from opened_models import Opened, open_in
from playwright.sync_api import Browser, Page

from pellucid.backends.web.scripts import join_modules


@pytest.fixture(scope="session")
def engine_page(browser: Browser) -> Page:
    """A page that holds the engine and nothing else."""
    page = browser.new_page()
    script = join_modules("engine/model.js", "engine")
    page.add_script_tag(content=f"{script}globalThis.engine = engine;")
    return page  # closed with the browser


@pytest.fixture
def opened(engine_page: Page) -> Opened:
    """Opens a bundle in the page, as the global ``model``."""
    return functools.partial(open_in, engine_page)
