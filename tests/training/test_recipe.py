"""The rules that choose a config: each on facts of real corpora, and at its bounds by hand."""

import dataclasses
import math

import pytest

from pellucid.core.config import read_toml
from pellucid.text.corpus.facts import CorpusFacts, PairSample, SideFacts, corpus_facts
from pellucid.training.config import RunConfig
from pellucid.training.plan import SIZES, Choice, Pace, Plan, is_deterministic
from pellucid.training.recipe import (
    TOKENS_PER_PARAMETER,
    Recipe,
    choices,
    corpus_can_feed,
    first_batch,
    may_double_batch,
    minutes_can_train,
    optimizer_for,
    r_drop_for,
    regularization_choice,
    search_choice,
    start_choice,
    tokenizer_choice,
    update_choice,
    validation_choice,
    vocabulary_size,
    with_fewer_pieces,
)


def side(words: float, per_word: float, different: int, new: float, letters: int) -> SideFacts:
    """A side of sentences: words in a line, characters in a word, and so on."""
    return SideFacts(words, words * per_word, different, new, letters, 0.05, 0.0)


MULTI30K = CorpusFacts(
    29_000, side(11.9, 4.2, 15_000, 0.025, 79), side(11.1, 5.4, 24_000, 0.052, 96), 0.98, 9, 6
)
PHRASEBOOK = CorpusFacts(
    20_000, side(6.8, 4.3, 794, 0.0004, 37), side(6.9, 3.8, 410, 0.0, 26), 0.95, 0, 0
)
SCAN = CorpusFacts(14_556, side(7.3, 4.8, 13, 0.0, 20), side(14.3, 9.0, 6, 0.0, 18), 0.0, 0, 0)
LETTERS = SideFacts(7.5, 7.5, 29, 0.0, 29, 1.0, 0.0)
PHONES = SideFacts(6.4, 9.2, 39, 0.0, 24, 0.6, 0.0)
CMUDICT = CorpusFacts(114_085, LETTERS, PHONES, 0.0, 6910, 6910)
RUSSIAN = dataclasses.replace(MULTI30K, common_characters=0.1)
CHINESE = CorpusFacts(
    30_000,
    SideFacts(1.1, 20.0, 29_000, 0.99, 4000, 0.0, 0.9, 0.9, 0.9),
    MULTI30K.target,
    0.05,
    10,
    5,
)

SLOW = Pace(seconds=0.5, target_tokens=1500.0, pairs=100.0)
FAST = Pace(seconds=0.01, target_tokens=1500.0, pairs=100.0)


def plan(facts: CorpusFacts, minutes: float = 10.0, pace: Pace = SLOW) -> Plan:
    return Plan(facts, minutes, SIZES[1], 2048, pace, validation_seconds=6.0)


def test_sentences_get_subwords_and_a_notation_its_words():
    assert tokenizer_choice(MULTI30K, SIZES[-1]).settings == {
        "tokenizer.kind": "bpe",
        "tokenizer.shared": True,
        "tokenizer.vocabulary_size": 8000,
    }
    assert tokenizer_choice(SCAN, SIZES[0]).settings == {
        "tokenizer.kind": "word",
        "tokenizer.shared": False,
        "model.share_embeddings": False,
    }


def test_letters_to_phones_are_characters_to_words():
    """As preset ``cmudict`` has it; words without spaces between their letters are taken too."""
    expected = {
        "tokenizer.kind": "character",
        "tokenizer.target_kind": "word",
        "tokenizer.keep_spaces": False,
        "tokenizer.shared": False,
        "model.share_embeddings": False,
    }
    assert tokenizer_choice(CMUDICT, SIZES[0]).settings == expected
    unspaced = SideFacts(1.0, 7.5, 110_000, 0.9, 29, 0.0, 1.0)
    assert (
        tokenizer_choice(dataclasses.replace(CMUDICT, source=unspaced), SIZES[0]).settings
        == expected
    )


def test_different_alphabets_get_a_vocabulary_each():
    choice = tokenizer_choice(RUSSIAN, SIZES[0])
    assert choice.settings["tokenizer.shared"] is False
    assert choice.settings["model.share_embeddings"] is False
    assert "10% of the letters are common" in choice.why


def test_a_script_without_spaces_is_neither_spelled_words_nor_too_small():
    """4,096 different characters need a piece each."""
    choice = tokenizer_choice(CHINESE, SIZES[0])
    assert choice.settings["tokenizer.kind"] == "bpe"
    assert choice.settings["tokenizer.vocabulary_size"] >= 261 + 4096
    few = dataclasses.replace(CHINESE.source, characters=8.0, different_characters=300)
    short = dataclasses.replace(CHINESE, pairs=100, source=few)
    assert tokenizer_choice(short, SIZES[0]).settings["tokenizer.kind"] == "bpe"


def test_the_vocabulary_grows_as_the_root_of_the_text_within_bounds():
    """Four times the pairs of Multi30k, twice the pieces; the phrasebook has 1,204 words."""
    assert vocabulary_size(MULTI30K, SIZES[-1]) == 8000
    rich = dataclasses.replace(MULTI30K.source, different_words=10**6)
    many = dataclasses.replace(MULTI30K, pairs=4 * 29_000, source=rich)
    assert vocabulary_size(many, SIZES[-1]) == pytest.approx(16_000, abs=100)
    assert vocabulary_size(dataclasses.replace(many, pairs=10**9), SIZES[-1]) == 32_000
    assert vocabulary_size(dataclasses.replace(many, pairs=10), SIZES[-1]) == 1000
    assert vocabulary_size(PHRASEBOOK, SIZES[-1]) == 1500


def test_the_output_layer_costs_no_more_than_the_blocks():
    """2+2 layers of width 128 have 655,360 weights, as many as 5,120 pieces have."""
    assert vocabulary_size(MULTI30K, SIZES[0]) == 5200
    assert vocabulary_size(MULTI30K, SIZES[1]) == 8000
    assert "more would slow a small model down" in tokenizer_choice(MULTI30K, SIZES[0]).why
    assert "slow" not in tokenizer_choice(MULTI30K, SIZES[1]).why


def test_a_text_that_gives_fewer_pieces_is_not_asked_for_more():
    choice = with_fewer_pieces(tokenizer_choice(MULTI30K, SIZES[-1]), 1234)
    assert choice.settings["tokenizer.vocabulary_size"] == 1234
    assert choice.what.startswith("subwords, 1,234,")
    assert with_fewer_pieces(tokenizer_choice(MULTI30K, SIZES[-1]), 8000) == tokenizer_choice(
        MULTI30K, SIZES[-1]
    )
    assert with_fewer_pieces(tokenizer_choice(SCAN, SIZES[0]), 10) == tokenizer_choice(
        SCAN, SIZES[0]
    )


def test_what_is_deterministic_is_closed_and_says_one_thing_only():
    assert is_deterministic(SCAN)
    assert is_deterministic(PHRASEBOOK)
    assert not is_deterministic(MULTI30K)
    assert not is_deterministic(CMUDICT)
    assert not is_deterministic(dataclasses.replace(SCAN, ambiguous_sources=1))


def test_dropout_rises_with_the_times_the_text_is_read():
    """At half a second for 100 pairs, 29,000 pairs are read 3.7 times in ten minutes, a
    tenth of which is for validations."""
    assert plan(MULTI30K).passes == pytest.approx(0.9 * 600 / 0.5 * 100 / 29_000)
    rates = [
        regularization_choice(plan(MULTI30K, minutes)).settings["model.dropout"]
        for minutes in (10, 60, 200)
    ]
    assert rates == [0.1, 0.2, 0.3]
    certain = regularization_choice(plan(SCAN, 200)).settings
    assert certain == {"model.dropout": 0.1, "training.label_smoothing": 0.0}


def test_a_text_that_would_be_read_often_is_read_half_as_often_with_r_drop():
    """29,000 pairs are read 3.7 times in ten minutes, and 40 times in 108."""
    assert [r_drop_for(plan(MULTI30K, minutes), {}) for minutes in (10, 107, 108)] == [0, 0, 1]
    long = plan(MULTI30K, 108)
    assert r_drop_for(long, {"training.r_drop": 1}) == 1
    assert r_drop_for(long, {"training.r_drop": 0}) == 0
    # what else defines a second view
    assert r_drop_for(long, {"training.simcut": 3}) == 0
    assert r_drop_for(long, {"data.cipher_keys": [1]}) == 0
    assert r_drop_for(long, {"training.simcut": 0.0}) == 1
    # without dropout both views are the same; an encoder predicts no next token
    assert r_drop_for(long, {"model.dropout": 0.0}) == 0
    assert r_drop_for(long, {"model.kind": "encoder"}) == 0
    assert r_drop_for(dataclasses.replace(long, optimizer="adam"), {}) == 0  # not measured
    assert r_drop_for(plan(CMUDICT, 200), {}) == 0
    # fewer pairs are read more often, and a stronger one pays
    few = dataclasses.replace(MULTI30K, pairs=6000)
    assert r_drop_for(plan(few, 40), {}) == 3

    twice = dataclasses.replace(long.pace, seconds=2 * long.pace.seconds)
    chosen = regularization_choice(dataclasses.replace(long, r_drop=3.0, pace=twice))
    assert chosen.settings == {
        "model.dropout": 0.2,
        "training.weight_decay": 0.11,  # 1 / (5 · 6e-3 · 290)
        "training.r_drop": 3.0,
    }
    assert str(chosen) == (
        "dropout 0.2, weight decay 0.11, R-Drop 3: the text is read about 20.1 times, in two ways"
        " each time"
    )
    chosen = regularization_choice(dataclasses.replace(long, r_drop=1.0, pace=twice))
    assert chosen.settings["training.weight_decay"] == 0.23  # 1 / (2.5 · 6e-3 · 290)


def test_weight_decay_by_muon_averages_over_two_and_a_half_passes():
    """Of 100 pairs a batch, 29,000 have 290: 1 / (2.5 · 6e-3 · 290) = 0.23; 6,000 have 1.1; 600
    would want 11, and have the most."""

    def chosen(given: Plan) -> object:
        return regularization_choice(given).settings.get("training.weight_decay")

    long = plan(MULTI30K, 60)
    assert chosen(long) == 0.23
    assert regularization_choice(long).what == "dropout 0.2, weight decay 0.23"
    few = [plan(dataclasses.replace(MULTI30K, pairs=pairs), 60) for pairs in (6000, 600)]
    assert [chosen(each) for each in few] == [1.1, 1.6]
    assert chosen(plan(MULTI30K, 10)) is None  # read 3.7 times
    assert chosen(plan(CMUDICT, 200)) is None  # not measured with a notation
    by_adam = [
        dataclasses.replace(plan(MULTI30K, minutes), optimizer="adam") for minutes in (60, 200)
    ]
    assert [chosen(each) for each in by_adam] == [None, 0.05]
    # at half the rate twice the decay is the same average
    slower = dataclasses.replace(long, given_rate=3e-3)
    assert (slower.learning_rate, chosen(slower)) == (3e-3, 0.46)


def test_word_vectors_take_a_twentieth_of_the_minutes_at_most():
    """Multi30k has 670,000 words: an epoch takes 8 s with 8,000 rows of width 128."""

    def chosen(given: Plan) -> object:
        choice = start_choice(given, tokenizer_choice(given.facts, given.size))
        return choice and choice.settings.get("training.vector_epochs")

    assert [chosen(plan(MULTI30K, minutes)) for minutes in (2, 5, 10, 60)] == [None, 1, 3, 4]
    assert chosen(plan(RUSSIAN, 10)) == 1  # two tables take twice as long
    wide = dataclasses.replace(plan(MULTI30K, 10), size=SIZES[3])
    assert chosen(wide) == 1
    assert chosen(plan(dataclasses.replace(MULTI30K, pairs=10**7), 60)) is None
    assert chosen(dataclasses.replace(plan(MULTI30K, 60), optimizer="adam")) is None
    assert [chosen(plan(facts, 60)) for facts in (SCAN, CMUDICT, PHRASEBOOK)] == [None] * 3
    tokenizer = tokenizer_choice(MULTI30K, SIZES[1])
    line = str(start_choice(plan(MULTI30K, 60), tokenizer))
    assert line.endswith("word vectors of the pairs: to learn them takes about 32 s more")
    many = start_choice(plan(dataclasses.replace(MULTI30K, pairs=10**7), 60), tokenizer)
    assert "random rows: to learn word vectors would take more than 5%" in str(many)
    assert start_choice(plan(PHRASEBOOK, 60), tokenizer_choice(PHRASEBOOK, SIZES[1])) is None


def test_nobody_reads_the_same_text_thousands_of_times():
    """200 passes at most; 50 pairs, half a batch, are read until there were 2,000 updates."""
    long = plan(MULTI30K, 1000, FAST)
    assert (long.passes, long.updates) == (200, 200 * 290)
    few = plan(dataclasses.replace(MULTI30K, pairs=50), 1000, FAST)
    assert (few.most_passes, few.updates) == (4000, 2000)
    assert update_choice(long).settings["training.max_epochs"] == 200


def test_a_size_needs_a_corpus_that_feeds_it_and_minutes_that_train_it():
    """4+4 layers of width 128 are 4 · 131,072 and 4 · 196,608 weights."""
    size = SIZES[1]
    assert size.block_parameters == 4 * (4 * 128**2 + 2 * 128 * 256) + 4 * (
        8 * 128**2 + 2 * 128 * 256
    )
    assert corpus_can_feed(size, size.block_parameters / 5)
    assert not corpus_can_feed(size, size.block_parameters / 5.1)
    pace = Pace(seconds=0.9, target_tokens=size.block_parameters / 60, pairs=1.0)
    assert minutes_can_train(size, pace, 1.01 * TOKENS_PER_PARAMETER)
    assert not minutes_can_train(size, pace, 0.99 * TOKENS_PER_PARAMETER)


def test_sizes_rise_and_fit_their_heads():
    parameters = [size.block_parameters for size in SIZES]
    assert parameters == sorted(parameters)
    assert all(size.d_model % size.heads == 0 for size in SIZES)
    rates = [size.learning_rate for size in SIZES]
    assert rates == sorted(rates, reverse=True)


def test_batches_suit_corpus_device_and_minutes():
    assert first_batch(430_000, on_accelerator=False) == 2048
    assert first_batch(430_000, on_accelerator=True) == 8192
    assert first_batch(430_000 / 80, on_accelerator=True) == 512  # 671 tokens, eight in a pass
    assert first_batch(10, on_accelerator=False) == 256
    assert not may_double_batch(plan(MULTI30K))
    assert may_double_batch(plan(MULTI30K, 1000, FAST))
    largest = dataclasses.replace(plan(MULTI30K, 1000, FAST), batch_tokens=32_768)
    assert not may_double_batch(largest)
    assert not may_double_batch(plan(dataclasses.replace(MULTI30K, pairs=1500), 1000, FAST))


def test_warm_up_and_average_are_shares_of_the_run_within_bounds():
    """A minute has 108 updates of half a second, ten minutes 1,080, a day far more."""

    def chosen(minutes: float, pace: Pace = SLOW) -> tuple[object, object]:
        given = plan(MULTI30K, minutes, pace)
        warmup = update_choice(given).settings["training.warmup_steps"]
        return warmup, validation_choice(given).settings["training.average_decay"]

    assert chosen(1) == (36, round(1 - 4 / 108, 4))
    assert chosen(10) == (108, round(1 - 1 / 54, 4))
    assert chosen(1440, FAST) == (1000, 0.998)


def test_a_notation_is_learned_at_a_lower_rate():
    """Two thirds of 6e-3; sentences keep it, those of a generated grammar too."""
    rates = {
        name: update_choice(plan(facts)).settings["training.learning_rate"]
        for name, facts in (("s", SCAN), ("c", CMUDICT), ("p", PHRASEBOOK), ("m", MULTI30K))
    }
    assert rates == {"s": 4e-3, "c": 4e-3, "p": 6e-3, "m": 6e-3}


def test_muon_is_chosen_up_to_the_width_where_its_products_cost_little():
    assert [optimizer_for(size, {}) for size in SIZES] == ["muon"] * 5 + ["adam"] * 2
    assert optimizer_for(SIZES[0], {"model.d_model": 512}) == "adam"
    assert optimizer_for(SIZES[-1], {"model.d_model": 256}) == "muon"
    assert optimizer_for(SIZES[0], {"training.sharding": "fsdp"}) == "adam"
    assert optimizer_for(SIZES[0], {"model.kind": "rnn-attention"}) == "adam"
    assert optimizer_for(SIZES[-1], {"training.optimizer": "muon"}) == "muon"
    assert optimizer_for(SIZES[0], {"model.d_model": "wide"}) == "adam"  # parsing will refuse it


def test_the_rate_is_that_of_the_optimizer():
    """AdamW, where the user asks for it, has half the rate of Muon."""
    by_adam = dataclasses.replace(plan(MULTI30K), optimizer="adam")
    chosen = update_choice(by_adam)
    assert chosen.settings["training.optimizer"] == "adam"
    assert chosen.settings["training.learning_rate"] == 3e-3
    assert "AdamW at rate 0.003" in chosen.what
    assert "Muon at rate 0.006" in update_choice(plan(MULTI30K)).what


def test_validations_cost_a_tenth_of_the_time_and_the_last_comes_when_it_is_up():
    """1,080 updates; 60 s of 10 minutes hold ten validations of 6 s; one of 60 s is the last."""
    given = plan(MULTI30K)
    assert validation_choice(given).settings["training.validate_every"] == 120
    slow = dataclasses.replace(given, validation_seconds=60.0)
    assert validation_choice(slow).settings["training.validate_every"] == 1140
    quick = dataclasses.replace(given, validation_seconds=0.01)
    assert validation_choice(quick).settings["training.validate_every"] == 60
    assert validation_choice(given).settings["training.best_by"] == "bleu"
    for facts in (SCAN, CMUDICT):
        exact = validation_choice(plan(facts)).settings
        assert exact["training.best_by"] == "exact_match"


@pytest.mark.parametrize("facts", [MULTI30K, PHRASEBOOK, SCAN, CMUDICT, RUSSIAN, CHINESE])
def test_what_is_written_is_a_config_with_its_reasons(facts: CorpusFacts, tmp_path):
    data = {"source": 'a "b".en', "target": "a.de"}
    given = plan(facts, 30.0)
    chosen = choices(given, "it fits", tokenizer_choice(facts, SIZES[1]))
    given = {"training.adam_betas": [0.9, 0.99], "decoding.prefix": "a  b "}
    recipe = Recipe(facts, data, chosen, {"model.dropout": 0.25, **given})
    path = tmp_path / "recipe.toml"
    path.write_text(recipe.to_toml(), encoding="utf-8")
    table = read_toml(path)
    assert table == recipe.table()
    config = RunConfig.parse(table)
    assert (config.model.dropout, config.training.max_minutes) == (0.25, 30.0)
    assert config.data.source == ('a "b".en',)
    for line in recipe.lines():
        assert f"# {line}\n" in recipe.to_toml()
    assert recipe.lines()[-1] == (
        "set by you: model.dropout = 0.25, training.adam_betas = [0.9, 0.99],"
        ' decoding.prefix = "a  b "'
    )
    assert recipe.lines()[2].endswith(": it fits")


def test_a_line_without_spaces_is_not_said_to_have_one_word():
    """20 characters, of which nine tenths are Chinese: 18 / 1.64."""
    assert Recipe(CHINESE, {}, (), {}).lines()[0] == (
        "corpus: 30,000 pairs, 11.0 and 11.1 words a line"
    )


def test_settings_that_belong_to_a_choice_go_with_it():
    """Words have no spaces to keep; two vocabularies cannot share their embeddings."""
    chosen = (tokenizer_choice(CMUDICT, SIZES[0]),)
    settings = Recipe(CMUDICT, {}, chosen, {"tokenizer.kind": "word"}).settings()
    assert not {"tokenizer.keep_spaces", "tokenizer.target_kind"} & settings.keys()
    shared = (tokenizer_choice(MULTI30K, SIZES[-1]),)
    apart = Recipe(MULTI30K, {}, shared, {"tokenizer.shared": False}).settings()
    assert apart["model.share_embeddings"] is False
    vectors = (Choice({"training.vector_epochs": 4}, "vectors", "they help"),)
    own = Recipe(MULTI30K, {}, vectors, {"model.pretrained_vectors": "v.txt"}).settings()
    assert "training.vector_epochs" not in own


@pytest.mark.parametrize(
    "override",
    [
        {"training.schedule": "paper"},
        {"training.average_last": 5},
        *({"model.kind": kind} for kind in ("rnn", "rnn-attention", "transformer")),
    ],
    ids=str,
)
def test_a_setting_of_the_user_s_own_collides_with_none_that_was_chosen(
    override: dict[str, object],
):
    given = dataclasses.replace(plan(MULTI30K, 30.0), optimizer=optimizer_for(SIZES[1], override))
    chosen = choices(given, "it fits", tokenizer_choice(MULTI30K, SIZES[1]))
    data = {"source": "a.en", "target": "a.de"}
    recipe = Recipe(MULTI30K, data, chosen, override)
    config = RunConfig.parse(recipe.table())
    assert config.model.d_model == SIZES[1].d_model
    assert recipe.settings().items() >= override.items()


def test_a_line_break_in_a_setting_stays_in_the_comment():
    recipe = Recipe(SCAN, {}, (Choice({}, "a", "b"),), {"data.cache": "a\nmodel = 1"})
    assert all(line.startswith("#") for line in recipe.to_toml().split("\n\n")[0].splitlines())


@pytest.mark.parametrize(
    ("sources", "targets", "copies"),
    [
        (["3 1 2", "9 7 8"], ["1 2 3", "7 8 9"], False),  # the same numbers, sorted
        (["⠓⠑⠇⠇⠕", "⠺⠕⠗⠇⠙"], ["hello", "world"], False),
        (["🐶", ".... .."], ["dog", "hi"], False),
        (["1 000", "***", "a"], ["1 000", "***", "b"], True),
        (["a dog", "1,5"] + ["a cat"] * 20, ["ein Hund", "1.5"] + ["eine Katze"] * 20, True),
    ],
)
def test_lines_without_a_letter_are_copied_unless_they_are_what_is_learned(
    sources: list[str], targets: list[str], copies: bool
):
    facts = corpus_facts(PairSample(len(sources), sources, targets))
    assert search_choice(plan(facts)).settings.get("decoding.copy_symbols", True) is copies


def test_validations_share_the_time_of_the_run_not_that_of_its_minutes():
    """Thirty updates of half a second are a sixtieth of 16.7 minutes: one validation of 6 s."""
    whole, short = (
        dataclasses.replace(plan(MULTI30K, 50 / 3), most_updates=updates)
        for updates in (math.inf, 30.0)
    )
    assert whole.run_minutes == 50 / 3
    assert short.run_minutes == pytest.approx(50 / 3 / 60)
    assert dataclasses.replace(short, minutes=math.inf).run_minutes == short.run_minutes
    assert validation_choice(whole).settings["training.validate_every"] == 120
    assert validation_choice(short).settings["training.validate_every"] == 40
