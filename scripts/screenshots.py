"""Take pictures of a report, the page or an exported file of your model in headless Chromium.

    python scripts/screenshots.py report runs/demo "je vois un chat noir dans le jardin" pictures
    python scripts/screenshots.py page runs/demo "je vois un chat noir dans le jardin" pictures
    python scripts/screenshots.py web runs/demo "je ne vois pas les maisons" pictures

Pictures are not kept in the repository: they are made when somebody wants to look.
"""

import argparse
import contextlib
import dataclasses
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

from playwright.sync_api import Browser, Page, ViewportSize, expect, sync_playwright

from pellucid.backends.web.export import export_web
from pellucid.bundle import load_any_bundle
from pellucid.inspection.film import film
from pellucid.inspection.report.page import write_report


@dataclasses.dataclass(frozen=True)
class Shot:
    """One picture of a report."""

    name: str
    at: str
    """The page of the report, and the step on it."""
    click: str = ""
    """The CSS selector of an element to open."""
    hover: str = ""
    """The CSS selector of an element to point at."""
    dark: bool = False
    width: int = 1280
    """In CSS pixels."""


REPORT_SHOTS = (
    Shot("model", "overview"),
    Shot("model-dark", "overview", dark=True, width=1600),
    Shot("model-phone", "overview", width=375),
    Shot("model-word", "overview", click=".said-word:nth-child(4)"),
    Shot("model-head", "overview", click="[data-part='decoder.layers.0.cross_attention.heads.1']"),
    Shot(
        "model-head-dark",
        "overview",
        click="[data-part='encoder.layers.0.self_attention.heads.0']",
        dark=True,
    ),
    Shot(
        "model-head-phone",
        "overview",
        click="[data-part='decoder.layers.0.cross_attention.heads.1']",
        width=375,
    ),
    Shot("model-feed-forward", "overview", click="[data-part='encoder.layers.0.feed_forward']"),
    Shot("model-words", "overview", click=".column.output .name"),
    Shot("tokens", "encoder.embedding"),
    Shot("scores", "encoder.layers.0.self_attention/scores", hover="#step-scores .result .cells"),
    Shot(
        "mask",
        "decoder.layers.0.self_attention/masked_scores",
        hover="#step-masked_scores .result .cells",
    ),
    Shot(
        "weights-dark",
        "decoder.layers.0.cross_attention/weights",
        hover="#step-weights .result .cells",
        dark=True,
    ),
    Shot(
        "scores-phone",
        "decoder.layers.0.cross_attention/scores",
        hover="#step-scores .result .cells",
        width=375,
    ),
    Shot("feed-forward", "encoder.layers.0.feed_forward"),
    Shot("words", "output/words"),
    Shot("heads", "heads"),
    Shot("heads-dark", "heads", dark=True),
    Shot("heads-phone", "heads", width=375),
    Shot("lens", "lens"),
    Shot("saliency", "saliency"),
    Shot("search", "search"),
    Shot("search-dark", "search", dark=True),
)


_OPENING = 600
"""Milliseconds until an opened part has its width."""

Scheme = Literal["light", "dark"]
SCHEMES: tuple[Scheme, ...] = ("light", "dark")
WIDE: ViewportSize = {"width": 1280, "height": 800}
PHONE: ViewportSize = {"width": 375, "height": 780}


def main() -> int:
    """Write the report or start the server, then take every picture of it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["report", "page", "web"])
    parser.add_argument("bundle")
    parser.add_argument("sentence")
    parser.add_argument("folder", type=Path)
    arguments = parser.parse_args()
    path = shutil.which("chromium") or shutil.which("google-chrome")
    if path is None:
        sys.exit("pictures need Chromium on the path: apt-get install chromium")
    arguments.folder.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        if arguments.what == "report":
            take_report(browser, arguments.bundle, arguments.sentence, arguments.folder)
        elif arguments.what == "web":
            take_web(browser, arguments.bundle, arguments.sentence, arguments.folder)
        else:
            take_page(browser, arguments.bundle, arguments.sentence, arguments.folder)
        browser.close()
    return 0


def take_report(browser: Browser, bundle: str, sentence: str, folder: Path) -> None:
    """Write a report, then every picture of it."""
    with tempfile.TemporaryDirectory() as name:
        report = Path(name) / "report.html"
        write_report(bundle, report, sentence)
        for shot in REPORT_SHOTS:
            take(browser, report, shot, folder / f"report-{shot.name}.png")
            sys.stdout.write(f"{shot.name}\n")


def take(browser: Browser, report: Path, shot: Shot, path: Path) -> None:
    """Open the report where the shot wants it and save what is seen."""
    context = browser.new_context(
        viewport={"width": shot.width, "height": 900},
        color_scheme="dark" if shot.dark else "light",
        device_scale_factor=2,
    )
    page = context.new_page()
    page.goto(f"{report.as_uri()}#{shot.at}")
    if shot.click:
        page.locator(shot.click).click()
        page.wait_for_timeout(_OPENING)
    if shot.hover:
        page.locator(shot.hover).scroll_into_view_if_needed()
        page.locator(shot.hover).hover(position={"x": 150, "y": 60})
    page.screenshot(path=path)
    context.close()


WIDTHS = (375, 768, 1280, 1600)
"""The widths in CSS pixels of the screens for the live model."""


def _switch_off(page: Page) -> None:
    page.get_by_role("button", name="Switch parts off").click()
    page.locator("#explorer [data-part='decoder.layers.0.cross_attention']").click()
    page.locator(".before-after").wait_for()


def _why(page: Page) -> None:
    page.locator(".said-word").nth(1).click()
    page.locator(".why-parts").wait_for()


def _head(page: Page) -> None:
    name = "decoder.layers.0.cross_attention.heads.1"
    page.locator(f"#explorer [data-part='{name}']").click()
    page.locator(".card").wait_for()


def _tour(page: Page) -> None:
    page.get_by_role("button", name="Take the tour").click()
    page.locator(".tour[data-is-listening]").wait_for()


def _next_step(page: Page) -> None:
    page.locator(".tour-next").click()
    page.locator(".tour[data-is-listening]").wait_for()


def _examples(page: Page) -> None:
    page.get_by_role("button", name="Worked examples").click()
    page.locator(".scenes").wait_for()


def _film(page: Page) -> None:
    page.locator(".film input[type=range]").fill("0")
    page.locator(".film-leave").wait_for()


WEB_ACTS: dict[str, tuple[Callable[[Page], None], ...]] = {
    "whole": (),
    "why": (_why,),
    "head": (_head,),
    "without": (_switch_off,),
    "tour": (_tour,),
    "tour-later": (_tour, *[_next_step] * 5),
    "examples": (_examples,),
    "film": (_film,),
}
"""The actions before each picture of the live model."""


def take_web(browser: Browser, bundle: str, sentence: str, folder: Path) -> None:
    """Export the model as a file, and take pictures of all that it shows, on every screen."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "model.html"
        frames = film(bundle, sentence) if Path(bundle, "journal.jsonl").exists() else None
        run = Path(bundle).name
        export_web(load_any_bundle(bundle), path, name=run, example=sentence, film=frames)
        for width in WIDTHS:
            for scheme in SCHEMES:
                for shot, acts in WEB_ACTS.items():
                    if frames is None and shot == "film":
                        continue
                    size: ViewportSize = {"width": width, "height": 900}
                    page = browser.new_page(
                        viewport=size, color_scheme=scheme, reduced_motion="reduce"
                    )
                    page.goto(path.as_uri())
                    take_live(page, acts, folder, f"web-{shot}-{width}-{scheme}")
                    page.close()


def take_live(
    page: Page, acts: tuple[Callable[[Page], None], ...], folder: Path, name: str
) -> None:
    """The live model after some acts, and a word if anything is wider than the screen."""
    page.wait_for_selector("html[data-ready]")
    page.locator("#explorer").scroll_into_view_if_needed()
    page.locator(".said-word").first.wait_for()
    for act in acts:
        act(page)
    page.wait_for_timeout(_OPENING)
    if page.evaluate("document.documentElement.scrollWidth > window.innerWidth"):
        sys.stdout.write(f"{name} is wider than the screen\n")
    save(page, folder, name, full_page=True)


def take_page(browser: Browser, bundle: str, sentence: str, folder: Path) -> None:
    """Start a server, then take the page on wide screens, on a phone, and without a server."""
    with serving(bundle) as address:
        for scheme in SCHEMES:
            take_wide(browser, address, sentence, folder, scheme)
        take_phone(browser, address, sentence, folder)
        take_served(browser, address, sentence, folder)


def take_served(browser: Browser, address: str, text: str, folder: Path) -> None:
    """The section that opens the live model, and the tab that it opens."""
    for width in WIDTHS:
        for scheme in SCHEMES:
            size: ViewportSize = {"width": width, "height": 900}
            context = browser.new_context(
                viewport=size, color_scheme=scheme, reduced_motion="reduce"
            )
            page = context.new_page()
            translate(page, address, text)
            page.click("#tab-inside")
            section = page.get_by_role("region", name="The model at work")
            section.wait_for()
            save(page, folder, f"page-live-{width}-{scheme}", full_page=True)
            with context.expect_page() as opened:
                section.get_by_role("link", name="Open the model live").click()
            take_live(opened.value, (), folder, f"live-{width}-{scheme}")
            context.close()


@contextlib.contextmanager
def serving(bundle: str) -> Iterator[str]:
    """``pellucid serve`` on a free port of this machine; gives its address."""
    command = [sys.executable, "-m", "pellucid", "--quiet", "serve", bundle, "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603 - our own words
        try:
            assert process.stdout is not None
            address = process.stdout.readline().strip()
            if not address:
                raise SystemExit("the server did not start; its words stand above")
            yield address
        finally:
            process.send_signal(signal.SIGTERM)


def translate(page: Page, address: str, text: str) -> None:
    """Open the page and wait until the translation stands there."""
    page.goto(address)
    expect(page.locator("#counter")).not_to_be_empty()
    page.fill("#source", text)
    page.locator("#target .word").first.wait_for()
    expect(page.locator("#result")).to_have_attribute("aria-busy", "false")


def take_wide(browser: Browser, address: str, text: str, folder: Path, scheme: Scheme) -> None:
    """Alignment, alternatives and the look inside, side by side."""
    page = browser.new_page(viewport=WIDE, color_scheme=scheme, reduced_motion="reduce")
    translate(page, address, text)
    words = page.locator("#target .word")
    words.nth(max(words.count() - 2, 0)).hover()
    save(page, folder, f"page-{scheme}")
    words.nth(words.count() // 2).click()
    page.locator("[role=option]").first.wait_for()
    save(page, folder, f"page-alternatives-{scheme}")
    page.keyboard.press("Escape")
    page.click("#tab-inside")
    page.get_by_role("button", name="Open the walk").click()
    page.frame_locator(".walk iframe").locator("h2").first.wait_for()
    save(page, folder, f"page-inside-{scheme}", full_page=True)
    page.close()


def take_phone(browser: Browser, address: str, text: str, folder: Path) -> None:
    """The page on a phone, and what it says when the server is gone."""
    page = browser.new_page(viewport=PHONE, device_scale_factor=2, has_touch=True, is_mobile=True)
    translate(page, address, text)
    save(page, folder, "page-phone")
    page.locator("#tab-inside").tap()
    page.locator(".head-large .cells").wait_for()
    save(page, folder, "page-inside-phone", full_page=True)
    page.locator("#tab-translate").tap()
    page.route("**/v1/translate", lambda route: route.abort())
    page.fill("#source", text + " ")
    page.locator("#notice").wait_for()
    save(page, folder, "page-without-server")
    page.close()


def save(page: Page, folder: Path, name: str, *, full_page: bool = False) -> None:
    """Save what is seen, or all of the page, and say so."""
    page.screenshot(path=folder / f"{name}.png", full_page=full_page)
    sys.stdout.write(f"{name}\n")


if __name__ == "__main__":
    sys.exit(main())
