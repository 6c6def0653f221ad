import copy
import dataclasses
import logging
import math
import os
import pickle
import random
import signal
import threading

import numpy
import pandas
import pyarrow
import pytest
import torch
from forks import fork
from small_bundle import SENTENCES, small_bundle, tokenizer

from pellucid.core.errors import ConfigError, DataError, PellucidError
from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.requests import Request
from pellucid.decoding.result import Translation
from pellucid.decoding.search.search import inference
from pellucid.decoding.torch_engine import TorchEngine
from pellucid.decoding.translator import Translator
from pellucid.decoding.warnings import TranslationWarning

SETTINGS = DecodingConfig(beam_size=3, max_length=8)


def translator(**changes) -> Translator:
    return Translator(small_bundle(), DecodingConfig.parse({**SETTINGS.to_table(), **changes}))


@pytest.mark.parametrize("beam_size", [1, 3])
def test_neighbors_and_order_change_no_translation(beam_size):
    """N7: alone, all at once, shuffled, in small batches, streamed."""
    small = translator(beam_size=beam_size)
    alone = [small.translate(sentence) for sentence in SENTENCES]
    texts = [translation.text for translation in alone]
    shuffled = list(range(len(SENTENCES)))
    random.Random(0).shuffle(shuffled)
    mixed = small.translate([SENTENCES[index] for index in shuffled])
    assert [t.text for t in small.translate(SENTENCES)] == texts
    assert [t.text for t in mixed] == [texts[index] for index in shuffled]
    for tokens in (1, 40, 100):
        batched = translator(beam_size=beam_size, batch_tokens=tokens).translate(list(SENTENCES))
        assert [t.text for t in batched] == texts
        for one, other in zip(alone, batched, strict=True):
            assert one.tokens == other.tokens
            assert one.token_log_probs == pytest.approx(other.token_log_probs, abs=1e-10)
    streamed = translator(beam_size=beam_size, stream_lines=5).translate(iter(SENTENCES))
    assert [t.text for t in streamed] == texts
    assert len(set(texts)) > 6, "the sentences must differ for any of this to mean something"


def test_what_is_given_decides_what_comes_back():
    small = translator()
    one = small.translate(SENTENCES[0])
    assert one.source == SENTENCES[0]
    assert small.translate([SENTENCES[0]]) == [one]
    assert small.translate((SENTENCES[0],)) == [one]
    assert small.translate([]) == []
    streamed = small.translate(line for line in [SENTENCES[0]])
    assert next(streamed) == one
    assert list(streamed) == []


@pytest.mark.parametrize("column", [numpy.array, pandas.Series, pyarrow.array, numpy.asarray])
def test_a_column_of_texts_is_translated_as_a_list_of_them(column):
    small = translator()
    texts = [each.text for each in small.translate(list(SENTENCES))]
    assert [each.text for each in small.translate(column(list(SENTENCES)))] == texts
    index = pandas.Series(list(SENTENCES), index=range(5, 5 + len(SENTENCES)))
    assert [each.text for each in small.translate(index)] == texts


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (None, "texts must be strings in a list or another sequence, got NoneType"),
        (3, "texts must be strings in a list or another sequence, got int"),
        (math.nan, "texts must be strings in a list or another sequence, got float"),
        ({"a": "b"}, "texts must be strings in a list or another sequence, got dict"),
        ({"a"}, "texts must be strings in a list or another sequence, got set"),
        (numpy.array("a"), "texts must be strings in a list or another sequence, got ndarray"),
        (b"a", "texts must be a list of strings, got one bytes"),
        (numpy.array([["a"]]), "texts must be one column of strings, got a table (ndarray)"),
        (pandas.DataFrame({"a": ["b"]}), "texts must be one column of strings, got a table"),
        (pyarrow.table({"a": ["b"]}), "texts must be one column of strings, got a table (Table)"),
        (["a", None], "line 2 must be a string, got NoneType"),
        (pandas.Series(["a", math.nan]), "line 2 must be a string, got float"),
        (pandas.Series(["a", None], dtype="string"), "line 2 must be a string, got NAType"),
        (pyarrow.array(["a", None]), "line 2 must be a string, got NoneType"),
        ([["a"]], "line 1 must be a string, got list"),
    ],
)
def test_what_is_no_text_is_refused_in_a_sentence(given, message):
    with pytest.raises(DataError) as caught:
        list(translator().translate(given))
    assert str(caught.value).startswith(message)
    if message.startswith("line 2"):
        assert "fillna" in caught.value.hint


def test_an_array_within_a_list_is_no_text():
    """It was compared with itself, which gave an array."""
    with pytest.raises(DataError, match="line 1 must be a string, got ndarray"):
        translator().translate([numpy.array(["a", "b"])])


def test_texts_are_scored_in_their_order_whatever_index_they_have():
    small = translator()
    sources, targets = list(SENTENCES[:3]), ["cat", "a dog", "x"]
    expected = small.score(sources, targets)
    columns = pandas.Series(sources, [2, 1, 0]), pandas.Series(targets, [2, 1, 0])
    assert small.score(*columns) == expected
    assert small.score(iter(sources), iter(targets)) == expected
    with pytest.raises(DataError, match="sources must be a list of strings, got one str"):
        small.score("abc", "xyz")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"settings": {"beam_size": 3}}, "settings must be a DecodingConfig, got"),
        ({"settings": DecodingConfig}, "settings must be a DecodingConfig, got"),
        ({"split": "no"}, "split must be True or False, got 'no'"),
    ],
)
def test_arguments_of_a_wrong_type_are_named(arguments, message):
    with pytest.raises(ConfigError) as caught:
        translator().translate(SENTENCES[0], **arguments)
    assert str(caught.value).startswith(message)


def test_the_tokens_of_a_prefix_are_a_list():
    """The letters of one string were taken for tokens."""
    with pytest.raises(DataError, match="prefix_tokens must be a list of strings, got one str"):
        translator().alternatives(SENTENCES[0], "a")


def test_a_translator_says_that_it_stays_in_its_process():
    for call in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="opens the model in each process"):
            call(translator())


def test_a_translation_prints_as_its_text_and_shows_little_more():
    shown = Translation('a "dog"', -1.23456, ("a",), (-1.0,), (), "ein Hund")
    assert str(shown) == f"{shown}" == 'a "dog"'
    assert repr(shown) == "Translation(text='a \"dog\"', score=-1.235)"
    warned = dataclasses.replace(shown, warnings=(TranslationWarning("loop", "it repeats"),))
    assert repr(warned) == "Translation(text='a \"dog\"', score=-1.235, warnings=['loop'])"
    assert repr(translator()) == "Translator(engine='torch', beam_size=3)"
    named = Translator(small_bundle(), SETTINGS, source_language="fr", target_language="en")
    assert repr(named) == "Translator(fr-en, engine='torch', beam_size=3)"


def test_a_stream_is_read_no_further_than_it_must_be():
    read = []

    def lines():
        for line in SENTENCES:
            read.append(line)
            yield line

    streamed = translator(stream_lines=2).translate(lines())
    assert read == []
    next(streamed)
    assert len(read) == 2
    next(streamed)
    assert len(read) == 2
    next(streamed)
    assert len(read) == 4


def test_text_of_nothing_has_an_empty_translation():
    empty, blank = translator(n_best=2).translate(["", "   "])
    assert (empty.text, empty.score, empty.tokens, empty.token_log_probs) == ("", 0.0, (), ())
    assert blank.text == ""
    assert blank.source == "   "
    assert [t.text for t in empty.n_best] == [""]
    assert empty.perplexity == 1.0


def test_a_translation_says_how_it_came_about():
    """Pieces without the stop, log-probabilities with it, and a score that follows from them."""
    found = translator(n_best=3).translate(SENTENCES[2])
    assert len(found.n_best) == 3
    scores = [t.score for t in found.n_best]
    assert scores == sorted(scores, reverse=True)
    assert (found.text, found.score, found.tokens) == (
        found.n_best[0].text,
        found.n_best[0].score,
        found.n_best[0].tokens,
    )
    for other in found.n_best:
        assert other.n_best == ()
        assert len(other.token_log_probs) == len(other.tokens) + 1
        penalty = ((5 + len(other.token_log_probs)) / 6) ** 0.6
        assert other.score == pytest.approx(sum(other.token_log_probs) / penalty)
        mean = sum(other.token_log_probs) / len(other.token_log_probs)
        assert other.perplexity == pytest.approx(math.exp(-mean))
    assert tokenizer().decode(tokenizer().encode(found.text)) == tokenizer().read(found.text)


def test_settings_of_one_call_go_before_those_of_the_translator():
    small = translator()
    found = small.translate(SENTENCES[2], beam_size=4, n_best=4, max_length=3, length_penalty=0.0)
    assert len(found.n_best) == 4
    assert all(len(t.tokens) <= 3 for t in found.n_best)
    assert found.score == pytest.approx(sum(found.token_log_probs))
    assert small.settings == SETTINGS


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"beam_size": 0}, "beam_size must be at least 1, got 0"),
        ({"n_best": 4}, "n_best must be at most beam_size, got n_best=4 and beam_size=3"),
        ({"max_length": 0}, "max_length must be at least 1, got 0"),
        ({"length_penalty": math.nan}, "length_penalty must be finite, got nan"),
    ],
)
def test_a_setting_out_of_range_is_refused_at_once(changes, message):
    with pytest.raises(ConfigError, match=message):
        translator().translate(iter(["a stream that is never read"]), **changes)


def test_a_line_the_model_cannot_take_is_cut_and_named(caplog):
    """Learned positions number 24 tokens, the stop included."""
    small = Translator(small_bundle(positions="learned"), SETTINGS)
    long = "le petit chat noir " * 20
    ids = tokenizer().encode(long)
    cut = tokenizer().decode(ids[:23])
    assert tokenizer().encode(cut) == ids[:23], "the test needs a cut that spells the same"
    with caplog.at_level(logging.WARNING, logger="pellucid"):
        found = list(small.translate(iter(["un", long, "il pleut"])))
    cut_off = [each for each in caplog.messages if "are read" in each]
    assert cut_off == [f"line 2: only the first 23 of its {len(ids)} tokens are read"]
    assert [t.source for t in found] == ["un", long, "il pleut"]
    assert found[1].text == small.translate(cut).text
    assert found[2].text == small.translate("il pleut").text


def test_the_longest_source_is_a_setting_too(caplog):
    small = translator(max_source_tokens=2, stream_lines=1)
    with caplog.at_level(logging.WARNING, logger="pellucid"):
        found = list(small.translate(iter(["", "je suis étudiant et il pleut"])))
    assert [each for each in caplog.messages if each.startswith("line 2: only the first 2 of its")]
    assert len(found) == 2


def test_what_is_not_text_is_refused_with_its_line():
    with pytest.raises(DataError, match="line 2 must be a string, got int"):
        translator().translate(["a", 5])
    with pytest.raises(DataError, match="line 3 must be a string, got bytes"):
        list(translator(stream_lines=2).translate(iter(["a", "b", b"c"])))


def test_banned_words_are_not_said():
    bundle = small_bundle(kind="word")
    free = Translator(bundle, SETTINGS).translate(SENTENCES[5])
    banned = free.tokens[:2]
    assert len(banned) == 2
    alone = Translator(bundle, SETTINGS.model_copy(update={"banned": banned}))
    assert not set(banned) & set(alone.translate(SENTENCES[5]).tokens)
    phrase = Translator(bundle, SETTINGS.model_copy(update={"banned": (" ".join(banned),)}))
    assert " ".join(banned) not in phrase.translate(SENTENCES[5]).text
    unknown = Translator(bundle, SETTINGS.model_copy(update={"banned": ("inconnu",)}))
    assert unknown.translate(SENTENCES[5]) == free
    with pytest.raises(ConfigError, match=r"each phrase of banned must hold a word, got \['  '\]"):
        translator(banned=["  "])


def test_a_model_in_training_is_left_as_it_was():
    """Dropout is off while it translates, and on again after it, even after a failure."""
    bundle = small_bundle()
    expected = Translator(bundle, SETTINGS).translate(list(SENTENCES))
    bundle.model.train()
    frozen = next(bundle.model.children())
    frozen.eval()
    before = [module.training for module in bundle.model.modules()]
    assert Translator(bundle, SETTINGS).translate(list(SENTENCES)) == expected
    assert [module.training for module in bundle.model.modules()] == before
    bundle.model.get_parameter(
        next(n for n, _ in bundle.model.named_parameters())
    ).data += torch.nan
    with pytest.raises(PellucidError, match="no translation is possible"):
        Translator(bundle, SETTINGS).translate("un")
    assert [module.training for module in bundle.model.modules()] == before
    assert not torch.is_inference_mode_enabled()


def test_inside_inference_nothing_is_in_training_and_afterwards_it_is_again():
    model = small_bundle().model.train()
    frozen = next(model.children()).eval()
    before = [module.training for module in model.modules()]
    with inference(model):
        assert not any(module.training for module in model.modules())
        assert torch.is_inference_mode_enabled()
    assert [module.training for module in model.modules()] == before
    assert not frozen.training


def test_threads_share_one_translator():
    small = translator()
    expected = [t.text for t in small.translate(SENTENCES)]
    found: dict[int, list[str]] = {}

    def work(number: int) -> None:
        order = SENTENCES[number:] + SENTENCES[:number]
        texts = [t.text for t in small.translate(list(order))]
        found[number] = texts[-number:] + texts[:-number] if number else texts

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == dict.fromkeys(range(4), expected)


def test_forks_of_a_process_whose_threads_translate_translate_as_it_does():
    """No lock that a thread holds at that moment is held forever in a fork."""
    small = translator()
    expected = [t.text for t in small.translate(SENTENCES)]
    stops = threading.Event()

    def work() -> None:
        while not stops.is_set():
            small.translate(SENTENCES)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    children = []
    for _ in range(4):
        if (child := fork()) == 0:
            signal.alarm(60)  # a fork that waits for a lock would wait forever
            os._exit([t.text for t in small.translate(SENTENCES)] != expected)
        children.append(child)
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    stops.set()
    for thread in threads:
        thread.join()
    assert codes == [0, 0, 0, 0]


def test_a_search_may_be_left_in_the_middle_of_a_stream():
    """Inference mode must not leak out of a generator that waits."""
    streamed = translator(stream_lines=1).translate(iter(SENTENCES))
    next(streamed)
    assert not torch.is_inference_mode_enabled()


class CountingEngine(TorchEngine):
    """Says what it was asked to translate."""

    def __init__(self) -> None:
        super().__init__()
        self.translated: list[str] = []

    def search(self, lines, bundle, settings, watcher=None):
        self.translated.extend(line.request.source for line in lines)
        return super().search(lines, bundle, settings, watcher)


def test_a_line_that_comes_again_is_not_translated_again():
    """Across the pieces of a stream, as long as it was among the last ``cache_lines``."""

    def counted(lines, **settings):
        engine = CountingEngine()
        plain = translator(**settings)
        found = list(Translator(plain.bundle, plain.settings, engine).translate(lines))
        return found, engine.translated

    lines = ["un", "je", "un", "il", "un", "je"]
    found, translated = counted(iter(lines), stream_lines=1, cache_lines=2)
    assert translated == ["un", "je", "il", "je"]
    assert [t.source for t in found] == lines
    assert counted(iter(lines), stream_lines=1, cache_lines=0) == (found, lines)
    again, translated = counted(lines, cache_lines=0)
    assert [t.text for t in again] == [t.text for t in found]
    assert translated == ["un", "je", "il"]


def test_a_request_brings_a_beginning_of_its_own():
    small = translator(prefix="je")
    own, common = small.translate([Request("il pleut", prefix="un petit"), "il pleut"])
    assert own.text.startswith("un petit")
    assert common.text.startswith("je")
    [scored] = small.score(["il pleut"], [own.text])
    if scored.tokens == own.tokens:
        assert scored.token_log_probs == pytest.approx(own.token_log_probs, abs=1e-10)
    word = Translator(small_bundle(kind="word"), SETTINGS)
    with pytest.raises(
        DataError, match="each prefix must be made of words that the model can generate, got 'xyz'"
    ):
        word.translate(Request("un", prefix="xyz"))


def test_what_was_read_of_the_source_is_told():
    small = translator(max_source_tokens=2)
    [short, long] = small.translate(["un", SENTENCES[2]])
    assert (short.truncated, long.truncated) == (False, True)
    assert long.source_tokens == tuple(tokenizer().tokens(tokenizer().encode(SENTENCES[2])[:2]))


@pytest.mark.parametrize("beam_size", [1, 3])
def test_alternatives_are_the_models_own_next_tokens(beam_size):
    small = translator(beam_size=beam_size, max_length=8)
    found = small.translate(SENTENCES[2])
    for place in (0, 2):
        prefix = found.tokens[:place]
        others = small.alternatives(SENTENCES[2], prefix, count=4)
        assert len(others) == 4
        probabilities = [other.probability for other in others]
        assert probabilities == sorted(probabilities, reverse=True)
        for other in others:
            assert (*other.translation.tokens, "[EOS]")[: place + 1] == (*prefix, other.token)
            said = other.translation.token_log_probs[place]
            assert other.probability == pytest.approx(math.exp(said), rel=1e-9)
    assert (
        small.alternatives(SENTENCES[2], count=1)[0].translation.tokens[:1]
        == (small.translate(SENTENCES[2], beam_size=1).tokens[:1])
    )
    everything = small.alternatives("un", count=10_000)
    assert sum(other.probability for other in everything) == pytest.approx(
        1.0, abs=0.1
    )  # all but PAD and BOS
    assert len(everything) == tokenizer().vocabulary_size - 2


def test_other_ways_are_likely_enough_and_have_other_words():
    """Against the best with log p = -1: -2 is e⁻¹ = 0.368 of it, -5 is e⁻⁴ = 0.0183."""

    def said(text: str, *log_probs: float, n_best: tuple[Translation, ...] = ()) -> Translation:
        return Translation(text, -9.0, (), log_probs, n_best, "")

    others = (
        said("the cat", -1.1),
        said("A dog eats.", -2.0, -3.0),
        said("“A cat”", -1.2, -1.0),
        said("a  cat!", -1.0, -1.0),
        said("The CAT .", -1.0),
    )
    best = said("The cat.", -0.5, -0.5)
    best = dataclasses.replace(best, n_best=(best, *others))
    assert best.other_ways() == [(others[3], pytest.approx(math.exp(-1)))]
    assert best.other_ways(0.37) == []
    assert [each.text for each, _ in best.other_ways(0.018)] == ["a  cat!", "A dog eats."]
    assert dataclasses.replace(best, token_log_probs=()).other_ways() == []
    marks = said("!", -1.0)
    assert dataclasses.replace(marks, n_best=(marks, said("?", -1.0))).other_ways() != []
    sum_ = said("वह $5 देता है।", -1.0)
    ways = said("वह $5 देता है", -1.0), said("वह €5 देता है।", -1.0)
    assert dataclasses.replace(sum_, n_best=ways).other_ways() == [(ways[1], 1.0)]


def test_a_prefix_may_hold_unknown_words_as_a_translation_shows_them():
    found = translator().alternatives("un", ["[UNK]"], count=2)
    assert all(each.translation.tokens[0] == "[UNK]" for each in found)
    assert found != translator().alternatives("un", count=2)


def test_alternatives_to_nothing_are_refused():
    small = translator()
    with pytest.raises(DataError, match=r"the vocabulary must hold each token .*, got 'xyz'"):
        small.alternatives("un", ["xyz"])
    with pytest.raises(DataError, match=r"must hold each token of the prefix, got '\[EOS\]'"):
        small.alternatives("un", ["[EOS]"])
    with pytest.raises(DataError, match="need a source that holds a word"):
        small.alternatives("  ")
    with pytest.raises(
        DataError, match=r"^the prefix must have at most 4 tokens for this source, got 5$"
    ):
        translator(max_length=5).alternatives("un", [tokenizer().tokens([7])[0]] * 5)
    with pytest.raises(ConfigError, match="count must be at least 1, got 0"):
        small.alternatives("un", count=0)


def test_alternatives_of_a_line_in_capitals_are_of_the_line_that_was_searched():
    """The prefix holds tokens of its translation, which was made of the line in lower case."""
    small = translator(recase=True)
    plain, odd = SENTENCES[2], f"{SENTENCES[2].upper()} 🙂"
    prefix = small.translate(odd).tokens[:1]
    expected = small.alternatives(plain, prefix, count=3)
    found = small.alternatives(odd, prefix, count=3)
    assert [each.token for each in found] == [each.token for each in expected]
    assert [each.probability for each in found] == [each.probability for each in expected]
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.translation.source == odd
        assert ours.translation.tokens == theirs.translation.tokens
        assert ours.translation.text == f"{theirs.translation.text.upper()} 🙂"
