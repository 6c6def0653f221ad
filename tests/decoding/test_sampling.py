import collections
import math

import pytest
import torch
from small_bundle import SENTENCES, small_bundle
from table_models import A, B, C, TableModel, random_language, sources, toy

from pellucid.core.errors import ConfigError
from pellucid.core.special import EOS_ID
from pellucid.decoding.config import DecodingConfig, SamplingConfig
from pellucid.decoding.search.candidates import NO_CONSTRAINTS, Constraints
from pellucid.decoding.search.greedy import draw_tokens, greedy_search, sample
from pellucid.decoding.translator import Translator

HALVES = torch.tensor([0.1, 0.5, 0.25, 0.15], dtype=torch.float64).log()
"""Likely first: token 1 has 0 to .5, token 2 .5 to .75, token 3 .75 to .9, token 0 the rest."""


def draws(chances: list[float], **cuts) -> list[int]:
    log_probs = HALVES.expand(len(chances), -1)
    return draw_tokens(log_probs, torch.tensor(chances), SamplingConfig(**cuts)).tolist()


def test_each_token_has_its_share_of_the_line():
    assert draws([0.0, 0.49, 0.51, 0.74, 0.76, 0.89, 0.91, 0.9999]) == [1, 1, 2, 2, 3, 3, 0, 0]


@pytest.mark.parametrize(
    ("cuts", "border", "tokens"),
    [
        ({"top_k": 2}, 2 / 3, (1, 2)),  # .5 and .25 are left
        ({"top_p": 0.6}, 2 / 3, (1, 2)),  # .5 is not yet .6
        ({"top_p": 0.74}, 2 / 3, (1, 2)),
        ({"epsilon": 0.2}, 2 / 3, (1, 2)),
        ({"temperature": 0.5, "top_k": 2}, 4 / 5, (1, 2)),  # squares: .25 to .0625
        ({"temperature": 0.5, "epsilon": 0.12}, 4 / 5, (1, 2)),  # the third has .15, and .07 then
    ],
)
def test_what_is_cut_leaves_its_share_to_the_others(cuts, border, tokens):
    assert draws([border - 1e-6, border + 1e-6, 0.999], **cuts) == [*tokens, tokens[1]]


@pytest.mark.parametrize(
    "cuts", [{"top_k": 1}, {"top_p": 1e-9}, {"epsilon": 0.9}, {"temperature": 1e-9}]
)
def test_the_likeliest_is_never_cut(cuts):
    assert draws([0.0, 0.5, 0.9999], **cuts) == [1, 1, 1]


@pytest.mark.by_hand
@pytest.mark.parametrize(("temperature", "border"), [(2.0, 2 / 3), (1.0, 0.8), (0.5, 16 / 17)])
def test_a_higher_temperature_evens_the_shares_out(temperature: float, border: float):
    """0.8 and 0.2: roots are 2 to 1, squares are 16 to 1."""
    log_probs = torch.tensor([0.8, 0.2]).log().expand(2, 2)
    chance = torch.tensor([border - 0.01, border + 0.01])
    drawn = draw_tokens(log_probs, chance, SamplingConfig(temperature=temperature))
    assert drawn.tolist() == [0, 1]


def test_what_is_ruled_out_is_never_drawn():
    log_probs = torch.tensor([[-math.inf, math.log(0.5), -math.inf]])
    assert draw_tokens(log_probs, torch.tensor([1.0]), SamplingConfig()).tolist() == [1]


def test_samples_come_as_often_as_they_are_likely():
    """4,000 sentences of EQ-127's model; within four standard deviations of p."""
    count = 4000
    wanted = DecodingConfig(beam_size=count, n_best=count, length_penalty=0.0)
    [found] = sample(TableModel(toy), sources([A]), wanted, SamplingConfig(), NO_CONSTRAINTS)
    often = collections.Counter(hypothesis.ids for hypothesis in found)
    exact = {(A,): 0.24, (A, A): 0.18, (A, B): 0.18, (B,): 0.36, (B, A): 0.02, (B, B): 0.02}
    assert set(often) == set(exact)
    for ids, probability in exact.items():
        deviation = math.sqrt(count * probability * (1 - probability))
        assert abs(often[ids] - count * probability) < 4 * deviation
    assert all(math.exp(h.score) == pytest.approx(exact[h.ids]) for h in found)
    assert [h.score for h in found] == sorted((h.score for h in found), reverse=True)


def test_a_cold_sample_is_greedy_search():
    model = TableModel(random_language(3))
    batch = sources(*[[4 + n] for n in range(10)])
    wanted = DecodingConfig(n_best=2, max_length=5)
    cold = sample(model, batch, wanted, SamplingConfig(temperature=1e-9), NO_CONSTRAINTS)
    assert cold == [[best, best] for best in greedy_search(model, batch, wanted)]


def test_seed_and_sentence_decide_and_neighbors_do_not():
    model = TableModel(random_language(4))
    rows = [[4 + n, *range(4, 4 + n % 3)] for n in range(12)]
    wanted = DecodingConfig(n_best=3, max_length=6)

    def drawn(batch, seed):
        return sample(model, batch, wanted, SamplingConfig(seed=seed), NO_CONSTRAINTS)

    together = drawn(sources(*rows), seed=1)
    assert [drawn(sources(row), seed=1)[0] for row in rows] == together
    assert drawn(sources(*rows[::-1]), seed=1)[::-1] == together
    assert drawn(sources(*rows), seed=2) != together


def test_each_sentence_has_its_own_random_numbers():
    """EQ-127's model takes no notice of the source, so only the numbers can differ."""
    wanted = DecodingConfig(beam_size=50, n_best=50)
    first, second = sample(
        TableModel(toy), sources([A], [B]), wanted, SamplingConfig(), NO_CONSTRAINTS
    )
    assert [h.ids for h in first] != [h.ids for h in second]


@pytest.mark.parametrize("n_best", [1, 3])
def test_a_coverage_penalty_draws_no_more_than_the_samples_asked_for(n_best: int):
    """The best of a whole beam of samples would be no sample."""
    table = {"beam_size": 6, "n_best": n_best, "sampling": {"seed": 5, "temperature": 2.0}}
    bundle = small_bundle()
    drawn, ranked = (
        Translator(bundle, DecodingConfig.parse({**table, **more})).translate(list(SENTENCES))
        for more in ({}, {"coverage_penalty": 0.5})
    )
    for plain, other in zip(drawn, ranked, strict=True):
        assert len(other.n_best) == (n_best if plain.source.strip() else 1)
        assert sorted(each.text for each in other.n_best) == sorted(
            each.text for each in plain.n_best
        )


def test_samples_obey_prefixes_and_bans():
    constraints = Constraints(banned=((C,),), prefixes=((B,), ()))
    wanted = DecodingConfig(beam_size=20, n_best=20, max_length=4)
    model = TableModel(random_language(5))
    first, second = sample(model, sources([A], [B]), wanted, SamplingConfig(), constraints)
    assert {h.ids[0] for h in first} == {B}
    assert len({h.ids[:1] for h in second}) > 1
    assert not any(C in h.ids for h in (*first, *second))
    assert EOS_ID not in first[0].ids


def test_a_translator_samples_when_it_is_told_to():
    settings = DecodingConfig(n_best=3, max_length=6, sampling=SamplingConfig(seed=7))
    small = Translator(small_bundle(), settings)
    found = small.translate(list(SENTENCES))
    again = Translator(small_bundle(), settings).translate(list(SENTENCES[::-1]))[::-1]
    assert [[n.text for n in t.n_best] for t in found] == [
        [n.text for n in t.n_best] for t in again
    ]
    assert len({n.text for n in found[2].n_best}) > 1
    reseeded = small.translate(SENTENCES[2], settings.changed({"sampling": {"seed": 8}}))
    drawn = [each.token_ids for each in reseeded.n_best]
    assert drawn != [each.token_ids for each in found[2].n_best], "only sampling has a seed"
    assert DecodingConfig.parse(settings.to_table()) == settings


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"temperature": 0.0}, "temperature must be finite and above 0, got 0.0"),
        ({"temperature": math.inf}, "temperature must be finite and above 0, got inf"),
        ({"top_k": -1}, "top_k must be at least 0, got -1"),
        ({"top_p": 0.0}, "top_p must be above 0 and at most 1, got 0.0"),
        ({"epsilon": 1.0}, "epsilon must be at least 0 and below 1, got 1.0"),
    ],
)
def test_a_cut_out_of_range_is_named(table, message):
    with pytest.raises(ConfigError, match=f"sampling: {message}"):
        DecodingConfig.parse({"sampling": table})
