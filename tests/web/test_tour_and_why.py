"""The exported file in Chromium: why a word and not another, and every step of the tour."""

import dataclasses
import math
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import tiny_models
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

from pellucid.backends.web.export import make_page
from pellucid.backends.web.scripts import read_asset
from pellucid.bundle import Bundle
from pellucid.inspection.why import Why, why

SOURCE = "a b c"
SHORT = {"decoding": {"max_length_extra": 4, "min_length": 2}}
AXE_OPTIONS = {"runOnly": ["wcag2a", "wcag2aa"], "resultTypes": ["violations"]}


@pytest.fixture(scope="module")
def bundle() -> Bundle:
    bundle = tiny_models.tiny_bundle("pre-norm")
    bundle.model.float()
    return dataclasses.replace(bundle, settings=SHORT)


@pytest.fixture(scope="module")
def file(bundle: Bundle, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tour") / "model.html"
    path.write_text(make_page(bundle, "float32", example=SOURCE), encoding="utf-8")
    return path


@pytest.fixture
def page(browser: Browser, file: Path) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
    context.set_default_timeout(30_000)
    page, problems = context.new_page(), list[str]()
    page.on("console", lambda message: problems.append(message.text))
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(file.as_uri())
    page.wait_for_selector("html[data-ready]")
    page.locator("#explorer").scroll_into_view_if_needed()
    page.locator(".said-word").first.wait_for()
    yield page
    assert problems == []
    context.close()


def number(text: str) -> float:
    return float(text.replace("−", "-").strip())


def assert_shown(page: Page, expected: Why) -> None:
    page.locator(f".why-part[data-part='{expected.largest[0].name}']").wait_for()
    names = page.locator(".why-part").evaluate_all("all => all.map((each) => each.dataset.part)")
    assert names == [part.name for part in expected.largest[:10]]
    values = [number(text) for text in page.locator(".why-value").all_inner_texts()]
    assert values == pytest.approx([part.value for part in expected.largest[:10]], abs=6e-3)
    assert number(page.locator(".why-true dd").inner_text()) == pytest.approx(
        expected.difference, abs=6e-3
    )


def test_a_newcomer_says_why_it_is_not_another_word(page: Page, bundle: Bundle):
    """Any word can be asked for; the numbers are Python's."""
    page.locator(".said-word").first.click()
    target = page.inner_text("#target")
    assert_shown(page, why(bundle, SOURCE, target, position=0))
    page.locator(".why-word").fill("h")
    page.locator(".why-word").press("Enter")
    page.locator(".why-sum", has_text="h has").or_(
        page.locator(".why-sum", has_text="and h")
    ).wait_for()
    assert_shown(page, why(bundle, SOURCE, target, position=0, rival="h"))
    found = Axe().run(page, options=AXE_OPTIONS)
    assert found.violations_count == 0, found.generate_report()


def test_a_part_that_is_switched_off_adds_nothing(page: Page):
    page.locator(".said-word").first.click()
    page.locator(".why-part").first.wait_for()
    before = page.locator(".why-true dd").inner_text()
    page.get_by_role("button", name="Drop the positions").click()
    page.locator(".why-true dd").filter(has_not_text=before).wait_for()
    assert page.locator(".why-true dd").inner_text() == page.locator(".why-all dd").inner_text()


TASKS = {
    "text": lambda page: page.fill("#source", "a b d"),
    "tokens": lambda page: page.locator("[data-part='encoder.embedding']").first.click(),
    "vectors": lambda page: page.locator("[data-part='encoder.embedding']").first.click(),
    "attention": lambda page: page.locator(
        "[data-part='encoder.layers.0.self_attention.heads.1']"
    ).click(),
    "query": lambda page: page.locator(".card-steps [data-step='query']").click(),
    "key": lambda page: page.locator(".card-steps [data-step='key']").click(),
    "weights": lambda page: page.locator(
        "[data-part='encoder.layers.0.self_attention.heads.0.scores']"
    ).click(),
    "value": lambda page: page.locator(".card-steps [data-step='head']").click(),
    "network": lambda page: page.locator("[data-part='encoder.layers.0.feed_forward']").click(),
    "crossing": lambda page: page.locator(".said-word").nth(1).click(),
    "next": lambda page: page.locator("[data-part='output']").first.click(),
    "loss": lambda page: page.fill("#source", "a b"),
    "why": lambda page: page.locator(".why-rival").select_option(index=1),
    "break": lambda page: page.get_by_role("button", name="Drop the positions").click(),
}


MOVES = {
    **dict.fromkeys(("tokens", "vectors", "attention", "network", "next", "break"), ".stressed"),
    "crossing": ".column.cross-attention.stressed",
    "query": ".card h3:text-is('Weights')",
    "key": ".card h3:text-is('Queries')",
    "weights": ".card h3:text-is('Weights')",
    "value": ".card h3:text-is('Values')",
    "why": ".said-word[aria-pressed='true']",
}
"""What a step shows of the picture; the first one leaves it as it is, and asks for another text."""


def test_every_step_of_the_tour_moves_something_and_notices_its_task(page: Page):
    page.locator(".tour-start").click()
    for place, (name, act) in enumerate(TASKS.items(), start=1):
        page.locator(f".tour[data-step='{name}']").wait_for()
        assert page.locator(".tour-place").inner_text() == f"Step {place} of {len(TASKS)}"
        page.locator(".tour[data-is-listening]").wait_for()  # it has moved what it moves
        if name in MOVES:
            assert page.locator(MOVES[name]).count() > 0, name
        assert page.locator(".tour-task.is-done").count() == 0, name
        act(page)
        page.locator(".tour-task.is-done").wait_for()
        page.locator(".tour-next").click()
    page.locator(".tour-start").wait_for()
    assert page.locator(".tour").count() == 0


def test_the_tour_can_be_left_and_goes_back(page: Page):
    page.locator(".tour-start").click()
    page.locator(".tour-next").click()
    page.locator(".tour[data-step='tokens']").wait_for()
    page.locator(".tour-back").click()
    page.locator(".tour[data-step='text']").wait_for()
    assert page.locator(".tour-back").is_disabled()
    page.locator(".tour-end").click()
    assert page.evaluate("document.activeElement.className") == "tool tour-start"


def test_escape_ends_the_tour_also_where_it_has_opened_a_part(page: Page):
    page.locator(".tour-start").click()
    for _ in range(4):
        page.locator(".tour-next").click()
    page.locator(".tour[data-step='query'][data-is-listening]").wait_for()
    page.locator(".card").wait_for()
    page.keyboard.press("Escape")
    page.locator(".tour").wait_for(state="detached")
    assert page.locator(".card").count() == 1
    page.keyboard.press("Escape")
    page.locator(".card").wait_for(state="detached")


def test_the_card_of_the_tour_covers_nothing(page: Page):
    """At each step its box and those of the text and of both towers have no point in common."""
    page.locator(".tour-start").click()
    for name in TASKS:
        page.locator(f".tour[data-step='{name}'][data-is-listening]").wait_for()
        boxes = page.evaluate(
            "[...document.querySelectorAll('.tour, #desk, .tower')].map((each) => {"
            " const { left, right, top, bottom } = each.getBoundingClientRect();"
            " return [each.className || each.id, left, right, top, bottom]; })"
        )
        [tour] = [each for each in boxes if each[0] == "tour"]
        for box in boxes:
            apart = box[2] <= tour[1] or tour[2] <= box[1] or box[4] <= tour[3] or tour[4] <= box[3]
            assert box is tour or apart, (name, box, tour)
        page.locator(".tour-next").click()


def test_the_step_of_the_loss_says_what_the_probabilities_cost(page: Page):
    page.locator(".tour-start").click()
    while page.locator(".tour[data-step='loss'][data-is-listening]").count() == 0:
        page.locator(".tour[data-is-listening]").wait_for()
        if page.locator(".tour[data-step='loss']").count() == 0:
            page.locator(".tour-next").click()
    shares = page.evaluate(
        "[...document.querySelectorAll('.said-word')]"
        ".map((each) => Number(each.style.getPropertyValue('--share')))"
    )
    losses = [-math.log(share) for share in shares]
    told = page.locator(".tour-text").inner_text()
    for loss in losses[:6]:
        assert f"= {loss:.2f}" in told
    assert f"their mean is {sum(losses) / len(losses):.2f}" in told


def test_each_step_leads_to_a_section_of_the_book():
    """Where the page knows the address of the book; a section is a heading of a chapter."""
    chapters = re.findall(r'chapter: "([^"]+)"', read_asset("ui/tour.js"))
    assert len(chapters) == len(TASKS) + 2, "and two of recurrent models"
    book = Path(__file__).parents[2] / "docs" / "equations"
    for chapter in chapters:
        page, _, anchor = chapter.partition("#")
        text = (book / page.replace(".html", ".md")).read_text("utf-8")
        titles = re.findall(r"^## (.+)$", text, re.MULTILINE)
        anchors = {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
        assert anchor in anchors | {""}, chapter
