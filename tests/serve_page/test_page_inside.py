"""The tab that looks inside: heads and layers of the sentence on the page."""

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from test_page_typing import OTHER, SENTENCE, said

from pellucid.inspection.capture import inspect


@pytest.fixture
def inside(page: Page, translators) -> Page:
    page.fill("#source", SENTENCE)
    expect(page.locator("#target")).to_have_text(said(translators, SENTENCE))
    page.click("#tab-inside")
    expect(page.locator(".head-large .cells")).to_be_visible()
    return page


def large_map(page: Page) -> tuple[list[str], list[str], list[list[str]]]:
    """Words of the rows and of the columns, and the numbers, from the table behind the picture."""
    page.locator(".head-large summary").click()
    table = page.locator(".head-large table")
    cells = (
        "(rows) => rows.map((row) => [...row.querySelectorAll('td')].map((td) => td.textContent))"
    )
    return (
        table.locator("tbody th").all_text_contents(),
        table.locator("thead th").all_text_contents(),
        table.locator("tbody tr").evaluate_all(cells),
    )


def test_without_a_sentence_it_says_what_to_do(page):
    page.click("#tab-inside")
    expect(page.locator("#view-inside h2")).to_have_text("Nothing to look into yet")
    page.get_by_role("button", name="Write a text").click()
    expect(page.locator("#source")).to_be_focused()


def test_every_head_is_there_and_its_numbers_are_the_model_s(inside, translators):
    page = inside
    capture = inspect(translators["one"], SENTENCE, said(translators, SENTENCE), ("*.weights",))
    maps = page.locator(".head-grid button")
    expect(maps).to_have_count(2 * (2 + 1))  # two layers of two heads and their mean
    page.get_by_role("button", name="Layer 1, head 0", exact=True).click()
    expect(page.locator(".head-large h3")).to_have_text("Layer 1, head 0")
    weights = capture["decoder.layers.1.cross_attention.weights"][0]
    rows, columns, shown = large_map(page)
    assert [[float(each) for each in row] for row in shown] == [
        pytest.approx(row, rel=1e-3, abs=1e-4) for row in weights.tolist()
    ]
    assert len(columns) == len(capture.source_tokens)
    assert columns[-1] == "end"
    assert len(rows) == len(capture.target_tokens)

    page.get_by_role("button", name="Layer 1, mean of all heads", exact=True).click()
    mean = capture["decoder.layers.1.cross_attention.weights"].mean(0)
    _, _, shown = large_map(page)
    assert [[float(each) for each in row] for row in shown] == [
        pytest.approx(row, rel=1e-3, abs=1e-4) for row in mean.tolist()
    ]


def test_each_kind_of_attention_can_be_chosen_and_walked_by_keyboard(inside, translators):
    page = inside
    weights = inspect(
        translators["one"], SENTENCE, said(translators, SENTENCE), ("encoder*.weights",)
    )["encoder.layers.0.self_attention.weights"]
    page.get_by_text("Source to itself").click()
    expect(page.locator(".head-grid button")).to_have_count(3)  # one layer of the encoder
    page.get_by_role("button", name="Layer 0, head 0", exact=True).click()
    page.locator(".head-large .cells").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    expect(page.locator(".readout")).to_contain_text("attends to")
    expect(page.locator(".readout b")).to_have_text(f"{weights[0, 1, 1].item():.3f}")
    page.get_by_text("Translation to itself").click()
    _, columns, _ = large_map(page)
    assert columns[0] == "start"
    page.get_by_role("button", name="Layer 0, head 0", exact=True).focus()
    page.keyboard.press("ArrowDown")
    expect(page.locator(".head-large h3")).to_have_text("Layer 1, head 0")


def test_it_follows_the_text_and_tells_of_problems(inside, translators):
    page = inside
    page.click("#tab-translate")
    page.fill("#source", OTHER)
    expect(page.locator("#target")).to_have_text(said(translators, OTHER))
    page.route("**/v1/inspect", lambda route: route.abort(), times=1)
    page.click("#tab-inside")
    expect(page.locator("#view-inside [role=alert]")).to_contain_text("cannot be reached")
    page.get_by_role("button", name="Try again").last.click()
    expect(page.locator(".head-large .cells")).to_be_visible()
    expect(page.locator(".pair .text").first).to_have_text(OTHER)


def test_the_walk_opens_in_the_page_and_can_be_kept_as_a_file(inside, translators, tmp_path):
    page = inside
    page.get_by_role("button", name="Open the walk").click()
    walk = page.frame_locator(".walk iframe")
    expect(walk.get_by_role("heading", name="Overview")).to_be_visible()
    expect(walk.locator(".explorer .tower")).to_have_count(2)
    walk.get_by_role("button", name="Decoder layer 0 · Cross-attention, head 1", exact=True).click()
    expect(walk.locator(".card h3")).to_have_text("Weights")
    walk.get_by_text("All pages of this report").click()
    walk.get_by_role("link", name="Layer 0 · Cross-attention", exact=True).click()
    expect(walk.get_by_role("heading", name="Cross-attention").first).to_be_visible()
    expect(walk.locator("math").first).to_be_visible()
    with page.expect_download() as kept:
        page.get_by_role("button", name="Save it as a file").click()
    html = Path(kept.value.path()).read_text(encoding="utf-8")
    assert SENTENCE in html
    assert kept.value.suggested_filename == "pellucid-walk.html"


def test_only_the_page_itself_may_show_the_walk_in_a_frame(watched):
    """S11: everything else says that nobody may frame it."""
    request = watched.page.request
    for path, ancestors, old in (
        ("/", "'none'", "DENY"),
        ("/static/app.js", "'none'", "DENY"),
        ("/static/report/report.js", "'none'", "DENY"),
        ("/static/ui/ui.css", "'none'", "DENY"),
        ("/static/walk.html", "'self'", "SAMEORIGIN"),
    ):
        headers = request.get(f"{watched.address}{path}").headers
        policy = headers["content-security-policy"]
        assert policy == f"default-src 'self'; frame-ancestors {ancestors}", path
        assert headers["x-frame-options"] == old
        assert headers["x-content-type-options"] == "nosniff"


def test_a_model_without_attention_has_its_walk_all_the_same(page, translators):
    expect(page.locator("#model")).to_be_enabled()
    page.select_option("#model", "recurrent")
    page.fill("#source", SENTENCE)
    expect(page.locator("#target")).to_have_text(said(translators, SENTENCE, "recurrent"))
    page.click("#tab-inside")
    expect(page.get_by_text("This kind of model has no attention")).to_be_visible()
    page.get_by_role("button", name="Open the walk").click()
    walk = page.frame_locator(".walk iframe")
    expect(walk.get_by_role("heading", name="Overview")).to_be_visible()
