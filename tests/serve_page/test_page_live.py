"""The model live: a tab of its own that the page opens with the sentence, and with the key."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from page_server import serving_with_key
from playwright.sync_api import Browser, Page, expect
from test_page_typing import SENTENCE, said

from pellucid.backends.web.export import make_page
from pellucid.decoding.translator import Translator
from pellucid.serve.limits import Limits

KEY = "0123456789abcdef"


def look_inside(page: Page, translators: dict[str, Translator]) -> None:
    page.fill("#source", SENTENCE)
    expect(page.locator("#target")).to_have_text(said(translators, SENTENCE))
    page.click("#tab-inside")
    expect(page.get_by_role("heading", name="The model at work")).to_be_visible()


def open_live(page: Page) -> Page:
    with page.expect_popup() as opened:
        page.get_by_role("link", name="Open the model live").click()
    return opened.value


def test_it_opens_in_a_tab_of_its_own_with_the_sentence(
    visit: Callable[..., Any], translators: dict[str, Translator]
):
    watched = visit()
    look_inside(watched.page, translators)
    live = open_live(watched.page)
    problems, asked = list[str](), list[str]()
    live.on("console", lambda message: problems.append(message.text))
    live.on("pageerror", lambda error: problems.append(str(error)))
    live.on("request", lambda request: asked.append(request.url))
    live.wait_for_selector("html[data-ready]")
    assert live.input_value("#source") == SENTENCE
    expect(live.locator("#target")).not_to_be_empty()
    # the text is in no address, and the tab asks for nothing more
    assert live.url == f"{watched.address}/static/live.html#model=one"
    asked.clear()
    live.locator("#explorer").scroll_into_view_if_needed()
    expect(live.locator(".said-word").first).to_be_visible()
    before = live.locator("#target").inner_text()
    live.get_by_role("button", name="Drop the positions").click()
    expect(live.locator(".before-after")).to_be_visible()
    live.fill("#source", "le chat")
    expect(live.locator("#target")).not_to_have_text(before)
    assert [url for url in asked if not url.startswith("blob:")] == []
    assert problems == []
    # opened anew, the tab has its sentence still
    live.reload()
    live.wait_for_selector("html[data-ready]")
    assert live.input_value("#source") == SENTENCE
    live.close()


def test_it_can_be_kept_as_a_file(page: Page, translators: dict[str, Translator]):
    look_inside(page, translators)
    section = page.get_by_role("region", name="The model at work")
    with page.expect_download() as kept:
        section.get_by_role("button", name="Save the model as a file").click()
    assert kept.value.suggested_filename == "one.html"
    text = Path(kept.value.path()).read_text("utf-8")
    assert text == make_page(translators["one"].bundle, name="one")


def test_a_model_that_is_not_there_is_named(page: Page):
    page.goto(f"{page.url}static/live.html#model=none")
    expect(page.get_by_role("alert")).to_have_text(
        "There is no model 'none'; GET /v1/models lists them."
    )
    expect(page.get_by_role("button", name="Try again")).to_be_hidden()


@pytest.fixture(scope="module")
def with_key(bundles: dict[str, Path]) -> Iterator[str]:
    with serving_with_key(bundles["one"], KEY) as address:
        yield address


def test_the_key_goes_along_to_the_tab(
    visit: Callable[..., Any], with_key: str, translators: dict[str, Translator]
):
    page = visit(address=with_key).page
    page.fill("#key", KEY)
    page.press("#key", "Enter")
    expect(page.locator("#model")).to_contain_text("one")
    look_inside(page, translators)
    live = open_live(page)
    live.wait_for_selector("html[data-ready]")
    assert live.input_value("#source") == SENTENCE
    live.close()


def test_without_the_key_it_says_where_to_give_it(browser: Browser, with_key: str):
    page = browser.new_page()
    page.goto(f"{with_key}/static/live.html#model=one")
    expect(page.get_by_role("alert")).to_contain_text("This server asks for a key")
    assert page.get_by_role("link", name="Back to the page").get_attribute("href") == "/"
    page.close()


def test_a_model_that_is_too_large_says_so(browser: Browser, bundles: dict[str, Path]):
    with serving_with_key(bundles["one"], KEY, Limits(max_live_bytes=1000)) as address:
        page = browser.new_page()
        page.goto(address)
        page.evaluate("key => sessionStorage.setItem('pellucid-key', key)", KEY)
        page.goto(f"{address}/static/live.html#model=one")
        expect(page.get_by_role("alert")).to_contain_text(
            "Not with this model. The live page of one"
        )
        page.close()
