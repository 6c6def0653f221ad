"""Worked examples and equation entries in the exported file, held to Python."""

import dataclasses
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page
from taught import pairs, taught_bundle
from tiny_models import tiny_bundle

from book.examples.attention import KEYS, QUERIES, VALUES
from book.examples.page import matrix
from book.scenes import (
    SENTENCE,
    STORED,
    TRANSLATION,
    scenes_content,
    scenes_text,
    taught_sentence,
)
from pellucid.backends.web.export import make_page
from pellucid.bundle import Bundle, save_bundle
from pellucid.equations.attention import attention, attention_scores
from pellucid.inspection.capture import inspect
from pellucid.inspection.report.equation_entries import equation_entries
from pellucid.inspection.report.matrices import unpack_numbers
from pellucid.model.build import build_any_model
from pellucid.model.config import DecoderConfig, RnnAttentionConfig
from pellucid.text.tokenizers.vocabulary import Vocabulary
from pellucid.text.tokenizers.word_tokenizers import WordTokenizer

AXE_OPTIONS = {"runOnly": ["wcag2a", "wcag2aa"], "resultTypes": ["violations"]}


WALK_SCENE = """(scenes) => {
  const told = [];
  for (;;) {
    const { value, computed } = scenes.querySelector(".inspector")?.dataset ?? {};
    const text = (selector) => scenes.querySelector(selector)?.innerText;
    const written = [text(".inspector .value"), text(".inspector .computed")];
    told.push([text(".scene-place"), value ?? "", computed ?? "", ...written]);
    const next = scenes.querySelector(".scene-next");
    if (next === null || next.disabled || told.length === 100) return told;
    next.click();
  }
}"""
"""For each step of a scene: its place, a number, what the formula beside it gives, and both as
they are written."""


def test_scenes_hold_what_the_equations_compute():
    scenes = {scene["name"]: scene for scene in scenes_content()}
    held = scenes["attention"]["matrices"]
    query, key, value = matrix(*QUERIES), matrix(*KEYS), matrix(*VALUES)
    for name, expected in (
        ("attention.S", attention_scores(query, key)),
        ("attention.O", attention(query, key, value)),
    ):
        numbers = torch.tensor(list(unpack_numbers(held[name]["data"])), dtype=torch.float64)
        torch.testing.assert_close(numbers, expected.flatten(), rtol=1e-4, atol=1e-4)


def test_the_stored_scenes_are_those_that_the_book_makes_now():
    """``make docs`` writes them. The last bits of what was learned depend on the processor."""
    stored, made = json.loads(STORED.read_text(encoding="utf-8")), json.loads(scenes_text())
    for before, now in zip(stored, made, strict=True):
        assert without_numbers(before) == without_numbers(now), "run python -m book scenes"
        for name, matrix_now in now["matrices"].items():
            torch.testing.assert_close(
                numbers_of(before["matrices"][name]), numbers_of(matrix_now), rtol=1e-3, atol=1e-3
            )


def numbers_of(held: dict[str, Any]) -> torch.Tensor:
    return torch.tensor(list(unpack_numbers(held["data"])))


def without_numbers(value: Any) -> Any:
    """A scene without what its model computed: the packed matrices and its probabilities."""
    if isinstance(value, dict):
        return {k: without_numbers(v) for k, v in value.items() if k != "data"}
    if isinstance(value, list):
        return [without_numbers(each) for each in value]
    return None if isinstance(value, float) else value


def test_whoever_opens_exports_or_reports_a_model_loads_no_compiler_and_no_optimizer(
    tmp_path: Path,
):
    """The compiler takes seconds, and is imported by arithmetic on the meta device. Only the
    journal of a run is read; ``torch.optim`` is loaded by torch itself."""
    bundle = tiny_bundle()
    bundle = dataclasses.replace(bundle, settings={"model": bundle.config.to_table()})
    save_bundle(tmp_path / "model", bundle, card="", details={})
    code = """if True:
        import sys
        from pathlib import Path
        from pellucid.bundle import load_bundle

        folder = Path(sys.argv[1])
        bundle = load_bundle(folder / "model")
        assert bundle.model is not None
        assert "torch._dynamo" not in sys.modules

        from pellucid.backends.web.export import make_page
        from pellucid.inspection.report.page import write_report

        assert "<!doctype html>" in make_page(bundle).lower()
        write_report(bundle, folder / "report.html", "a b")
        training = [name for name in sys.modules if name.startswith("pellucid.training.")]
        assert training in ([], ["pellucid.training.journal"]), training
        assert not [name for name in sys.modules if name.split(".")[0] == "book"]
    """
    command = [sys.executable, "-c", code, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_every_symbol_of_a_scene_has_its_matrix():
    for scene in scenes_content():
        for page in scene["pages"]:
            for step in page["steps"]:
                for symbol in step["symbols"]:
                    if symbol["matrix"] is not None:
                        name = symbol["matrix"].replace("{head}", "0")
                        assert name in scene["matrices"], (scene["name"], step["name"], name)


def test_the_model_of_the_scene_says_what_the_text_says():
    assert inspect(taught_sentence(), SENTENCE).sentence.text == TRANSLATION


def test_an_entry_names_the_plainest_function_of_a_number():
    entry = equation_entries()[50]
    assert entry["function"] == "pellucid.equations.attention.attention"
    assert entry["formula"] == "Attention(Q, K, V) = softmax(Q Kᵀ / √dₖ) V"
    assert entry["says"].startswith("Each query gets the mean of the values")
    assert entry["source"].startswith("Agarwal, Def. 4.1; Vaswani et al. (2017)")
    assert 1 not in equation_entries()  # a part of the program, not a function of the equations


@pytest.fixture(scope="module")
def page(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    bundle = taught_bundle(tmp_path_factory.getbasetemp())
    path = tmp_path_factory.mktemp("scenes") / "model.html"
    text = "je ne vois pas les maisons rouges"
    path.write_text(make_page(bundle, "float32", name="t", example=text, book="../site"), "utf-8")
    context = browser.new_context(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
    context.set_default_timeout(30_000)
    page, problems = context.new_page(), list[str]()
    page.on("console", lambda message: problems.append(message.text))
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-ready]")
    page.locator("#explorer").scroll_into_view_if_needed()
    page.locator(".said-word").first.wait_for()
    yield page
    assert problems == []
    context.close()


def test_every_step_of_every_scene_agrees_with_its_own_arithmetic(page: Page):
    page.locator(".scenes-start").click()
    steps = 0
    for place, scene in enumerate(scenes_content()):
        name = scene["name"]
        page.locator(".scene-choice button").nth(place).click()
        count = sum(len(each["steps"]) for each in scene["pages"])
        told = page.locator(".scenes").evaluate(WALK_SCENE)
        words = " ".join(page.locator(".scenes").inner_text().split())
        assert "keies" not in words
        assert name != "attention" or "2 queries × 3 keys" in words
        assert [each[0] for each in told] == [f"Step {n + 1} of {count}" for n in range(count)]
        for _, value, computed, shown, beside in told:
            if computed:
                assert float(computed) == pytest.approx(float(value), rel=2e-3, abs=2e-3), name
                assert beside == f" = {shown}", "one does not read −1.092 beside −1.091"
                steps += 1
    assert steps > 40
    assert "null" not in page.locator(".scenes").inner_text().split()
    found = Axe().run(page, options=AXE_OPTIONS).response["violations"]
    assert found == [], [(each["id"], each["nodes"][0]["html"]) for each in found]
    page.locator(".scenes .close").click()
    assert page.evaluate("document.activeElement.className") == "tool scenes-start"


def test_an_equation_opens_in_its_place(page: Page):
    page.locator("[data-part='encoder.layers.0.self_attention.heads.0']").first.click()
    # not opened again by its step: the card would be made anew while its equations are clicked
    page.locator(".card h3", has_text="Weights").wait_for()
    page.get_by_role("button", name="EQ-52: what it says").click()
    entry = page.locator(".card .equation-entry")
    assert "pellucid.equations.attention.attention_weights" in entry.inner_text()
    link = entry.get_by_role("link", name="EQ-52 in the book of equations")
    book = page.url.partition("/scenes")[0]
    assert link.evaluate("each => each.href") == f"{book}/site/equations/find.html#EQ-52"
    page.get_by_role("button", name="EQ-52: what it says").click()
    assert entry.count() == 0


def test_an_empty_field_invites_to_an_example(page: Page):
    page.locator("#clear").click()
    page.locator("#chips button").click()
    assert page.locator("#source").input_value() == "je ne vois pas les maisons rouges"
    assert page.locator("#invite").is_hidden()


CONFIGS = {
    "decoder": DecoderConfig(d_model=16, d_ff=16, heads=2, decoder_layers=1),
    "rnn_attention": RnnAttentionConfig(d_model=16),
}
TOURS = {
    "decoder": "text tokens vectors attention query key weights value network next loss why break",
    "rnn_attention": "text tokens vectors states crossing next loss chance",
}


@pytest.mark.parametrize("kind", sorted(TOURS))
def test_a_tour_has_the_steps_of_the_parts_that_the_model_has(
    kind: str, browser: Browser, tmp_path: Path
):
    words = sorted({word for each in pairs() for word in " ".join(each).split()})
    tokenizer = WordTokenizer("word", Vocabulary.of(words))
    sizes = (tokenizer.vocabulary_size,) * 2
    model = build_any_model(CONFIGS[kind], *sizes, seed=1).eval().requires_grad_(False)
    bundle = Bundle(model, tokenizer, tokenizer, {}, {})
    path = tmp_path / "model.html"
    path.write_text(make_page(bundle, "float32", name=kind, example="je vois les chats"), "utf-8")
    page = browser.new_page(reduced_motion="reduce")
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-ready]")
    page.locator("#explorer").scroll_into_view_if_needed()
    page.locator(".tour-start").click()
    for name in TOURS[kind].split():
        page.locator(f".tour[data-step='{name}']").wait_for()
        page.locator(".tour[data-is-listening]").wait_for()
        if name in ("tokens", "vectors", "states", "attention", "network", "crossing", "next"):
            page.locator(".stressed").first.wait_for()
        page.locator(".tour-next").click()
    page.locator(".tour-start").wait_for()
    page.close()
