"""Odd copies of lines: what each kind changes, how often, and the same again for the same seed."""

import pytest

from pellucid.core.errors import ConfigError
from pellucid.text.config import NoiseConfig
from pellucid.text.glossary import Glossary, Term
from pellucid.text.noise import (
    EMOJI,
    Draws,
    is_noisy,
    noisy_pair,
    title_case,
    with_spaces,
    with_typos,
    without_stop,
)
from pellucid.training.presets import read_config

PAIR = "Two dogs are playing in the (deep) snow.", "Zwei Hunde spielen im tiefen Schnee."


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("upper", (PAIR[0].upper(), "ZWEI HUNDE SPIELEN IM TIEFEN SCHNEE.")),
        ("title", ("Two Dogs Are Playing In The (Deep) Snow.", PAIR[1])),
        ("lower", (PAIR[0].lower(), PAIR[1])),
        ("no_stop", (PAIR[0][:-1], PAIR[1][:-1])),
    ],
)
def test_each_kind_changes_the_sides_it_should(kind, expected):
    assert noisy_pair(*PAIR, NoiseConfig(**{kind: 1.0}), seed=0) == expected


def test_typing_errors_and_spaces_are_of_the_source_alone():
    for kind in ("typos", "spaces"):
        source, target = noisy_pair(*PAIR, NoiseConfig(**{kind: 1.0}), seed=3)
        assert source != PAIR[0]
        assert target == PAIR[1]


def test_an_emoji_is_at_the_same_end_of_both_sides():
    ends = set()
    for seed in range(20):
        source, target = noisy_pair(*PAIR, NoiseConfig(emoji=1.0), seed)
        first = source.split()[0] in EMOJI
        ends.add(first)
        place = 0 if first else -1
        assert source.split()[place] == target.split()[place] in EMOJI
        assert sorted([*PAIR[0].split(), target.split()[place]]) == sorted(source.split())
    assert ends == {True, False}


def test_shares_are_kept_and_a_pair_that_is_not_drawn_stays_as_it_is():
    """4,000 draws; a standard deviation is 0.0075 at most."""
    config = NoiseConfig(upper=0.1, lower=0.2, no_stop=0.3)
    made = [noisy_pair(*PAIR, config, seed) for seed in range(4000)]
    share = {
        "upper": sum(source.isupper() for source, _ in made) / 4000,
        "lower": sum(source.islower() for source, _ in made) / 4000,
        "no stop": sum(not target.endswith(".") for _, target in made) / 4000,
    }
    assert share == {
        "upper": pytest.approx(0.1, abs=0.03),
        "lower": pytest.approx(0.2, abs=0.03),
        "no stop": pytest.approx(0.3, abs=0.03),
    }
    for seed, pair in enumerate(made):
        assert is_noisy(config, seed) == (pair != PAIR)


def test_a_typing_error_is_one_edit_after_the_first_letter_for_each_twelve_words():
    line = "several children in bright clothes stand before the large building today"
    kinds = set()
    for seed in range(60):
        words = with_typos(line, Draws(seed)).split()
        [changed] = [
            (old, new) for old, new in zip(line.split(), words, strict=True) if old != new
        ] or [("same", "same")]
        assert changed[0][0] == changed[1][0]
        kinds.add(len(changed[1]) - len(changed[0]))
    assert kinds == {-1, 0, 1}
    long = with_typos(" ".join([line] * 4), Draws(1)).split()
    assert sum(old != new for old, new in zip(line.split() * 4, long, strict=True)) in (3, 4)
    assert with_typos("a b c 12345", Draws(1)) == "a b c 12345"


def test_stray_spaces_change_no_word():
    for seed in range(40):
        made = with_spaces(PAIR[0], Draws(seed))
        assert made != PAIR[0]
        assert made.replace(" ", "") == PAIR[0].replace(" ", "")
        # a vowel sign is no final mark
        assert "पानी" in with_spaces("यह पानी", Draws(seed))
    assert with_spaces("", Draws(0)).strip() == ""


@pytest.mark.parametrize(
    ("line", "bare"),
    [
        ("It rains.", "It rains"),
        ("It rains. ", "It rains"),
        ("It rains...", "It rains..."),
        ("It rains!", "It rains!"),
        ("下雨了。", "下雨了"),
        ("", ""),
    ],
)
def test_only_a_final_stop_is_dropped(line, bare):
    assert without_stop(line) == bare


def test_a_stop_that_one_side_has_alone_stays():
    pair = "It rains.", "Es regnet"
    assert noisy_pair(*pair, NoiseConfig(no_stop=1.0), 0) == pair
    assert noisy_pair(".", ".", NoiseConfig(no_stop=1.0), 0) == (".", ".")


def test_titles_keep_capitals_inside_words():
    assert title_case("the iPhone of éva's dog") == "The IPhone Of Éva's Dog"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["noise.upper=0.6", "noise.lower=0.6"], "upper, title and lower must be at most 1"),
        (["noise.typos=0.1", "tokenizer.kind=word"], "noise needs tokenizer.kind bpe or unigram"),
        (
            ["noise.typos=0.1", "model.kind=decoder"],
            "noise is for models that learn from pairs, not for kind=decoder",
        ),
    ],
)
def test_noise_that_cannot_be_made_is_refused(settings, message):
    with pytest.raises(ConfigError, match=message):
        read_config("decoder" if "decoder" in settings[-1] else "multi30k", settings)


def test_terms_are_marked_where_the_target_has_them():
    glossary = Glossary([Term(("dogs",), ("Hund", "Hunde")), Term(("snow",), ("Eis",))])
    config = NoiseConfig(terms=1.0)
    assert noisy_pair(*PAIR, config, 0, glossary) == (
        "Two dogs ⟦Hund⟧ are playing in the (deep) snow.",
        PAIR[1],
    )
    assert noisy_pair(*PAIR, config, 0) == PAIR
    assert is_noisy(config, 0)
    with pytest.raises(ConfigError, match=r"noise.terms needs data.glossary"):
        read_config("multi30k", ["noise.terms=0.5"])
