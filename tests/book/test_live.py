"""The page with a model at work: the same bytes twice, and a limit on its size."""

import base64
import json
import re
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from playwright.sync_api import Browser, Page

from book.live import EXAMPLE, FRAMES, MOST_BYTES, PAGE, SETTINGS, train_live, write_live
from pellucid.backends.web.export import remake_page
from pellucid.core.errors import BundleError, ConfigError
from pellucid.training.presets import read_config

TRANSLATION = "i see a black cat"
TINY = (
    *SETTINGS,
    "phrasebook.pairs=300",
    "phrasebook.held_out=4",
    "tokenizer.vocabulary_size=400",
    "model.d_model=16",
    "model.d_ff=16",
    "training.max_steps=2",
    "training.warmup_steps=1",
    "training.validate_every=2",
    "training.save_every=2",
    "training.film_every=1",
)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two runs, in folders of other names, at other times, and for callers with other threads."""
    before, folder = torch.get_num_threads(), tmp_path_factory.mktemp("live")
    for name, threads in (("a", 1), ("b", 2)):
        torch.set_num_threads(threads)
        train_live(folder / name, TINY)
    torch.set_num_threads(before)
    return [folder / "a", folder / "b"]


def test_it_is_the_same_to_the_byte_each_time_for_any_number_of_threads(
    runs: list[Path], tmp_path: Path
):
    pages = [tmp_path / f"{run.name}.html" for run in runs]
    sizes = [write_live(run, page) for run, page in zip(runs, pages, strict=True)]
    assert sizes[0] == sizes[1] == pages[0].stat().st_size
    assert pages[0].read_bytes() == pages[1].read_bytes()
    assert f'"example":"{EXAMPLE}"' in pages[0].read_text("utf-8")


def test_a_page_that_is_too_large_is_not_written(runs: list[Path], tmp_path: Path):
    with pytest.raises(ConfigError, match=r"must have at most 100,000 bytes, got \d"):
        write_live(runs[0], tmp_path / "page.html", most_bytes=100_000)
    assert not (tmp_path / "page.html").exists()


def test_it_is_the_demo_but_narrower():
    """What the page leaves out of the preset: width and vocabulary."""
    demo, live = read_config("demo"), read_config("demo", SETTINGS)
    assert live.model.d_model < demo.model.d_model
    assert live.training.max_steps == demo.training.max_steps
    assert live.training.threads == 1


def test_the_page_of_the_docs_is_as_the_code_makes_it():
    """After a change of the explorer or the engine: ``python -m book live --again``."""
    page = PAGE.read_text("utf-8")
    assert remake_page(page) == page
    assert len(page.encode()) <= MOST_BYTES


def test_its_film_goes_from_babble_to_the_sentence():
    held = re.search(r'id="pellucid-film">([^<]*)<', PAGE.read_text("utf-8"))
    assert held is not None
    film = json.loads(zlib.decompress(base64.b64decode(held[1])))
    said = [frame["own"] for frame in film["frames"]]
    assert len(said) == FRAMES
    assert (film["source"], said[-1]) == (EXAMPLE, TRANSLATION)
    assert film["frames"][0]["step"] == 0
    assert not set(said[0].split()) & set(TRANSLATION.split())
    assert len(set(said)) >= 5, "one sees it learn"


def test_what_holds_no_model_is_not_made_again():
    with pytest.raises(BundleError, match="holds no model as this version writes it"):
        remake_page("<!doctype html>")


@pytest.fixture(scope="module")
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
    page = context.new_page()
    page.goto(PAGE.as_uri())
    page.wait_for_selector("html[data-ready]")
    page.locator(".said-word").first.wait_for()
    yield page
    context.close()


def test_it_opens_with_a_sentence_whose_attention_crosses(page: Page):
    """Before "black" the decoder attends most to "noir", before "cat" to "chat"."""
    assert page.inner_text("#target") == TRANSLATION
    for word, asked in (("black", "noir"), ("cat", "chat")):
        page.locator(".said-word", has_text=word).click()
        told = page.locator(".attends").inner_text()
        assert f"generates “{word}”, the decoder attends most to “{asked}”" in told
        page.locator(".said-word", has_text=word).click()


def test_the_whole_picture_is_on_the_first_screen(page: Page):
    """At 1280 x 900, from the text to the last row of the decoder, without scrolling."""
    page.evaluate("scrollTo(0, 0)")
    for selector in ("#source", "#target", ".tower.encoder", ".tower.decoder"):
        box = page.locator(selector).bounding_box()
        assert box is not None
        assert box["y"] >= 0, selector
        assert box["y"] + box["height"] <= 900, selector


@pytest.mark.parametrize("width", [375, 768, 1280, 1600])
def test_nothing_is_wider_than_the_screen(page: Page, width: int):
    page.set_viewport_size({"width": width, "height": 900})
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.set_viewport_size({"width": 1280, "height": 900})


def test_what_the_lesson_does_with_the_page(page: Page):
    """docs/teaching.md: the loss of the first frame, and what is lost without a part."""
    said = page.locator(".before-after")
    page.locator(".tour-start").click()
    page.evaluate("for (let n = 0; n < 11; n++) document.querySelector('.tour-next').click()")
    page.locator(".tour[data-step=loss][data-is-listening]").wait_for()
    page.locator(".film input[type=range]").fill("0")
    page.locator(".tour-text", has_text="their mean is 8.").wait_for()
    assert "pro pro pro" in page.locator(".film").inner_text().replace("\n", " ")
    page.get_by_role("button", name="Back to the trained model").click()
    page.keyboard.press("Escape")
    assert page.locator(".tour").count() == 0

    page.get_by_role("button", name="Drop the mask").click()
    said.get_by_text("the same").wait_for()
    page.locator(".changes button").click()
    page.get_by_role("button", name="Switch parts off").click()
    for head in range(3):
        name = f"decoder.layers.1.cross_attention.heads.{head}"
        page.locator(f"#explorer [data-part='{name}']").first.click()
        page.locator(f".changes li:nth-child({head + 1})").wait_for()
    said.get_by_text("book").wait_for()
    page.get_by_role("button", name="Undo all").click()

    page.get_by_role("button", name="Drop the positions").click()
    page.fill("#source", "est-ce que tu veux me voir sous leur table ?")
    page.locator("#target", has_text="do you want to see me").wait_for()
    lost = re.compile(r"now\s*you\s*want\s*to\s*see\s*their\s*table")
    page.locator(".before-after", has_text=lost).wait_for()
    page.locator(".changes button").click()
    page.fill("#source", EXAMPLE)
    page.locator("#target", has_text=TRANSLATION).wait_for()
