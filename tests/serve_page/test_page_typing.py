"""From keystrokes to a translation."""

import json
from collections.abc import Callable

from playwright.sync_api import Page, Route, expect

from pellucid.decoding.translator import Translator

SENTENCE = "je suis étudiant"
OTHER = "une vieille dame lit"


def said(translators: dict[str, Translator], text: str, name: str = "one") -> str:
    return translators[name].translate(text, beam_size=4, n_best=4).text


def test_what_is_typed_is_translated_as_the_library_translates_it(watched, translators):
    page = watched.page
    page.locator("#source").press_sequentially(SENTENCE, delay=5)
    expect(page.locator("#target")).to_have_text(said(translators, SENTENCE))
    expect(page.locator("#counter")).to_have_text("16 of 5,000")
    assert len(watched.asked) < len(SENTENCE) / 2  # it waits for a pause
    sent = json.loads(watched.asked[-1].post_data or "")
    assert sent["text"] == SENTENCE


def test_an_answer_that_comes_too_late_is_dropped_and_its_request_left(watched, translators):
    page = watched.page
    held: list[Route] = []
    left: list[str] = []
    page.on("requestfailed", lambda request: left.append(request.post_data or ""))

    def hold_the_first(route: Route) -> None:
        if held:
            route.continue_()
        else:
            held.append(route)

    page.route("**/v1/translate", hold_the_first)
    with page.expect_request("**/v1/translate"):
        page.fill("#source", SENTENCE)
    page.fill("#source", OTHER)
    expect(page.locator("#target")).to_have_text(said(translators, OTHER))
    assert [json.loads(body)["text"] for body in left] == [SENTENCE]


def test_late_answers_are_dropped_even_if_leaving_a_request_does_nothing(visit, translators):
    """Two requests that both answer, the older one last."""

    def never_abort(page: Page) -> None:
        page.add_init_script("AbortController.prototype.abort = () => {};")

    page = visit(never_abort).page
    held: list[Route] = []
    page.route(
        "**/v1/translate",
        lambda route: route.continue_() if held else held.append(route),
    )
    with page.expect_request("**/v1/translate"):
        page.fill("#source", SENTENCE)
    page.fill("#source", OTHER)
    expect(page.locator("#target")).to_have_text(said(translators, OTHER))
    with page.expect_response("**/v1/translate") as late:
        held[0].continue_()
    late.value.finished()
    page.evaluate("new Promise((done) => setTimeout(done, 50))")  # lets the page read it
    expect(page.locator("#target")).to_have_text(said(translators, OTHER))


def test_nothing_is_asked_for_nothing(watched, translators):
    page = watched.page
    page.fill("#source", SENTENCE)
    expect(page.locator("#target")).to_have_text(said(translators, SENTENCE))
    asked = len(watched.asked)
    page.fill("#source", " \n ")
    expect(page.locator("#target")).to_have_text("")
    expect(page.locator("#copy")).to_be_hidden()
    page.click("#clear")
    expect(page.locator("#source")).to_be_focused()
    expect(page.locator("#hint")).to_be_visible()
    assert len(watched.asked) == asked


def test_a_text_beyond_the_limit_is_kept_and_not_sent(watched, translators):
    page = watched.page
    expect(page.locator("#model")).to_be_enabled()
    page.fill("#source", "é" * 5001)
    expect(page.locator("#notice-text")).to_have_text(
        "A text may have 5,000 characters; this one has 1 more."
    )
    expect(page.locator("#counter")).to_have_text("5,001 of 5,000")
    assert len(page.input_value("#source")) == 5001
    assert watched.asked == []
    page.fill("#source", SENTENCE)
    expect(page.locator("#target")).to_have_text(said(translators, SENTENCE))
    expect(page.locator("#notice")).to_be_hidden()


def test_emoji_count_as_one_character_each_as_the_server_counts(page):
    page.fill("#source", "😀😀")
    expect(page.locator("#counter")).to_have_text("2 of 5,000")


def test_another_model_translates_anew_and_other_ways_can_be_taken(page, translators):
    page.fill("#source", SENTENCE)
    expect(page.locator("#target")).to_have_text(said(translators, SENTENCE))
    page.select_option("#model", "two")
    expect(page.locator("#target")).to_have_text(said(translators, SENTENCE, "two"))
    best = translators["two"].translate(SENTENCE, beam_size=4, n_best=4)
    ways = page.locator("#others-list button")
    expected = [each.text for each, _ in best.other_ways()]
    assert expected
    expect(ways).to_have_text(expected)
    ways.first.click()
    expect(page.locator("#target")).to_have_text(expected[0])
    page.click("#own")
    expect(page.locator("#target")).to_have_text(best.text)


def test_another_way_changes_its_sentence_alone(page):
    page.select_option("#model", "two")
    page.fill("#source", f"{SENTENCE}\n{SENTENCE}")
    ways = page.locator("#others-list button")
    expect(ways.first).to_be_visible()
    before = page.locator("#target").inner_text().splitlines()
    ways.first.click()
    after = page.locator("#target").inner_text().splitlines()
    assert len(after) == len(before) == 2
    assert sum(one != other for one, other in zip(before, after, strict=True)) == 1


def test_history_keeps_the_text_that_was_translated(visit: Callable, translators: dict):
    page = visit(lambda page: page.clock.install()).page
    page.fill("#source", SENTENCE)
    page.clock.fast_forward(300)
    expect(page.locator("#target")).to_have_text(said(translators, SENTENCE))
    page.clock.fast_forward(900)
    page.fill("#source", "x" * 6000)  # too long: it is not translated
    page.clock.fast_forward(2000)
    page.fill("#source", OTHER)
    page.clock.fast_forward(300)
    expect(page.locator("#target")).to_have_text(said(translators, OTHER))
    page.clock.fast_forward(2000)
    expect(page.locator("#history-list button .from")).to_have_text([SENTENCE])


def test_copied_is_what_is_shown_and_history_brings_a_text_back(
    visit: Callable, translators: dict[str, Translator]
):
    page = visit(
        lambda page: page.clock.install(), permissions=["clipboard-read", "clipboard-write"]
    ).page
    for text in (SENTENCE, OTHER):
        page.fill("#source", text)
        page.clock.fast_forward(300)
        expect(page.locator("#target")).to_have_text(said(translators, text))
        page.clock.fast_forward(2000)
    page.click("#copy")
    expect(page.locator("#copy")).to_have_text("Copied")
    assert page.evaluate("navigator.clipboard.readText()") == said(translators, OTHER)
    page.locator("#history-list button").click()
    page.clock.fast_forward(300)
    expect(page.locator("#target")).to_have_text(said(translators, SENTENCE))
    assert page.input_value("#source") == SENTENCE
    assert page.evaluate("[localStorage.length, sessionStorage.length]") == [0, 0]
    page.click("#forget")
    expect(page.locator("#history")).to_be_hidden()
