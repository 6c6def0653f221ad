"""A multilingual model gets its target language from a setting, for lines and documents."""

from pathlib import Path

import pytest
from marian_folders import marian_folder
from tiny_models import tiny_bundle

import pellucid
from pellucid.backends.huggingface.import_folder import import_huggingface
from pellucid.core.errors import ConfigError
from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.requests import Request
from pellucid.decoding.rewriting import Codes, Sentences
from pellucid.decoding.suspicious import source_warnings
from pellucid.decoding.translator import Translator
from pellucid.documents.aligned import ModelTranslator
from pellucid.inspection.sentence import open_model, read_sentence
from pellucid.text.config import TokenizerConfig
from pellucid.text.tokenizers.interface import Tokenizer
from pellucid.text.tokenizers.marian import has_codes, reads_code
from pellucid.text.tokenizers.tokenizer import train_tokenizers


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An imported model that knows ``>>fra<<``."""
    folder = tmp_path_factory.mktemp("codes")
    marian_folder(folder / "opus")
    import_huggingface(folder / "opus", folder / "bundle")
    return folder / "bundle"


def translator(bundle: Path, code: str = "") -> Translator:
    loaded = pellucid.load(bundle, engine="torch")
    return loaded.with_settings(loaded.settings.changed({"target_code": code, "max_length": 8}))


@pytest.mark.parametrize("code", ["fra", ">>fra<<"])
def test_a_line_without_a_code_gets_it(bundle: Path, code: str):
    lines = ["je suis", "", ">>fra<< il est", "  "]
    found = translator(bundle, code).translate(lines)
    typed = translator(bundle).translate([">>fra<< je suis", "", ">>fra<< il est", "  "])
    assert [each.text for each in found] == [each.text for each in typed]
    assert [each.token_ids for each in found] == [each.token_ids for each in typed]
    assert not any(each.kind == "language_code" for one in found for each in one.warnings)
    [scored] = translator(bundle, code).score(["je suis"], ["i am"])
    [expected] = translator(bundle).score([">>fra<< je suis"], ["i am"])
    assert scored.score == expected.score


def test_a_code_that_the_model_lacks_is_a_warning_of_each_line(bundle: Path):
    found = translator(bundle, "deu").translate(["je suis", "il est"])
    for each in found:
        [message] = [one.message for one in each.warnings if one.kind == "language_code"]
        assert ">>deu<<" in message
        assert ">>fra<<" in message


def test_what_is_no_code_is_refused(bundle: Path):
    with pytest.raises(ConfigError, match="must be a code such as deu or >>deu<<"):
        translator(bundle, "de fr")


def test_what_is_inspected_is_what_was_read(bundle: Path):
    """With the code of the setting; its attention has a column for each token that was read."""
    coded = translator(bundle, "fra")
    for line in ("je suis", ">>fra<< je suis", "JE SUIS \U0001f600"):
        found = coded.translate(line)
        assert found.source == line
        inspected = read_sentence(open_model(coded), line, None)
        assert inspected.source_tokens[:-1] == found.source_tokens
        assert inspected.source_tokens[0] == ">>fra<<"
        [weights] = coded.attention([found])
        assert weights.shape == (len(found.tokens) + 1, len(found.source_tokens) + 1)
        given = read_sentence(open_model(coded), line, "i am")
        assert given.source_tokens[0] == ">>fra<<"


@pytest.mark.parametrize("code", ["", "fra"])
def test_words_are_linked_by_their_numbers_in_the_line(bundle: Path, code: str):
    """The code of a language is a word of the line only where it was typed."""
    coded = translator(bundle, code)
    settings = coded.settings.changed({"align": True})
    typed = coded.translate(">>fra<< je suis", settings)
    assert typed.word_alignment is not None
    assert all(source in (1, 2) for source, _ in typed.word_alignment)
    if code:
        bare = coded.translate("je suis", settings)
        assert bare.text == typed.text
        assert bare.word_alignment == tuple(
            (source - 1, target) for source, target in typed.word_alignment
        )


def test_a_sentence_of_a_document_gets_it_and_links_point_into_its_text(bundle: Path):
    sentences = ["je suis étudiant", "il est"]
    found = ModelTranslator(translator(bundle, "fra")).translate(sentences, align=True)
    plain = ModelTranslator(translator(bundle)).translate(
        [f">>fra<< {each}" for each in sentences], align=True
    )
    for sentence, ours, theirs in zip(sentences, found, plain, strict=True):
        assert ours.text == theirs.text
        assert ours.links
        assert all(0 <= start <= end <= len(sentence) for (start, end), _, _ in ours.links)
        shift = len(">>fra<< ")
        kept = [
            ((start - shift, end - shift), target, weight)
            for (start, end), target, weight in theirs.links
            if start >= shift
        ]
        assert list(ours.links) == kept


def trained(kind: str, lines: list[str]) -> Tokenizer:
    wanted = TokenizerConfig(kind=kind, vocabulary_size=400)
    return train_tokenizers(lines, lines, wanted)[0]


@pytest.mark.parametrize("kind", ["bpe", "unigram", "word"])
def test_own_tokenizers_read_the_codes_that_they_were_trained_on(kind: str):
    plain = [f"the {word} house is {word}" for word in ("red", "old", "new", "tall")] * 30
    coded = [f">>{('deu', 'fra')[place % 2]}<< {line}" for place, line in enumerate(plain)]
    multilingual = trained(kind, coded)
    assert reads_code(multilingual, ">>deu<<")
    assert reads_code(multilingual, ">>fra<<")
    single = trained(kind, [*plain, "3 > 2 and 2 < 3"])
    assert not reads_code(single, ">>deu<<")
    assert (has_codes(multilingual), has_codes(single)) == (True, False)

    # Each sentence of a line is read behind its code.
    request = Request(">>deu<< the red house is old. the old house is new.")
    uncoded = Codes(multilingual).read(request)
    assert [each.read for each in Sentences("en")([uncoded]).requests] == [
        ">>deu<< the red house is old.",
        ">>deu<< the old house is new.",
    ]
    assert Codes(single).read(request) is request

    # A line that begins with one is warned of only by a model that reads none.
    for tokenizer, wanted in ((multilingual, []), (single, ["language_code"])):
        line = ">>deu<< the red house"
        found = source_warnings(line, tokenizer.encode(line), 99, tokenizer)
        assert [each.kind for each in found if each.kind == "language_code"] == wanted


def test_letters_say_nothing_of_codes():
    assert reads_code(trained("character", ["a > b < c d e u"] * 9), ">>deu<<")


def test_a_model_of_one_language_refuses_a_code():
    translator = Translator(tiny_bundle(), DecodingConfig())
    coded = translator.with_settings(translator.settings.changed({"target_code": "deu"}))
    message = "target_code is for a multilingual model, and this one does not read >>deu<<"
    for use in (
        lambda: coded.translate("chat"),
        lambda: coded.score(["chat"], ["cat"]),
        lambda: ModelTranslator(coded),
    ):
        with pytest.raises(ConfigError, match=message):
            use()
