"""Small screens, both color schemes, and what assistive software is told."""

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect
from test_page_typing import SENTENCE, said

_WIDTHS = "[document.documentElement.scrollWidth, document.documentElement.clientWidth]"
_LONG = "Donaudampfschifffahrtsgesellschaftskapitänsmützenabzeichenhersteller"


def violations(page: Page, scheme: str = "light") -> list[str]:
    """What axe-core finds serious or critical, with the first element of each; in dark colors
    nothing but the colors is another.
    """
    options = {"runOnly": ["color-contrast"]} if scheme == "dark" else None
    found = Axe().run(page, options=options).response["violations"]
    return [
        f"{each['id']}: {each['nodes'][0]['html'][:200]}"
        for each in found
        if each["impact"] in ("serious", "critical")
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious_anywhere(visit, translators, scheme):
    page = visit(color_scheme=scheme, reduced_motion="reduce").page
    expect(page.locator("#model")).to_be_enabled()
    assert violations(page, scheme) == []
    page.fill("#source", SENTENCE)
    expect(page.locator("#target")).to_have_text(said(translators, SENTENCE))
    page.locator("#target .word").first.click()
    expect(page.locator("[role=option]")).to_have_count(6)
    assert violations(page, scheme) == []
    page.keyboard.press("Escape")
    page.click("#tab-inside")
    expect(page.locator(".head-large .cells")).to_be_visible()
    page.locator(".head-large .cells").hover()
    page.get_by_role("button", name="Open the walk").click()
    frame = page.frame_locator(".walk iframe")
    expect(frame.get_by_role("heading", name="Overview")).to_be_visible()
    assert violations(page, scheme) == []
    page.click("#tab-translate")
    page.fill("#source", "é" * 5001)
    expect(page.locator("#notice")).to_be_visible()
    assert violations(page, scheme) == []


def test_nothing_sticks_out_at_375_pixels(visit, translators):
    page = visit(viewport={"width": 375, "height": 700}, is_mobile=True, has_touch=True).page

    def check() -> None:
        wide, seen = page.evaluate(_WIDTHS)
        assert wide == seen == 375

    expect(page.locator("#model")).to_be_enabled()
    check()
    text = f"{SENTENCE} {_LONG}"
    page.fill("#source", text)
    expect(page.locator("#target")).to_have_text(said(translators, text))
    check()
    source, target = page.locator("#source").bounding_box(), page.locator("#target").bounding_box()
    assert source is not None
    assert target is not None
    assert target["y"] >= source["y"] + source["height"]  # stacked, and nothing overlaps
    page.locator("#target .word").last.tap()
    expect(page.locator("[role=option]")).to_have_count(6)
    check()
    box = page.locator("#alternatives").bounding_box()
    assert box is not None
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 375
    page.keyboard.press("Escape")
    page.locator("#tab-inside").tap()
    expect(page.locator(".head-large .cells")).to_be_visible()
    check()


def test_side_by_side_on_a_wide_screen(page):
    source, target = page.locator(".pane").first, page.locator(".pane").last
    left, right = source.bounding_box(), target.bounding_box()
    assert left is not None
    assert right is not None
    assert left["y"] == right["y"]
    assert left["x"] + left["width"] <= right["x"] + 1


def test_results_and_problems_are_spoken(visit, translators):
    page = visit(lambda page: page.clock.install()).page
    page.fill("#source", SENTENCE)
    page.clock.fast_forward(400)
    expect(page.locator("#target")).to_have_text(said(translators, SENTENCE))
    page.clock.fast_forward(1500)
    spoken = page.get_by_role("status").filter(has_text="Translation: ")
    expect(spoken).to_have_text(f"Translation: {said(translators, SENTENCE)}")
    page.fill("#source", "é" * 5001)
    expect(page.get_by_role("alert")).to_contain_text("5,000 characters")
