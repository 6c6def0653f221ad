"""The program in the README of an export translates where Pellucid cannot be imported."""

import dataclasses
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from small_bundles import sentences, small_bundle

from pellucid.backends.ctranslate2.export import export_ctranslate2
from pellucid.backends.ctranslate2.export import readme as ctranslate2_readme
from pellucid.backends.example_program import example_text, pair_in_words
from pellucid.backends.huggingface.export_folder import export_huggingface
from pellucid.backends.huggingface.import_folder import read_huggingface
from pellucid.backends.onnx.export import export_onnx
from pellucid.backends.web.invitation import sample_of_run
from pellucid.bundle import Bundle
from pellucid.core.special import SPECIAL_COUNT, UNK_ID
from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.translator import Translator
from pellucid.model.build import build_model
from pellucid.text.config import TokenizerConfig
from pellucid.text.languages import sentence_in
from pellucid.text.tokenizers.tokenizer import train_tokenizer
from pellucid.text.tokenizers.vocabulary import Vocabulary
from pellucid.text.tokenizers.word_tokenizers import WordTokenizer

RUNNER = """
import contextlib, io, json, os, sys
for name in ("pellucid", "torch", "transformers"):
    sys.modules[name] = None
for folder, program in json.load(sys.stdin):
    os.chdir(folder)
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(compile(program, "README.md", "exec"), {})
    print(json.dumps(said.getvalue()))
"""


def programs(*folders: Path) -> list[str]:
    """What the program of each README prints, in one process without Pellucid and torch."""
    asked = [(str(folder), program_of((folder / "README.md").read_text())) for folder in folders]
    result = subprocess.run(
        [sys.executable, "-c", RUNNER],
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


def program_of(page: str) -> str:
    found = re.search(r"```python\n(.*?)```", page, re.DOTALL)
    assert found is not None
    assert "pellucid" not in found[1]
    return found[1]


@pytest.fixture(scope="module")
def marian(trained: Bundle, tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    """The same model after a way through Hugging Face's format: its pieces have a table."""
    folder = tmp_path_factory.mktemp("marian") / "opus-fr-en"
    export_huggingface(trained, folder)
    return read_huggingface(folder)


@pytest.fixture(scope="module")
def of_words(trained: Bundle) -> Bundle:
    """The same model, whose ids are made-up words."""
    size = trained.source_tokenizer.vocabulary_size
    words = Vocabulary.of(f"w{number}" for number in range(size - SPECIAL_COUNT))
    tokenizer = WordTokenizer("word", words)
    return dataclasses.replace(trained, source_tokenizer=tokenizer, target_tokenizer=tokenizer)


def ours(bundle: Bundle, text: str) -> str:
    return Translator(bundle, DecodingConfig(beam_size=1)).translate(text).text


@pytest.fixture
def limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Our translations by models that repeat themselves until a limit, which are exported too."""
    for kind in ("onnx", "ctranslate2"):
        monkeypatch.setattr(f"pellucid.backends.{kind}.export._prove", lambda *_: None)
    text, expected = "chat noir chat noir table", {}  # 12 tokens
    for name, decoding, changes, most in (
        ("positions", {}, {"positions": "learned", "max_positions": 12}, 11),
        ("ratio", {"max_length_ratio": 1.5, "max_length_extra": 3, "min_length": 2}, {}, 21),
        ("fixed", {"max_length": 9, "max_source_tokens": 2}, {}, 9),
    ):
        bundle = small_bundle(**changes)
        bundle = dataclasses.replace(bundle, settings={**bundle.settings, "decoding": decoding})
        said = Translator(bundle, DecodingConfig(beam_size=1, **decoding)).translate(text)
        assert len(said.tokens) == most
        expected[name] = f"{said.text}\n"
        export_ctranslate2(bundle, tmp_path / f"ct2-{name}", example=text)
        export_onnx(bundle, tmp_path / f"onnx-{name}", text)
    return expected


@pytest.fixture
def student() -> Bundle:
    """A decoder of SSRUs with random weights, and the other settings of our students."""
    settings = {"decoder": "ssru", "positions": "sinusoidal_t2t", "start_symbol": "zero"}
    bundle = small_bundle(**settings, attention=4.0, shared=False, seed=7)
    return dataclasses.replace(bundle, settings={**bundle.settings, "decoding": {"max_length": 9}})


def test_ctranslate2_and_onnx_folders_translate_without_pellucid_and_torch(
    trained: Bundle,
    marian: Bundle,
    of_words: Bundle,
    student: Bundle,
    limited: dict[str, str],
    tmp_path: Path,
):
    """And where a model does not stop, the program ends where our search does."""
    shown = {"trained": sample_of_run(trained), "marian": "Où est la gare ?", "words": "w40 w7 w90"}
    bundles = {"trained": trained, "marian": marian, "words": of_words}
    assert shown["trained"]
    for name, bundle in bundles.items():
        export_ctranslate2(bundle, tmp_path / f"ct2-{name}", example=shown[name])
        export_onnx(bundle, tmp_path / f"onnx-{name}", shown[name])
    expected = {name: ours(bundles[name], text) + "\n" for name, text in shown.items()}
    assert len(set(expected.values())) == 3
    expected |= limited
    lacking = "sentence, but for these settings of the model, which it lacks: min_length=2"
    # CTranslate2 has no SSRU
    translator = Translator(student, DecodingConfig(beam_size=1, max_length=9))
    said = translator.translate("chat noir")
    assert len(set(said.tokens)) > 3
    export_onnx(student, tmp_path / "onnx-student", "chat noir")
    # Two processes: with both libraries in one it may hang as it ends.
    for kind, texts in (("ct2", expected), ("onnx", {**expected, "student": f"{said.text}\n"})):
        folders = [tmp_path / f"{kind}-{name}" for name in texts]
        assert programs(*folders) == [*texts.values()]
        pages = [(folder / "README.md").read_text() for folder in folders]
        assert [lacking in page for page in pages] == [name == "ratio" for name in texts]


def of_kinds(source: str, target: str) -> Bundle:
    """A model with random weights that writes whatever it can, words that it does not know too."""
    kinds = [TokenizerConfig(kind=kind, vocabulary_size=330) for kind in (source, target)]
    tokenizers = [train_tokenizer(sentences(300), each) for each in kinds]
    sizes = [each.vocabulary_size for each in tokenizers]
    config = small_bundle(shared=False, output_bias=True).config
    model = build_model(config, sizes[0], sizes[1], seed=3)
    for parameter in model.parameters():
        parameter.data += 0.2 * torch.randn(parameter.shape)
    model.get_parameter("output_bias").data[UNK_ID] += 4.0
    settings = {"decoding": {"max_length": 6, "copy_symbols": False, "recase": False}}
    return Bundle(model.eval().requires_grad_(False), *tokenizers, settings, {})


@pytest.mark.parametrize("kind", ["onnx", "ctranslate2"])
def test_programs_write_the_text_of_every_kind_of_tokenizer(kind: str, tmp_path: Path):
    """Letters without spaces, subwords where the source has words; other rules of a language's
    marks are said not to be those of Pellucid."""
    torch.manual_seed(1)
    pairs = ("bpe", "character"), ("word", "bpe"), ("unigram", "word"), ("character", "wordpiece")
    export = {"onnx": export_onnx, "ctranslate2": export_ctranslate2}[kind]
    folders, expected = [], []
    for pair in pairs:
        bundle = of_kinds(*pair)
        folders.append(tmp_path / "-".join(pair))
        export(bundle, folders[-1], example="chat noir")
        settings = DecodingConfig.parse(bundle.settings["decoding"], "a test")
        greedy = settings.changed({"beam_size": 1})
        said = Translator(bundle, greedy).translate("chat noir")
        apart = pair[1] in ("word", "wordpiece")
        expected.append((" ".join(said.tokens) if apart else said.text) + "\n")

    found = [each.replace("<unk>", "[UNK]") for each in programs(*folders)]
    assert found == expected
    assert "[UNK]" in expected[2]
    pages = [(folder / "README.md").read_text() for folder in folders]
    assert ["a space between any two tokens" in page for page in pages] == [
        False,
        False,
        False,
        True,
    ]
    assert not any("copy_symbols" in page or "recase" in page for page in pages)


def test_the_page_names_the_languages_and_a_sentence_of_the_source(trained: Bundle):
    page = ctranslate2_readme(trained, "float32")
    assert "# A translation model for CTranslate2: French to English" in page
    assert f'"{sentence_in("fr")}"' in page
    assert 'unicodedata.normalize("NFC"' in page
    named = {"data": {"source": ["a.de"], "target": ["a.en"]}}
    german = dataclasses.replace(trained, settings={**trained.settings, **named})
    assert pair_in_words(german) == "German to English"
    assert "Ein Hund läuft am Strand." in ctranslate2_readme(german, "int8")
    assert "weights in int8" in ctranslate2_readme(german, "int8")


def test_where_no_language_is_known_words_of_the_vocabulary_are_the_example(of_words: Bundle):
    tokenizer = WordTokenizer("word", Vocabulary.of(["chat", "noir", "table", "a1"]))
    bundle = dataclasses.replace(of_words, source_tokenizer=tokenizer, target_tokenizer=tokenizer)
    assert example_text(bundle) == "table chat noir"  # nor a sentence with words it does not know
    plain = small_bundle()
    assert pair_in_words(plain) == ""
    assert example_text(plain)
    page = ctranslate2_readme(plain, "float32", 'say "it\'s"')
    assert """'say "it\\'s"'""" in page
