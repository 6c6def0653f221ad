"""Decoding without a cache, and the Single Page's re-predicting loop, with the mask and without."""

import dataclasses
import math

import pytest
import torch
from small_bundle import SENTENCES, small_bundle
from tiny_models import sources, tiny_model

from pellucid.core.errors import CancelledError, ConfigError
from pellucid.core.special import BOS_ID
from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.explain import explain_search
from pellucid.decoding.requests import Request
from pellucid.decoding.search.candidates import NO_CONSTRAINTS, WatchedStep
from pellucid.decoding.search.recompute import Recomputing
from pellucid.decoding.search.search import search
from pellucid.decoding.translator import Translator
from pellucid.equations.search import most_likely

MODELS = 8


def found(seed: int, **settings: object) -> list[list[int]]:
    """What random model number ``seed`` says to three sources."""
    wanted = DecodingConfig.parse({"beam_size": 1, "max_length": 7, **settings})
    with torch.inference_mode():
        hypotheses = search(tiny_model(seed=seed), sources(5, 3, 4), wanted, NO_CONSTRAINTS)
    return [best[0].ids for best in hypotheses]


@pytest.mark.parametrize("settings", [{}, {"beam_size": 3, "n_best": 3}, {"prefix": "un"}])
def test_without_a_cache_the_translations_are_the_same(settings: dict[str, object]):
    """Law: cached = full, over a whole search."""
    bundle = small_bundle()
    texts = list(SENTENCES[:6])
    config = DecodingConfig.parse({"beam_size": 1, "max_length": 8, **settings})
    cached = Translator(bundle, config).translate(texts)
    again = Translator(bundle, config.changed({"use_cache": False})).translate(texts)
    for ours, theirs in zip(again, cached, strict=True):
        assert [each.tokens for each in ours.n_best] == [each.tokens for each in theirs.n_best]
        assert ours.token_log_probs == pytest.approx(theirs.token_log_probs, abs=1e-9)


@pytest.mark.property
def test_with_the_mask_re_predicting_is_greedy_search():
    """EQ-124: all of 8 random models; no row can see what came after it (ER-37)."""
    assert all(found(seed, repredict=True) == found(seed) for seed in range(MODELS))


@pytest.mark.property
def test_without_the_mask_re_predicting_changes_what_was_said_before():
    """EQ-84, ER-36: half of these models say something else than by appending, unmasked too."""
    appended = [found(seed, use_cache=False, mask_at_inference=False) for seed in range(MODELS)]
    again = [found(seed, repredict=True, mask_at_inference=False) for seed in range(MODELS)]
    differing = sum(ours != theirs for ours, theirs in zip(again, appended, strict=True))
    assert differing >= MODELS // 4


def test_without_the_mask_each_word_is_the_likeliest_given_all_words_said():
    """Appending, unmasked: the last row of the whole prefix decides, earlier words stay."""
    model = tiny_model()
    [ids] = found(0, use_cache=False, mask_at_inference=False)[:1]
    memory = model.encode(sources(5, 3, 4)[:1])
    for length in range(min(4, len(ids))):
        prefix = torch.tensor([[BOS_ID, *ids[:length]]])
        hidden = model.decode(memory, prefix, causal=False)
        logits = hidden[0, -1] @ model.output_weight.T
        logits[[0, BOS_ID]] = -torch.inf
        assert most_likely(logits).item() == ids[length]


def test_re_predicted_words_carry_the_log_probabilities_of_the_last_pass():
    model = tiny_model(seed=3)
    wanted = DecodingConfig(beam_size=1, max_length=5, repredict=True, mask_at_inference=False)
    source = sources(5)
    with torch.inference_mode():
        [[only]] = search(model, source, wanted, NO_CONSTRAINTS)
        memory = model.encode(source)
        prefix = torch.tensor([[[BOS_ID, *only.ids]]])
        again = Recomputing(model, mask_at_inference=False).logits(memory, prefix[:, :, :-1])
    assert len(only.token_log_probs) == len(only.ids) + 1  # the stop's comes last
    assert again.shape[2] == len(only.ids)
    assert all(-50 < each <= 0 for each in only.token_log_probs)


@pytest.mark.parametrize("max_length", [1, 2, 3, 40])
def test_with_the_mask_a_forced_stop_is_free_where_it_is_for_greedy_search(max_length: int):
    """Of translations that are cut, and of those that end by themselves."""
    for seed in range(3):
        scores = []
        for repredict in (False, True):
            plain = {"beam_size": 1, "max_length": max_length, "repredict": repredict}
            for forced_stop in ("counted", "free"):
                wanted = DecodingConfig.parse({**plain, "forced_stop": forced_stop})
                with torch.inference_mode():
                    model, batch = tiny_model(seed=seed), sources(5, 3, 4)
                    each = search(model, batch, wanted, NO_CONSTRAINTS)
                scores.append([(only.ids, only.token_log_probs) for [only] in each])
        for greedy, again in zip(scores[:2], scores[2:], strict=True):
            for (ids, log_probs), (other_ids, others) in zip(greedy, again, strict=True):
                assert other_ids == ids
                assert others == pytest.approx(log_probs)
        for ids, log_probs in scores[3]:
            assert (log_probs[-1] == 0.0) == (len(ids) == max_length)


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        (
            {"mask_at_inference": False},
            "mask_at_inference=false needs use_cache=false: without the mask a word depends on"
            " those after it, which no cache can know",
        ),
        (
            {"mask_at_inference": False, "repredict": True, "align": True, "beam_size": 2},
            "mask_at_inference=false takes no align, which reads the attention of a decoder with"
            " its mask; repredict takes the likeliest token at every position, so it allows no"
            " beam_size",
        ),
        (
            {
                "mask_at_inference": False,
                "use_cache": False,
                "replace_unknown": True,
                "coverage_penalty": 0.1,
            },
            "takes no replace_unknown or coverage_penalty, which reads",
        ),
        (
            {"repredict": True, "beam_size": 4, "min_length": 2, "prefix": "a"},
            "repredict takes the likeliest token at every position, so it allows no beam_size or"
            " min_length or prefix",
        ),
    ],
)
def test_what_makes_no_sense_is_refused_with_the_reason(settings: dict[str, object], problem: str):
    with pytest.raises(ConfigError) as caught:
        DecodingConfig.parse(settings)
    assert problem in str(caught.value)


@pytest.mark.parametrize("demand", [{"prefix": "un"}, {"must": ("un",)}])
def test_a_line_cannot_ask_more_of_re_predicting_than_the_settings_can(demand: dict):
    translator = Translator(small_bundle(), DecodingConfig(beam_size=1, repredict=True))
    assert translator.translate("un chat").tokens
    with pytest.raises(ConfigError, match="a line can have neither a prefix nor words that"):
        translator.translate([Request("un chat", **demand)])


def test_re_predicting_has_no_tree():
    translator = Translator(small_bundle(), DecodingConfig(beam_size=1, repredict=True))
    with pytest.raises(ConfigError, match="repredict drops nothing, so there is no search to"):
        explain_search(translator, "un chat")


def test_re_predicting_can_be_ended_and_not_watched_step_by_step():
    @dataclasses.dataclass
    class Impatient:
        needs_steps: bool = False
        lengths: list[int] = dataclasses.field(default_factory=list)

        def before_step(self, length: int) -> None:
            self.lengths.append(length)
            if length == 2:
                raise CancelledError("enough")

        def saw_step(self, step: WatchedStep) -> None:
            raise AssertionError(step)

    wanted = DecodingConfig(beam_size=1, max_length=5, repredict=True, mask_at_inference=False)
    impatient = Impatient()
    with pytest.raises(CancelledError, match="enough"):
        search(tiny_model(seed=3), sources(5), wanted, NO_CONSTRAINTS, impatient)
    assert impatient.lengths == [0, 1, 2]
    with pytest.raises(ConfigError, match="cannot be watched step by step"):
        search(tiny_model(), sources(5), wanted, NO_CONSTRAINTS, Impatient(needs_steps=True))


@pytest.mark.parametrize("masked", [True, False])
def test_a_translation_has_the_scores_of_its_search(masked: bool):
    """Forced decoding and alternatives ask the model that was searched, masked or not."""
    settings = DecodingConfig(max_length=5, use_cache=False, mask_at_inference=masked)
    translator = Translator(small_bundle(kind="word"), settings)
    found = translator.translate("le chat dort")
    # in a batch with a longer one, so that padding counts for nothing
    sources, targets = ["le chat dort", "il pleut"], [found.text, "un petit chat noir"]
    scored = translator.score(sources, targets)[0]
    assert scored.tokens == found.tokens
    assert scored.token_log_probs == pytest.approx(found.token_log_probs)

    first = len(found.tokens) - 1
    likely = translator.alternatives("le chat dort", found.tokens[:first], count=6)
    shares = {each.token: each.probability for each in likely}
    log_prob = found.token_log_probs[first]
    assert math.log(shares[found.tokens[first]]) == pytest.approx(log_prob)


@pytest.mark.parametrize("settings", [{"use_cache": False}, {"repredict": True}])
def test_a_recurrent_model_has_no_mask_to_leave_off(settings: dict[str, object]):
    wanted = DecodingConfig.parse({"beam_size": 1, **settings})
    with pytest.raises(ConfigError) as caught:
        search(tiny_model("additive"), sources(3), wanted, NO_CONSTRAINTS)
    assert str(caught.value) == (
        "use_cache=false and repredict need a single model of kind transformer: no other has a"
        " mask that could be left off"
    )


def test_an_ssru_has_no_mask_to_leave_off():
    """With a mask, the whole prefix again gives what its cells give; without one it is refused."""
    model, rows = tiny_model("ssru"), sources(5, 3)
    whole = DecodingConfig(beam_size=3, use_cache=False, max_length=6)
    cached = search(model, rows, whole.changed({"use_cache": True}), NO_CONSTRAINTS)
    for [ours], [theirs] in zip(search(model, rows, whole, NO_CONSTRAINTS), cached, strict=True):
        assert ours.ids == theirs.ids
        assert ours.score == pytest.approx(theirs.score, abs=1e-12)
    unmasked = DecodingConfig(beam_size=1, use_cache=False, mask_at_inference=False)
    with pytest.raises(ConfigError) as caught:
        search(model, rows, unmasked, NO_CONSTRAINTS)
    assert str(caught.value) == (
        "mask_at_inference=false needs a decoder with self-attention: an SSRU reads the words in"
        " their order and has no mask"
    )
