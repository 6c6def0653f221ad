"""What newcomers want to do, done in the exported file, and held to Python."""

import dataclasses
from collections.abc import Iterator

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Locator, Page, expect
from taught import taught_bundle

from pellucid.backends.web.export import make_page
from pellucid.bundle import Bundle
from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.translator import Translator
from pellucid.inspection.ablation import model_without
from pellucid.inspection.capture import Capture, inspect
from pellucid.inspection.why import why

SENTENCE = "je ne vois pas les maisons rouges"
CROSS = "decoder.layers.1.cross_attention"
AXE_OPTIONS = {"runOnly": ["wcag2a", "wcag2aa"], "resultTypes": ["violations"]}


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return taught_bundle(tmp_path_factory.getbasetemp())


@pytest.fixture(scope="module")
def capture(bundle: Bundle) -> Capture:
    return inspect(bundle, SENTENCE)


@dataclasses.dataclass
class Explorer:
    """The exported file, scrolled to the model at work."""

    page: Page

    def part(self, name: str) -> Locator:
        return self.page.locator(f"#explorer [data-part='{name}']").first

    def said(self, word: str) -> Locator:
        """A word of the output, at the right end of the picture."""
        return self.page.locator(".said-word").filter(has_text=word).first

    def tool(self, name: str) -> Locator:
        return self.page.get_by_role("button", name=name, exact=True)

    def now(self) -> str:
        """What the model says with what was done to it."""
        self.page.wait_for_selector(".explorer[aria-busy=false]")
        self.page.wait_for_selector(".before-after .now")
        return " ".join(self.page.locator(".before-after .now > :not(small)").all_inner_texts())

    def wait_for_shown(self, value: float) -> None:
        """Wait until the card tells ``value``: it is made when the engine has sent its matrices."""
        self.page.wait_for_function(
            "value => Math.abs(document.querySelector('.card .inspector')?.dataset.value - value)"
            " <= 1e-6 + 1e-3 * Math.abs(value)",
            arg=value,
        )

    def shown_and_computed(self) -> tuple[float, float]:
        """The number of the open card and what its formula gives, of one cell.

        They are read at once: where the page has moved under a resting pointer, the browser tells
        it of another cell whenever it comes to that.
        """
        line = self.page.locator(".card .inspector")
        value, computed = line.evaluate("each => [each.dataset.value, each.dataset.computed]")
        return float(value or "nan"), float(computed or "nan")


@pytest.fixture(scope="module")
def opened(
    browser: Browser, bundle: Bundle, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Explorer]:
    path = tmp_path_factory.mktemp("newcomers") / "model.html"
    path.write_text(make_page(bundle, "float32", name="taught", example=SENTENCE), "utf-8")
    context = browser.new_context(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
    context.set_default_timeout(30_000)
    page, problems = context.new_page(), list[str]()
    page.on("console", lambda message: problems.append(message.text))
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-ready]")
    page.locator("#explorer").scroll_into_view_if_needed()
    page.locator(".said-word").first.wait_for()
    yield Explorer(page)
    assert problems == []
    context.close()


@pytest.fixture
def explorer(opened: Explorer) -> Explorer:
    """The file as it opens: the sentence of the example, nothing open, nothing changed."""
    page = opened.page
    page.keyboard.press("Escape")
    while page.locator(".changes button").count():
        page.locator(".changes button").first.click()
        page.wait_for_selector(".explorer[aria-busy=false]")
    if page.input_value("#source") != SENTENCE:
        page.fill("#source", SENTENCE)
    expect(page.locator("#target")).to_have_text("i do not see the red houses")
    expect(page.locator(".tower.encoder .word").nth(5)).to_have_text("maisons")
    return opened


def without(bundle: Bundle, part: str) -> str:
    """What Python translates without a part."""
    inner = model_without(bundle.model, part)
    left = Bundle(inner, bundle.source_tokenizer, bundle.target_tokenizer, {}, {})
    return Translator(left, DecodingConfig()).translate(SENTENCE).text


def test_read_a_translation(explorer: Explorer):
    page = explorer.page
    page.fill("#source", "tu aimes les chats tristes")
    expect(page.locator("#target")).to_have_text("you like the sad cats")
    # and all of the picture is of the new sentence
    words = page.locator(".tower.encoder .word")
    expect(words).to_have_text(["tu", "aimes", "les", "chats", "tristes", "</s>"])


def test_find_which_source_word_houses_came_from(explorer: Explorer, capture: Capture):
    explorer.said("houses").click()
    position = list(capture.target_tokens).index("houses")
    mean = capture[f"{CROSS}.weights"][:, position].mean(0)
    told = explorer.page.locator(".attends")
    expect(told).to_contain_text(
        "Before it generates “houses”, the decoder attends most to “maisons”"
    )
    assert capture.source_tokens[int(mean.argmax())] == "maisons"
    explorer.said("houses").click()


def test_say_why_it_did_not_say_cats(explorer: Explorer, bundle: Bundle):
    """ "houses" and not "cats": the head that tells most, the source word behind it, the sum."""
    page = explorer.page
    explorer.said("houses").click()
    page.locator(".why-word").fill("cats")
    page.locator(".why-word").press("Enter")
    expect(page.locator(".why-ends")).to_contain_text("for cats")

    found = why(bundle, SENTENCE, word="houses", rival="cats")
    head = next(part for part in found.largest if part.attended)
    row = page.locator(f".why-part[data-part='{head.name}']")
    [(token, value)] = found.words_behind(head, 1)
    assert token == "maisons"
    expect(row.locator(".why-chip").first).to_have_text(f"maisons {value:+.2f}")
    expect(page.locator(".why-true dd")).to_have_text(f"{found.difference:+.2f}")
    expect(page.locator(".why-all dd")).to_have_text(f"{found.total:+.2f}")
    expect(page.locator(".why-origin b").first).to_have_text(f"{found.source_share:.0%}")
    explorer.said("houses").click()


def test_make_the_model_drop_the_negation_by_switching_off_heads(
    explorer: Explorer, bundle: Bundle
):
    """Head after head, until "not" is gone; each answer is Python's without that head."""
    page = explorer.page
    explorer.tool("Switch parts off").click()
    for head in range(2):
        name = f"decoder.layers.0.cross_attention.heads.{head}"
        explorer.part(name).click()
        assert explorer.now() == without(bundle, name)
        if "not" not in explorer.now().split():
            break
        explorer.part(name).click()  # on again
    assert explorer.now() == "i see the red houses"
    gone = page.locator(".before-after del").all_inner_texts()
    assert gone == ["do", "not"]
    assert page.locator(".changes").inner_text().startswith("without decoder layer 0")
    page.get_by_role("button", name="Click heads, sublayers, layers; done").click()


@pytest.mark.parametrize("name", ["encoder.layers.0", "encoder.layers.0.self_attention.heads.1"])
def test_see_what_a_layer_or_a_head_is_for(explorer: Explorer, bundle: Bundle, name: str):
    explorer.tool("Switch parts off").click()
    explorer.part(name).click()
    assert explorer.now() == without(bundle, name)
    assert explorer.now() != "i do not see the red houses"
    explorer.page.get_by_role("button", name="Click heads, sublayers, layers; done").click()


def test_change_a_word_and_see_what_changes(explorer: Explorer):
    """A click on a word of the picture marks it in the field, ready to be typed over."""
    page = explorer.page
    page.locator(".tower.encoder .word").nth(5).click()
    # at once: on a slow machine half a word would be translated too, and be what changes are from
    page.keyboard.insert_text("chiens")
    assert page.input_value("#source") == "je ne vois pas les chiens rouges"
    expect(page.locator("#target")).to_have_text("i do not see the red dogs")
    expect(explorer.said("dogs")).to_have_class("said-word new")
    expect(page.locator(".frame.changed").nth(20)).to_be_attached()


def test_redo_the_arithmetic_of_one_attention_score(explorer: Explorer, capture: Capture):
    page = explorer.page
    explorer.part(f"{CROSS}.heads.1").click()
    explorer.part(f"{CROSS}.heads.1.scores").click(position={"x": 3, "y": 3})
    expect(page.locator(".card h3")).to_have_text("Scores")
    expected = capture[f"{CROSS}.heads.1.scores"][0, 0].item()
    explorer.wait_for_shown(expected)
    _, computed = explorer.shown_and_computed()
    assert computed == pytest.approx(expected, rel=1e-3)
    # down to the learned matrix that made the queries
    page.locator(".card [data-step=query]").click()
    expect(page.locator(".card h3")).to_have_text("Queries")
    expect(page.locator(".card .heat")).to_have_count(3)
    value, computed = explorer.shown_and_computed()
    assert computed == pytest.approx(value, rel=1e-3)


def test_make_a_word_look_elsewhere_by_hand(explorer: Explorer):
    page = explorer.page
    name = f"{CROSS}.heads.1.weights"
    explorer.part(name.removesuffix(".weights")).click()
    page.get_by_label("The row to hold").select_option(index=0)
    bar = page.get_by_role("slider", name="Weight on maisons")
    bar.focus()
    page.keyboard.press("End")
    expect(page.locator(".changes")).to_contain_text("held in decoder layer 1")
    expect(bar).to_have_attribute("aria-valuenow", "100")
    # the model now computes with that row, and the card says that the formula has another number
    page.get_by_role("button", name="Close").click()
    explorer.part(name.removesuffix(".weights")).click()
    square = explorer.part(name)
    box = square.bounding_box()
    assert box
    square.click(position={"x": 5.5 * box["width"] / 8, "y": 3})
    explorer.wait_for_shown(1.0)
    expect(page.locator(".card .reason")).to_contain_text("changed by an experiment")


@pytest.mark.parametrize(
    ("tool", "told"),
    [
        ("Drop the positions", "no positions"),
        ("Drop the mask", "no mask"),
        ("Swap the norm", "post-norm"),
    ],
)
def test_take_something_away_and_undo_it(explorer: Explorer, tool: str, told: str):
    page = explorer.page
    explorer.tool(tool).click()
    expect(page.locator(".changes")).to_contain_text(told)
    expect(explorer.tool(tool)).to_have_attribute("aria-pressed", "true")
    assert explorer.now()
    untouched = page.locator(".before-after dd").first
    assert untouched.inner_text().split() == ["i", "do", "not", "see", "the", "red", "houses"]
    page.get_by_role("button", name=f"Undo: {told}").click()
    expect(page.locator(".before-after")).to_have_count(0)


def test_search_with_another_beam(explorer: Explorer, bundle: Bundle):
    page = explorer.page
    page.get_by_label("Beam", exact=False).last.fill("1")
    expect(page.locator(".changes")).to_contain_text("beam 1")
    greedy = Translator(bundle, DecodingConfig(beam_size=1)).translate(SENTENCE).text
    assert explorer.now() == greedy


def test_read_it_with_the_keyboard_and_a_screen_reader(explorer: Explorer):
    page = explorer.page
    explorer.part("decoder.layers.0.cross_attention").focus()
    page.keyboard.press("Enter")
    expect(page.locator(".card h3")).to_have_text("Weights")
    page.locator(".card .result .cells").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    assert "attends" not in page.locator(".card .for-ears").first.inner_text()
    violations = Axe().run(page, options=AXE_OPTIONS).response["violations"]
    assert [(each["id"], [node["html"] for node in each["nodes"]][:3]) for each in violations] == []


def test_read_it_on_a_phone(explorer: Explorer):
    page = explorer.page
    page.set_viewport_size({"width": 375, "height": 800})
    explorer.part("decoder.layers.0.cross_attention").click()
    expect(page.locator(".card h3")).to_have_text("Weights")
    assert page.evaluate("document.documentElement.scrollWidth") <= 375
    page.set_viewport_size({"width": 1280, "height": 900})
