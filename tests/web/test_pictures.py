"""The pictures of the towers: one canvas for each tower, every picture in its own box."""

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page
from taught import taught_bundle

from pellucid.backends.web.export import make_page

SENTENCE = "je ne vois pas les maisons rouges"
FEED_FORWARD = "encoder.layers.0.feed_forward"

COVERED = """
() => [...document.querySelectorAll(".tower")].map((tower) => {
  const canvas = tower.querySelector("canvas.drawn");
  const context = canvas.getContext("2d");
  const origin = canvas.getBoundingClientRect();
  const isDrawn = (x, y) => context.getImageData(x, y, 1, 1).data[3] > 0;
  const shares = [0.1, 0.3, 0.5, 0.7, 0.9];
  const frames = [...tower.querySelectorAll(".frame:not(.missing)")];
  const drawn = frames.map((frame) => {
    const { left, top, width, height } = frame.getBoundingClientRect();
    const x = (share) => Math.floor(left - origin.left + share * width);
    const y = (share) => Math.floor(top - origin.top + share * height);
    return shares.every((across) => shares.every((down) => isDrawn(x(across), y(down))));
  });
  return {
    canvases: tower.querySelectorAll(".flow canvas").length,
    frames: frames.length,
    drawn: drawn.filter(Boolean).length,
  };
})
"""
"""For each tower: its canvases, its frames, and how many of these are drawn on everywhere."""

STRENGTH = """
(name) => {
  const part = document.querySelector(`[data-part="${name}"] .frame`);
  const canvas = part.closest(".tower").querySelector("canvas.drawn");
  const [box, origin] = [part.getBoundingClientRect(), canvas.getBoundingClientRect()];
  const [x, y] = [box.left + box.width / 2 - origin.left, box.top + box.height / 2 - origin.top];
  return canvas.getContext("2d").getImageData(Math.floor(x), Math.floor(y), 1, 1).data[3] / 255;
}
"""
"""How strongly the middle of a picture is drawn."""


@pytest.fixture(scope="module")
def page(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    bundle = taught_bundle(tmp_path_factory.getbasetemp())
    path = tmp_path_factory.mktemp("pictures") / "model.html"
    path.write_text(make_page(bundle, "float32", example=SENTENCE), "utf-8")
    context = browser.new_context(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
    page, problems = context.new_page(), list[str]()
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-ready]")
    page.locator("#explorer").scroll_into_view_if_needed()
    page.locator(".said-word").first.wait_for()
    yield page
    assert problems == []
    context.close()


def wait_for_all_covered(page: Page) -> None:
    """Until each tower has one canvas, on which all of its frames are drawn."""
    page.wait_for_function(
        f"() => ({COVERED})().every(({{ canvases, frames, drawn }}) =>"
        " canvases === 1 && frames > 8 && drawn === frames)"
    )


def wait_for_strength(page: Page, name: str, strength: float) -> None:
    page.wait_for_function(
        f"([name, strength]) => Math.abs(({STRENGTH})(name) - strength) < 0.01",
        arg=[name, strength],
    )


def test_each_tower_is_one_canvas_that_covers_all_its_frames(page: Page):
    wait_for_all_covered(page)


def test_pictures_stay_in_their_boxes_when_a_part_opens_and_the_window_changes(page: Page):
    page.locator(f"#explorer [data-part='{FEED_FORWARD}']").click()
    page.locator(".card").wait_for()
    wait_for_all_covered(page)
    page.set_viewport_size({"width": 700, "height": 900})
    wait_for_all_covered(page)
    page.set_viewport_size({"width": 1280, "height": 900})
    page.keyboard.press("Escape")
    page.locator(".card").wait_for(state="detached")
    wait_for_all_covered(page)


def test_a_head_that_is_off_is_drawn_faintly(page: Page):
    name = "encoder.layers.0.self_attention.heads.0"
    wait_for_strength(page, name, 1)
    page.get_by_role("button", name="Switch parts off").click()
    page.locator(f"#explorer [data-part='{name}']").click()
    page.locator(".before-after").wait_for()
    wait_for_strength(page, name, 0.13)
    page.locator(".changes button").first.click()
    wait_for_strength(page, name, 1)


def test_on_paper_each_picture_has_a_canvas_of_its_own(page: Page):
    """There the boxes have other widths, and nobody is told."""
    alone: dict[str, Any] = page.evaluate(
        """() => {
          let found = null;
          const count = () => { found = document.querySelectorAll("canvas.alone").length; };
          window.addEventListener("beforeprint", count, { once: true });
          window.dispatchEvent(new Event("beforeprint"));
          window.dispatchEvent(new Event("afterprint"));
          return { found, left: document.querySelectorAll("canvas.alone").length,
                   frames: [...document.querySelectorAll(".tower :is(.frame, .ribbon-frame)")]
                     .filter((each) => each.getBoundingClientRect().width > 0).length };
        }"""
    )
    assert alone["found"] == alone["frames"] > 20
    assert alone["left"] == 0
