import math

import pytest
import torch
from table_models import A, B, C, TableModel, every_sentence, random_language, sources, toy

from pellucid.core.errors import ConfigError
from pellucid.core.special import EOS_ID
from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.result import Hypothesis
from pellucid.decoding.search.beam import beam_search
from pellucid.decoding.search.candidates import NO_CONSTRAINTS, Constraints, make_rules
from pellucid.decoding.search.greedy import greedy_search

SEEDS = range(8)


def both(
    model, source, wanted: dict, constraints: Constraints = NO_CONSTRAINTS
) -> list[list[Hypothesis]]:
    """What beam search, as wide as the language, and greedy search find."""
    beams = DecodingConfig.parse({"beam_size": 130, "patience": math.inf, **wanted})
    greedy = DecodingConfig.parse(wanted)
    return [
        [best for best, *_ in beam_search(model, source, beams, constraints)],
        greedy_search(model, source, greedy, constraints),
    ]


def best_that(holds, seed: int, longest: int) -> tuple[int, ...]:
    """The best of all sentences of a random language for which ``holds`` is true."""
    ranked = every_sentence(random_language(seed), (A, EOS_ID), longest, alpha=0.6)
    return next(ids for _, ids in ranked if holds(ids))


def contains(ids: tuple[int, ...], sequence: tuple[int, ...]) -> bool:
    return any(
        ids[place : place + len(sequence)] == sequence
        for place in range(len(ids) - len(sequence) + 1)
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_no_sentence_is_shorter_than_the_minimum(seed):
    model = TableModel(random_language(seed))
    wide, [greedy] = both(model, sources([A]), {"min_length": 3, "max_length": 4})
    assert wide[0].ids == best_that(lambda ids: len(ids) >= 3, seed, 4)
    assert len(greedy.ids) >= 3


@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize("seed", SEEDS)
def test_no_words_in_a_row_are_said_twice(seed, n):
    def never_twice(ids):
        ngrams = [ids[place : place + n] for place in range(len(ids) - n + 1)]
        return len(set(ngrams)) == len(ngrams)

    model = TableModel(random_language(seed))
    wanted = {"no_repeat_ngram": n, "min_length": 3, "max_length": 4}
    wide, [greedy] = both(model, sources([A]), wanted)
    assert wide[0].ids == best_that(lambda ids: len(ids) >= 3 and never_twice(ids), seed, 4)
    assert never_twice(greedy.ids)


def test_a_repeat_is_seen_however_far_back_it_lies():
    """A B C A: with bigrams barred, B may not follow; greedy takes the next likeliest."""

    def cycle(source, prefix):
        following = [A, B, C][len(prefix) % 3]
        return {following: 0.9, A: 0.05, C: 0.05} | {following: 0.9}

    wanted = DecodingConfig(no_repeat_ngram=2, max_length=5)
    [free] = greedy_search(TableModel(cycle), sources([A]), DecodingConfig(max_length=5))
    [barred] = greedy_search(TableModel(cycle), sources([A]), wanted)
    assert free.ids == (A, B, C, A, B)
    assert barred.ids == (A, B, C, A, A)


@pytest.mark.parametrize("sequence", [(B,), (A, B), (B, B, C)])
@pytest.mark.parametrize("seed", SEEDS)
def test_banned_words_and_phrases_do_not_appear(seed, sequence):
    model = TableModel(random_language(seed))
    wide, [greedy] = both(
        model,
        sources([A]),
        {"max_length": 4, "min_length": 2},
        Constraints(banned=(sequence, (C,))),
    )
    allowed = best_that(
        lambda ids: len(ids) >= 2 and not contains(ids, sequence) and C not in ids, seed, 4
    )
    assert wide[0].ids == allowed
    assert not contains(greedy.ids, sequence)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_translation_begins_as_it_is_told_to(seed):
    """Each sentence has its own beginning; its log-probabilities are the model's own."""
    language = random_language(seed)
    constraints = Constraints(prefixes=((C, C), (), (B,)))
    source = sources([A], [A], [A])
    wide, greedy = both(TableModel(language), source, {"max_length": 4}, constraints)
    for found, prefix in zip(wide, constraints.prefixes, strict=True):
        assert found.ids == best_that(lambda ids, p=prefix: ids[: len(p)] == p, seed, 4)
    assert [h.ids[: len(p)] for h, p in zip(greedy, constraints.prefixes, strict=True)] == list(
        constraints.prefixes
    )
    first = math.log(language((A, EOS_ID), ())[C])
    assert greedy[0].token_log_probs[0] == wide[0].token_log_probs[0] == pytest.approx(first)


def test_what_is_forced_goes_before_what_is_barred():
    constraints = Constraints(banned=((B,),), prefixes=((B,),))
    wanted = {"max_length": 2, "min_length": 2, "no_repeat_ngram": 1}
    wide, [greedy] = both(TableModel(random_language(0)), sources([A]), wanted, constraints)
    for found in (wide[0], greedy):
        assert found.ids[0] == B
        assert found.ids[1] in (A, C)


def test_a_forced_word_that_cannot_be_is_said_all_the_same():
    constraints = Constraints(prefixes=((C,),))
    model = TableModel(lambda source, prefix: {A: 0.5, EOS_ID: 0.5})
    wide, greedy = both(model, sources([A]), {"max_length": 2, "length_penalty": 0.0}, constraints)
    for found in (wide[0], greedy[0]):
        assert found.ids[0] == C
        assert found.token_log_probs[0] == pytest.approx(-1e30)


def test_a_beginning_that_is_too_long_is_refused():
    with pytest.raises(ConfigError, match="must fit into 1 token, got 2") as caught:
        greedy_search(
            TableModel(random_language(0)),
            sources([A]),
            DecodingConfig(max_length=1),
            Constraints(prefixes=((A, B),)),
        )
    assert "max_length_ratio" in caught.value.hint  # which may be what set the limit


def test_bfloat16_logits_are_summed_in_float32():
    """In bfloat16, 300 equal tokens would get log-probabilities off by 1%."""
    model = TableModel(
        lambda source, prefix: dict.fromkeys(range(4, 300), 1.0) | {EOS_ID: 1.0},
        vocabulary_size=300,
        dtype=torch.bfloat16,
    )
    [found] = greedy_search(model, sources([A]), DecodingConfig(max_length=1))
    assert found.token_log_probs[0] == pytest.approx(-math.log(297), rel=1e-6)


@pytest.mark.by_hand
def test_a_free_stop_is_free_and_a_forced_prefix_is_not():
    """B costs log 0.4 and then A log 0.05; only the stop that the length forces costs nothing."""
    settings = DecodingConfig.parse({"max_length": 2, "forced_stop": "free"})
    [found] = greedy_search(
        TableModel(toy), sources([A]), settings, Constraints(prefixes=((B, A),))
    )
    assert found.ids == (B, A)
    assert found.token_log_probs == pytest.approx([math.log(0.4), math.log(0.05), 0.0])


def test_a_repetition_is_named_as_the_reason():
    """A B A B would say "A B" twice; A B B would not."""
    settings = DecodingConfig.parse({"no_repeat_ngram": 2, "max_length": 9})
    rules = make_rules(sources([A]), TableModel(toy), settings, NO_CONSTRAINTS)
    reason = "it would repeat an n-gram (no_repeat_ngram)"
    assert rules.why_not(0, (A, B, A), B) == reason
    assert rules.why_not(0, (A, B), B) == ""
