"""EQ-123 to EQ-128, on models whose every sentence can be listed."""

import math

import pytest
import torch
from table_models import (
    A,
    B,
    C,
    TableModel,
    every_sentence,
    random_language,
    sources,
    toy,
)

from pellucid.core.errors import PellucidError
from pellucid.core.special import BOS_ID, EOS_ID, PAD_ID, UNK_ID
from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.search.beam import beam_search
from pellucid.decoding.search.greedy import greedy_search

PLAIN = DecodingConfig(length_penalty=0.0)


def settings(**changes) -> DecodingConfig:
    return DecodingConfig.parse(changes)


@pytest.mark.by_hand
def test_greedy_takes_the_toy_models_likelier_first_word():
    """EQ-125: (A, stop) with .6 · .4 = .24."""
    [found] = greedy_search(TableModel(toy), sources([A]), PLAIN)
    assert found.ids == (A,)
    assert math.exp(found.score) == pytest.approx(0.24, rel=1e-12)
    assert found.token_log_probs == pytest.approx([math.log(0.6), math.log(0.4)], rel=1e-12)


@pytest.mark.by_hand
@pytest.mark.parametrize(
    ("width", "ids", "probability"), [(1, (A,), 0.24), (2, (B,), 0.36), (3, (B,), 0.36)]
)
def test_two_beams_find_what_greedy_misses(width, ids, probability):
    """EQ-126, EQ-127, ER-74: one beam finds .24, so what a beam finds need not be the best."""
    [[found]] = beam_search(
        TableModel(toy), sources([A]), settings(beam_size=width, length_penalty=0.0)
    )
    assert found.ids == ids
    assert math.exp(found.score) == pytest.approx(probability, rel=1e-12)


@pytest.mark.parametrize("alpha", [-0.5, 0.0, 0.6, 2.0])
@pytest.mark.parametrize("patience", [1.0, math.inf])
def test_a_beam_as_wide_as_all_prefixes_is_exhaustive_search(alpha, patience):
    """Three words, at most three of them: 40 sentences; the first ten are right, in order."""
    for seed in range(10):
        language = random_language(seed)
        wanted = settings(
            beam_size=40, n_best=10, length_penalty=alpha, max_length=3, patience=patience
        )
        [found] = beam_search(TableModel(language), sources([A + seed]), wanted)
        expected = every_sentence(language, (A + seed, EOS_ID), longest=3, alpha=alpha)[:10]
        assert [h.ids for h in found] == [ids for _, ids in expected]
        assert [h.score for h in found] == pytest.approx([s for s, _ in expected], rel=1e-12)


def test_all_sentences_can_be_asked_for():
    """(1 + 3 + 9) = 13 sentences of at most two words; a fourteenth does not exist."""
    [found] = beam_search(
        TableModel(random_language(0)),
        sources([A]),
        settings(beam_size=20, n_best=20, max_length=2),
    )
    assert len({h.ids for h in found}) == len(found) == 13


@pytest.mark.parametrize("alpha", [-1.0, 0.0, 0.6, 3.0])
def test_one_beam_is_greedy_search_exactly(alpha):
    model = TableModel(random_language(1), dtype=torch.float32)
    batch = sources(*[[token] for token in range(4, 60)])
    wanted = settings(beam_size=1, length_penalty=alpha, max_length=8)
    assert [best for [best] in beam_search(model, batch, wanted)] == greedy_search(
        model, batch, wanted
    )


def test_one_beam_is_greedy_search_when_everything_is_equally_likely():
    def indifferent(source, prefix):
        return dict.fromkeys(range(200), 1 / 200)

    model = TableModel(indifferent, vocabulary_size=200)
    wanted = settings(beam_size=1, max_length=4)
    [[beam]], [greedy] = (
        beam_search(model, sources([A]), wanted),
        greedy_search(model, sources([A]), wanted),
    )
    assert beam == greedy
    assert greedy.ids == (UNK_ID,) * 4  # PAD is never said; the next id is the first of equals


@pytest.mark.parametrize("beam_size", [2, 3, 5])
def test_leaving_a_sentence_early_loses_nothing(beam_size):
    """Without a bound every beam runs to the maximum length: the slow search below."""
    for seed in range(30):
        language = random_language(seed)
        wanted = settings(beam_size=beam_size, n_best=2, max_length=6, patience=math.inf)
        model = TableModel(language)
        [found] = beam_search(model, sources([A + seed]), wanted)
        expected = slow_beam_search(language, (A + seed, EOS_ID), beam_size, 6, 0.6)[:2]
        assert [h.ids for h in found] == [ids for _, ids in expected]


def test_the_bound_counts_on_the_largest_penalty_to_come():
    """Saying nothing scores log .7; six sure words after an unlikely one log .3 / (12 / 6)^2."""

    def language(source, prefix):
        if prefix:
            return {A: 1.0} if len(prefix) < 6 else {EOS_ID: 1.0}
        return {EOS_ID: 0.7, A: 0.3}

    wanted = settings(beam_size=2, length_penalty=2.0, max_length=6, patience=math.inf)
    [[found]] = beam_search(TableModel(language), sources([A]), wanted)
    assert found.ids == (A,) * 6
    assert found.score == pytest.approx(math.log(0.3) / 4)


def test_by_length_to_the_alpha_the_longer_of_two_sentences_may_win():
    """One token has p = .5, three have .35. GNMT's penalties for 2 and 4 tokens (a stop is one) are
    7/6 and 9/6: -.59 against -.70. The powers are 2 and 4: -.35 against -.26."""

    def language(source, prefix):
        if not prefix:
            return {A: 0.5, B: 0.35, C: 0.15}
        return {EOS_ID: 1.0} if prefix[0] == A or len(prefix) == 3 else {B: 1.0}

    for kind, expected, score in (
        ("gnmt", (A,), math.log(0.5) / (7 / 6)),
        ("power", (B, B, B), math.log(0.35) / 4),
    ):
        wanted = settings(
            beam_size=3, length_penalty=1.0, length_penalty_kind=kind, patience=math.inf
        )
        [[found]] = beam_search(TableModel(language), sources([A]), wanted)
        assert found.ids == expected
        assert found.score == pytest.approx(score, rel=1e-12)


def by_current_score(language, bound, beam_size):
    asked = {"length_penalty": 1.0, "length_penalty_kind": "power", "max_length": 9}
    asked |= {"patience": math.inf, "stop_bound": bound, "beam_size": beam_size}
    [[found]] = beam_search(TableModel(language), sources([A]), settings(**asked))
    return found.ids


def test_the_heuristic_bound_loses_what_gets_better_later():
    """After two tokens log .4 / 2 and log .21 / 2 have finished, and the live hypothesis has
    log .14 / 2, which is less. Seven sure tokens later it would have log .14 / 8, the best."""

    def language(source, prefix):
        if not prefix:
            return {A: 0.4, B: 0.35, C: 0.25}
        if prefix == (B,):
            return {EOS_ID: 0.6, B: 0.4}
        return {B: 1.0} if prefix[0] == B and len(prefix) < 7 else {EOS_ID: 1.0}

    assert by_current_score(language, "exact", 2) == (B,) * 7
    assert by_current_score(language, "current", 2) == (A,)


def test_the_heuristic_bound_compares_with_the_worst_of_as_many_as_there_are_beams():
    """After three tokens log .4 / 2, log .25 / 2 and log .056 / 3 have finished; the live one
    has log .224 / 3 = -.50, below the best, -.46, above the worst, -.96: it goes on, and wins."""

    def language(source, prefix):
        if not prefix:
            return {A: 0.4, B: 0.35, C: 0.25}
        if prefix in ((B,), (B, B)):
            return {EOS_ID: 0.2, B: 0.8}
        return {B: 1.0} if prefix[0] == B and len(prefix) < 7 else {EOS_ID: 1.0}

    assert by_current_score(language, "current", 3) == (B,) * 7


def test_a_forced_stop_can_be_free():
    """The model never stops by itself: p(stop) is .01 after each word."""

    def language(source, prefix):
        return {A: 0.99, EOS_ID: 0.01}

    for beam_size in (1, 3):
        asked = {"beam_size": beam_size, "max_length": 3, "length_penalty": 0.0, "patience": 9.0}
        for kind, stop in (("counted", math.log(0.01)), ("free", 0.0)):
            wanted = settings(**asked, forced_stop=kind, min_length=3)
            model, source = TableModel(language), sources([A])
            found = beam_search(model, source, wanted)[0][0]
            assert found == greedy_search(model, source, wanted)[0]
            assert found.ids == (A, A, A)
            assert found.score == pytest.approx(3 * math.log(0.99) + stop, rel=1e-12)


def slow_beam_search(language, source, beam_size, longest, alpha):
    """The same search with lists and no early exit."""
    live, finished = [(0.0, ())], []
    for length in range(longest + 1):
        candidates = sorted(
            (
                (total + math.log(p), (*ids, token))
                for total, ids in live
                for token, p in language(source, ids).items()
                if (token == EOS_ID) or length < longest
            ),
            key=lambda candidate: -candidate[0],
        )[: 2 * beam_size]
        finished += [
            (total / ((5 + len(ids)) / 6) ** alpha, ids[:-1])
            for total, ids in candidates[:beam_size]
            if ids[-1] == EOS_ID
        ]
        live = [(total, ids) for total, ids in candidates if ids[-1] != EOS_ID][:beam_size]
    return sorted(finished, key=lambda item: -item[0])


def test_patience_one_waits_for_as_many_hypotheses_as_beams():
    """Both beams stop at the second step; waiting on finds (A, A), better per length."""

    def language(source, prefix):
        table = {
            (): {A: 0.5, B: 0.5},
            (A,): {EOS_ID: 0.6, A: 0.4},
            (B,): {EOS_ID: 0.6, B: 0.4},
        }
        return table.get(prefix, {EOS_ID: 1.0})

    wanted = {"beam_size": 2, "length_penalty": 3.0, "max_length": 5}
    [[hasty]] = beam_search(TableModel(language), sources([A]), settings(**wanted))
    [[patient]] = beam_search(TableModel(language), sources([A]), settings(**wanted, patience=2.0))
    assert hasty.ids == (A,)
    assert patient.ids == (A, A)
    assert patient.score == pytest.approx(math.log(0.2) / (8 / 6) ** 3)


def test_stops_cannot_starve_the_live_beams():
    """Both beams would rather stop; four candidates still leave two that go on."""

    def language(source, prefix):
        table = {(): {A: 0.6, B: 0.4}, (A,): {EOS_ID: 0.9, A: 0.1}, (B,): {EOS_ID: 0.9, B: 0.1}}
        return table.get(prefix, {EOS_ID: 1.0})

    wanted = settings(beam_size=2, n_best=2, patience=math.inf, length_penalty=0.0, max_length=4)
    model = TableModel(language)
    [found] = beam_search(model, sources([A]), wanted)
    assert [h.ids for h in found] == [(A,), (B,)]
    # the bound ends it there: .6 · .1 < .4 · .9
    assert model.rows_asked == [1, 2]


@pytest.mark.parametrize("search", [greedy_search, beam_search])
def test_a_sentence_that_is_done_leaves_the_batch(search):
    """The source's first id is the number of words said."""

    def as_told(source, prefix):
        return {EOS_ID: 1.0} if len(prefix) == source[0] - 10 else {A: 1.0}

    model = TableModel(as_told)
    found = search(model, sources([11], [13], [12]), settings(beam_size=1))
    hypotheses = [h[0] if isinstance(h, list) else h for h in found]
    assert [h.ids for h in hypotheses] == [(A,), (A, A, A), (A, A)]
    assert model.rows_asked == [3, 3, 2, 1]


@pytest.mark.by_hand
@pytest.mark.parametrize("search", [greedy_search, beam_search])
def test_a_model_that_never_stops_is_stopped(search):
    """N9, ER-71: the limit of each sentence is its own, and log p(stop) counts."""

    def endless(source, prefix):
        return {A: 0.7, B: 0.2, EOS_ID: 0.1} if prefix else {A: 1.0}

    wanted = settings(beam_size=1, max_length_ratio=2.0, max_length_extra=1, length_penalty=0.0)
    found = search(TableModel(endless), sources([A], [A, B, C]), wanted)
    short, long = [h[0] if isinstance(h, list) else h for h in found]
    assert short.ids == (A,) * 3
    assert long.ids == (A,) * 7
    assert short.score == pytest.approx(2 * math.log(0.7) + math.log(0.1))


@pytest.mark.parametrize("search", [greedy_search, beam_search])
def test_a_stop_that_cannot_be_is_forced_all_the_same(search):
    found = search(
        TableModel(lambda source, prefix: {A: 1.0}),
        sources([A]),
        settings(beam_size=1, max_length=2),
    )
    [hypothesis] = [h[0] if isinstance(h, list) else h for h in found]
    assert hypothesis.ids == (A, A)
    assert hypothesis.token_log_probs == pytest.approx([0.0, 0.0, -1e30])
    assert math.isfinite(hypothesis.score)


def test_nothing_is_longer_than_the_model_can_number():
    """A model of six positions reads BOS and five words before it says EOS."""
    model = TableModel(lambda source, prefix: {A: 1.0}, max_length=6)
    [[found]] = beam_search(model, sources([A]), settings())
    assert found.ids == (A,) * 5


def test_padding_and_start_are_never_said():
    def tempted(source, prefix):
        return {PAD_ID: 0.4, BOS_ID: 0.3, A: 0.1, UNK_ID: 0.15, EOS_ID: 0.05}

    [found] = beam_search(
        TableModel(tempted), sources([A]), settings(beam_size=9, n_best=9, max_length=3)
    )
    assert {token for h in found for token in h.ids} == {A, UNK_ID}
    # the probabilities stay the model's own: nothing is shared out anew
    assert found[0].token_log_probs[-1] == pytest.approx(math.log(0.05))


def test_beams_may_outnumber_the_vocabulary():
    [found] = beam_search(
        TableModel(toy), sources([A]), settings(beam_size=50, n_best=50, length_penalty=0.0)
    )
    probabilities = [math.exp(h.score) for h in found]
    assert probabilities == pytest.approx([0.36, 0.24, 0.18, 0.18, 0.02, 0.02])
    assert sum(probabilities) == pytest.approx(1.0)
    assert found[2].ids == (A, A)  # equal ones in the order of their ids
    assert found[3].ids == (A, B)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_batched_is_alone(dtype):
    """N7: alone, together, and in another order, sources of unequal length."""
    model = TableModel(random_language(5), dtype=dtype)
    rows = [[4 + n, *range(4, 4 + n % 3)] for n in range(24)]
    wanted = settings(beam_size=3, n_best=3, max_length=6)
    together = beam_search(model, sources(*rows), wanted)
    assert [beam_search(model, sources(row), wanted)[0] for row in rows] == together
    assert beam_search(model, sources(*rows[::-1]), wanted)[::-1] == together


def test_the_best_does_not_depend_on_how_many_are_asked_for():
    model = TableModel(random_language(6))
    batch = sources(*[[4 + n] for n in range(20)])
    many = beam_search(model, batch, settings(beam_size=4, n_best=4, max_length=6))
    one = beam_search(model, batch, settings(beam_size=4, n_best=1, max_length=6))
    assert [hypotheses[0] for hypotheses in many] == [best for [best] in one]


def test_scores_are_log_probs_over_the_penalty():
    """Wu et al.: ((5 + 3) / 6)^0.6 for two words and a stop."""
    language = random_language(7)
    [found] = beam_search(
        TableModel(language), sources([A]), settings(beam_size=4, n_best=4, max_length=2)
    )
    for hypothesis in found:
        source, total = (A, EOS_ID), 0.0
        for place, token in enumerate((*hypothesis.ids, EOS_ID)):
            expected = math.log(language(source, hypothesis.ids[:place])[token])
            assert hypothesis.token_log_probs[place] == pytest.approx(expected, rel=1e-12)
            total += expected
        length = len(hypothesis.ids) + 1
        assert hypothesis.score == pytest.approx(total / ((5 + length) / 6) ** 0.6, rel=1e-12)


@pytest.mark.parametrize("search", [greedy_search, beam_search])
def test_a_model_that_gives_nan_is_refused(search):
    class Broken(TableModel):
        def step(self, ids, state):
            logits, state = super().step(ids, state)
            return logits * torch.nan, state

    message = r"a finite log-probability, got nan in sum|no translation is possible: .* NaN"
    with pytest.raises(PellucidError, match=message):
        search(Broken(toy), sources([A]), settings(beam_size=1, max_length=3))


def test_a_model_that_says_only_padding_is_refused():
    model = TableModel(lambda source, prefix: {PAD_ID: 1.0})
    with pytest.raises(PellucidError, match=r"no translation is possible: .* rule out every tok"):
        beam_search(model, sources([A]), settings())
    with pytest.raises(PellucidError, match="finite log-probability, got -inf"):
        greedy_search(model, sources([A]), settings(max_length=2))
