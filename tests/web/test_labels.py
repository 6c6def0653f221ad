"""Labels of tokens, in a report and in the browser; what the explorer there asks a model for."""

import pytest
from playwright.sync_api import Browser, Page

from pellucid.backends.web.scripts import join_modules
from pellucid.inspection.report.steps import label_words, labeler, step_label

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
    "no spaces between words": ["▁我", "看见", "猫", "。", "ก", "か", "가", "ABC", "က", "ក"],
}


@pytest.fixture(scope="module")
def live(browser: Browser) -> Page:
    page = browser.new_page()
    page.add_script_tag(content=f"{join_modules('ui/live.js', 'live')}globalThis.live = live;")
    return page


def test_bytes_that_spell_a_character_are_labeled_with_it():
    assert label_words(WHOLE) == LABELS


def test_a_piece_of_a_script_without_spaces_is_no_piece_of_a_word():
    assert label_words(["▁我", "看见", "。", "한", "s"]) == ["我", "看见", "。", "-한", "-s"]


def test_a_byte_alone_is_labeled_by_itself():
    """A candidate for the next token stands in no text."""
    label = labeler(["▁a"])
    assert [label(each) for each in ["<0x41>", "<0xC3>", "<0x0A>"]] == ["A", "<0xC3>", "<0x0A>"]


@pytest.mark.parametrize("case", CASES)
def test_the_browser_labels_as_the_report_does(live: Page, case: str):
    found = live.evaluate("tokens => live.labels(tokens)", CASES[case])
    assert found == label_words(CASES[case])


@pytest.mark.parametrize(
    ("read", "said", "label"),
    [
        ("<s>", "the", "<s> ▸ the"),
        ("القط", "الأسود", "\u200e\u2068القط\u2069 ▸ \u2068الأسود\u2069"),
        ("<s>", "שלום", "\u200e\u2068<s>\u2069 ▸ \u2068שלום\u2069"),
        ("黒", "い", "黒 ▸ い"),
    ],
)
def test_a_position_runs_from_left_to_right_in_every_script(
    live: Page, read: str, said: str, label: str
):
    assert step_label(read, said) == label
    assert live.evaluate("([read, said]) => live.stepLabel(read, said)", [read, said]) == label


COUNTING = """
const asked = [];
const engine = {
  tokens: async (ids) => { asked.push("tokens"); return ids.map(String); },
  parameter: async (name) => {
    asked.push(name);
    if (asked.length < 2) throw new Error("no answer");
    return { values: [1] };
  },
};
"""
"""An engine that notes what it is asked for, and fails the first time."""


def test_what_two_ask_for_at_once_is_asked_of_the_engine_once(live: Page):
    """And again, if it was not answered."""
    found = live.evaluate(
        f"""async () => {{
          {COUNTING}
          const plan = {{ parameters: {{ w: {{ tensor: "matrix" }} }} }};
          const provider = live.liveProvider(engine, plan).live;
          const failed = await provider.prepare(["w"]).catch((problem) => problem.message);
          await Promise.all([provider.prepare(["w"]), provider.prepare(["w"])]);
          await provider.prepare(["w"]);
          const piecesOf = (ids) => live.piecesOf(engine, ids, 4);
          const pieces = await Promise.all([piecesOf([1, 2]), piecesOf([3])]);
          return [failed, asked, pieces];
        }}"""
    )
    assert found == ["no answer", ["matrix", "matrix", "tokens"], [["1", "2"], ["3"]]]


def test_a_logit_that_is_no_number_keeps_out_no_other(live: Page):
    values = "[NaN, 1, 3, NaN, 2]"
    found = live.evaluate(
        f"live.likeliest({{ shape: [1, 5], values: Float32Array.of(...{values}) }}, 3)"
        "[0].map(([id]) => id)"
    )
    assert found == [2, 4, 1]
