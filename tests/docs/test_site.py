"""The site of docs/: its pages lead somewhere, ask nothing of the network, and its toys compute
what the equations do."""

import importlib
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from book.exercises import PAGES, Exercise, exercises
from pellucid.equations.attention import attention, attention_weights
from pellucid.equations.losses import smooth_labels
from pellucid.equations.penalties import length_penalty
from pellucid.equations.positions import sinusoidal_positions
from pellucid.equations.schedules import transformer_learning_rate
from pellucid.equations.softmax import softmax

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def preparing() -> ModuleType:
    sys.path.insert(0, str(ROOT / "scripts"))
    return importlib.import_module("prepare_site")


@pytest.fixture(scope="module")
def site(preparing: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The whole site, built as ``make site`` builds it."""
    folder = tmp_path_factory.mktemp("site")
    preparing.prepare(folder / "build" / "pages")
    (folder / "mkdocs.yml").write_bytes((ROOT / "mkdocs.yml").read_bytes())
    command = [str(Path(sys.executable).with_name("zensical")), "build", "--strict"]
    built = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    return folder / "build" / "site"


def test_every_link_of_the_site_leads_to_a_page_of_it(site: Path):
    pages = [*site.rglob("*.html")]
    assert len(pages) > 150
    link = re.compile(r'(?:href|src)=(?:"([^"#]+)|([^"\s>#]+))')
    missing = set()
    for page in pages:
        text = page.read_text("utf-8")
        if "source" in page.relative_to(site).parts:  # shows any text, below its own links
            text = text.partition("<pre>")[0]
        for target in ("".join(found) for found in link.findall(text)):
            is_here = not re.match(r"(https?|mailto|data|/)", target)
            if is_here and page.name != "404.html" and not (page.parent / target).exists():
                missing.add(f"{page.relative_to(site)}: {target}")
    assert missing == set()


def test_every_page_of_docs_is_in_the_menu():
    menu = set(re.findall(r": (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE))
    docs = ROOT / "docs"
    pages = {path.relative_to(docs).as_posix() for path in docs.rglob("*.md")}
    notebooks = {f"notebooks/{path.stem}.md" for path in docs.rglob("*.ipynb")}
    assert menu == pages | notebooks | {"equations/find.md"}


def test_a_strict_build_refuses_a_link_that_leads_nowhere(tmp_path: Path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text("[nothing](nothing.md)\n")
    (tmp_path / "mkdocs.yml").write_text("site_name: x\ntheme: {font: false}\n")
    command = [str(Path(sys.executable).with_name("zensical")), "build", "--strict"]
    built = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert built.returncode != 0
    assert "page does not exist" in built.stderr


def test_the_page_of_all_equations_has_formula_sentence_lines_and_tests(preparing: ModuleType):
    text = (ROOT / "docs" / "equations" / "attention.md").read_text("utf-8")
    entry = preparing.entries_of("attention", text)[0]
    assert (entry.title, entry.anchor) == ("Attention", "attention")
    assert entry.sentence.startswith("Each query gets the mean of the values")
    assert r"\mathrm{softmax}" in entry.formulas[0]
    [(name, link)] = entry.functions
    assert name == "attention"
    assert re.fullmatch(r"../../pellucid/equations/attention.py#L\d+-L\d+", link)
    assert "test_attention_by_hand" in dict(entry.tests)
    assert "EQ-50" in entry.numbers


def test_every_entry_of_the_book_is_on_the_page_of_all_equations(preparing: ModuleType):
    found = set()
    for path in (ROOT / "docs" / "equations").glob("*.md"):
        found |= {
            f"{each.chapter}.md#{each.anchor}"
            for each in preparing.entries_of(path.stem, path.read_text("utf-8"))
        }
    index = (ROOT / "docs" / "equations" / "index.md").read_text("utf-8")
    chapters = index[index.index("## Chapters") : index.index("## How to read")]
    assert set(re.findall(r"\(([\w-]+\.md#[^)]+)\)", chapters)) == found


def test_the_first_screen_is_the_model_at_work(site: Path, browser: Any):
    """And a step of its tour leads to a chapter of the same site."""
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto((site / "index.html").as_uri())
    box = page.locator("iframe.live").bounding_box()
    assert box["y"] < 100
    assert box["y"] + box["height"] >= 890
    assert box["width"] >= 1260
    model = page.frame_locator("iframe.live")
    model.locator("html[data-ready]").wait_for()
    assert model.locator("#target").inner_text() == "i see a black cat"
    model.locator(".tour-start").click()
    model.locator(".tour-next").click()
    link = model.locator(".tour-chapter a").get_attribute("href")
    assert link == f"{(site / 'equations' / 'tokens.html').as_uri()}#vocabulary-and-ids"
    assert 'id="vocabulary-and-ids"' in (site / "equations" / "tokens.html").read_text("utf-8")
    page.close()


@pytest.fixture(scope="module")
def page(site: Path, browser: Any) -> Any:
    """A page of the book, opened from its folder in a browser that reaches nothing else."""
    page = browser.new_page(viewport={"width": 375, "height": 800})
    page.asked, page.errors = [], []
    page.on("request", lambda each: page.asked.append(each.url))
    page.on("pageerror", lambda each: page.errors.append(str(each)))
    page.goto((site / "equations" / "attention.html").as_uri())
    yield page
    page.close()


def test_the_toys_compute_what_the_equations_do(page: Any, browser: Any):
    """Where the numbers differ: 64-bit floats on both sides, and sums in another order."""

    def same(call: str, expected: object) -> None:
        found = torch.tensor(page.evaluate(call), dtype=torch.float64)
        right = torch.as_tensor(expected, dtype=torch.float64)
        torch.testing.assert_close(found, right, rtol=1e-12, atol=1e-12)

    scores = [2.0, -1.0, 0.5]
    same(f"softmax({scores}, 0.7)", softmax(torch.tensor(scores, dtype=torch.float64) / 0.7))
    same("softmax([1000, 999])", softmax(torch.tensor([1000.0, 999.0], dtype=torch.float64)))
    rows = [[[1.0, 2.0], [0.5, -1.0]], [[0.0, 1.0], [2.0, 1.0], [1.0, 1.0]]]
    rows.append([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]])
    q, k, v = (torch.tensor(each, dtype=torch.float64) for each in rows)
    same(f"attentionWeights({rows[0]}, {rows[1]})", attention_weights(q, k))
    same(f"attention({rows[0]}, {rows[1]}, {rows[2]})", attention(q, k, v))
    same("sinusoidalPositions(9, 5)", sinusoidal_positions(9, 5, dtype=torch.float64))
    label = torch.tensor(2)
    same("smoothLabels(2, 5, 0.1)", smooth_labels(label, 5, 0.1, torch.float64))
    for step in (1, 399, 400, 5000):
        same(f"learningRate({step}, 256, 400)", transformer_learning_rate(step, 256, 400))
    same("lengthPenalty(7, 0.6)", length_penalty(7, 0.6))


def test_a_toy_answers_its_sliders(page: Any, browser: Any):
    shares = page.locator("[data-toy=softmax] .bars > span:nth-child(3n)")
    assert shares.all_inner_texts() == ["0.644", "0.237", "0.087", "0.032"], "e², e, 1 and 1/e"
    page.locator("[data-toy=softmax] input").first.fill("0.1")
    assert shares.all_inner_texts()[0] == "1.000"


@pytest.mark.parametrize(
    ("chapter", "title", "tool"),
    [
        ("masks", "Causal mask", "Drop the mask"),
        ("positions", "Why positions are needed", "Drop the positions"),
    ],
)
def test_a_chapter_embeds_the_model_with_what_it_is_about(
    site: Path, page: Any, browser: Any, chapter: str, title: str, tool: str
):
    page.goto((site / "equations" / f"{chapter}.html").as_uri())
    page.locator(f"iframe[title='{title}']").scroll_into_view_if_needed()
    part = page.frame_locator(f"iframe[title='{title}']")
    part.locator(".card").wait_for()
    assert part.locator(".panel-tour").is_hidden()
    part.get_by_role("button", name=tool).click()
    part.locator(".before-after").wait_for()
    assert page.errors == []


def test_a_row_can_be_held_within_the_chapter_about_weights(site: Path, page: Any, browser: Any):
    page.goto((site / "equations" / "attention.html").as_uri())
    page.locator("iframe[title='Attention weights']").scroll_into_view_if_needed()
    part = page.frame_locator("iframe[title='Attention weights']")
    part.locator(".hold-bar").first.focus()
    page.keyboard.press("End")
    part.locator(".changes button", has_text="held in").wait_for()
    assert part.locator(".changes button").count() == 1


def test_a_cell_says_right_or_wrong(page: Any, browser: Any):
    cell = page.locator("form.cell[data-number='2']")
    for given, said in (
        ("0.5", "wrong"),
        ("0.881", "right"),
        ("half", "wrong"),
        (".8808", "right"),
    ):
        cell.locator("input").fill(given)
        assert cell.locator("output").inner_text() == ""
        cell.get_by_role("button").click()
        assert cell.locator("output").inner_text() == said, given


def test_the_cells_judge_as_the_command_does(page: Any, browser: Any):
    texts = ["0.5", "0.501", "0.5026", "0.49", "-.5", " .5 ", "5e-1", "half", "", "1,632", "'LO'"]
    texts += ["0,5", "−0,5", "1\u202f632", "1,632.0", ","]
    for answer in (0.5, 0.0, 1632, "lo", -0.5):
        one = Exercise(1, "?", answer, "")
        for text in texts:
            found = page.evaluate("([answer, text]) => isAnsweredBy(answer, text)", [answer, text])
            assert found == one.is_answered_by(text), (answer, text)


def test_every_exercise_has_its_cell(site: Path):
    for path in PAGES.glob("*.toml"):
        text = (site / "equations" / f"{path.stem}.html").read_text("utf-8")
        assert len(re.findall(r"<form[^>]*class=.?cell", text)) == len(exercises(path.stem)) == 3


def test_pages_ask_nothing_of_the_network_and_fit_a_phone(site: Path, page: Any, browser: Any):
    for name in ("index", "equations/positions", "equations/optimizer", "equations/search"):
        page.goto((site / f"{name}.html").as_uri())
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
    assert page.locator(".formula math").count() > 5
    assert page.errors == []
    assert [each for each in page.asked if not each.startswith(("file:", "data:", "blob:"))] == []


def test_an_equation_is_found_by_number_and_its_lines_are_marked(
    site: Path, page: Any, browser: Any
):
    page.goto((site / "equations" / "find.html").as_uri())
    page.locator("#find-equation").fill("eq-50")
    shown = page.locator(".equation:visible")
    assert "Attention" in shown.first.inner_text()
    assert shown.count() < 5
    shown.first.get_by_role("link", name="attention", exact=True).last.click()
    assert page.locator("pre .chosen").first.inner_text().startswith("def attention(")


def test_an_address_with_a_number_opens_at_that_equation_alone(site: Path, page: Any, browser: Any):
    """As the files of `--book` lead to it; EQ-13 is not the beginning of EQ-130."""
    page.goto(f"{(site / 'equations' / 'find.html').as_uri()}#EQ-13")
    found = page.locator(".equation:visible").all_inner_texts()
    assert 1 <= len(found) < 5
    assert all(re.search(r"EQ-13(?!\d)", text) for text in found)


def test_the_search_of_the_site_works_in_a_folder(site: Path, page: Any, browser: Any):
    page.goto((site / "sources.html").as_uri())
    page.keyboard.press("Control+k")
    page.get_by_role("combobox").fill("ALiBi")
    page.get_by_role("option", name=re.compile("Positional encoding")).first.wait_for()
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("positions.html.*#alibi"))
    assert page.errors == []
