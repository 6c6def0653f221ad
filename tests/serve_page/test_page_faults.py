"""Whatever goes wrong is told in words, and the text is kept."""

import json
from typing import Any

import pytest
from page_server import serving_with_key
from playwright.sync_api import Page, Route, expect
from test_page_typing import SENTENCE, said


def refuse(page: Page, status: int, headers: dict[str, str] | None = None, **more: Any) -> None:
    """The next request for a translation gets a problem; those after it reach the server."""
    body = {"title": "Problem", "status": status, "detail": "", "request_id": "abc123", **more}

    def fulfill(route: Route) -> None:
        route.fulfill(
            status=status,
            headers={"content-type": "application/problem+json", **(headers or {})},
            body=json.dumps(body),
        )

    page.route("**/v1/translate", fulfill, times=1)


REFUSALS = (
    (413, "too many bytes", "The text is too long for this server. Too many bytes."),
    (422, "text must be text", "The server cannot take this text. Text must be text."),
    (504, "", "This took longer than the server allows. A shorter text may do."),
    (500, "", "Something went wrong in the server (500, request abc123)."),
)


def test_a_refusal_is_told_and_the_text_kept(page, translators):
    for status, detail, message in REFUSALS:
        refuse(page, status, detail=detail)
        page.fill("#source", f"{SENTENCE} {status}")
        expect(page.locator("#notice-text")).to_have_text(message)
        assert page.input_value("#source") == f"{SENTENCE} {status}"
        expect(page.locator("#notice-retry")).to_be_visible(visible=status >= 500)
    page.click("#notice-retry")
    expect(page.locator("#target")).to_have_text(said(translators, f"{SENTENCE} 500"))
    expect(page.locator("#notice")).to_be_hidden()


@pytest.mark.parametrize("status", [429, 503])
def test_a_server_that_has_no_time_is_asked_again_when_it_says(visit, translators, status):
    page = visit(lambda page: page.clock.install()).page
    expect(page.locator("#model")).to_be_enabled()  # text from before would be asked about again
    refuse(page, status, {"retry-after": "7"})
    page.fill("#source", SENTENCE)
    page.clock.fast_forward(400)
    expect(page.locator("#notice-countdown")).to_have_text("Trying again in 7 s.")
    page.clock.run_for(4000)
    expect(page.locator("#notice-countdown")).to_have_text("Trying again in 3 s.")
    assert page.input_value("#source") == SENTENCE
    page.clock.run_for(3000)
    expect(page.locator("#target")).to_have_text(said(translators, SENTENCE))
    expect(page.locator("#notice")).to_be_hidden()


def test_a_server_that_is_down_keeps_the_text_and_is_found_again(visit, translators):
    page = visit(lambda page: page.clock.install()).page
    expect(page.locator("#model")).to_be_enabled()
    page.context.set_offline(True)
    page.fill("#source", SENTENCE)
    page.clock.fast_forward(400)
    expect(page.locator("#notice-text")).to_have_text(
        "The server cannot be reached. Your text is still here."
    )
    assert page.input_value("#source") == SENTENCE
    page.context.set_offline(False)
    page.clock.run_for(3000)
    expect(page.locator("#target")).to_have_text(said(translators, SENTENCE))


def test_a_server_that_is_down_from_the_start_is_found_later(visit, translators):
    def take_down(page: Page) -> None:
        page.clock.install()
        page.route("**/v1/*", lambda route: route.abort())

    page = visit(take_down).page
    expect(page.locator("#notice")).to_be_visible()
    page.fill("#source", SENTENCE)
    page.unroute("**/v1/*")
    page.clock.run_for(4000)
    page.clock.run_for(4000)
    expect(page.locator("#target")).to_have_text(said(translators, SENTENCE))
    expect(page.locator("#model")).to_be_enabled()


def test_a_slow_answer_is_waited_for_or_cancelled(visit, translators):
    page = visit(lambda page: page.clock.install()).page
    # Models that arrive after the first keystroke have the text translated again.
    expect(page.locator("#model")).to_be_enabled()
    held: list[Route] = []
    page.route("**/v1/translate", lambda route: held.append(route), times=1)
    with page.expect_request("**/v1/translate"):
        page.fill("#source", SENTENCE)
        page.clock.fast_forward(400)
    expect(page.locator("#working")).to_be_hidden()
    page.clock.fast_forward(300)
    expect(page.locator("#result")).to_have_attribute("aria-busy", "true")
    page.clock.fast_forward(10_000)
    expect(page.locator("#working-text")).to_have_text("Still translating")
    with page.expect_event("requestfailed"):
        page.click("#cancel")
    expect(page.locator("#notice-text")).to_have_text("Cancelled. Your text is still here.")
    expect(page.locator("#source")).to_be_focused()
    assert page.input_value("#source") == SENTENCE
    page.click("#notice-retry")
    expect(page.locator("#target")).to_have_text(said(translators, SENTENCE))


def test_an_answer_that_is_no_json_is_told(page):
    page.route("**/v1/translate", lambda route: route.fulfill(body="<html>proxy</html>"))
    page.fill("#source", SENTENCE)
    expect(page.locator("#notice-text")).to_have_text("The server’s answer could not be read.")


def test_a_server_with_a_key_is_given_it_from_the_page(visit, bundles, translators):
    """A second server; the key stays in this tab."""
    key = "a key that nobody guesses"
    with serving_with_key(bundles["one"], key) as address:
        watched = visit(address=address)
        page = watched.page
        expect(page.locator("#key")).to_be_visible()
        page.fill("#key", "wrong")
        page.keyboard.press("Enter")
        expect(page.locator("#key")).to_have_value("")
        page.fill("#source", SENTENCE)
        page.fill("#key", key)
        page.keyboard.press("Enter")
        expect(page.locator("#target")).to_have_text(said(translators, SENTENCE))
        expect(page.locator("#key-form")).to_be_hidden()
        page.reload()
        page.fill("#source", SENTENCE)
        expect(page.locator("#target")).to_have_text(said(translators, SENTENCE))
        assert page.evaluate("localStorage.length") == 0
        watched.check()
        page.close()
