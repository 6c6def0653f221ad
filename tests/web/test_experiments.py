"""The bar of experiments below a live model: its sliders, and how sentences stand in it."""

from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from pellucid.backends.web.scripts import join_modules

BAR = """
([search, untouched, now]) => {
  const bar = experiments.experimentBar({ kind: "transformer", norm: "pre" }, search);
  document.body.replaceChildren(bar.element);
  bar.update({
    edits: { ...experiments.NO_EDITS, mask: false },
    search,
    untouched: { sentence: { target: untouched } },
    state: { sentence: { target: now } },
  });
  return [...document.querySelectorAll(".slider output")].map((each) => each.textContent);
}
"""


@pytest.fixture(scope="module")
def page(browser: Browser) -> Page:
    page = browser.new_page()
    script = join_modules("ui/experiments.js", "experiments")
    page.add_script_tag(content=f"{script}globalThis.experiments = experiments;")
    return page


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ((5, 0.6, 0), ["5", "0.6", "0"]),
        ((12, 0.65, 0), ["12", "0.65", "0"]),
        ((4, 2.5, 0.25), ["4", "2.5", "0.25"]),
    ],
)
def test_sliders_say_the_settings_of_the_search(
    page: Page, settings: tuple[Any, ...], said: list[str]
):
    names = "beam_size", "length_penalty", "temperature"
    search = dict(zip(names, settings, strict=True))
    assert page.evaluate(BAR, [search, "a", "b"]) == said


def test_without_spaces_between_words_the_letters_are_compared(page: Page):
    search = {"beam_size": 4, "length_penalty": 0.6, "temperature": 0}
    page.evaluate(BAR, [search, "我看见一只黑猫。", "我看见一只白 猫。"])
    first, second = page.locator(".before-after dd").all()
    assert first.locator("del").all_inner_texts() == ["黑"]
    assert second.locator("ins").all_inner_texts() == ["白"]
    assert (first.inner_text(), second.inner_text()) == ("我看见一只黑猫。", "我看见一只白 猫。")


def test_a_sentence_from_right_to_left_is_compared_from_right_to_left(page: Page):
    search = {"beam_size": 4, "length_penalty": 0.6, "temperature": 0}
    page.evaluate(BAR, [search, "القط الأسود", "القط الأبيض"])
    first, second = page.locator(".before-after dd").first.locator(":scope > *").all()
    assert (first.inner_text(), second.inner_text()) == ("القط", "الأسود")
    direction = "each => getComputedStyle(each.parentElement).direction"
    assert first.evaluate(direction) == "rtl"
