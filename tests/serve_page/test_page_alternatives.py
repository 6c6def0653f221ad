"""What else could stand where a word stands."""

import pytest
from playwright.sync_api import Page, expect
from test_page_typing import SENTENCE, said


@pytest.fixture
def translated(page: Page, translators) -> Page:
    page.fill("#source", SENTENCE)
    expect(page.locator("#target")).to_have_text(said(translators, SENTENCE))
    expect(page.locator("#target .word").first).to_be_visible()
    return page


def test_a_click_on_a_word_opens_what_the_model_finds_likely_there(translated, translators):
    page = translated
    page.locator("#target .word").first.click()
    options = page.locator("#alternatives-list [role=option]")
    expected = translators["one"].alternatives(SENTENCE, [], 6)
    expect(options).to_have_count(6)
    shares = [f"{round(100 * each.probability)}%" for each in expected]
    assert options.locator(".option-sure").all_text_contents() == [
        share.replace("0%", "<1%") if share == "0%" else share for share in shares
    ]
    expect(page.locator("#alternatives-list")).to_be_focused()
    chosen = next(
        index for index, each in enumerate(expected)
        if each.translation.text != said(translators, SENTENCE)
    )  # fmt: skip
    options.nth(chosen).click()
    expect(page.locator("#target")).to_have_text(expected[chosen].translation.text)
    expect(page.locator("#alternatives")).to_be_hidden()
    expect(page.locator("#chosen")).to_be_visible()
    page.click("#own")
    expect(page.locator("#target")).to_have_text(said(translators, SENTENCE))
    expect(page.locator("#chosen")).to_be_hidden()


def test_the_keyboard_alone_goes_all_the_way(page, translators):
    """Tab to the text, type, Tab to the words, choose another, look inside."""
    page.keyboard.press("Tab")
    expect(page.locator(".skip")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#source")).to_be_focused()
    page.keyboard.type(SENTENCE)
    expect(page.locator("#target")).to_have_text(said(translators, SENTENCE))
    words = page.locator("#target .word")
    for _ in range(4):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.className").startswith("word"):
            break
    expect(words.first).to_be_focused()
    page.keyboard.press("End")
    expect(words.last).to_be_focused()
    page.keyboard.press("Home")
    page.keyboard.press("Enter")
    expect(page.locator("[role=option]").first).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#alternatives")).to_be_hidden()
    expect(words.first).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("[role=option]")).to_have_count(6)
    page.keyboard.press("End")
    last = page.locator("[role=option]").last
    expect(last).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Enter")
    expected = translators["one"].alternatives(SENTENCE, [], 6)[-1].translation.text
    expect(page.locator("#target")).to_have_text(expected)
    page.locator("#tab-translate").focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator("#view-inside")).to_be_visible()
    expect(page.locator("#tab-inside")).to_be_focused()


def test_a_problem_is_told_in_the_list(translated):
    page = translated
    page.route("**/v1/alternatives", lambda route: route.abort())
    page.locator("#target .word").first.click()
    expect(page.locator("#alternatives-note")).to_have_text(
        "The server cannot be reached. Your text is still here."
    )
    page.locator("#source").click()
    expect(page.locator("#alternatives")).to_be_hidden()
