"""A sentencepiece model whose pieces have ids of their own."""

import functools
import io
import json
from pathlib import Path

import numpy as np
import pytest
import sentencepiece

from pellucid.core.errors import BundleError, ConfigError, CorruptError, DataError
from pellucid.core.special import BOS_ID, EOS_ID, PAD_ID, UNK_ID
from pellucid.decoding.suspicious import source_warnings
from pellucid.text.corpus.rows import IdRows
from pellucid.text.languages import code_problem
from pellucid.text.tokenizers.marian import MarianTokenizer, has_codes
from pellucid.text.tokenizers.tokenizer import load_tokenizer
from pellucid.text.tokenizers.vocabulary import Vocabulary

LINES = ["le chat dort", "le chien dort", "un chat noir", "un chien noir"] * 5


@functools.cache
def model() -> bytes:
    content = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(LINES),
        model_writer=content,
        vocab_size=30,
        hard_vocab_limit=False,
        num_threads=1,
        minloglevel=2,
    )
    return content.getvalue()


def tokenizer() -> MarianTokenizer:
    """Its pieces backwards, a language code last, and no ``▁le``."""
    processor = sentencepiece.SentencePieceProcessor()
    processor.LoadFromSerializedProto(model())
    pieces = [processor.id_to_piece(id_) for id_ in range(3, processor.get_piece_size())]
    return MarianTokenizer(model(), Vocabulary.of([*reversed(pieces), ">>fra<<"]))


def test_ids_are_those_of_the_table_and_text_comes_back():
    ids = tokenizer().encode("un chat noir")
    assert min(ids) > EOS_ID
    assert "".join(tokenizer().tokens(ids)) == "▁un▁chat▁noir"
    assert tokenizer().decode([BOS_ID, *ids, EOS_ID, PAD_ID]) == "un chat noir"
    assert tokenizer().encode_batch(["un chat noir", ""]) == [ids, []]
    rows = IdRows.of([ids])
    assert tokenizer().resegment(rows, 0.0, np.zeros(1, np.uint64)) is rows


def test_a_language_code_in_front_is_one_token():
    ids = tokenizer().encode(">>fra<< un chat")
    assert tokenizer().tokens(ids[:1]) == [">>fra<<"]
    assert ids[1:] == tokenizer().encode("un chat")
    assert tokenizer().encode(">>deu<< un chat") == [UNK_ID, *ids[1:]]
    assert tokenizer().decode(ids) == tokenizer().normalize(">>fra<< un chat") == ">>fra<< un chat"


def test_without_codes_in_the_table_brackets_in_front_are_text_as_in_marian():
    """A quotation in typewriter's guillemets is no code of a model for one language."""
    with_codes = tokenizer()
    tokens = with_codes.tokens(range(4, with_codes.vocabulary_size))
    one = MarianTokenizer(model(), Vocabulary.of(tokens[:-1]))
    processor = sentencepiece.SentencePieceProcessor(model_proto=model())
    for text in (">>un<<, dit le chien", ">>fra<< un chat", ">>un<<"):
        assert one.split(text) == processor.encode(text, out_type=str)
        assert one.normalize(text) == text
        assert with_codes.split(text) != one.split(text)
    assert (has_codes(with_codes), has_codes(one)) == (True, False)

    text = ">>un<<, dit le chien"
    [warning] = source_warnings(text, one.encode(text), 100, one)
    assert warning.message.startswith("the model does not know “>")


def test_brackets_elsewhere_are_text():
    first = tokenizer().encode("un")[0]
    assert tokenizer().encode("un >>fra<< chat")[0] == first
    assert UNK_ID in tokenizer().encode(">> un chat")
    assert ">>un chat<<" not in tokenizer().split(">>un chat<< noir")
    assert "▁noir" in tokenizer().split(">>un chat<< noir")
    for text in (">>un chat<< noir", ">>> zut"):
        ids = tokenizer().encode(text)
        warnings = source_warnings(text, ids, 100, tokenizer())
        assert "unknown" in [each.kind for each in warnings]


def test_unknown_pieces_are_unknown_and_shown():
    assert UNK_ID in tokenizer().encode("zut")
    assert tokenizer().decode([UNK_ID]) == "[UNK]"


def test_text_never_gives_a_special_id():
    assert not {PAD_ID, BOS_ID, EOS_ID} & set(tokenizer().encode("</s> <pad> <s> [EOS]"))


def test_what_is_normalized_away_is_told():
    assert tokenizer().normalize("  un   chat ") == "un chat"


def test_saved_and_loaded_it_is_the_same(tmp_path: Path):
    tokenizer().save(tmp_path, "source")
    loaded = load_tokenizer(tmp_path, "source")
    assert loaded.fingerprint == tokenizer().fingerprint
    assert loaded.kind == "marian"
    assert loaded.vocabulary_size == tokenizer().vocabulary_size
    assert loaded.encode("un chat") == tokenizer().encode("un chat")


def test_the_fingerprint_tells_tables_and_models_apart():
    smaller = MarianTokenizer(model(), Vocabulary.of(["▁un"]))
    assert smaller.fingerprint != tokenizer().fingerprint
    assert smaller.model == model()


def test_its_problems_are_told(tmp_path: Path):
    with pytest.raises(ConfigError, match="sampling needs kind bpe or unigram, got marian"):
        tokenizer().resegment(IdRows.of([[5]]), 0.1, np.zeros(1, np.uint64))
    with pytest.raises(DataError, match="lone surrogate"):
        tokenizer().encode("\ud800")
    with pytest.raises(DataError, match="an id must be from 0 to"):
        tokenizer().decode([1000])
    with pytest.raises(BundleError, match=r"x\.spm is not a sentencepiece model"):
        MarianTokenizer(b"no", Vocabulary.of([]), origin="x.spm")
    tokenizer().save(tmp_path, "source")
    (tmp_path / "source.marian.spm").unlink()
    with pytest.raises(BundleError, match=r"cannot read .*source\.marian\.spm: No such file"):
        load_tokenizer(tmp_path, "source")
    path = tmp_path / "source.vocab.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "options": {"lowercase": True}}))
    with pytest.raises(CorruptError, match=r"source\.vocab\.json should have no options"):
        load_tokenizer(tmp_path, "source")


def test_the_codes_of_target_languages_are_read_off_the_table():
    assert tokenizer().codes == (">>fra<<",)


CODES = (">>cmn_Hans<<", ">>deu<<", ">>fra<<", ">>nld<<", ">>spa<<")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Hello", "it must begin with the code of the language to translate into, such as >>cmn"),
        ("Hello >>deu<<", "it must begin with the code"),
        (" >>deu<< Hello", "the code >>deu<< must be its first characters, and white space is"),
        ("\u00a0>>deu<< Hello", "the code >>deu<< must be its first characters"),
        (">>ger<< Hello", "the model does not know the code >>ger<<; it knows >>deu<<, "),
        (">>de<< Hello", "the model does not know the code >>de<<; it knows >>deu<<, "),
        (">>DEU<< Hello", "the model does not know the code >>DEU<<; it knows >>deu<<, "),
        (">>zh<< Hello", "the model does not know the code >>zh<<; it knows >>cmn_Hans<<, "),
        (">>dut<< Hello", "the model does not know the code >>dut<<; it knows >>nld<<, "),
        (">>spn<< Hello", "the model does not know the code >>spn<<; it knows >>spa<<, "),
        (">><< Hello", "the model does not know the code >><<; it knows "),
    ],
)
def test_a_code_that_is_missing_unknown_or_misplaced_is_said_with_the_codes(text: str, said: str):
    problem = code_problem(text, CODES)
    assert problem is not None
    assert problem.startswith(said)
    if "first characters" not in said:
        assert all(each in problem for each in CODES)


def test_a_right_code_and_a_model_without_codes_have_no_problem():
    assert code_problem(">>deu<< Hello", CODES) is None
    assert code_problem(">>deu<<Hello", CODES) is None
    assert code_problem("Hello", ()) is None
    said = "this model translates into one language, and does not know >>deu<<"
    assert code_problem(">>deu<< Hello", ()) == said


def test_a_quotation_is_no_code_of_a_model_without_codes():
    assert code_problem(">>Ja<<, sagte er.", ()) is None
    assert code_problem(">>ja<<, sagte er.", ()) is None
    assert code_problem(">>deu_Latn<< Hello", ()) is not None


@pytest.mark.parametrize(
    ("asked", "meant"),
    [("es", "spa"), ("pt-BR", "por"), ("zh-CN", "cmn_Hans"), ("german", "deu"), ("sp", "spa")],
)
def test_the_code_that_was_meant_is_named_first(asked: str, meant: str):
    codes = [">>est<<", ">>spa<<", ">>por<<", ">>cmn_Hans<<", ">>deu<<"]
    said = f"the model does not know the code >>{asked}<<; it knows >>{meant}<<,"
    assert str(code_problem(f">>{asked}<< Hello", codes)).startswith(said)


def test_many_codes_are_not_all_listed():
    problem = code_problem("Hello", [f">>x{number:02d}<<" for number in range(50)])
    assert problem is not None
    assert problem.endswith(">>x29<< and 20 more")
