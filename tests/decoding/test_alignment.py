"""EQ-139: word alignments from cross-attention, and what is done with them."""

import itertools
import math

import pytest
import torch
from small_bundle import SENTENCES, small_bundle, tokenizer

from pellucid.bundle import Bundle
from pellucid.core.errors import ConfigError
from pellucid.core.special import BOS_ID, EOS_ID, UNK_ID
from pellucid.decoding import attention
from pellucid.decoding.attention import (
    align_tokens,
    align_words,
    cross_attention,
    mean_attention,
    replace_unknown,
    words_of_tokens,
)
from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.translator import Translator
from pellucid.model.build import build_model
from pellucid.model.config import parse_model_config
from pellucid.model.ensemble import Ensemble
from pellucid.model.trace import Trace
from pellucid.text.tokenizers.marian import MarianTokenizer
from pellucid.text.tokenizers.vocabulary import Vocabulary


def test_a_token_is_aligned_with_what_it_looked_at_most_the_stops_left_out():
    look = torch.tensor(
        [[0.1, 0.6, 0.3, 0.0], [0.2, 0.1, 0.1, 0.6], [0.3, 0.3, 0.3, 0.1], [0.0, 0.0, 0.9, 0.1]]
    )
    assert align_tokens(look) == ((1, 0), (0, 1), (0, 2))
    assert align_tokens(look[-1:]) == ()


def test_words_are_linked_once_in_order_of_the_target():
    links = ((0, 0), (1, 1), (2, 2), (2, 3))
    assert align_words(links, [0, 0, 1], [0, 0, 1, 2]) == ((0, 0), (1, 1), (1, 2))
    assert align_words(((2, 0), (0, 0)), [0, 1, 2], [0]) == ((0, 0), (2, 0))


@pytest.mark.parametrize("kind", ["bpe", "word", "character", "wordpiece", "punctuation"])
def test_every_token_belongs_to_the_word_it_is_a_part_of(kind):
    """The letters of the tokens of a word, put together, are those of the word."""
    text = "le petit chat noir ne dort pas"
    cut = tokenizer(kind)
    ids = cut.encode(text)
    words = words_of_tokens(ids, cut)
    assert words == sorted(words)
    for number, word in enumerate(text.split()):
        mine = [token for token, owner in zip(ids, words, strict=True) if owner == number]
        assert cut.decode(mine).strip() == word


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_a_lone_space_belongs_to_the_word_that_it_begins(kind):
    """Also where ``decode`` drops spaces at the ends, as that of a Marian tokenizer does."""
    text = "le chat 🙂 dort ? שלום un"
    own = tokenizer(kind)
    pieces = own.tokens(range(own.vocabulary_size))
    marian = MarianTokenizer(own.model, Vocabulary.of([*pieces[4:], ">>fra<<"]))
    for cut, source in ((own, text), (marian, text), (marian, f">>fra<< {text}")):
        ids = cut.encode(source)
        tokens = cut.tokens(ids)
        words = words_of_tokens(ids, cut)
        assert "▁" in tokens
        written = [each.replace("▁", " ") for each in itertools.accumulate(tokens)]
        counts = [len(each.split()) for each in written]
        assert words == [
            count - (not each.endswith(" ")) for count, each in zip(counts, written, strict=True)
        ]
        assert words_of_tokens([*ids, ids[tokens.index("▁")]], cut) == [*words, words[-1]]


def test_a_sentence_of_nothing_has_no_words():
    assert words_of_tokens([], tokenizer()) == []


def test_unknown_words_are_replaced_by_those_they_look_at():
    """The second of two unknown tokens looks at « Zürich », whose marks stay behind."""
    text = replace_unknown(
        "in [UNK] and [UNK] .",
        [9, UNK_ID, 8, UNK_ID, 7],
        links=((0, 0), (1, 1), (0, 2), (2, 3), (2, 4)),
        words=["dans", "Bern,", "(Zürich)"],
        source_words=[0, 1, 2],
    )
    assert text == "in Bern and Zürich ."
    marks = replace_unknown("[UNK]", [UNK_ID], ((0, 0),), ["...!"], [0])
    assert marks == "...!"
    vowel = replace_unknown("[UNK]", [UNK_ID], ((0, 0),), ["(पानी)"], [0])
    assert vowel == "पानी"  # a vowel sign at its end belongs to the word
    said = replace_unknown("[UNK] [UNK]", [UNK_ID, 9], ((0, 0), (0, 1)), ["a"], [0])
    assert said == "[UNK] [UNK]"  # one of the two is text


def rnn(kind: str) -> Bundle:
    config = parse_model_config(
        {"kind": kind, "d_model": 16, "encoder_layers": 1, "decoder_layers": 1}
    )
    size = tokenizer().vocabulary_size
    return Bundle(build_model(config, size, size).double().eval(), tokenizer(), tokenizer(), {}, {})


@torch.inference_mode()
def test_the_layer_and_head_asked_for_are_those_that_look():
    model = small_bundle().model
    source, target = [5, 6, 7, 8], [9, 10]
    trace = Trace("*cross_attention.weights")
    model(torch.tensor([[*source, EOS_ID]]), torch.tensor([[BOS_ID, *target]]), trace)
    for layer in (0, 1):
        weights = trace.values[f"decoder.layers.{layer}.cross_attention.weights"][0]
        pairs = [(source[:1], target), (source, target), (source, [])]
        for head, expected in ((None, weights.mean(dim=0)), (1, weights[1])):
            found = cross_attention(model, pairs, layer, head)
            torch.testing.assert_close(found[1], expected)
            assert [tuple(each.shape) for each in found] == [(3, 2), (3, 5), (1, 5)]
    [default] = cross_attention(model, [(source, target)], None, None)
    [last_but_one] = cross_attention(model, [(source, target)], 0, None)
    torch.testing.assert_close(default, last_but_one)


@torch.inference_mode()
def test_an_ensemble_looks_where_its_models_look_on_average():
    one, other = small_bundle(seed=1).model, small_bundle(seed=2).model
    pair = [([5, 6, 7], [8, 9])]
    [together] = cross_attention(Ensemble([one, other]), pair, None, None)
    [first] = cross_attention(one, pair, None, None)
    [second] = cross_attention(other, pair, None, None)
    torch.testing.assert_close(together, (first + second) / 2)


@torch.inference_mode()
def test_a_recurrent_model_with_attention_aligns_too():
    [look] = cross_attention(rnn("rnn-attention").model, [([5, 6, 7], [8, 9])], None, 0)
    assert look.shape == (3, 4)
    torch.testing.assert_close(look.sum(dim=1), torch.ones(3, dtype=torch.float64))


@pytest.mark.parametrize(
    ("bundle", "changes", "message"),
    [
        (small_bundle(), {"align_layer": 2}, "align_layer must be below 2, .* got 2"),
        (small_bundle(), {"align_head": 2}, "align_head must be below 2, .* got 2"),
        (rnn("rnn-attention"), {"align_layer": 1}, "align_layer must be 0 for this model"),
        (rnn("rnn"), {}, "need a model with attention; this one is an rnn without it"),
    ],
)
def test_what_cannot_align_is_refused(bundle, changes, message):
    settings = DecodingConfig.parse({"align": True, "max_length": 3, **changes})
    with pytest.raises(ConfigError, match=message):
        Translator(bundle, settings).translate("un")


@pytest.mark.parametrize("beam_size", [1, 3])
def test_every_token_and_every_hypothesis_is_aligned_whatever_its_neighbors(beam_size):
    settings = DecodingConfig(
        align=True, beam_size=beam_size, n_best=beam_size, max_length=8, copy_symbols=False
    )
    aligner = Translator(small_bundle(kind="word"), settings)
    for sentence, found in zip(SENTENCES, aligner.translate(list(SENTENCES)), strict=True):
        alone = aligner.translate(sentence)
        for each, same in zip(found.n_best, alone.n_best, strict=True):
            assert each.alignment == same.alignment
            assert [target for _, target in each.alignment] == list(range(len(each.tokens)))
            assert each.word_alignment == each.alignment  # one token is one word here
            assert all(source < len(sentence.split()) for source, _ in each.alignment)
    free = Translator(small_bundle(kind="word"), DecodingConfig(max_length=8))
    assert free.translate(SENTENCES[0]).alignment is None
    assert aligner.translate("  ").alignment == ()


def test_the_words_of_the_source_stand_for_unknown_ones():
    """A model that says nothing but [UNK] copies the words that it looks at."""
    bundle = small_bundle(kind="word")
    bundle.model.output_bias = torch.nn.Parameter(
        torch.zeros(bundle.model.target_vocabulary_size, dtype=torch.float64)
    )
    bundle.model.output_bias.data[UNK_ID] = 1e3
    settings = DecodingConfig(align=True, replace_unknown=True, max_length=3, beam_size=1)
    found = Translator(bundle, settings).translate("inconnu chat absent")
    assert found.tokens == ("[UNK]",) * 3
    words = found.source.split()
    assert found.text == " ".join(words[source] for source, _ in found.alignment)


def test_without_alignment_only_unknown_words_are_looked_for(monkeypatch):
    asked = []
    real = attention.cross_attention

    def counted(model, pairs, layer, head):
        asked.extend(pairs)
        return real(model, pairs, layer, head)

    monkeypatch.setattr(attention, "cross_attention", counted)
    bundle = small_bundle(kind="word")
    # so that the model says [UNK] now and then
    bias = torch.zeros(bundle.model.target_vocabulary_size, dtype=torch.float64)
    bias[UNK_ID] = 4.0
    bundle.model.output_bias = torch.nn.Parameter(bias)
    settings = DecodingConfig(replace_unknown=True, beam_size=3, n_best=3, max_length=6)
    found = Translator(bundle, settings).translate(list(SENTENCES))
    hypotheses = [each for one in dict.fromkeys(found) for each in one.n_best]
    unknown = {each.token_ids for each in hypotheses if UNK_ID in each.token_ids}
    assert 0 < len(unknown) < len(hypotheses)
    assert {target for _, target in asked} == unknown


def test_coverage_adds_what_wu_et_al_say_to_every_score():
    """β Σ log min(Σ weights, 1) over the words of the source, for each hypothesis found."""
    bundle = small_bundle()
    plain = DecodingConfig(beam_size=4, n_best=4, max_length=6)
    covered = plain.changed({"coverage_penalty": 0.7})
    source = SENTENCES[2]
    before = {t.tokens: t for t in Translator(bundle, plain).translate(source).n_best}
    after = Translator(bundle, covered).translate(source).n_best
    assert {t.tokens for t in after} == set(before)
    scores = [t.score for t in after]
    assert scores == sorted(scores, reverse=True)
    source_ids = tokenizer().encode(source)
    known = tokenizer().tokens(range(tokenizer().vocabulary_size))
    for translation in after:
        target_ids = [known.index(token) for token in translation.tokens]
        with torch.inference_mode():
            [look] = cross_attention(bundle.model, [(source_ids, target_ids)], None, None)
        sums = [min(1.0, float(look[:, place].sum())) for place in range(len(source_ids))]
        expected = before[translation.tokens].score + 0.7 * sum(map(math.log, sums))
        assert translation.score == pytest.approx(expected, rel=1e-6)
        assert translation.token_log_probs == before[translation.tokens].token_log_probs


@pytest.mark.parametrize(("layers", "upper"), [(1, [0]), (2, [1]), (3, [1, 2]), (4, [2, 3])])
def test_the_mean_attention_is_that_of_the_upper_half_of_the_layers(layers, upper):
    bundle = small_bundle(decoder_layers=layers)
    pairs = [([7, 8, 9], [10, 11]), ([7], [12, 13, 14])]
    with torch.no_grad():
        found = mean_attention(bundle.model, pairs)
        each = [cross_attention(bundle.model, pairs, layer, None) for layer in upper]

    for pair, weights in enumerate(found):
        # A row more than target tokens and a column more than source tokens: the stops.
        assert weights.shape == (len(pairs[pair][1]) + 1, len(pairs[pair][0]) + 1)
        expected = sum(of_layer[pair] for of_layer in each) / len(upper)
        torch.testing.assert_close(weights, expected)
        torch.testing.assert_close(weights.sum(dim=1), torch.ones(len(weights)).double())


def test_the_mean_attention_of_an_ensemble_is_the_mean_of_its_models():
    models = [small_bundle(seed=seed).model for seed in (1, 2)]
    pairs = [([7, 8, 9], [10, 11])]
    with torch.no_grad():
        one, other = (mean_attention(model, pairs)[0] for model in models)
        [both] = mean_attention(Ensemble(models), pairs)
    torch.testing.assert_close(both, (one + other) / 2)


@pytest.mark.parametrize("depths", [(1, 3), (3, 1)])
def test_of_models_of_different_depths_each_gives_its_own_upper_half(depths):
    models = [small_bundle(seed=depth, decoder_layers=depth).model for depth in depths]
    pairs = [([7, 8, 9], [10, 11])]
    with torch.no_grad():
        one, other = (mean_attention(model, pairs)[0] for model in models)
        [both] = mean_attention(Ensemble(models), pairs)
    torch.testing.assert_close(both, (one + other) / 2)


def test_a_translator_gives_the_attention_of_its_translations():
    """Without a layer the mean of the upper half; with one, that of the layer and the head."""
    bundle = small_bundle(decoder_layers=3)
    translator = Translator(bundle, DecodingConfig(beam_size=2, max_length=8))
    found = translator.translate(list(SENTENCES[:3]))
    pairs = [(translator.source_tokenizer.encode(each.source), each.token_ids) for each in found]
    with torch.no_grad():
        mean = mean_attention(bundle.model, pairs)
        chosen = cross_attention(bundle.model, pairs, 0, 1)

    torch.testing.assert_close(translator.attention(found), mean)
    asked = translator.with_settings(DecodingConfig(align_layer=0, align_head=1))
    torch.testing.assert_close(asked.attention(found), chosen)
    assert translator.attention([]) == []
