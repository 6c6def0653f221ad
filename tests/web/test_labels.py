"""The labels of tokens: those of a report, and those that the explorer makes in the browser."""

import pytest
from playwright.sync_api import Browser, Page

from pellucid.backends.web.scripts import join_modules
from pellucid.inspection.report.steps import label_words, labeler

WHOLE = ["▁see", "ing", "▁", "<0x41>", "<0xC3>", "<0xA9>", "</s>"]
LABELS = ["see", "-ing", "▁", "A", "é 1/2", "é 2/2", "</s>"]
CASES = {
    "words and bytes": WHOLE,
    "four bytes and three": ["▁", *(f"<0x{byte:02X}>" for byte in "🐈€".encode())],
    "cut": ["▁a", "<0xF0>", "<0x9F>", "<0x90>"],
    "no character": ["▁a", "<0xC3>", "<0x41>", "<0xA9>", "<0xC0>", "<0x80>", "<0xFF>", "<0xFE>"],
    "surrogates and a mark": ["▁", *(f"<0x{byte:02X}>" for byte in b"\xed\xa0\x80\xef\xbb\xbf")],
    "spaces and ends": ["▁a", "<0x0A>", "<0x20>", "<0x7F>", "<s>", "[MASK]", "<0xg1>"],
    "no marks for spaces": ["see", "ing", "<0x41>"],
}


@pytest.fixture(scope="module")
def live(browser: Browser) -> Page:
    page = browser.new_page()
    page.add_script_tag(content=f"{join_modules('ui/live.js', 'live')}globalThis.live = live;")
    return page


def test_bytes_that_spell_a_character_are_labeled_with_it():
    assert label_words(WHOLE) == LABELS


def test_a_byte_alone_is_labeled_by_itself():
    """A candidate for the next token stands in no text."""
    label = labeler(["▁a"])
    assert [label(each) for each in ["<0x41>", "<0xC3>", "<0x0A>"]] == ["A", "<0xC3>", "<0x0A>"]


@pytest.mark.parametrize("case", CASES)
def test_the_browser_labels_as_the_report_does(live: Page, case: str):
    found = live.evaluate("tokens => live.labels(tokens)", CASES[case])
    assert found == label_words(CASES[case])
