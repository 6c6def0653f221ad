"""Why this word and not that one, in a stored report in Chromium."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from opened_reports import SOURCE, TARGET
from playwright.sync_api import Browser, Page

from pellucid.bundle import Bundle, load_bundle
from pellucid.inspection.report.page import make_report
from pellucid.inspection.why import Why, why

POSITION = 1
AXE_OPTIONS = {"runOnly": ["wcag2a", "wcag2aa"], "resultTypes": ["violations"]}


@pytest.fixture(scope="module")
def bundle(tiny_run: Path) -> Bundle:
    return load_bundle(tiny_run)


@pytest.fixture(scope="module")
def expected(bundle: Bundle) -> Why:
    return why(bundle, SOURCE, TARGET, position=POSITION)


@pytest.fixture(scope="module")
def page(
    browser: Browser, bundle: Bundle, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Page]:
    path = tmp_path_factory.mktemp("why") / "report.html"
    path.write_text(make_report(bundle, SOURCE, TARGET), encoding="utf-8")
    context = browser.new_context(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
    page, problems = context.new_page(), list[str]()
    page.on("console", lambda message: problems.append(message.text))
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(path.as_uri())
    yield page
    assert problems == []
    context.close()


def number(text: str) -> float:
    return float(text.replace("−", "-").strip())


def test_a_word_of_the_translation_is_explained(page: Page, expected: Why):
    assert "Pick a word" in page.locator(".why").inner_text()
    page.locator(".said-word").nth(POSITION).click()
    page.locator(".why-part").first.wait_for()
    names = page.locator(".why-part").evaluate_all("all => all.map((each) => each.dataset.part)")
    assert names == [part.name for part in expected.largest[:10]]
    values = [number(text) for text in page.locator(".why-value").all_inner_texts()]
    assert values == pytest.approx([part.value for part in expected.largest[:10]], abs=6e-3)
    assert number(page.locator(".why-all dd").inner_text()) == pytest.approx(
        expected.total, abs=6e-3
    )
    assert page.locator(".why-true dd").inner_text() == page.locator(".why-all dd").inner_text()
    head = next(part for part in expected.largest if part.attended)
    row = page.locator(f".why-part[data-part='{head.name}']")
    for token, value in expected.words_behind(head, 1):
        chip = row.locator(".why-chip").first.inner_text()
        assert chip.startswith(token)
        assert number(chip.removeprefix(token)) == pytest.approx(value, abs=6e-3)
    assert (
        f"{expected.source_share:.0%} of the last hidden state"
        in page.locator(".why-origin").inner_text()
    )


def test_another_word_is_compared_and_a_bar_opens_its_part(page: Page, bundle: Bundle):
    page.locator(".why-rival").select_option(index=2)
    rival = int(page.locator(".why-rival").input_value())
    [token] = bundle.target_tokenizer.tokens([rival])
    other = why(bundle, SOURCE, TARGET, position=POSITION, rival=token)
    page.locator(f".why-part[data-part='{other.largest[0].name}']").wait_for()
    assert number(page.locator(".why-true dd").inner_text()) == pytest.approx(
        other.difference, abs=6e-3
    )
    head = next(part for part in other.largest[:10] if part.attended)
    page.locator(f".why-part[data-part='{head.name}']").click()
    assert page.locator(".card h3").inner_text() == "Weights"
    opened = head.name.removesuffix(".heads.0.output").removesuffix(".heads.1.output")
    assert page.locator(f".column.is-open[data-column='{opened}']").count() == 1


def test_no_one_is_left_out(page: Page):
    found = Axe().run(page, options=AXE_OPTIONS)
    assert found.violations_count == 0, found.generate_report()
