"""What the options of ``translate`` and ``score`` ask for is what the library is asked for."""

import json
import math
from pathlib import Path

import pytest
from commands import pellucid

import pellucid as library
from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.ensemble import load_ensemble
from pellucid.decoding.requests import Request

LINES = ["je suis étudiant", "", "le petit chat noir dort", "une vieille dame lit"]
TEXT = "".join(f"{line}\n" for line in LINES).encode()


def translations(run: Path, *options: object, stdin: bytes = TEXT) -> list[dict]:
    result = pellucid("translate", run, *options, "--json", stdin=stdin)
    assert result.code == 0, result.err
    return [json.loads(line) for line in result.out.splitlines()]


@pytest.fixture(scope="module")
def translator(tiny_run: Path) -> library.Translator:
    return library.load(tiny_run)


@pytest.mark.parametrize(
    ("options", "changes"),
    [
        (["--length-penalty", 0, "-n", 2], {"length_penalty": 0.0, "n_best": 2}),
        (["--patience", "inf", "-b", 2], {"patience": math.inf, "beam_size": 2}),
        (["--min-length", 3, "--max-length", 6], {"min_length": 3, "max_length": 6}),
        (["--no-repeat-ngram", 1, "-b", 2], {"no_repeat_ngram": 1, "beam_size": 2}),
        (["--prefix", "the cat", "--ban", "dog", "--ban", "man"], {
            "prefix": "the cat", "banned": ("dog", "man"),
        }),
        (["--sample", "-n", 6, "--temperature", 0.7, "--top-k", 9, "--top-p", 0.9, "--epsilon",
          0.001, "--seed", 0], {
            "n_best": 6,
            "sampling": {
                "temperature": 0.7, "top_k": 9, "top_p": 0.9, "epsilon": 0.001, "seed": 0,
            },
        }),
        (["--mbr", "-b", 5], {"mbr": True, "beam_size": 5}),
        (["--align", "--align-layer", 0, "--align-head", 1], {
            "align": True, "align_layer": 0, "align_head": 1,
        }),
        (["--align", "--replace-unknown", "--coverage-penalty", 0.3], {
            "align": True, "replace_unknown": True, "coverage_penalty": 0.3,
        }),
        (["--no-cache", "-b", 2, "--max-length", 5], {
            "use_cache": False, "beam_size": 2, "max_length": 5,
        }),
        (["--no-cache", "--no-mask-at-inference", "-b", 1, "--max-length", 5], {
            "use_cache": False, "mask_at_inference": False, "beam_size": 1, "max_length": 5,
        }),
        (["--no-copy-symbols", "--no-recase"], {"copy_symbols": False, "recase": False}),
        (["--recase"], {"recase": True}),
        (["--repredict", "--no-mask-at-inference", "-b", 1, "--max-length", 5], {
            "repredict": True, "mask_at_inference": False, "beam_size": 1, "max_length": 5,
        }),
    ],
    ids=lambda value: " ".join(map(str, value)) if isinstance(value, list) else "",
)  # fmt: skip
def test_options_are_settings(
    tiny_run: Path, translator: library.Translator, options: list[object], changes: dict
):
    expected = translator.translate(LINES, translator.settings.changed(changes))
    for entry, translation in zip(translations(tiny_run, *options), expected, strict=True):
        assert entry["translation"] == translation.text
        assert entry["score"] == pytest.approx(translation.score, abs=1e-4)
        assert entry["tokens"] == list(translation.tokens)
        assert entry["source_tokens"] == list(translation.source_tokens)
        assert len(entry["n_best"]) == len(translation.n_best)
        links = None if translation.alignment is None else [list(x) for x in translation.alignment]
        assert entry.get("alignment") == links
        assert entry.get("expected_utility") == pytest.approx(translation.expected_utility)


def test_evaluate_takes_minimum_bayes_risk(tiny_run: Path, tmp_path: Path):
    source, reference = tmp_path / "test.fr", tmp_path / "test.en"
    source.write_bytes(TEXT)
    translator = library.load(tiny_run)
    chosen = translator.settings.changed({"mbr": True, "beam_size": 5, "max_length": 8})
    said = [each.text for each in translator.translate(LINES, chosen)]
    reference.write_text("".join(f"{line}\n" for line in said), encoding="utf-8")

    result = pellucid(
        "evaluate", tiny_run, source, reference,
        "--mbr", "--beam-size", 5, "--max-length", 8, "--metric", "exact_match", "--json",
    )  # fmt: skip

    assert result.code == 0, result.err
    table = json.loads(result.out)
    assert table["exact_match"] == 100.0
    assert "mbr=True" in table["signatures"]["exact_match"]
    plain = translator.translate(LINES, chosen.changed({"mbr": False}))
    assert [each.text for each in plain] != said


def test_lines_may_bring_a_prefix_of_their_own(tiny_run: Path):
    stdin = "je suis étudiant\tthe cat\nje suis étudiant\n".encode()
    first, second = translations(tiny_run, "--tab-separated", stdin=stdin)
    assert first["source"] == second["source"] == "je suis étudiant"
    assert first["translation"].startswith("the cat")
    expected = library.load(tiny_run).translate(Request("je suis étudiant", prefix="the cat"))
    assert first["tokens"] == list(expected.tokens)


def test_alignments_stand_behind_the_text_in_pharaohs_form(tiny_run: Path):
    plain = pellucid("translate", tiny_run, "--align", "--max-length", 4, stdin=TEXT).out
    entries = translations(tiny_run, "--align", "--max-length", 4)
    assert plain.splitlines() == [
        f"{entry['translation']} ||| {entry['word_alignment']}" for entry in entries
    ]
    several = pellucid("translate", tiny_run, "--align", "-n", 2, stdin=b"un chat\n").out
    assert [line.count(" ||| ") for line in several.splitlines()] == [3, 3]


def test_an_ensemble_is_asked_as_one(tiny_run: Path):
    twice = load_ensemble([tiny_run, tiny_run]).translate(LINES)
    entries = translations(tiny_run, "--with", tiny_run)
    assert [entry["translation"] for entry in entries] == [t.text for t in twice]
    alone = translations(tiny_run, "--engine", "torch")
    assert [e["score"] for e in entries] == pytest.approx([e["score"] for e in alone], abs=1e-4)


def test_an_ensemble_of_a_model_with_itself_reads_lines_as_that_model_does(tiny_run: Path):
    """It is split as the model was trained, and its language is known."""
    two = b"Je vois le chat. Nous parlons."
    [alone] = translations(tiny_run, "--engine", "torch", stdin=two)
    [twice] = translations(tiny_run, "--with", tiny_run, stdin=two)
    assert len(twice["sentences"]) == 2
    assert twice["translation"] == alone["translation"]
    assert load_ensemble([tiny_run, tiny_run]).source_language == "fr"


def test_what_cannot_be_asked_together_is_refused(tiny_run: Path):
    lonely = pellucid("translate", tiny_run, "--top-k", 3, "--seed", 1, stdin=TEXT)
    assert lonely.code == 2
    assert "Error: --top-k, --seed must go with --sample." in lonely.err
    lonely = pellucid("translate", tiny_run, "--diversity-strength", 2)
    assert "Error: --diversity-strength must go with --diverse-groups." in lonely.err
    lonely = pellucid("translate", tiny_run, "--align-layer", 0, "--align-head", 1, stdin=b"je\n")
    assert lonely.code == 2
    assert (
        "Error: --align-layer and --align-head must go with --align, --replace-unknown or"
        " --coverage-penalty." in lonely.err
    )
    assert pellucid("translate", tiny_run, "--coverage-penalty", 1, "--align-layer", 0).code == 0
    for idle, reason in (
        (["--sample", "-b", 3], "--beam-size must be left out: sampling follows no beam"),
        (["--sample", "--mbr", "-b", 3, "--patience", 2], "--patience must be left out: sampling"),
        (["-b", 1, "--patience", 2], "--patience must be left out: with a beam of 1 it does"),
        (["--no-split", "--abbreviation", "Dr."], "--abbreviation must go with lines that are"),
        (["--json", "--explain-search", "--split"], "--explain-search takes no --split"),
    ):
        refused = pellucid("translate", tiny_run, *idle, stdin=b"je\n")
        assert refused.code == 2
        assert reason in refused.err
    coded = pellucid("translate", tiny_run, "--target-code", "fra", stdin=b"je\n")
    assert coded.code == 78
    assert coded.error_line == (
        "error: target_code is for a multilingual model, and this one does not read >>fra<<"
    )
    several = pellucid(
        "translate", tiny_run, "--sample", "--must", "chat", "--top-p", 3, "--ban", "chat",
        "--prefix", "le chat", stdin=TEXT,
    )  # fmt: skip
    assert several.code == 78
    assert "top_p must be above 0 and at most 1, got 3.0" in several.error_line
    both = pellucid(
        "translate", tiny_run, "--sample", "--must", "chat", "--ban", "chat", stdin=TEXT
    )
    assert both.code == 78
    assert both.error_line == (
        "error: decoding: sampling follows no beam, which must needs: set one of them;"
        " a required phrase cannot be banned, got must: 'chat' and banned: 'chat'"
    )
    unmasked = pellucid(
        "translate", tiny_run, "--no-mask-at-inference", "--align", "--min-length", 9,
        "--max-length", 3, stdin=TEXT,
    )  # fmt: skip
    assert unmasked.code == 78
    assert unmasked.error_line == (
        "error: decoding: min_length must be at most max_length, got min_length=9 and max_length=3;"
        " mask_at_inference=false needs use_cache=false: without the mask a word depends on those"
        " after it, which no cache can know; mask_at_inference=false takes no align, which reads"
        " the attention of a decoder with its mask"
    )


def test_scoring_says_how_likely_each_line_and_the_whole_text_is(tiny_run: Path, tmp_path: Path):
    sources, targets = tmp_path / "a.fr", tmp_path / "a.en"
    sources.write_bytes(TEXT)
    targets.write_text("i am a student\n\nthe cat\nan old lady reads\n", encoding="utf-8")
    expected = library.load(tiny_run).score(LINES, targets.read_text("utf-8").split("\n")[:-1])
    plain = pellucid("score", tiny_run, sources, targets)
    assert plain.code == 0
    blank = "1 line has a blank side, which is scored as an empty text; the first is line 2"
    assert f"WARNING: {blank}" in plain.err
    for line, scored in zip(plain.out.splitlines(), expected, strict=True):
        total, score, perplexity = map(float, line.split("\t"))
        assert total == pytest.approx(math.fsum(scored.token_log_probs), abs=1e-4)
        assert score == pytest.approx(scored.score, abs=1e-4)
        assert perplexity == pytest.approx(scored.perplexity, rel=1e-4)
    counts = [len(scored.token_log_probs) for scored in expected]
    mean = sum(math.fsum(scored.token_log_probs) for scored in expected) / sum(counts)
    [summary] = [line for line in plain.err.splitlines() if "perplexity" in line]
    assert summary.startswith(f"4 sentences, {sum(counts)} tokens with the stops, perplexity ")
    assert float(summary.split()[-1]) == pytest.approx(math.exp(-mean), rel=1e-4)

    *entries, corpus = map(
        json.loads, pellucid("score", tiny_run, sources, targets, "--json").out.splitlines()
    )
    for entry, scored in zip(entries, expected, strict=True):
        assert entry["target"] == scored.text
        assert entry["tokens"] == list(scored.tokens)
        assert entry["token_log_probs"] == pytest.approx(scored.token_log_probs, abs=1e-4)
    assert corpus["corpus"]["tokens"] == sum(counts)
    assert corpus["corpus"]["perplexity"] == pytest.approx(math.exp(-mean), rel=1e-4)

    flat = pellucid("score", tiny_run, sources, targets, "--length-penalty", 0)
    assert [line.split("\t")[0] for line in flat.out.splitlines()] == [
        line.split("\t")[1] for line in flat.out.splitlines()
    ]
    same = pellucid(
        "score", tiny_run, sources, targets, "--engine", "torch", "--device", "cpu", "--json"
    )
    assert [json.loads(line) for line in same.out.splitlines()] == [*entries, corpus]
    other = pellucid("score", tiny_run, sources, targets, "--engine", "ctranslate2")
    assert other.code == 2
    assert "score computes in torch" in other.err
    named = pellucid("score", tiny_run, targets, sources)
    assert "are source and target exchanged?" in named.err
    targets.write_text("one\n")
    refused = pellucid("score", tiny_run, sources, targets)
    assert refused.code == 65
    assert "4 source lines and 1 target lines" in refused.error_line


def test_the_settings_of_a_run_may_hold_all_of_it():
    table = {"must": ["a"], "banned": ["b"], "prefix": "c", "mbr": True, "align": True}
    settings = DecodingConfig.parse(table)
    assert (settings.must, settings.banned) == (("a",), ("b",))
    assert DecodingConfig.parse(settings.to_table()) == settings


def test_a_search_explains_itself_line_by_line(tiny_run: Path, tmp_path: Path):
    references = tmp_path / "right.en"
    references.write_text("i am a student\n\nthe cat\nan old lady\n", encoding="utf-8")
    asked = ("translate", tiny_run, "--explain-search", "--max-length", 5)
    result = pellucid(*asked, "--json", "--reference", references, stdin=TEXT)
    assert result.code == 0, result.err
    trees = [json.loads(line) for line in result.out.splitlines()]
    assert trees[1] is None
    found = translations(tiny_run, "--max-length", 5)
    for tree, line, entry in zip(trees, LINES, found, strict=True):
        if tree is not None:
            assert tree["source"] == line
            assert tree["translations"][0]["tokens"] == entry["tokens"]
            assert tree["nodes"][tree["ends"][0]]["verdict"] == "finished"
            assert tree["reference"]["verdict"] in ("found", "search error", "model error")
    references.write_text("one\ntwo\n", encoding="utf-8")
    short = pellucid(*asked, "--json", "--reference", references, stdin=TEXT)
    assert short.code == 65
    assert short.error_line == "error: each line needs a reference, got none for line 3"
    references.write_text("one\n" * 9, encoding="utf-8")
    long = pellucid(*asked, "--json", "--reference", references, stdin=TEXT)
    assert long.error_line == "error: each reference needs a line, got more than 4 references"
    plain = pellucid(*asked, stdin=TEXT)
    assert plain.code == 2
    assert "Error: --explain-search must go with --json." in plain.err
    lonely = pellucid("translate", tiny_run, "--reference", references, stdin=TEXT)
    assert "Error: --reference must go with --explain-search." in lonely.err
    for other in (["--engine", "kernels"], ["--engine", "ctranslate2"], ["--compute-type", "int8"]):
        refused = pellucid(*asked, "--json", *other, stdin=TEXT)
        assert refused.code == 2
        assert "explains searches of torch in float32, and takes no other --engine" in refused.err


def test_a_line_of_two_sentences_is_split(tiny_run: Path):
    """The model was trained on single sentences."""
    alone = translations(tiny_run, stdin=b"Je vois le chat.\nNous parlons.")
    [split] = translations(tiny_run, stdin=b"Je vois le chat. Nous parlons.")
    parts = [each["translation"] for each in alone]
    assert [each["translation"] for each in split["sentences"]] == parts
    assert split["translation"] == " ".join(filter(None, parts))
    assert split["score"] == sum(each["score"] for each in alone)
    for kept in (["--no-split"], ["--abbreviation", "chat."]):
        [whole] = translations(tiny_run, *kept, stdin=b"Je vois le chat. Nous parlons.")
        assert "sentences" not in whole


def test_suspicious_translations_are_named_up_to_five(tiny_run: Path):
    """A model of four updates that must not stop repeats itself."""
    text = b"le petit chat noir dort\n" * 7
    result = pellucid("translate", tiny_run, "--min-length", 40, "--max-length", 40, stdin=text)
    named = [line for line in result.err.splitlines() if "the translation repeats itself" in line]
    assert [line.split("line ")[1].split(":")[0] for line in named] == ["1", "2", "3", "4", "5"]
    assert "the translation repeats itself (40 tokens from 5)" in named[0]
    assert "more such warnings: loop 2" in result.err


def test_of_a_split_line_the_doubtful_sentence_is_named(tiny_run: Path):
    """With its own tokens, as the rules for doubt count them."""
    text = b"Nous parlons. Le petit chat noir dort."
    result = pellucid("translate", tiny_run, "--min-length", 20, "--max-length", 20, stdin=text)
    named = [line for line in result.err.splitlines() if "repeats itself" in line]
    assert named[-1].endswith(
        "line 1, sentence 2: the translation repeats itself (20 tokens from 5)"
    )


def test_a_warning_names_the_line_of_the_whole_text(tiny_run: Path, tmp_path: Path):
    """Lines are scored and translated a thousand at a time."""
    long = " ".join(["chat"] * 2000)
    sources = tmp_path / "long.fr"
    sources.write_text("chat\n" * 1025 + f"{long}\n", encoding="utf-8")
    scored = pellucid("score", tiny_run, sources, sources, "--length-penalty", 0)
    assert "line 1026: only the first 1,024 of its 2,000 tokens are read" in scored.err
    out = tmp_path / "made"
    made = pellucid("distill", tiny_run, sources, "--out", out, "--max-length", 1)
    assert "line 1026: only the first 1,024 of its 2,000 tokens are read" in made.err
