"""A report as Chromium shows it: what is pointed at is told, nothing is asked of the network."""

import dataclasses
import math
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from opened_reports import SOURCE, TARGET, data_of, matrix_of
from playwright.sync_api import Browser, Page, Request, expect
from tiny_models import tiny_bundle

from pellucid.bundle import Bundle, load_bundle
from pellucid.inspection.report.page import make_report
from pellucid.text.tokenizers.vocabulary import Vocabulary
from pellucid.text.tokenizers.word_tokenizers import WordTokenizer

HOSTILE = "le </script><img src=x onerror=alert(1)> chat"


AXE_OPTIONS = {"runOnly": ["wcag2a", "wcag2aa"], "resultTypes": ["violations"]}


@dataclasses.dataclass
class Watched:
    """A page, and whatever it did that no report may do."""

    page: Page
    content: dict[str, Any]
    problems: list[str] = dataclasses.field(default_factory=list)

    def on_request(self, request: Request) -> None:
        if not request.url.startswith("file:"):
            self.problems.append(f"asked for {request.url}")


def arabic_bundle() -> Bundle:
    nine = "قط", "كلب", "بيت", "ماء", "طالب", "كتاب", "جديد", "هذا", "في"
    words = WordTokenizer("word", Vocabulary.of(nine))
    return Bundle(tiny_bundle(positions="rotary").model, words, words, {}, {})


@pytest.fixture(scope="module")
def reports(tiny_run: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    bundle = load_bundle(tiny_run)
    folder = tmp_path_factory.mktemp("reports")
    pages = {
        "own": make_report(bundle, SOURCE),
        "given": make_report(bundle, SOURCE, TARGET),
        "hostile": make_report(bundle, HOSTILE, HOSTILE),
        "ssru": make_report(tiny_bundle("ssru"), "a b c", "d e f"),
        "arabic": make_report(arabic_bundle(), "قط كلب", "بيت ماء"),
    }
    for name, page in pages.items():
        (folder / f"{name}.html").write_text(page, encoding="utf-8")
    return {name: folder / f"{name}.html" for name in pages}


@pytest.fixture
def visit(browser: Browser, reports: dict[str, Path]) -> Iterator[Callable[..., Watched]]:
    """Opens a report as ``visit(name, at=..., **context options)``; checks it at the end."""
    opened: list[Watched] = []

    def open_report(name: str, at: str = "", **options: Any) -> Watched:
        context = browser.new_context(**options)
        context.set_default_timeout(30_000)
        content = data_of(reports[name].read_text("utf-8"))
        watched = Watched(context.new_page(), content)
        watched.page.on("console", lambda message: watched.problems.append(message.text))
        watched.page.on("pageerror", lambda error: watched.problems.append(str(error)))
        watched.page.on("dialog", lambda dialog: watched.problems.append(dialog.message))
        watched.page.on("request", watched.on_request)
        watched.page.goto(f"{reports[name].as_uri()}#{at}")
        opened.append(watched)
        return watched

    yield open_report
    for watched in opened:
        assert watched.problems == []
        watched.page.context.close()


def views_of(page: Page) -> list[str]:
    """The names of all pages of a report."""
    links = page.locator("nav.parts a:not(.step-link)")
    return [str(link.get_attribute("href"))[1:] for link in links.all()]


SHOW_EACH = """
async (names) => {
  const shown = [];
  for (const name of names) {
    document.querySelector(`nav.parts a[href='#${name}']`).click();
    await new Promise(requestAnimationFrame);
    const text = document.querySelector("main .body").innerText;
    shown.push([document.querySelectorAll("main h2").length, text]);
  }
  return shown;
}
"""
"""Of each page its number of headings and its text."""


def show(page: Page, name: str) -> None:
    page.evaluate("name => document.querySelector(`nav.parts a[href='#${name}']`).click()", name)


def test_every_page_opens_and_asks_for_nothing(visit: Callable[..., Watched]):
    watched = visit("own")
    names = views_of(watched.page)
    assert {"overview", "output", "heads", "lens", "rollout", "saliency", "search"} <= set(names)
    assert len(names) == len(watched.content["pages"]) + 6
    shown = watched.page.evaluate(SHOW_EACH, names)
    assert [(headings, bool(text.strip())) for headings, text in shown] == [(1, True)] * len(names)
    assert len({text for _, text in shown}) == len(names), "each page is another one"


def test_pointing_at_a_cell_tells_row_column_value_and_reason(visit: Callable[..., Watched]):
    name = "decoder.layers.1.cross_attention"
    watched = visit("given", at=f"{name}/weights")
    cells = watched.page.locator("#step-weights .result .cells")
    box = cells.bounding_box()
    assert box
    weights = matrix_of(watched.content, f"{name}.heads.0.weights")
    rows, columns = weights.shape
    row, column = 2, 1
    cells.hover(
        position={
            "x": (column + 0.5) * box["width"] / columns,
            "y": (row + 0.5) * box["height"] / rows,
        }
    )
    told = watched.page.locator(".inspector").inner_text()
    words = watched.content["words"]
    assert f"target position {row} “{words['steps'][row]}”" in told
    assert f"source token {column} “{words['source'][column]}”" in told
    assert watched.page.locator(".inspector .value").inner_text() == f"{weights[row, column]:.4g}"
    assert "sum of exp(score" in told


def test_every_head_is_small_and_the_chosen_one_large(visit: Callable[..., Watched]):
    """Layers below each other, heads and their mean side by side; arrow keys choose."""
    watched = visit("given", at="heads")
    page = watched.page
    name = "decoder.layers.1.cross_attention"
    heads = [matrix_of(watched.content, f"{name}.heads.{head}.weights") for head in range(2)]
    assert page.locator(".head-grid button").count() == 2 * (2 + 1)
    assert page.locator(".head-large h3").inner_text() == "Layer 1, mean of all heads"

    def value_at(row: int, column: int) -> str:
        page.mouse.move(5, 5)  # a pointer that rests does not point
        cells = page.locator(".head-large .cells")
        box = cells.bounding_box()
        assert box
        rows, columns = heads[0].shape
        x, y = (column + 0.5) * box["width"] / columns, (row + 0.5) * box["height"] / rows
        cells.hover(position={"x": x, "y": y})
        return page.locator(".inspector .value").inner_text()

    mean = (heads[0] + heads[1]) / 2
    assert float(value_at(2, 1)) == pytest.approx(mean[2, 1].item(), rel=1e-3)
    page.locator(".head-grid button[aria-pressed=true]").focus()
    page.keyboard.press("ArrowLeft")
    assert page.locator(".head-large h3").inner_text() == "Layer 1, head 1"
    assert page.locator("main h2").inner_text() == "All heads", "arrow keys turned the page"
    assert float(value_at(2, 1)) == pytest.approx(heads[1][2, 1].item(), rel=1e-3)

    page.get_by_text("Source to itself").click()
    page.get_by_role("link", name="See how it is computed").click()
    assert page.locator("main h2").inner_text().endswith("Self-attention")


def test_what_the_foot_line_computes_is_what_the_model_computed(visit: Callable[..., Watched]):
    """In each step the first and the last cell of the result, for the last head."""
    watched = visit("own", at="encoder.embedding")
    page = watched.page
    explained = 0
    for part in watched.content["pages"]:
        show(page, part["name"])
        if part["head_count"] > 1:
            page.locator(".heads input").last.check(force=True)
        told = page.evaluate(
            """() => [...document.querySelectorAll(".result .cells")].flatMap((cells) => {
              const box = cells.getBoundingClientRect();
              return [1, -1].map((side) => {
                const at = (from, size) => (side > 0 ? from + 1 : from + size - 1);
                cells.dispatchEvent(new PointerEvent("pointermove", {
                  clientX: at(box.left, box.width), clientY: at(box.top, box.height) }));
                const line = document.querySelector(".inspector");
                const { computed, value } = line.dataset;
                const shown = (each) => line.querySelector(each)?.innerText;
                return [computed, value, shown(".computed"), shown(".value")];
              });
            })"""
        )
        for computed, value, written, beside in told:
            if computed:
                explained += 1
                # four digits of both; the file's five to six must not round them apart
                if math.isclose(float(computed), float(value), rel_tol=9e-5):
                    assert written.strip() == f"= {beside}", part["name"]
                assert math.isclose(float(computed), float(value), rel_tol=2e-3, abs_tol=2e-3), (
                    f"{part['name']}: {computed} is not {value}"
                )
    assert explained > 80


def test_a_symbol_and_its_matrix_light_up_together(visit: Callable[..., Watched]):
    page = visit("given", at="encoder.layers.0.self_attention/scores").page
    step = page.locator("#step-scores")
    step.locator("math [data-symbol=Q]").hover()
    assert "queries of this head" in step.locator(".heat.lit figcaption").inner_text()
    step.locator(".heat").nth(1).hover()
    assert step.locator("math [data-symbol=K].lit").count() == 1


def test_the_keyboard_alone_reaches_every_number_and_turns_pages(visit: Callable[..., Watched]):
    name = "encoder.layers.0.self_attention"
    watched = visit("given", at=name)
    page = watched.page
    page.locator("#step-scores .result .cells").focus()
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    scores = matrix_of(watched.content, f"{name}.heads.0.scores")
    assert float(page.locator(".inspector").get_attribute("data-value") or "nan") == pytest.approx(
        float(scores[1, 1])
    )
    assert watched.content["words"]["source"][1] in page.locator(".for-ears").inner_text()
    page.locator(".heads input").first.focus()
    page.keyboard.press("ArrowRight")
    assert page.locator(f"[data-matrix='{name}.heads.1.scores']").count() > 0
    page.locator("main h2").focus()
    page.keyboard.press("ArrowRight")
    assert page.locator("main h2").inner_text() == "Encoder layer 0 · Feed-forward"
    page.go_back()
    assert page.locator("main h2").inner_text() == "Encoder layer 0 · Self-attention"


def test_arrow_keys_turn_pages_before_anything_was_clicked(visit: Callable[..., Watched]):
    watched = visit("given")
    page = watched.page
    assert page.evaluate("document.activeElement === document.body")
    page.keyboard.press("ArrowRight")
    assert page.locator("main h2").inner_text() == watched.content["pages"][0]["title"]
    page.keyboard.press("ArrowLeft")
    assert page.locator("main h2").inner_text() == "Overview"


def test_the_side_bar_marks_the_step_that_is_being_read(visit: Callable[..., Watched]):
    """And scrolls to it where the side bar is longer than the window."""
    watched = visit("given", viewport={"width": 1280, "height": 420})
    page = watched.page
    name = "decoder.layers.1.cross_attention"
    show(page, name)
    [steps] = [each["steps"] for each in watched.content["pages"] if each["name"] == name]
    marked = page.locator("nav.parts a[aria-current=location]")
    for step in (steps[0], steps[3], steps[-1], steps[1]):
        place = f"document.querySelector('#step-{step['name']}')"
        page.evaluate(f"{place}.scrollIntoView({{ block: 'start', behavior: 'instant' }})")
        page.wait_for_function(
            "title => document.querySelector('nav.parts a[aria-current=location]')"
            "?.textContent === title",
            arg=step["title"],
        )
        box, bar = marked.bounding_box(), page.locator("nav.parts").bounding_box()
        assert box
        assert bar
        assert bar["y"] <= box["y"]
        assert box["y"] + box["height"] <= bar["y"] + bar["height"] + 1
    page.evaluate("window.scrollTo(0, 0)")
    show(page, "overview")
    assert page.locator("nav.parts .step-link").count() == 0


@pytest.mark.parametrize("width", [1280, 375])
def test_the_switch_of_heads_covers_no_part_of_a_line(visit: Callable[..., Watched], width: int):
    """It is as wide as what scrolls below it, and what a link or the Tab key leads to is below."""
    at = "encoder.layers.0.self_attention"
    page = visit("given", at=at, viewport={"width": width, "height": 500}).page
    page.evaluate("document.querySelector('#step-weights').scrollIntoView()")
    bar, view = page.locator(".heads").bounding_box(), page.locator("main.view").bounding_box()
    assert bar
    assert view
    assert bar["y"] == 0
    assert bar["x"] <= view["x"] + 1
    assert bar["x"] + bar["width"] >= view["x"] + view["width"] - 1
    for selector in ("#step-weights h3", "#step-scores .here", "#step-weights summary"):
        element = page.locator(selector).first
        element.evaluate("element => element.focus()")
        box = element.bounding_box()
        assert box
        assert box["y"] >= bar["height"], f"{selector} is covered"


def test_a_report_says_where_the_numbers_of_equations_lead(visit: Callable[..., Watched]):
    page = visit("given", at="encoder.layers.0.self_attention").page
    assert "EQ-52" in page.locator("#step-weights").inner_text()
    assert "docs/EQUATIONS.md" in page.locator("main .sources").inner_text()


def test_behind_each_picture_stands_a_table_of_its_numbers(visit: Callable[..., Watched]):
    name = "decoder.layers.0.self_attention"
    watched = visit("given", at=f"{name}/masked_scores")
    result = watched.page.locator("#step-masked_scores .result")
    result.locator("summary").click()
    cells = result.locator("tbody td").all_inner_texts()
    scores = matrix_of(watched.content, f"{name}.heads.0.masked_scores")
    assert len(cells) == scores.numel()
    assert cells[1] == "−∞"
    assert cells[0].replace("−", "-") == f"{float(scores[0, 0]):.4g}"


def test_a_search_can_be_watched_step_by_step(visit: Callable[..., Watched]):
    watched = visit("own", at="search")
    page = watched.page
    nodes = watched.content["search"]["nodes"]
    boxes = page.locator(".beam-board .beam-box:visible")
    assert boxes.count() == len(nodes)
    page.locator("input[type=range]").fill("1")
    assert boxes.count() == sum(node["length"] <= 1 for node in nodes)
    page.get_by_role("button", name="Forward").click()
    assert boxes.count() == sum(node["length"] <= 2 for node in nodes)
    pruned = next(node for node in nodes if node["verdict"] == "pruned" and node["length"] <= 2)
    page.locator(".beam-board .beam-box").nth(pruned["number"]).hover()
    assert pruned["reason"] in page.locator(".inspector").inner_text()


def test_the_tree_of_a_search_is_reached_by_tab_at_every_step(visit: Callable[..., Watched]):
    """Also where the token that was reached last is not there yet. Alt with an arrow is the
    browser's."""
    page = visit("own", at="search").page
    page.locator(".beam-board .beam-box[tabindex='0']").focus()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    page.locator("input[type=range]").fill("1")
    reached = page.locator(".beam-board .beam-box[tabindex='0']")
    assert reached.count() == 1
    assert reached.is_visible()
    press = """(box, altKey) => box.dispatchEvent(new KeyboardEvent(
        "keydown", { key: "ArrowRight", altKey, bubbles: true, cancelable: true }))"""
    assert reached.evaluate(press, True)
    assert not reached.evaluate(press, False)


def test_hostile_words_are_shown_and_do_nothing(visit: Callable[..., Watched]):
    page = visit("hostile").page
    assert HOSTILE in page.locator("h1").inner_text()
    show(page, "encoder.embedding")
    assert page.locator("img").count() == 0


@pytest.mark.parametrize("at", ["overview", "decoder.layers.0.cross_attention", "lens", "search"])
def test_a_phone_scrolls_pictures_but_never_the_page(visit: Callable[..., Watched], at: str):
    page = visit("own", at=at, viewport={"width": 375, "height": 700}).page
    assert page.evaluate("document.documentElement.scrollWidth") <= 375


@pytest.mark.parametrize(
    ("scheme", "names"),
    [
        ("light", ["decoder.layers.0.self_attention", "search"]),
        ("dark", ["overview", "output", "heads", "lens"]),
    ],
)
def test_axe_finds_nothing_to_blame(visit: Callable[..., Watched], scheme: str, names: list[str]):
    watched = visit("own", color_scheme=scheme)
    for name in names:
        show(watched.page, name)
        violations = Axe().run(watched.page, options=AXE_OPTIONS).response["violations"]
        serious = [
            (each["id"], [node["html"][:200] for node in each["nodes"]][:3])
            for each in violations
            if each["impact"] in ("serious", "critical")
        ]
        assert serious == [], name


def test_paper_is_light_whatever_the_screen_was(visit: Callable[..., Watched]):
    page = visit("given", at="encoder.layers.0.feed_forward", color_scheme="dark").page
    ground = "getComputedStyle(document.querySelector('.pellucid-report')).backgroundColor"
    assert page.evaluate(ground) == "rgb(13, 20, 21)"
    page.emulate_media(media="print")
    assert page.evaluate(ground) == "rgb(243, 246, 246)"
    assert page.locator(".inspector").is_hidden()


@pytest.mark.parametrize("row", [0, 2])
def test_a_cell_of_an_ssru_is_a_mean_of_the_row_above(visit: Callable[..., Watched], row: int):
    """F × (the cell before, 0 above the first) + (1 − F) × N, from the numbers in the file."""
    name = "decoder.layers.1.ssru"
    watched = visit("ssru", at=f"{name}/cell")
    gate, added, cells = (
        matrix_of(watched.content, f"{name}.{part}") for part in ("gate", "candidate", "cell")
    )
    box = watched.page.locator("#step-cell .result .cells").bounding_box()
    assert box
    rows, columns = cells.shape
    column = 3
    watched.page.locator("#step-cell .result .cells").hover(
        position={
            "x": (column + 0.5) * box["width"] / columns,
            "y": (row + 0.5) * box["height"] / rows,
        }
    )
    told = watched.page.locator(".inspector").inner_text()
    before = float(cells[row - 1, column]) if row else 0.0
    share, new = float(gate[row, column]), float(added[row, column])
    assert share * before + (1 - share) * new == pytest.approx(float(cells[row, column]), rel=1e-3)
    number = r"(−?[\d.]+)"
    shown = re.search(rf"{number} × {number} \+ \(1 − {number}\) × {number}", told)
    assert shown, told
    read = [float(each.replace("−", "-")) for each in shown.groups()]
    assert read == pytest.approx([share, before, share, new], rel=1e-2, abs=1e-3)
    value = watched.page.locator(".inspector .value").inner_text().replace("−", "-")
    assert value == f"{cells[row, column]:.4g}"


PLACES = """
cell => {
  const place = (node, from, to) => {
    const range = document.createRange();
    range.setStart(node, from);
    range.setEnd(node, to);
    return range.getBoundingClientRect().left;
  };
  return [...cell.childNodes].filter((node) => node.textContent).map((node) => {
    const text = node.nodeType === Node.TEXT_NODE ? node : node.firstChild;
    return place(text, 0, text.length);
  });
}
"""
"""Where the parts of a cell begin, in pixels."""


def test_shares_stand_beside_their_words_from_right_to_left(visit: Callable[..., Watched]):
    page = visit("arabic", "lens").page
    places = page.locator(".lens .others").first.evaluate(PLACES)
    assert len(places) >= 4
    assert places == sorted(places), "word, share, comma, word, share"
    label = page.locator(".lens th[scope=row]").nth(1).inner_text()
    assert label == "\u200e\u2068بيت\u2069 ▸ \u2068ماء\u2069"
    page.goto(page.url.replace("#lens", "#saliency"))
    expect(page.locator(".about").last).to_contain_text("an integral taken at 64 points.")
