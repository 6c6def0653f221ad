"""The first page of a report in Chromium: the whole model as a picture that opens to a cell."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from opened_reports import SOURCE, TARGET, random_bundle
from playwright.sync_api import Browser, Locator, Page

from pellucid.backends.web.scripts import join_modules
from pellucid.bundle import Bundle, load_bundle
from pellucid.inspection.capture import Capture, inspect
from pellucid.inspection.report.page import make_report
from pellucid.inspection.report.plan import explorer_plan

CROSS = "decoder.layers.1.cross_attention"
AXE_OPTIONS = {"runOnly": ["wcag2a", "wcag2aa"], "resultTypes": ["violations"]}


@pytest.fixture(scope="module")
def bundle(tiny_run: Path) -> Bundle:
    return load_bundle(tiny_run)


@pytest.fixture(scope="module")
def capture(bundle: Bundle) -> Capture:
    return inspect(bundle, SOURCE, TARGET)


@pytest.fixture(scope="module")
def report(bundle: Bundle, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("explorer") / "report.html"
    path.write_text(make_report(bundle, SOURCE, TARGET), encoding="utf-8")
    return path


@pytest.fixture
def page(browser: Browser, report: Path) -> Iterator[Page]:
    yield from opened(browser, report)


def opened(browser: Browser, path: Path) -> Iterator[Page]:
    """The file in a page of its own, which must not complain."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
    context.set_default_timeout(30_000)
    page, problems = context.new_page(), list[str]()
    page.on("console", lambda message: problems.append(message.text))
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(path.as_uri())
    yield page
    assert problems == []
    context.close()


def column(page: Page, name: str) -> Locator:
    return page.locator(f".column[data-column='{name}']")


def shown(page: Page) -> tuple[float, float]:
    """The number that the card tells, and what its formula gives, of one cell.

    They are read at once: where the page has moved under a resting pointer, the browser tells it
    of another cell whenever it comes to that.
    """
    line = page.locator(".card .inspector")
    value, computed = line.evaluate("each => [each.dataset.value, each.dataset.computed]")
    return float(value or "nan"), float(computed or "nan")


def settle(page: Page) -> None:
    """Wait until an opened card has been scrolled to, which takes two frames."""
    page.evaluate(
        "async () => { for (let frame = 0; frame < 4; frame += 1)"
        " await new Promise(requestAnimationFrame); }"
    )


def test_it_opens_from_a_layer_to_a_head_to_a_matrix_to_a_cell(page: Page, capture: Capture):
    page.locator("[data-part='decoder.layers.1']").click()
    assert page.locator(".block.is-open").get_attribute("data-block") == "decoder.layers.1"
    assert page.locator(".card").count() == 0

    page.locator(f"[data-part='{CROSS}.heads.1']").click()
    assert page.locator(".card h3").inner_text() == "Weights"
    inside = column(page, CROSS).locator(".part").all()
    letters = [str(part.get_attribute("data-part")).removeprefix(f"{CROSS}.") for part in inside]
    assert {"heads.1.query", "heads.1.scores", "heads.1.weights", "output"} <= set(letters)

    # A click in the picture of a matrix opens it at the number that was clicked.
    square = page.locator(f"[data-part='{CROSS}.heads.1.scores']")
    area = square.bounding_box()
    assert area
    rows, columns = capture[f"{CROSS}.heads.1.scores"].shape
    square.click(position={"x": 1.5 * area["width"] / columns, "y": 4.5 * area["height"] / rows})
    assert page.locator(".card h3").inner_text() == "Scores"
    settle(page)
    value, _ = shown(page)
    assert value == pytest.approx(capture[f"{CROSS}.heads.1.scores"][4, 1].item(), rel=1e-4)
    cells = page.locator(".card .result .cells")
    box = cells.bounding_box()
    scores = capture[f"{CROSS}.heads.1.scores"]
    assert box
    x, y = (2 + 0.5) * box["width"] / columns, (3 + 0.5) * box["height"] / rows
    cells.hover(position={"x": x, "y": y})
    value, computed = shown(page)
    assert value == pytest.approx(scores[3, 2].item(), rel=1e-4)
    assert computed == pytest.approx(scores[3, 2].item(), rel=1e-3, abs=1e-4)
    assert "×" in page.locator(".card .inspector").inner_text()

    # What was read last stays when the pointer leaves.
    page.mouse.move(5, 5)
    assert shown(page)[0] == pytest.approx(scores[3, 2].item(), rel=1e-4)


def test_a_card_opens_with_a_number_to_read(page: Page, capture: Capture):
    """The largest of its row, with its arithmetic, before anything was pointed at."""
    page.locator("[data-part='encoder.layers.0.feed_forward']").click()
    row = capture["encoder.layers.0.feed_forward.hidden"][1]
    assert shown(page)[0] == pytest.approx(row.max().item(), rel=1e-4)
    assert "max(0," in page.locator(".card .inspector").inner_text()


def test_a_page_that_moves_below_a_resting_pointer_is_not_pointed_at(page: Page, capture: Capture):
    """The browser tells of a move then, too; what was chosen must stay."""
    page.locator("[data-part='encoder.layers.0.feed_forward']").click()
    settle(page)
    expected = capture["encoder.layers.0.feed_forward.hidden"][1].max().item()
    cells = page.locator(".card .result .cells")
    cells.scroll_into_view_if_needed()
    moved = """(element, [inX, inY]) => {
      const box = element.getBoundingClientRect();
      const place = { clientX: box.left + inX, clientY: box.top + inY };
      const at = { ...place, screenX: 7, screenY: 7, pointerType: "mouse", bubbles: true };
      // the last that the window saw of the pointer, before the page moved below it
      window.dispatchEvent(new PointerEvent("pointermove", at));
      element.dispatchEvent(new PointerEvent("pointermove", at));
    }"""
    cells.evaluate(moved, [3, 3])
    assert shown(page)[0] == pytest.approx(expected, rel=1e-4)
    cells.hover(position={"x": 3, "y": 3})
    first = capture["encoder.layers.0.feed_forward.hidden"][0, 0].item()
    assert shown(page)[0] == pytest.approx(first, rel=1e-4, abs=1e-9)


def test_pointing_at_a_word_tells_which_source_word_it_attends_to(page: Page, capture: Capture):
    position = 2
    page.locator(".said-word").nth(position).click()
    mean = capture[f"{CROSS}.weights"][:, position].mean(0)  # over the heads
    source = capture.source_tokens[int(mean.argmax())]
    told = page.locator(".attends").inner_text()
    assert f"attends most to “{source}”: {round(100 * mean.max().item())}%" in told
    shares = page.locator(".tower.encoder .word").evaluate_all(
        "words => words.map((word) => Number(word.style.getPropertyValue('--share')))"
    )
    assert shares == pytest.approx(mean.tolist(), abs=1e-4)


def test_the_keyboard_goes_from_part_to_part_opens_and_closes(page: Page):
    page.locator("[data-part='encoder.embedding']").focus()
    page.keyboard.press("ArrowRight")  # the layer's own button
    page.keyboard.press("ArrowRight")
    focused = "document.activeElement.dataset.part"
    assert page.evaluate(focused) == "encoder.layers.0.self_attention"
    page.keyboard.press("Enter")
    assert page.locator(".card h3").inner_text() == "Weights"
    page.locator(".card [data-step=query]").focus()
    page.keyboard.press("Enter")
    assert page.locator(".card h3").inner_text() == "Queries"
    assert page.evaluate("document.activeElement.dataset.step") == "query"
    page.keyboard.press("Escape")
    assert page.locator(".card").count() == 0
    assert page.evaluate(focused) == "encoder.layers.0.self_attention"


def test_what_stored_numbers_cannot_do_is_not_offered(page: Page):
    assert page.locator(".experiments").count() == 0
    page.locator(f"[data-part='{CROSS}.heads.0']").click()
    assert page.locator(".hold").count() == 0


def test_axe_finds_nothing_in_the_open_picture(page: Page):
    """Nor in its colors on a dark page, in which nothing else differs."""
    page.emulate_media(color_scheme="light")
    page.locator(f"[data-part='{CROSS}.heads.1']").click()
    page.locator(".said-word").nth(1).click()
    found = Axe().run(page, options=AXE_OPTIONS).response["violations"]
    page.emulate_media(color_scheme="dark")
    of_colors = {"runOnly": {"type": "rule", "values": ["color-contrast"]}}
    in_the_dark = Axe().run(page, options={**AXE_OPTIONS, **of_colors}).response
    assert in_the_dark["url"], "it has run"
    found += in_the_dark["violations"]
    assert [(each["id"], [node["html"] for node in each["nodes"]][:3]) for each in found] == []


def test_a_phone_sees_both_towers_and_never_scrolls_sideways(page: Page):
    page.set_viewport_size({"width": 375, "height": 800})
    assert page.locator(".tower").count() == 2
    page.locator(f"[data-part='{CROSS}.heads.1']").click()
    page.locator(".card [data-step=output]").click()
    assert page.evaluate("document.documentElement.scrollWidth") <= 375


@pytest.mark.parametrize("kind", ["rnn", "rnn-attention"])
def test_recurrent_models_have_a_picture_of_their_own(
    browser: Browser, bundle: Bundle, tmp_path: Path, kind: str
):
    path = tmp_path / "report.html"
    path.write_text(make_report(random_bundle(bundle, kind=kind), SOURCE, TARGET), encoding="utf-8")
    for page in opened(browser, path):
        assert page.locator(".column.recurrent").count() == 4
        assert page.locator(".column.cross-attention").count() == (kind == "rnn-attention")
        column(page, "encoder.layers.1").locator(".name").click()
        assert page.locator(".card h3").inner_text() == "States"


def test_a_live_model_that_fails_or_is_late_leaves_the_explorer_as_it_should_be(
    bundle: Bundle, page: Page
):
    """Before the first state, with a model that says no, and with matrices that arrive late."""
    model = random_bundle(bundle).model
    plan = {**explorer_plan(model), "config": model.config.model_dump(mode="json")}
    script = f"(() => {{ {join_modules('ui/explorer.js', 'ui')}; return ui; }})()"
    said = page.evaluate(
        """async ([script, plan, first, second]) => {
            const ui = eval(script);
            const waiting = [];
            const live = {
                search: {},
                compute: () => Promise.reject(new Error("no")),
                prepare: () => new Promise((resolve) => waiting.push(resolve)),
            };
            const element = document.createElement("div");
            document.body.append(element);
            const explorer = ui.mountExplorer(element, { plan, state: null, live });
            const opened = [];
            explorer.on("open", (name) => opened.push(name));

            explorer.pick(0);
            const problem = await explorer.setSource("x").catch((error) => error.message);
            const isBusy = element.getAttribute("aria-busy");

            const early = explorer.open(first);
            explorer.close();
            waiting.shift()();
            const one = explorer.open(first);
            const two = explorer.open(second);
            waiting.splice(0).reverse().forEach((arrived) => arrived());
            await Promise.all([early, one, two]);
            element.remove();
            return [explorer.picked, problem, isBusy, opened, explorer.opened];
        }""",
        [script, plan, "decoder.layers.0.self_attention", CROSS],
    )
    assert said == [None, "no", "false", [None, CROSS], CROSS]
