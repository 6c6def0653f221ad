"""Shapes written in signatures are executed: the hook is installed before pellucid is imported.

One Chromium serves all tests that need a browser: a process can hold no second one.
"""

import os
import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

os.environ.setdefault("OMP_NUM_THREADS", "1")  # tests run side by side; two cores are shared

from jaxtyping import install_import_hook

install_import_hook(["pellucid.equations", "pellucid.model"], "beartype.beartype")


@pytest.fixture(scope="session")
def browser() -> "Iterator[Browser]":
    path = shutil.which("chromium") or shutil.which("google-chrome")
    if path is None:
        pytest.skip("no Chromium on this machine: apt-get install chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield chromium
        chromium.close()
