"""A search told in full, and who is to blame for what it did not find."""

import json
import math
from collections import Counter, defaultdict

import pytest
from small_bundle import SENTENCES, small_bundle

from pellucid.core.errors import ConfigError, DataError
from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.explain import explain_search
from pellucid.decoding.requests import Request
from pellucid.decoding.translator import Translator

SOURCE = SENTENCES[2]


def translator(**changes) -> Translator:
    settings = DecodingConfig.parse({"beam_size": 3, "max_length": 6, **changes})
    return Translator(small_bundle(kind="word"), settings)


@pytest.mark.parametrize(
    "changes",
    [
        {"beam_size": 1},
        {"beam_size": 4, "n_best": 4},
        {"beam_size": 4, "n_best": 3, "diverse_groups": 2, "diversity_strength": 2.0},
        {"beam_size": 6, "must": ("chat",)},
        {"beam_size": 3, "no_repeat_ngram": 1, "min_length": 3, "banned": ("le",), "prefix": "un"},
        {"beam_size": 2, "use_cache": False, "mask_at_inference": False},
    ],
    ids=str,
)
def test_the_tree_is_that_of_the_search(changes):
    """Its ends are what ``translate`` finds, and every figure follows from the path to it."""
    small = translator(**changes)
    tree = explain_search(small, SOURCE)
    found = small.translate(SOURCE).n_best
    assert [t.tokens for t in tree.translations] == [t.tokens for t in found]
    assert [t.score for t in tree.translations] == pytest.approx([t.score for t in found])
    assert [node.number for node in tree.nodes] == list(range(len(tree.nodes)))
    for end, translation in zip(tree.ends, tree.translations, strict=True):
        path = tree.path(end)
        assert tuple(node.token for node in path) == (*translation.tokens, "[EOS]")
        assert [node.log_prob for node in path] == pytest.approx(translation.token_log_probs)
        assert path[-1].score == pytest.approx(translation.score)
        assert path[-1].verdict == "finished"
    root = tree.nodes[0]
    assert (root.parent, root.token, root.length, root.rank) == (None, "", 0, None)
    assert (root.log_prob, root.total, root.score) == (0.0, 0.0, None)
    for node in tree.nodes[1:]:
        parent = tree.nodes[node.parent]
        assert parent.verdict in ("goes on", "left")
        assert parent.number < node.number
        assert node.length == parent.length + 1
        assert node.total == pytest.approx(parent.total + node.log_prob, abs=1e-9)
        assert (node.reason == "") == (node.verdict in ("goes on", "finished"))
        assert (node.score is None) == (node.verdict != "finished")


def test_the_beam_is_never_wider_than_asked_and_only_the_best_go_on():
    tree = explain_search(translator(beam_size=3), SOURCE)
    steps = defaultdict(list)
    for node in tree.nodes[1:]:
        steps[node.length].append(node)
    for nodes in steps.values():
        ranked = [node for node in nodes if node.rank is not None]
        assert [node.rank for node in ranked] == list(range(len(ranked)))
        assert [node.total for node in ranked] == sorted((n.total for n in ranked), reverse=True)
        kept = [node for node in ranked if node.verdict in ("goes on", "left")]
        assert 1 <= len(kept) <= 3
        dropped = [node.total for node in ranked if node.reason == "not among the best"]
        assert all(total <= min(node.total for node in kept) for total in dropped)
    verdicts = Counter(node.verdict for node in tree.nodes)
    assert verdicts["pruned"]
    assert verdicts["goes on"] > 3


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"banned": "first"}, "it would complete a banned phrase"),
        ({"prefix": "quoi"}, "the prefix has another token here"),
        ({"no_repeat_ngram": 1}, "it would repeat an n-gram (no_repeat_ngram)"),
        ({"max_length": 1}, "the longest translation allowed is reached"),
        ({"min_length": 5}, "the translation would be shorter than min_length"),
        ({"must": ("chat",)}, "a stop before every word that must appear"),
        (
            {"must": ("chat dort",), "max_length": 2},
            "the words that must appear would no longer fit",
        ),
    ],
)
def test_what_a_rule_forbids_is_told_with_the_rule(changes, reason):
    free = translator(beam_size=9).translate(SOURCE)
    if changes.get("banned") == "first":
        changes = {"banned": free.tokens[:1]}
    ruled_out = (
        node.reason
        for source in SENTENCES
        if source.strip()
        for node in explain_search(translator(**{"beam_size": 12, **changes}), source).nodes
        if node.verdict == "ruled out"
    )
    assert reason in ruled_out


def test_the_search_is_to_blame_for_what_the_model_likes_better():
    """Greedy search misses what nine beams find: the model scores that higher."""
    # Copied symbols would be in the text of ``best``, which the search must then score.
    greedy, wide = (translator(beam_size=size, copy_symbols=False) for size in (1, 9))
    errors = 0
    for source in SENTENCES:
        if not source.strip():
            continue
        best, found = wide.translate(source), greedy.translate(source)
        if "[UNK]" in (*best.tokens, *found.tokens) or best.score <= found.score:
            continue
        if best.tokens == found.tokens:  # scores of the same may differ by rounding
            continue
        errors += 1
        blame = explain_search(greedy, source, best.text).reference
        assert blame.verdict == "search error"
        assert blame.translation.score == pytest.approx(best.score)
        parted = [a != b for a, b in zip((*best.tokens, 0), (*found.tokens, 0), strict=False)]
        assert blame.lost_at == parted.index(True)
        assert blame.lost_because
    assert errors, "no sentence was of use"


def test_the_model_is_to_blame_for_what_it_does_not_like():
    small = translator()
    found = small.translate(SOURCE)
    bad = "journal train mère"
    blame = explain_search(small, SOURCE, bad).reference
    assert blame.verdict == "model error"
    assert blame.translation.text == bad
    assert blame.translation.score < found.score
    assert blame.lost_at < 3
    assert blame.lost_because == "not among the candidates that were considered"
    assert explain_search(small, SOURCE, found.text).reference.verdict == "found"


def test_nobody_is_to_blame_for_what_was_forbidden():
    free = translator().translate(SOURCE)
    small = translator(banned=free.tokens[:1])
    blame = explain_search(small, SOURCE, free.text).reference
    assert (blame.verdict, blame.lost_at) == ("ruled out", 0)
    assert blame.lost_because == "it would complete a banned phrase"


@pytest.mark.parametrize(
    ("changes", "reference", "lost_at", "reason"),
    [
        ({"max_length": 2}, "journal train mère", 2, "the longest translation allowed is reached"),
        ({"must": ("chat",)}, "train", 1, "a stop before every word that must appear"),
        (
            {"must": ("chat dort",), "max_length": 3},
            "train mère chat dort",
            1,
            "the words that must appear would no longer fit",
        ),
        ({"banned": ("mère",)}, "journal train mère", 2, "it would complete a banned phrase"),
        ({"min_length": 4}, "train", 1, "the translation would be shorter than min_length"),
        (
            {"no_repeat_ngram": 1},
            "un train train",
            2,
            "it would repeat an n-gram (no_repeat_ngram)",
        ),
        ({"prefix": "un train"}, "un journal", 1, "the prefix has another token here"),
    ],
)
def test_a_reference_is_ruled_out_where_the_beam_never_came(changes, reference, lost_at, reason):
    """The rules read the reference itself, not only the tokens that were considered."""
    blame = explain_search(translator(**changes), SOURCE, reference).reference
    assert (blame.verdict, blame.lost_at, blame.lost_because) == ("ruled out", lost_at, reason)
    free = explain_search(translator(), SOURCE, reference).reference
    assert blame.translation.token_log_probs == free.translation.token_log_probs


@pytest.mark.parametrize("kind", ["bpe", "unigram", "character"])
def test_a_text_that_was_found_is_found_in_whichever_tokens_it_was_spelled(kind):
    small = Translator(small_bundle(kind=kind), DecodingConfig(beam_size=2, max_length=12))
    best = small.translate(SOURCE)
    # its tokens are not those of the tokenizer
    assert tuple(small.target_tokenizer.encode(best.text)) != best.token_ids
    found = explain_search(small, SOURCE, best.text).reference
    assert (found.verdict, found.lost_at, found.lost_because) == ("found", None, "")
    assert found.translation.token_ids == best.token_ids
    assert found.translation.token_log_probs == pytest.approx(best.token_log_probs)


def test_a_reference_is_scored_by_the_model_that_was_searched():
    """Without the mask the same tokens have other probabilities."""
    unmasked = {"use_cache": False, "mask_at_inference": False}
    best = translator(**unmasked).translate(SOURCE)
    blame = explain_search(translator(**unmasked, banned=best.tokens[:1]), SOURCE, best.text)
    assert blame.reference.verdict == "ruled out"
    assert blame.reference.translation.score == pytest.approx(best.score)
    masked = explain_search(translator(banned=best.tokens[:1]), SOURCE, best.text)
    assert masked.reference.translation.score != pytest.approx(best.score)


def test_a_reference_as_long_as_is_allowed_has_the_stop_for_nothing_too():
    """A search with a free stop at the limit gives such a translation that score."""
    free = translator(forced_stop="free", max_length=2, n_best=3)
    tree = explain_search(free, SOURCE)
    second = tree.translations[1]
    assert len(second.tokens) == 2
    alone = explain_search(translator(forced_stop="free", max_length=2), SOURCE, second.text)
    assert alone.reference.verdict == "model error"
    assert alone.reference.translation.score == pytest.approx(second.score)


def test_a_tree_is_plain_json():
    tree = explain_search(translator(patience=math.inf), SOURCE, "journal")

    def refuse(constant):
        raise AssertionError(constant)

    entry = json.loads(tree.to_json(), parse_constant=refuse)
    assert entry["settings"]["patience"] == "inf"
    assert len(entry["nodes"]) == len(tree.nodes)
    last = tree.nodes[-1]
    assert entry["nodes"][-1] == {
        "number": last.number,
        "parent": last.parent,
        "group": 0,
        "token": last.token,
        "length": last.length,
        "rank": last.rank,
        "log_prob": last.log_prob,
        "total": last.total,
        "score": last.score,
        "verdict": last.verdict,
        "reason": last.reason,
    }
    assert entry["ends"] == list(tree.ends)
    assert entry["reference"]["verdict"] == tree.reference.verdict
    assert entry["translations"][0]["tokens"] == list(tree.translations[0].tokens)


def test_a_request_of_its_own_is_explained_too():
    tree = explain_search(translator(), Request(SOURCE, prefix="un train"))
    assert tree.translations[0].text.startswith("un train")


def test_what_has_no_tree_is_refused():
    with pytest.raises(ConfigError, match="sampling drops nothing"):
        explain_search(translator(sampling={}), SOURCE)
    with pytest.raises(ConfigError, match="coverage_penalty chooses after the search"):
        explain_search(translator(coverage_penalty=0.2), SOURCE)
    with pytest.raises(ConfigError, match="mbr chooses after the search"):
        explain_search(translator(mbr=True), SOURCE)
    for nothing in ("  ", "... 🙂"):
        with pytest.raises(DataError, match="a search needs a source that holds a word, got none"):
            explain_search(translator(), nothing)


def test_a_line_in_capitals_with_emoji_is_searched_as_it_is_translated():
    asked = translator(recase=True)
    plain = explain_search(asked, SOURCE)
    odd = explain_search(asked, f"{SOURCE.upper()} 🙂", f"{plain.translations[0].text.upper()} 🙂")
    assert odd.source == SOURCE
    assert odd.nodes == plain.nodes
    assert odd.reference.verdict == "found"
    found = asked.translate(f"{SOURCE.upper()} 🙂")
    assert found.text == f"{odd.translations[0].text.upper()} 🙂"
