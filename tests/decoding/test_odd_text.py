"""Odd text on a real trained model: the right answer, or one clear error."""

import json
import logging
from pathlib import Path

import pytest
import tiny_runs
from commands import pellucid as run_command
from made_once import made_once

import pellucid
from pellucid.core.errors import ConfigError, DataError
from pellucid.decoding import requests, suspicious
from pellucid.decoding.translator import Translator
from pellucid.training.presets import read_config
from pellucid.training.train import train

BPE = [
    *(s for s in tiny_runs.SETTINGS if not s.startswith("tokenizer.")),
    "tokenizer.vocabulary_size=400",
    "training.max_steps=4",
]
ODD = {
    "emoji": "le chat 🙂🏳️‍🌈 dort",
    "right to left": "שלום le chat ‮dort",
    "NUL": "le chat\x00dort",
    "control characters": "le\x01chat\x7f\x1b[31m dort",
    "carriage return inside": "le chat\rdort",
    "other line ends": "le\u2028chat\u2029noir\x85dort\x0b\x0c",
    "special tokens": "</s> <pad> <s> <unk> [PAD] [UNK] [BOS] [EOS]",
    "piece marks": "le\u2581chat ##dort <0x41>",
    "combining marks": "e" + "\u0301" * 50,
    "no spaces": "lechatdort" * 20,
    "only marks": "...!?",
    "other planes": "𝕝𝕖 𐍈 \U0010fffd",
    "not a character": "\ufffe\uffff",
}


@pytest.fixture(scope="module", params=["word", "bpe"])
def translator(request, tmp_path_factory: pytest.TempPathFactory) -> Translator:
    base = tmp_path_factory.getbasetemp()
    if request.param == "word":
        return short(pellucid.load(tiny_runs.tiny_run(base), engine="torch"))
    folder = made_once(base, "tiny bpe run", lambda run: train(read_config("demo", BPE), run))
    return short(pellucid.load(folder, engine="torch"))


def short(translator: Translator) -> Translator:
    settings = translator.settings.changed({"max_length": 12, "align": True})
    return Translator(translator.bundle, settings)


def test_odd_text_is_translated_alone_as_among_others(translator: Translator):
    among = translator.translate(["le chat dort", *ODD.values(), "", *ODD.values()])
    assert among[0].text == translator.translate("le chat dort").text
    assert among[len(ODD) + 1].text == ""
    wrong = []
    for index, (name, text) in enumerate(ODD.items(), start=1):
        alone = translator.translate(text)
        same = among[index].text == among[index + len(ODD) + 1].text == alone.text
        links_are_within = all(
            source < len(alone.source_tokens) and target < len(alone.tokens)
            for source, target in alone.alignment
        )
        if alone.source != text or not same or not links_are_within:
            wrong.append(name)
    assert wrong == []


def test_odd_text_is_scored_token_by_token(translator: Translator):
    texts = list(ODD.values())
    for scored in translator.score(texts, texts):
        assert len(scored.token_log_probs) == len(scored.tokens) + 1


def test_special_tokens_as_text_are_text(translator: Translator):
    """None of them steers the model: they are spelled, or unknown words."""
    for text in ("</s>", "<pad>", "[EOS]", "[PAD]", "<s>"):
        ids = translator.bundle.source_tokenizer.encode(text)
        assert ids
        assert not set(ids) & {0, 2, 3}
        found = translator.translate(f"le chat {text} dort")
        assert found.source_tokens.count("[EOS]") == 0
        assert "[PAD]" not in found.tokens


@pytest.mark.parametrize("text", ["", " ", "\t", "   \u3000\u00a0", "\r"])
def test_nothing_but_spaces_gives_nothing(translator: Translator, text: str):
    found = translator.translate(text)
    assert (found.text, found.tokens, found.alignment, found.truncated) == ("", (), (), False)


def test_ten_thousand_characters_are_translated_or_cut_with_a_warning(
    translator: Translator, caplog: pytest.LogCaptureFixture
):
    text = "le petit chat noir dort " * 417
    assert len(text) > 10_000
    with caplog.at_level(logging.WARNING, logger="pellucid"):
        found = translator.translate(["un", text])
    count = len(translator.bundle.source_tokenizer.encode(text))
    assert found[1].truncated
    assert len(found[1].source_tokens) == 1024
    assert f"line 2: only the first 1,024 of its {count:,} tokens are read" in caplog.messages
    word = "x" * 10_000
    assert translator.translate(word).source == word


def test_text_behind_the_characters_that_are_read_is_said_to_be_cut(
    translator: Translator, monkeypatch: pytest.MonkeyPatch
):
    """Its ids fit: white space has none. 2^20 characters are read, here 100."""
    for module in (requests, suspicious):
        monkeypatch.setattr(module, "MOST_CHARACTERS", 100)
    lines = [" " * 100 + "le chat dort", "le chat" + " " * 100]
    for found in (translator.translate(lines), translator.score(lines, ["a", "a"])):
        assert [each.truncated for each in found] == [True, False]
        kinds = {each.kind: each.message for each in found[0].warnings}
        assert kinds["truncated"] == "only its first 100 characters are read"


@pytest.mark.parametrize("text", ["\ud800", "le chat \udfff dort", "🙂"[:1] + "\ud83d"])
def test_half_a_character_is_refused(translator: Translator, text: str):
    for call in (
        lambda: translator.translate(text),
        lambda: translator.translate(f"Le chat. {text} Il dort.", split=True),
        lambda: translator.translate(["le chat", text]),
        lambda: list(translator.translate(iter([text]))),
        lambda: translator.score([text], ["a"]),
        lambda: translator.score(["a"], [text]),
        lambda: translator.alternatives(text),
        lambda: translator.translate(pellucid.Request("un", prefix=text)),
        lambda: translator.translate(pellucid.Request("un", must=(text,))),
        lambda: pellucid.explain_search(translator, "un", reference=text),
    ):
        with pytest.raises(DataError, match="text must be Unicode, got the lone surrogate U\\+D"):
            call()
    with pytest.raises(ConfigError, match="must have text in Unicode"):
        translator.settings.changed({"banned": (text,)})


def test_a_beam_wider_than_the_vocabulary_works(translator: Translator):
    size = translator.bundle.target_tokenizer.vocabulary_size
    wide = translator.settings.changed({"beam_size": size + 50, "n_best": 3, "max_length": 2})
    found = translator.translate("le chat", wide)
    assert len(found.n_best) == 3
    assert found.score >= translator.translate("le chat", wide, beam_size=3).score
    grouped = wide.changed({"beam_size": 2 * size, "diverse_groups": 2, "n_best": 1})
    assert translator.translate("le chat", grouped).score == pytest.approx(found.score, abs=1e-5)


def test_lines_end_at_newlines_and_nowhere_else(tmp_path_factory: pytest.TempPathFactory):
    """Mixed line ends through the real command line: five lines in, five out, as alone."""
    run = tiny_runs.tiny_run(tmp_path_factory.getbasetemp())
    stdin = "le chat\r\nun\rchat\u2028dort\n\x00\n</s>\n   ".encode()
    result = run_command("translate", run, "--json", "--max-length", 6, stdin=stdin)
    assert result.code == 0, result.err
    entries = [json.loads(line) for line in result.out.split("\n") if line]
    sources = ["le chat", "un\rchat\u2028dort", "\x00", "</s>", "   "]
    assert [entry["source"] for entry in entries] == sources
    loaded = pellucid.load(Path(run), engine="torch")
    expected = loaded.translate(sources, max_length=6)
    assert [entry["tokens"] for entry in entries] == [list(t.tokens) for t in expected]
    plain = run_command("translate", run, "--max-length", 6, stdin=stdin)
    assert len(plain.out.split("\n")) == len(sources) + 1
