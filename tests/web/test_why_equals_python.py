"""Why this word and not that one, in the page: the numbers of ``pellucid.why``."""

from typing import Any

import pytest
import tiny_models
from opened_models import Opened
from playwright.sync_api import Browser, Page

from pellucid.backends.web.scripts import join_modules
from pellucid.bundle import Bundle
from pellucid.inspection.why import Why, why
from pellucid.model.build import build_any_model
from pellucid.model.config import parse_model_config
from pellucid.model.seq2seq import SequenceModel

SOURCE, TARGET = "a b c d e", "f g h a"
CLOSE = 1e-3
EXPLAIN = "(question) => model.explain(question)"


def explained(page: Page, result: Why, **question: Any) -> dict[str, Any]:
    sentence, kind = result.sentence, question.pop("kind", "transformer")
    text = [*sentence.target_ids[:-1]]
    ids = {"source": [*sentence.source_ids[:-1]], "target": text}
    if kind == "encoder":
        ids = {"source": text, "target": []}
    return page.evaluate(EXPLAIN, {**ids, "position": result.position, **question})


def assert_equal(found: dict[str, Any], result: Why) -> None:
    assert [part["name"] for part in found["parts"]] == [part.name for part in result.parts]
    assert [part["kind"] for part in found["parts"]] == [part.kind for part in result.parts]
    for ours, theirs in zip(found["parts"], result.parts, strict=True):
        assert ours["value"] == pytest.approx(theirs.value, abs=CLOSE), ours["name"]
        assert ours["attended"] == pytest.approx(theirs.attended, abs=CLOSE), ours["name"]
    assert found["total"] == pytest.approx(found["difference"], abs=CLOSE)
    for name in ("difference", "source_share", "prefix_share"):
        assert found[name] == pytest.approx(getattr(result, name), abs=CLOSE), name
    for name in ("source_contributions", "prefix_contributions"):
        assert found[name] == pytest.approx(getattr(result, name), abs=CLOSE), name
    for name in ("word", "rival"):
        candidate = getattr(result, name)
        assert found[name]["id"] == candidate.id
        assert found[name]["probability"] == pytest.approx(candidate.probability, abs=CLOSE)


@pytest.mark.parametrize("variant", tiny_models.VARIANTS)
def test_every_variant_is_explained_as_in_python(opened: Opened, variant: str):
    bundle = tiny_models.tiny_bundle(variant)
    bundle.model.float()
    page = opened(bundle)
    result = why(bundle, SOURCE, TARGET, position=3)
    assert_equal(explained(page, result), result)


def test_another_word_and_another_rival(opened: Opened):
    bundle = tiny_models.tiny_bundle("paper")
    bundle.model.float()
    page = opened(bundle)
    first = why(bundle, SOURCE, TARGET, position=0)
    assert_equal(explained(page, first), first)
    rival = why(bundle, SOURCE, TARGET, word="g", rival="i")
    assert_equal(explained(page, rival, rival=rival.rival.id), rival)


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("kind", ["decoder", "encoder"])
def test_models_of_plain_text_too(opened: Opened, kind: str, norm: str):
    letters = tiny_models.tiny_bundle().source_tokenizer
    layers = {f"{kind}_layers": 2, "d_model": 8, "d_ff": 12, "heads": 2}
    config = parse_model_config({"kind": kind, "norm": norm, "output_bias": True, **layers})
    model = build_any_model(config, tiny_models.VOCABULARY, tiny_models.VOCABULARY, seed=4)
    bundle: Bundle[SequenceModel] = Bundle(model.eval(), letters, letters, {}, {})
    result = why(bundle, "a [MASK] c d" if kind == "encoder" else "a b c d", position=1)
    assert_equal(explained(opened(bundle), result, kind=kind), result)


@pytest.mark.parametrize(
    "edits",
    [
        {"off": ["decoder.layers.1.cross_attention.heads.0", "encoder.layers.0.self_attention"]},
        {"off": ["decoder.layers.0", "decoder.layers.1.feed_forward", "encoder.layers.1"]},
        {"off": ["decoder.layers.1.cross_attention"], "mask": False},
        {"positions": False, "norm": "pre"},
    ],
    ids=["heads", "layers", "sublayer", "norm"],
)
@pytest.mark.parametrize("variant", ["paper", "relative"])
def test_a_changed_model_is_explained_as_it_is_then(
    opened: Opened, variant: str, edits: dict[str, Any]
):
    """The parts of what is left sum to the difference of the logits that are left."""
    bundle = tiny_models.tiny_bundle(variant)
    bundle.model.float()
    untouched = why(bundle, SOURCE, TARGET, position=2)
    found = explained(opened(bundle), untouched, edits=edits)
    assert found["total"] == pytest.approx(found["difference"], abs=CLOSE)
    assert found["source_share"] + found["prefix_share"] == pytest.approx(1.0)
    assert abs(found["difference"] - untouched.difference) > 0.01
    for part in found["parts"]:
        if any(part["name"].startswith(f"{off}.") for off in edits.get("off", ())):
            assert part["value"] == 0.0


def test_a_recurrent_model_has_no_parts(opened: Opened):
    bundle = tiny_models.tiny_bundle("additive")
    bundle.model.float()
    page = opened(bundle)
    assert page.evaluate(EXPLAIN, {"source": [4], "target": [5], "position": 0}) is None


FIND = """
([pieces, encoded, said, text, position, logits]) => {
  const model = {
    tokens: async (ids) => ids.map((id) => pieces[id]),
    readTarget: async () => ({ ids: encoded, tokens: encoded.map((id) => pieces[id]) }),
    idsOf: async (tokens) => tokens.map((token) => {
      if (!pieces.includes(token)) throw new Error(`no ${token}`);
      return pieces.indexOf(token);
    }),
  };
  const plan = { reads: "pairs", start: 2 };
  const capture = new Map([["logits", { shape: [said.length, pieces.length], values: logits }]]);
  const state = { sentence: { said_ids: said }, capture };
  const explorer = { provider: { live: { model }, plan }, state };
  return why.liveWhy(explorer, "").find(text, position);
}
"""
PIECES = ["[PAD]", "[UNK]", "[BOS]", "[EOS]", "▁", "▁a", "▁b", ".", "!", "b", "d", "▁?", "?"]
LIKELIER = 12
"""The glued question mark has the largest logit at every position."""


@pytest.mark.parametrize(
    ("text", "encoded", "position", "found"),
    [
        ("!", [4, 8], 1, {"id": 8, "label": "!", "position": 1}),
        ("!", [4, 8], 0, {"id": 4, "label": "▁", "position": 0}),
        ("b", [6], 1, {"id": 9, "label": "b", "position": 1}),
        ("b", [6], 0, {"id": 6, "label": "b", "position": 0}),
        ("b", [6], 2, {"id": 6, "label": "b", "position": 2}),
        ("ad", [5, 10], 0, {"id": 10, "label": "d", "position": 1}),
        ("bd", [6, 10], 0, {"id": 6, "label": "b", "position": 0}),
        ("a", [5], 0, None),
        ("", [], 0, None),
        ("!", [4, 8], 2, {"id": 8, "label": "!", "position": 2}),
        ("?", [11], 2, {"id": 12, "label": "?", "position": 2}),
        ("?", [11], 0, {"id": 11, "label": "?", "position": 0}),
    ],
)
def test_the_page_finds_another_word_where_python_does(
    browser: Browser, text: str, encoded: list[int], position: int, found: dict[str, object] | None
):
    """Its label is the token that is compared, not a word of which it is a part."""
    page = browser.new_page()
    page.add_script_tag(content=f"{join_modules('ui/why.js', 'why')}globalThis.why = why;")
    logits = [float(id_ == LIKELIER) for _ in range(3) for id_ in range(len(PIECES))]
    assert page.evaluate(FIND, [PIECES, encoded, [5, 7, 3], text, position, logits]) == found
    page.close()


def test_the_embedding_is_named_by_the_word_that_is_read(browser: Browser):
    page = browser.new_page()
    page.add_script_tag(content=f"{join_modules('ui/why.js', 'why')}globalThis.why = why;")
    names = {"encoder.input": "here", "decoder.embedding": "before"}
    for name, where in names.items():
        part = {"name": name, "kind": "embedding"}
        named = page.evaluate("part => why.partInWords(part)", part)
        assert named == f"embedding of the word {where}"
    page.close()
