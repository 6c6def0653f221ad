"""Take the pictures that docs/inspection.md speaks of, in Chromium, into a folder of your own.

    python scripts/screenshots.py report runs/demo "je vois un chat noir dans le jardin" pictures

Pictures are not kept in the repository: they are made when somebody wants to look.
"""

import argparse
import dataclasses
import shutil
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from pellucid.inspection.report.write import write_report


@dataclasses.dataclass(frozen=True)
class Shot:
    """One picture of a report."""

    name: str
    at: str
    """The page of the report, and the step on it."""
    hover: str = ""
    """What is pointed at, as a CSS selector."""
    dark: bool = False
    width: int = 1280
    """In CSS pixels."""


REPORT_SHOTS = (
    Shot("overview", "overview"),
    Shot("overview-dark", "overview", dark=True),
    Shot("overview-phone", "overview", width=375),
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
    Shot("lens", "lens"),
    Shot("saliency", "saliency"),
    Shot("search", "search"),
    Shot("search-dark", "search", dark=True),
)


def main() -> int:
    """Write the report, then every picture of it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["report"])
    parser.add_argument("bundle")
    parser.add_argument("sentence")
    parser.add_argument("folder", type=Path)
    arguments = parser.parse_args()
    path = shutil.which("chromium") or shutil.which("google-chrome")
    if path is None:
        sys.exit("pictures need Chromium on the path: apt-get install chromium")
    arguments.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        report = Path(name) / "report.html"
        write_report(arguments.bundle, report, arguments.sentence)
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        for shot in REPORT_SHOTS:
            take(browser, report, shot, arguments.folder / f"report-{shot.name}.png")
            sys.stdout.write(f"{shot.name}\n")
        browser.close()
    return 0


def take(browser: Browser, report: Path, shot: Shot, path: Path) -> None:
    """Open the report where the shot wants it and save what is seen."""
    context = browser.new_context(
        viewport={"width": shot.width, "height": 900},
        color_scheme="dark" if shot.dark else "light",
        device_scale_factor=2,
    )
    page = context.new_page()
    page.goto(f"{report.as_uri()}#{shot.at}")
    if shot.hover:
        page.locator(shot.hover).scroll_into_view_if_needed()
        page.locator(shot.hover).hover(position={"x": 150, "y": 60})
    page.screenshot(path=path)
    context.close()


if __name__ == "__main__":
    sys.exit(main())
