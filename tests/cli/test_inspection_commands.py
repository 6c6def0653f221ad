"""``pellucid inspect``, ``ablate`` and ``doctor``, as a user runs them."""

import json
from pathlib import Path

import pytest
from commands import pellucid
from tiny_models import tiny_model

from pellucid.bundle import Bundle, save_bundle
from pellucid.inspection.ablation import ablation_parts
from pellucid.inspection.capture import Capture, inspect
from pellucid.text.tokenizers.vocabulary import Vocabulary
from pellucid.text.tokenizers.word_tokenizers import WordTokenizer

SENTENCE = "le chat dort"


def test_inspect_shows_confidence_lens_and_heads(tiny_run: Path):
    result = pellucid("inspect", tiny_run, SENTENCE, "--target", "the cat sleeps")
    assert result.code == 0
    lines = result.out.splitlines()
    assert lines[:2] == [f"source  {SENTENCE}", "target  the cat sleeps"]
    assert lines[3].split() == ["token", "p", "attends", "to", "alternatives"]
    assert [line.split()[0] for line in lines[4:8]] == ["the", "cat", "sleeps", "</s>"]
    capture = inspect(tiny_run, SENTENCE, "the cat sleeps", only=("logits",))
    shown = [float(line.split()[1]) for line in lines[4:8]]
    assert shown == [round(p, 3) for p in capture.confidences]
    assert "what each layer of the decoder would predict" in lines
    assert "heads that align best" in result.out
    assert "\x1b" not in result.out  # colors are for terminals


def test_a_table_that_is_piped_is_not_cut(tiny_run: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "24")
    capture = inspect(tiny_run, SENTENCE, "the cat", only=("logits",))
    out = pellucid("inspect", tiny_run, SENTENCE, "--target", "the cat").out
    for line, target, predicted in zip(
        out.splitlines()[4:], capture.sentence.target_ids, capture.predictions, strict=False
    ):
        others = [word for word in predicted if word.id != target][:2]
        assert line.rstrip().endswith(
            ", ".join(f"{word.token} {word.probability:.3f}" for word in others)
        )


def test_inspect_lists_what_matches_a_pattern(tiny_run: Path):
    result = pellucid("inspect", tiny_run, SENTENCE, "--only", "encoder.layers.0.*.heads.1.weights")
    assert result.out.splitlines()[-1] == (
        "encoder.layers.0.self_attention.heads.1.weights  (source token 4 x source token 4)"
        "  EQ-52, EQ-53  Head 1 alone. The attention weights: the softmax of the scores; each row"
        " sums to one."
    )


def test_inspect_writes_json_with_the_numbers_that_were_asked_for(tiny_run: Path):
    name = "decoder.layers.0.self_attention.heads.0.masked_scores"
    result = pellucid(
        "inspect", tiny_run, SENTENCE, "--target", "the cat", "--only", name, "--json", "--saliency"
    )
    found = json.loads(result.out)
    assert found["target_tokens"] == ["the", "cat", "</s>"]
    [entry] = found["entries"]
    assert (entry["name"], entry["shape"], entry["equations"]) == (name, [3, 3], ["EQ-70", "EQ-72"])
    assert [row.count(None) for row in entry["values"]] == [2, 1, 0]  # what is ahead is hidden
    assert len(found["lens"]) == 2
    assert len(found["heads"]) == 4
    assert len(found["saliency"]) == len(found["saliency_gains"]) == 3
    assert [target for _, target in found["alignment"]] == [0, 1]
    expected = inspect(tiny_run, SENTENCE, "the cat", only=("logits",)).confidences
    assert found["confidences"] == pytest.approx(expected)


def test_inspect_of_an_empty_translation_writes_json_without_nan(tiny_run: Path):
    result = pellucid("inspect", tiny_run, SENTENCE, "--target", "", "--json", "--only", "logits")

    def refuse(constant: str) -> None:
        raise AssertionError(f"JSON knows no {constant}")

    found = json.loads(result.out, parse_constant=refuse)
    assert (found["target_tokens"], found["heads"]) == (["</s>"], [])


def test_inspect_saves_draws_and_reports(tiny_run: Path, tmp_path: Path):
    result = pellucid(
        *("inspect", tiny_run, SENTENCE, "--only", "decoder.layers.1.cross_attention.*.weights"),
        *("--save", tmp_path / "c.safetensors", "--attention", tmp_path / "a.svg"),
        *("--report", tmp_path / "r.html"),
    )
    assert result.code == 0, result.err
    stem = "decoder.layers.1.cross_attention"
    assert Capture.load(tmp_path / "c.safetensors").names() == [
        f"{stem}.heads.{head}.weights" for head in range(2)
    ]
    assert (tmp_path / "a.svg").read_text("utf-8").startswith("<?xml")
    assert "<!doctype html>" in (tmp_path / "r.html").read_text("utf-8")[:100].lower()


@pytest.mark.parametrize(
    ("arguments", "code", "line"),
    [
        (
            ("--only", "encoder.nothing"),
            78,
            "error: each pattern must match an intermediate of this model, got 'encoder.nothing'",
        ),
        (
            ("--attention", "x.bmp"),
            78,
            "error: a picture must end in .png, .svg or .pdf, got x.bmp",
        ),
    ],
)
def test_what_cannot_be_looked_at_is_told(
    arguments: tuple[str, ...], code: int, line: str, tiny_run: Path
):
    result = pellucid("inspect", tiny_run, SENTENCE, *arguments)
    assert result.code == code
    assert result.error_line.startswith(line)


def test_nothing_that_is_shown_can_steer_a_terminal(tiny_run: Path):
    result = pellucid("inspect", tiny_run, "le \x1b[2J chat", "--target", "the [bold]cat[/bold]")
    assert result.code == 0
    assert "\x1b" not in result.out
    assert "le \\x1b[2J chat" in result.out
    assert "the [bold]cat[/bold]" in result.out


def test_ablate_gives_a_table_and_json_and_a_picture(tiny_run: Path, tmp_path: Path):
    (tmp_path / "a").write_text("le chat dort\nle chien dort\nx\n")
    (tmp_path / "b").write_text("the cat sleeps\nthe dog sleeps\ny\n")
    files = (tmp_path / "a", tmp_path / "b", "--lines", 2, "--beam-size", 1, "--max-length", 5)
    result = pellucid("ablate", tiny_run, *files)
    assert result.code == 0, result.err
    assert "engine" not in result.err, "nobody chose one"
    header, whole, *parts, last = result.out.splitlines()
    assert header.split() == ["BLEU", "change", "loss", "change"]
    assert whole.startswith("whole model")
    assert last.startswith("2 sentences, nrefs:1|")
    result = pellucid("ablate", tiny_run, *files, "--json", "--picture", tmp_path / "p.svg")
    study = json.loads(result.out)
    config = inspect(tiny_run, SENTENCE, only=("logits",)).config
    assert [part["part"] for part in study["parts"]] == ablation_parts(config)
    assert {line.split()[0] for line in parts} == set(ablation_parts(config))
    assert study["sentences"] == 2
    assert (tmp_path / "p.svg").exists()


def test_ablate_says_that_a_plain_rnn_has_no_part_to_switch_off(tmp_path: Path):
    (tmp_path / "a").write_text("a b\n")
    letters = WordTokenizer("word", Vocabulary.of("abcdefghi"))
    model = tiny_model("lstm").float().requires_grad_(False)
    bundle = Bundle(model, letters, letters, {"model": model.config.to_table()}, {})
    save_bundle(tmp_path / "rnn", bundle, card="", details={})
    result = pellucid("ablate", tmp_path / "rnn", tmp_path / "a", tmp_path / "a")
    assert result.code == 0
    assert "a plain rnn has no head and no layer that can be off" in result.err


def test_doctor_says_what_is_installed_and_that_the_laws_hold(tiny_run: Path):
    result = pellucid("doctor", tiny_run)
    assert result.code == 0, result.out
    assert result.out.splitlines()[0].startswith("python ")
    assert result.out.count("  holds ") == 3 + 4 * 10
    assert "BROKEN" not in result.out
    assert result.out.splitlines()[-1] == "all 43 checks hold on this machine"


def test_doctor_as_json():
    found = json.loads(pellucid("doctor", "--json").out)
    assert found["holds"] is True
    assert len(found["laws"]) == 3 + 3 * 10
    assert found["versions"]["torch"]
    assert {extra["name"] for extra in found["extras"]} >= {"plot", "serve", "fast", "onnx"}


def test_doctor_ends_with_1_if_a_law_is_broken(tiny_run: Path, tmp_path: Path):
    """A bundle whose numbers are no numbers."""
    import dataclasses

    import torch

    from pellucid.bundle import load_bundle, save_bundle

    bundle = load_bundle(tiny_run)
    with torch.no_grad():
        bundle.model.output_weight[7] = float("nan")
    save_bundle(tmp_path / "nan", dataclasses.replace(bundle), card="", details={})
    result = pellucid("doctor", tmp_path / "nan")
    assert result.code == 1
    assert "BROKEN" in result.out
    assert result.out.splitlines()[-1].endswith("checks do not hold on this machine")


@pytest.mark.parametrize("line", ["12345", "", "  "])
def test_inspect_says_that_a_line_is_copied(tiny_run: Path, line: str):
    result = pellucid("inspect", tiny_run, line)
    assert result.code == 0
    assert f"target  {line}".rstrip() in result.out
    assert "WARNING: the source is copied, as it has nothing to translate" in result.err
    assert "copied" not in pellucid("inspect", tiny_run, SENTENCE).err
