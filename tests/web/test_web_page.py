"""An exported page in Chromium, opened from a file: it translates, and asks nobody for anything."""

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import tiny_models
from axe_playwright_python.sync_playwright import Axe
from click.testing import CliRunner
from playwright.sync_api import Browser, Page, Request, expect

from pellucid.backends.web.export import make_page
from pellucid.bundle import Bundle, save_bundle
from pellucid.cli.main import cli
from pellucid.core.errors import BundleError
from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.translator import Translator
from pellucid.model.build import build_any_model
from pellucid.model.config import parse_model_config
from pellucid.text.tokenizers.vocabulary import Vocabulary
from pellucid.text.tokenizers.word_tokenizers import WordTokenizer

AXE_OPTIONS = {"runOnly": ["wcag2a", "wcag2aa"], "resultTypes": ["violations"]}
HOSTILE = "</script><img src=x onerror=alert(1)>"
SHORT = {"decoding": {"max_length_extra": 4, "min_length": 2}}


def translator_bundle(variant: str = "paper") -> Bundle:
    bundle = tiny_models.tiny_bundle(variant)
    bundle.model.float()
    return dataclasses.replace(bundle, settings=SHORT)


def text_bundle(kind: str) -> Bundle[Any]:
    sizes = {"d_model": 8, "d_ff": 12, "heads": 2}
    sizes[f"{kind}_layers"] = 2
    model = build_any_model(parse_model_config({"kind": kind, **sizes}), 13, 13)
    letters = translator_bundle().source_tokenizer
    return Bundle(model.eval().requires_grad_(False), letters, letters, {}, {})


def hostile_bundle() -> Bundle:
    """A vocabulary that is all markup, in a model with a name that is."""
    marks = [f"{HOSTILE}{number}" for number in range(9)]
    letters = WordTokenizer("word", Vocabulary.of(each.replace(" ", "\u00a0x") for each in marks))
    bundle = translator_bundle()
    return dataclasses.replace(bundle, source_tokenizer=letters, target_tokenizer=letters)


PAGES: dict[str, Callable[[], str]] = {
    "translator": lambda: make_page(translator_bundle(), name="a to i", example="a b c"),
    "recurrent": lambda: make_page(translator_bundle("additive"), example="a b c"),
    "encoder": lambda: make_page(text_bundle("encoder"), example="a [MASK] c"),
    "decoder": lambda: make_page(text_bundle("decoder"), example="a b"),
    "inviting": lambda: make_page(translator_bundle()),
    "inviting encoder": lambda: make_page(text_bundle("encoder")),
    "hostile": lambda: make_page(hostile_bundle(), name=HOSTILE, example=HOSTILE),
}


@dataclasses.dataclass
class Watched:
    """A page, and whatever it did that no page of ours may do."""

    page: Page
    problems: list[str] = dataclasses.field(default_factory=list)

    def on_request(self, request: Request) -> None:
        if not request.url.startswith(("file:", "blob:")):
            self.problems.append(f"asked for {request.url}")

    def target(self) -> str:
        return self.page.inner_text("#target")

    def write(self, text: str) -> None:
        """Type a text and wait for what the page makes of it, which must be something else."""
        before = self.target()
        self.page.fill("#source", text)
        self.page.wait_for_function(
            "before => !['', before].includes(document.querySelector('#target').innerText)",
            arg=before,
        )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pages")
    for name, make in PAGES.items():
        (folder / f"{name}.html").write_text(make(), encoding="utf-8")
    return folder


@pytest.fixture
def visit(browser: Browser, folder: Path) -> Iterator[Callable[..., Watched]]:
    opened: list[Watched] = []

    def open_page(name: str, **options: Any) -> Watched:
        context = browser.new_context(**options)
        context.set_default_timeout(30_000)
        watched = Watched(context.new_page())
        page = watched.page
        page.on("console", lambda message: watched.problems.append(message.text))
        page.on("pageerror", lambda error: watched.problems.append(str(error)))
        page.on("dialog", lambda dialog: watched.problems.append(dialog.message))
        page.on("request", watched.on_request)
        opened.append(watched)
        page.goto((folder / f"{name}.html").as_uri())
        page.wait_for_selector("html[data-ready]")
        return watched

    yield open_page
    for watched in opened:
        watched.page.context.close()
        assert watched.problems == []


def expected(text: str, **settings: Any) -> str:
    bundle = translator_bundle()
    return Translator(bundle, DecodingConfig(**SHORT["decoding"], **settings)).translate(text).text


def test_it_opens_with_the_translation_of_its_example(visit: Callable[..., Watched]):
    seen = visit("translator")
    assert seen.target() == expected("a b c")
    assert "a to i" in seen.page.title()


def test_without_an_example_it_offers_words_to_begin_with(visit: Callable[..., Watched]):
    page = visit("inviting").page
    page.locator("#explorer").scroll_into_view_if_needed()
    expect(page.locator("#explorer .nothing-yet")).to_be_visible()
    chips = page.locator("#chips button")
    expect(chips).to_have_text(["a", "b", "c", "d", "e", "f", "g", "h"])
    expect(page.locator("#invite-says")).to_have_text("Words that the model knows, among others:")
    assert page.input_value("#source") == ""
    for word in (2, 0):  # the words stay, so that a sentence can be made of them
        chips.nth(word).click()
    assert page.input_value("#source") == "c a"
    expect(page.locator("#target")).to_have_text(expected("c a"))
    expect(page.locator("#explorer .said-word").first).to_be_visible()
    expect(page.locator("#explorer .nothing-yet")).to_have_count(0)
    page.locator("#source").press_sequentially(" b")
    expect(page.locator("#invite")).to_be_hidden()
    page.click("#clear")
    expect(page.locator("#invite")).to_be_visible()


def test_an_encoder_offers_a_gap_too(visit: Callable[..., Watched]):
    page = visit("inviting encoder").page
    for name in ("[MASK]", "b"):
        page.locator("#chips").get_by_role("button", name=name, exact=True).click()
    assert page.input_value("#source") == "[MASK] b"
    page.locator("#explorer").scroll_into_view_if_needed()
    expect(page.locator(".tower.encoder .word")).to_have_text(["[MASK]", "b", "</s>"])
    expect(page.locator("#search")).to_be_hidden()
    expect(page.locator("#target")).not_to_be_empty()


def test_it_translates_as_one_types_greedily_and_by_beam(visit: Callable[..., Watched]):
    seen = visit("translator")
    texts = ["d e f", "a i h g", "c"]
    target = seen.page.locator("#target")
    for text in texts:
        seen.page.fill("#source", text)
        expect(target).to_have_text(expected(text))
    seen.page.check("#greedy", force=True)
    seen.page.fill("#source", "b b a")
    expect(target).to_have_text(expected("b b a", beam_size=1))


def test_why_a_translation_may_be_wrong_is_said_beside_it(visit: Callable[..., Watched]):
    watched = visit("translator")
    watched.page.fill("#source", "a zz yy c")
    doubts = watched.page.locator("#doubts li")
    expect(doubts.first).to_have_text("The model does not know “zz”, “yy”.")
    watched.page.fill("#source", "a b c")
    expect(watched.page.locator("#doubts").get_by_text("does not know")).to_have_count(0)

    watched.page.fill("#source", "")
    watched.page.focus("#source")
    watched.page.keyboard.insert_text("d e" + " " * 5000 + "f")  # as one types
    expect(doubts.first).to_have_text("Only its first 5000 characters are read.")
    expect(watched.page.locator("#target")).to_have_text(expected("d e"))
    watched.page.fill("#source", " " * 5001 + "f")
    expect(watched.page.locator("#target")).to_be_empty()
    expect(watched.page.locator("#notice")).to_be_hidden()


def test_every_line_is_translated_by_itself(visit: Callable[..., Watched]):
    seen = visit("translator")
    lines = ["d e f", "", "a i h g", *"abcdefghi", "d e f"]  # more than are translated at once
    seen.write("\n".join(lines))
    expect(seen.page.locator("#target")).to_have_text(
        "\n".join(line and expected(line) for line in lines), use_inner_text=True
    )


def test_a_text_that_fails_does_not_keep_the_next_one_from_being_translated(
    visit: Callable[..., Watched],
):
    page = visit("translator").page
    break_engine = """() => {
      const send = Worker.prototype.postMessage;
      Worker.prototype.postMessage = () => {
        Worker.prototype.postMessage = send;
        throw new Error("the engine failed");
      };
    }"""
    page.evaluate(break_engine)
    page.evaluate(
        """texts => {
          const field = document.querySelector("#source");
          for (const text of texts) {
            field.value = text;
            field.dispatchEvent(new Event("input"));
          }
        }""",
        ["i h g", "d e f"],
    )
    expect(page.locator("#target")).to_have_text(expected("d e f"))
    expect(page.locator("#notice")).to_be_hidden()
    page.evaluate(break_engine)
    page.fill("#source", "g h")
    expect(page.locator("#notice-text")).to_have_text("the engine failed")
    expect(page.locator("#target")).to_be_empty()


def test_in_a_long_text_a_keystroke_computes_one_sentence(visit: Callable[..., Watched]):
    page = visit("translator").page
    page.evaluate(
        """() => {
          const send = Worker.prototype.postMessage;
          globalThis.sentCount = 0;
          Worker.prototype.postMessage = function (message) {
            if (message.method === "translateLines") sentCount += message.parameters[0].length;
            send.call(this, message);
          };
        }"""
    )
    pairs = [f"{one} {two}" for one in "abcdefghi" for two in "abcdefghi"]
    lines = [
        *"abcdefghi",
        *pairs,
        *(f"a {pair}" for pair in pairs),
        *(f"b {pair}" for pair in pairs),
    ]
    page.check("#greedy", force=True)  # as it is fast
    for text, count in (("\n".join(lines[:201]), 201), ("\n".join(lines[:202]), 202)):
        page.fill("#source", text)
        page.wait_for_function("count => sentCount === count", arg=count)
        page.wait_for_selector("#result[aria-busy=false]")
        expect(page.locator("#target")).to_contain_text(expected(lines[count - 1], beam_size=1))


def test_words_light_up_and_alternatives_open(visit: Callable[..., Watched]):
    seen = visit("translator")
    word = seen.page.locator("#target .word").first
    word.hover()
    assert seen.page.locator("#under .lit").count() > 0
    assert seen.page.locator("#threads path").count() > 0
    word.click()
    options = seen.page.locator("#alternatives-list [role=option]")
    options.nth(1).wait_for()
    assert options.count() == 6
    options.nth(2).click()
    assert seen.page.is_visible("#chosen")
    seen.page.click("#own")
    assert seen.target() == expected("a b c")


def test_an_alternative_is_what_python_finds(visit: Callable[..., Watched]):
    bundle = translator_bundle()
    translator = Translator(bundle, DecodingConfig(**SHORT["decoding"]))
    seen = visit("translator")
    seen.page.locator("#target .word").first.click()
    seen.page.locator("#alternatives-list [role=option]").first.wait_for()
    shown = seen.page.locator("#alternatives-list .option-word").all_inner_texts()
    found = translator.alternatives("a b c", (), count=6)
    assert [each.replace("(end here)", "") for each in shown] == [
        each.token if each.token != "[EOS]" else "" for each in found
    ]


@pytest.mark.parametrize(
    ("name", "text"), [("recurrent", "a c"), ("encoder", "a b [MASK]"), ("decoder", "c")]
)
def test_other_kinds_answer_too(visit: Callable[..., Watched], name: str, text: str):
    seen = visit(name)
    assert seen.target() != ""
    seen.write(text)
    assert seen.target() != ""


def test_text_never_becomes_markup(visit: Callable[..., Watched]):
    seen = visit("hostile")
    seen.page.fill("#source", f"{HOSTILE} {HOSTILE}")
    seen.page.wait_for_selector("#result[aria-busy=false]")
    assert seen.page.locator("main img, #alternatives img").count() == 0
    seen.page.locator("#target .word").first.click()
    seen.page.locator("#alternatives-list [role=option]").first.wait_for()
    assert seen.page.locator("img").count() == 0
    assert HOSTILE in seen.page.title()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [375, 1600])
def test_it_fits_and_is_accessible(visit: Callable[..., Watched], scheme: str, width: int):
    seen = visit("translator", color_scheme=scheme, viewport={"width": width, "height": 800})
    assert seen.page.evaluate("document.documentElement.scrollWidth") <= width
    # in the dark nothing but the colors is another
    options = {"runOnly": ["color-contrast"]} if scheme == "dark" else AXE_OPTIONS
    found = Axe().run(seen.page, context="header, main > .desk, main > .below", options=options)
    assert found.response["violations"] == []


def test_it_can_be_used_by_keyboard_alone(visit: Callable[..., Watched]):
    seen = visit("translator")
    seen.page.keyboard.press("Tab")
    seen.page.keyboard.press("Enter")  # the link to the text
    assert seen.page.evaluate("document.activeElement.id") == "source"
    seen.page.focus("#target .word[tabindex='0']")
    seen.page.keyboard.press("Enter")
    seen.page.locator("#alternatives-list [role=option]").first.wait_for()
    seen.page.keyboard.press("Escape")
    assert not seen.page.is_visible("#alternatives")


def test_without_a_worker_it_computes_in_the_page(browser: Browser, folder: Path):
    page = browser.new_page()
    page.add_init_script("delete globalThis.Worker")
    page.goto((folder / "translator.html").as_uri())
    page.wait_for_selector("html[data-ready]")
    assert page.inner_text("#target") == expected("a b c")
    page.close()


@pytest.mark.parametrize("weights", ["float32", "float16", "int8"])
def test_the_command_writes_a_file_of_its_own(tmp_path: Path, weights: str):
    run = tmp_path / "run"
    bundle = translator_bundle()
    settings = {"model": bundle.config.model_dump(mode="json", exclude_none=True), **SHORT}
    save_bundle(run, dataclasses.replace(bundle, settings=settings), card="", details={})
    out = tmp_path / "out.html"
    arguments = ["export", "web", str(run), str(out), "--weights", weights]
    result = CliRunner().invoke(cli, arguments)
    assert result.exit_code == 0, result.output
    assert out.read_text("utf-8").startswith("<!doctype html>")
    again = CliRunner().invoke(cli, arguments)
    assert again.exit_code != 0
    assert "already exists" in str(again.exception or again.output)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"coverage_penalty": 0.2}, "decoding.coverage_penalty=0.2"),
        ({"prefix": "a", "banned": ["b"]}, r'decoding.prefix="a"; .*decoding.banned=\["b"\]'),
    ],
)
def test_searches_that_it_does_not_know_are_refused_by_name(settings: dict[str, Any], message: str):
    bundle = dataclasses.replace(translator_bundle(), settings={"decoding": settings})
    with pytest.raises(BundleError, match=message):
        make_page(bundle)


def test_word_vectors_are_refused_by_name():
    model = build_any_model(parse_model_config({"kind": "skipgram", "d_model": 8}), 13, 13)
    letters = translator_bundle().source_tokenizer
    with pytest.raises(BundleError, match="kind=skipgram"):
        make_page(Bundle(model, letters, letters, {}, {}))


def test_numbers_that_float16_cannot_hold_are_refused():
    bundle = translator_bundle()
    bundle.model.output_weight.data[5, 0] = 1e6
    with pytest.raises(BundleError, match="too large for float16"):
        make_page(bundle)
    assert make_page(bundle, "float32")
