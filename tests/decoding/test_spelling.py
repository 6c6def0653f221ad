"""What a phrase looks like in ids, and in how many ways it can be said."""

import pytest
from small_bundle import small_bundle, tokenizer
from table_models import TableModel, sources

from pellucid.core.errors import ConfigError, DataError
from pellucid.core.special import EOS_ID
from pellucid.decoding import requests
from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.requests import Request, as_requests, read_constraints
from pellucid.decoding.search.beam import beam_search
from pellucid.decoding.search.candidates import Constraints
from pellucid.decoding.search.general_beam import general_beam_search
from pellucid.decoding.spelling import (
    _spellings,
    continuing_ids,
    spell_banned,
    spell_required,
)
from pellucid.decoding.translator import Translator
from pellucid.text.config import TokenizerConfig
from pellucid.text.tokenizers.sentencepiece_tokenizer import train_sentencepiece
from pellucid.text.tokenizers.tokenizer import train_tokenizer

SETTINGS = DecodingConfig(beam_size=3, max_length=8)


def test_a_banned_word_has_every_spelling():
    """« chat » is _ ch at, _ ch a t, _ c h at and _ c h a t in this vocabulary."""
    cut = tokenizer("bpe")
    spelled = spell_banned(["chat"], cut)
    assert tuple(cut.encode("chat")) in spelled
    assert {tuple(cut.tokens(ids)) for ids in spelled} == {
        ("\u2581", *first, *last)
        for first in (("ch",), ("c", "h"))
        for last in (("at",), ("a", "t"))
    }
    assert spell_banned(["chat", "chat"], cut) == spelled
    assert spell_banned(["chat noir", "inconnu"], tokenizer("word")) == (
        tuple(tokenizer("word").encode("chat noir")),
    )
    with pytest.raises(DataError, match="each banned phrase must hold a word"):
        spell_banned([" "], cut)


@pytest.mark.parametrize(
    ("phrases", "each"),
    [(1, 1000), pytest.param(1000, 100, marks=pytest.mark.nightly), (9091, 10)],
)
def test_all_phrases_together_have_at_most_100_000_spellings(phrases: int, each: int):
    """One phrase has at most 1,000; 9,091 times 11 would be one too many."""
    banned = ["une vieille dame lit le journal dans le train"] * phrases
    assert len(spell_banned(banned, tokenizer("bpe"))) == each


@pytest.mark.parametrize("search", [beam_search, general_beam_search])
def test_no_search_finds_a_way_around_a_ban(search):
    """A model that says « chat » in four ways, and « un » if it cannot say that."""
    cut = tokenizer("bpe")
    ways = [*spell_banned(["chat"], cut), tuple(cut.encode("un"))]

    def language(source, prefix):
        following = [way[len(prefix)] for way in ways if way[: len(prefix)] == prefix != way]
        return dict.fromkeys(following, 1 / len(following)) if following else {EOS_ID: 1.0}

    model = TableModel(language, vocabulary_size=cut.vocabulary_size)
    wanted = DecodingConfig(beam_size=20, n_best=20, max_length=6)
    [free] = search(model, sources([5]), wanted)
    assert [cut.decode(hypothesis.ids) for hypothesis in free].count("chat") == 4
    [held] = search(model, sources([5]), wanted, Constraints(banned=spell_banned(["chat"], cut)))
    assert not [h for h in held if cut.decode(h.ids) == "chat" and h.score > -1e20]
    assert cut.decode(held[0].ids) == "un"


def test_tokens_that_go_on_with_a_word_are_known():
    for kind, inside, outside in (
        ("bpe", "t", "\u2581"),
        ("character", "t", " "),
    ):
        cut = tokenizer(kind)
        tokens = cut.tokens(range(cut.vocabulary_size))
        going_on = continuing_ids(cut)
        assert tokens.index(inside) in going_on
        assert tokens.index(outside) not in going_on
    assert continuing_ids(tokenizer("word")) == frozenset()
    hindi = train_tokenizer(["पानी"], TokenizerConfig(kind="character"))
    signs = hindi.tokens(continuing_ids(hindi))
    assert set(signs) == set("पानी")  # its vowel signs too
    pieces = tokenizer("wordpiece").tokens(continuing_ids(tokenizer("wordpiece")))
    assert pieces
    assert all(piece.startswith("##") for piece in pieces)


@pytest.mark.parametrize(
    ("request_", "changes", "error", "message"),
    [
        (Request("un", must=("  ",)), {}, DataError, "each phrase of must must hold a word"),
        (Request("un", must=("xyz",)), {}, DataError, "made of words that the model can generate"),
        (
            Request("un", must=("le",)),
            {"sampling": {}},
            ConfigError,
            "must and terms need a beam of their",
        ),
        (
            Request("un", must=("le petit",)),
            {"banned": ("petit",)},
            ConfigError,
            "a required phrase cannot be banned, got must: 'le petit' and banned: 'petit'",
        ),
        (
            Request("un", prefix="le chat"),
            {"banned": ("le",)},
            ConfigError,
            "cannot be banned, got prefix: 'le chat' and banned: 'le'",
        ),
        (
            Request("un", must=("le petit", "chat")),
            {"max_length": 2},
            ConfigError,
            "the words that must appear must fit into 2 tokens, got 3",
        ),
    ],
)
def test_what_cannot_be_asked_of_a_line_is_refused(request_, changes, error, message):
    small = Translator(small_bundle(kind="word"), SETTINGS.changed(changes))
    with pytest.raises(error, match=message):
        small.translate([request_])


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"must": "chat"}, "line 1: must must be a tuple of strings, got 'chat'"),
        ({"must": (5,)}, r"line 1: must must be a tuple of strings, got \(5,\)"),
        ({"terms": ("chat",)}, "line 1: terms must be a tuple of tuples of strings, got"),
        ({"terms": "chat"}, "line 1: terms must be a tuple of tuples of strings, got 'chat'"),
        ({"prefix": 5}, "line 1: prefix must be a string, got int"),
        ({"code": 5}, "line 1: code must be a string, got int"),
    ],
)
def test_constraints_of_other_types_are_refused(wrong: dict, message: str):
    """One string would be required letter by letter."""
    with pytest.raises(DataError, match=message):
        Translator(small_bundle(), SETTINGS).translate([Request("le chat", **wrong)])


def test_lists_of_constraints_are_as_good_as_tuples():
    [found] = as_requests([Request("un", must=["le"], terms=[["x", "y"]])], SETTINGS, 1)
    assert found == Request("un", must=("le",), terms=(("x", "y"),))


def test_what_many_lines_require_is_spelled_once(monkeypatch: pytest.MonkeyPatch):
    spelled = []
    spell = requests.spell_required
    monkeypatch.setattr(
        requests, "spell_required", lambda *of: (spelled.append(of[0]), spell(*of))[1]
    )
    cut = tokenizer("bpe")
    lines = [Request(f"le chat {number}", must=("chat",)) for number in range(9)]
    found = read_constraints([*lines, Request("un", prefix="chat")], SETTINGS, cut)
    assert spelled == ["chat"]
    assert found[:9] == [((), (spell("chat", cut),))] * 9
    assert found[9] == (tuple(cut.encode("chat")), ())


def test_a_phrase_that_cannot_be_cut_to_its_end_takes_no_time():
    """« a » and « aa » cut 40 letters in 165 million ways, and none goes on to the « b »."""
    assert list(_spellings("a" * 40 + "b", {"a": 4, "aa": 5})) == []
    assert list(_spellings("aab", {"a": 4, "aa": 5, "b": 6})) == [(5, 6), (4, 4, 6)]
    long = _spellings("a" * 3000, {"a": 4})  # more pieces than Python allows calls
    assert list(long) == [(4,) * 3000]


CHINESE = ["女孩看见大女孩", "蓝色的鸟看见牛", "大女孩找到牛", "鸟找到女孩"] * 5


@pytest.fixture(scope="module")
def chinese():
    config = TokenizerConfig(kind="unigram", vocabulary_size=300)
    return train_sentencepiece(CHINESE, config)


def test_in_a_script_without_spaces_a_phrase_may_stand_within_a_text(chinese):
    """Every text of the corpus that holds a phrase holds one of its banned spellings."""
    for phrase in ("女孩", "看见", "牛"):
        banned = spell_banned([phrase], chinese)
        for text in CHINESE[:4]:
            ids = tuple(chinese.encode(text))
            holds = any(
                ids[start : start + len(each)] == each
                for each in banned
                for start in range(len(ids))
            )
            assert holds == (phrase in text), (phrase, text, chinese.tokens(ids))

    within, alone = spell_required("女孩", chinese)
    assert alone == tuple(chinese.encode("女孩"))
    assert chinese.decode([*chinese.encode("大"), *within]) == "大女孩"
    goes_on = continuing_ids(chinese)
    assert not goes_on.intersection(chinese.encode("大女孩看见牛"))


def test_a_piece_that_overhangs_a_phrase_spells_it_too():
    pieces = {"大女": 1, "孩子": 2, "女": 3, "孩": 4, "大女孩子": 5, "女孩": 6, "鸟": 7}
    found = set(_spellings("女孩", pieces, within=True))
    assert found == {(6,), (3, 4), (1, 4), (3, 2), (1, 2), (5,)}
