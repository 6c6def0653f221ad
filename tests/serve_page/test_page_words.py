"""Words made from tokens: where they stand, how sure they are, what they go with."""

import json
from typing import Any

from playwright.sync_api import Page, Route, expect

_WORDS = """async ([text, tokens]) =>
  (await import("/static/ui/words.js")).toWords(text, tokens)
    .map((word) => [word.text, word.tokens])"""


CUT = (
    (
        "nous n'avons pas vendu l'école",
        "▁nous ▁n ' av ons ▁pas ▁vendu ▁l ' école",
        "nous:0 n:1 ':2 avons:3,4 pas:5 vendu:6 l:7 ':8 école:9",
    ),
    ("Ein Hund läuft.", "Ein Hund läuft .", "Ein:0 Hund:1 läuft:2 .:3"),
    ("ÉCOLE fermée", "école ferm ##ée", "ÉCOLE:0 fermée:1,2"),
    ("low est", "lo@@ w e@@ st</w>", "low:0,1 est:2,3"),
    ("مرحبا بالعالم", "▁مرحبا ▁بال عالم", "مرحبا:0 بالعالم:1,2"),
    ("我是学生。", "▁我 是 学生 。", "我:0 是:1 学生:2 。:3"),
    ("学生です", "▁学生 です", "学生:0 です:1"),
    ("ငါသွား", "▁ငါ သွား", "ငါ:0 သွား:1"),
    ("a 😀 b", "▁a ▁ <0xF0> <0x9F> <0x98> <0x80> ▁b", "a:0 😀:2,3,4,5 b:6"),
    ("le Zébulon dort", "▁le <unk> ▁dort", "le:0 Zébulon:1 dort:2"),
    ("le Zébulon", "le [UNK]", "le:0 Zébulon:1"),
    ("nothing fits", "▁quite ▁another", "nothing fits:0,1"),
    ("", "", ""),
)
"""A text, its tokens as many kinds of tokenizers write them, and the words with their tokens."""


def test_tokens_of_every_kind_are_found_in_the_text(page: Page):
    for text, tokens, words in CUT:
        found = page.evaluate(_WORDS, [text, tokens.split()])
        assert " ".join(f"{word}:{','.join(map(str, ids))}" for word, ids in found) == words


def answer(**sentence: Any) -> dict[str, Any]:
    """A server's answer of one sentence."""
    full = {"before": "", "after": "", "score": -1.0, "truncated": False, "source_start": 0}
    full |= sentence
    text = full["text"]
    return {
        "model": "one",
        "translations": [
            {"text": text, "truncated": full["truncated"], "score": -1.0, "sentences": [full]}
            | {key: full[key] for key in ("tokens", "source_tokens", "confidences", "alignment")}
        ],
    }


MAISONS = answer(
    source="les maisons blanches",
    text="the white houses",
    tokens=["▁the", "▁white", "▁ho", "uses"],
    source_tokens=["▁les", "▁maison", "s", "▁blanches"],
    confidences=[0.9, 0.45, 0.5, 0.4],
    alignment=[[0, 0], [3, 1], [1, 2], [2, 3]],
)


def give(page: Page, body: dict[str, Any]) -> None:
    """From now on, this is the answer."""

    def fulfill(route: Route) -> None:
        route.fulfill(body=json.dumps(body), content_type="application/json")

    page.route("**/v1/translate", fulfill)


def test_a_word_is_as_sure_as_its_tokens_together(page):
    """0.9 is sure, 0.45 fairly, 0.5 · 0.4 = 0.2 hardly."""
    give(page, MAISONS)
    page.fill("#source", "les maisons blanches")
    words = page.locator("#target .word")
    expect(words).to_have_text(["the", "white", "houses"])
    levels = words.evaluate_all("(all) => all.map((each) => each.className.match(/sure-./)[0])")
    assert levels == ["sure-3", "sure-2", "sure-1"]
    assert words.nth(2).get_attribute("title") == "20% sure"
    expect(page.locator("#legend")).to_be_visible()
    shade = "(element) => getComputedStyle(element).backgroundColor"
    shaded = words.nth(2).evaluate(shade)
    page.uncheck("#sure")
    assert words.nth(2).evaluate(shade) != shaded
    expect(page.locator("#legend")).to_be_hidden()


def test_a_word_lights_up_what_it_is_aligned_with_on_both_sides(page):
    give(page, MAISONS)
    page.fill("#source", "les maisons blanches")
    page.locator("#target .word", has_text="houses").hover()
    expect(page.locator("#under .lit")).to_have_text(["maisons"])
    expect(page.locator("#threads path")).to_have_count(1)
    page.locator("#target .word", has_text="houses").press("ArrowLeft")  # the keyboard as well
    expect(page.locator("#under .lit")).to_have_text(["blanches"])
    box = page.locator("#under span", has_text="les").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    expect(page.locator("#target .lit")).to_have_text(["the"])
    page.locator("#source").press("End")  # the caret stands in "blanches"
    expect(page.locator("#target .lit")).to_have_text(["white"])
    page.mouse.move(1, 1)
    page.locator("#copy").focus()
    expect(page.locator(".lit")).to_have_count(0)


def test_why_a_translation_may_be_wrong_is_said_beside_it(page):
    body = json.loads(json.dumps(MAISONS))
    body["translations"][0]["warnings"] = [
        {"kind": "truncated", "message": "only the first 2 of its 4 tokens are read"},
        {"kind": "loop", "message": "the translation repeats itself (9 tokens from 4)"},
    ]
    give(page, body)
    page.fill("#source", "les maisons blanches")
    expect(page.locator("#doubts li")).to_have_text(
        [
            "Only the first 2 of its 4 tokens are read.",
            "The translation repeats itself (9 tokens from 4).",
        ]
    )
    give(page, MAISONS)
    page.fill("#source", "les maisons blanches ici")
    expect(page.locator("#doubts")).to_be_hidden()


SCRIPTS = (
    ("Où est l’élève naïf, à Łódź? – Ça va!", "ltr"),
    ("ذهب الولد إلى المدرسة (اليوم)", "rtl"),
    ("我在学校。学生です。", "ltr"),
    ("👩‍👩‍👧 😀🏳️‍🌈 ok", "ltr"),
    ("<script>document.title = 'x'</script><img src=x onerror=alert(1)>", "ltr"),
)
"""Diacritics, right to left, no spaces, emoji, markup; and which way they run."""


def test_text_of_any_script_stays_as_it_is(page: Page):
    read = "(element) => getComputedStyle(element).direction"
    for text, direction in SCRIPTS:
        parts = text.split()
        body = answer(
            source=text, text=text, tokens=parts, source_tokens=parts,
            confidences=[0.2] * len(parts), alignment=[[0, 0]],
        )  # fmt: skip
        give(page, body)
        page.fill("#source", text)
        expect(page.locator("#target")).to_have_text(text)
        for place in ("#source", "#target", "#under"):
            assert page.locator(place).evaluate(read) == direction, text
        assert page.title() == "Pellucid"
        assert page.locator("main img, main script").count() == 0
        page.fill("#source", f"{text}\n")
        sizes = page.evaluate(
            "['#source', '#under'].map((at) => document.querySelector(at).scrollHeight)"
        )
        assert sizes[0] == sizes[1], text  # what lights up lies exactly under the letters
