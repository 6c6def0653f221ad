"""A model is calibrated by a test set, and its doubtful translations are marked or left."""

import dataclasses
import json
from pathlib import Path

import pytest
from commands import Result, pellucid
from small_bundle import SENTENCES, small_bundle

from pellucid.bundle import QUALITY_KEY, load_bundle, save_bundle
from pellucid.decoding.ensemble import load_ensemble
from pellucid.inspection.ablation import ablate

LINES = [SENTENCES[0], *SENTENCES[4:6], SENTENCES[8]]
WORDS = ["je", "suis", "le", "chat", "noir", "dort", "table", "maison", "dame", "lit"]


def run(*arguments: object) -> Result:
    return pellucid(*arguments)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("below")
    small = small_bundle()
    search = {"beam_size": 1, "max_length_extra": 3}
    settings = {"model": small.config.to_table(), "decoding": search}
    own = dataclasses.replace(small, settings=settings)
    save_bundle(folder / "b", own, card="", details={"step": 1})
    pairs = [f"{first} {second}" for first in WORDS for second in WORDS]
    (folder / "valid.fr").write_text("\n".join(pairs) + "\n")
    (folder / "valid.en").write_text("\n".join(reversed(pairs)) + "\n")
    (folder / "lines").write_text("\n".join(LINES) + "\n")
    (folder / "page.html").write_text("".join(f"<p>{line}</p>" for line in LINES))
    return folder


def test_a_model_is_calibrated_and_what_is_doubtful_marked_or_left(model: Path):
    options = ["--engine", "torch"]
    before = run("translate", model / "b", model / "lines", "--below", 0.5, "mark", *options)
    assert before.code == 78
    assert "whose quality was calibrated" in before.err

    few = model / "few"
    few.write_text("je\n" * 9)
    refused = run("evaluate", model / "b", few, few, "--calibrate", *options)
    assert refused.code == 65
    assert "--calibrate needs 100 lines with text at least, got 9" in refused.err
    assert load_bundle(model / "b").quality_points is None

    files = [model / "valid.fr", model / "valid.en"]
    found = run("evaluate", model / "b", *files, "--calibrate", "--beam-size", 1, *options)
    assert found.code == 0, found.err
    assert "calibrated" in found.err
    points = load_bundle(model / "b").quality_points
    assert points is not None
    assert 0 <= points[0][1] <= points[-1][1] <= 1

    as_json = run("translate", model / "b", model / "lines", "--json", *options).out
    entries = [json.loads(line) for line in as_json.splitlines()]
    qualities = sorted(entry["quality"] for entry in entries)
    assert qualities[0] < qualities[-1]
    bound = (qualities[0] + qualities[-1]) / 2
    split = ["--no-split", *options]
    plain = run("translate", model / "b", model / "lines", *split).out.splitlines()
    qualities = [
        json.loads(line)["quality"]
        for line in run(
            "translate", model / "b", model / "lines", "--json", *split
        ).out.splitlines()
    ]
    for doubtful in ("mark", "leave"):
        below = ["--below", bound, doubtful]
        changed = run("translate", model / "b", model / "lines", *below, *split)
        for source, old, new, quality in zip(
            LINES, plain, changed.out.splitlines(), qualities, strict=True
        ):
            other = f"[?] {old}" if doubtful == "mark" else source
            assert new == (other if quality < bound else old)
        page = run("translate", model / "b", model / "page.html", *below, *options).out
        assert ("[?]" in page) == (doubtful == "mark")


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["translate", "b", "lines", "--below", "0.5"], "requires 2 arguments"),
        (["translate", "b", "lines", "--below", "1.5", "mark"], "0<=x<=1"),
        (["translate", "b", "lines", "--below", "0.5", "hide"], "'mark', 'leave'"),
        (["evaluate", "b", "s", "t", "--calibrate", "--robustness"], "takes no --with"),
    ],
)
def test_wrong_usage_is_refused(command: list[str], said: str):
    found = run(*command)
    assert found.code == 2
    assert said in found.err


STEEP = [[-9.0, 0.0], [-0.001, 1.0]]
"""A scale on which every translation of the small model is below 0.99."""


def with_own(folder: Path, name: str, *, scale: bool, **search: object) -> Path:
    """A bundle whose own settings have ``search``, with a scale of quality or without one."""
    small = small_bundle()
    table = {"beam_size": 1, "max_length_extra": 3, **search}
    settings = {"model": small.config.to_table(), "decoding": table}
    own = dataclasses.replace(small, settings=settings)
    path = folder / name
    details = {QUALITY_KEY: STEEP} if scale else {}
    save_bundle(path, own, card="", details=details)
    return path


@pytest.mark.parametrize("doubtful", ["mark", "leave"])
@pytest.mark.parametrize("command", ["distill", "backtranslate"])
def test_training_text_is_made_without_the_teachers_own_bound(
    command: str, doubtful: str, model: Path, tmp_path: Path
):
    own = with_own(tmp_path, "own", scale=True, below=0.99, doubtful=doubtful)
    plain = with_own(tmp_path, "plain", scale=True)
    options = ["--engine", "torch", "--no-split"]
    marked = run("translate", own, model / "lines", *options).out.splitlines()
    wanted = run("translate", plain, model / "lines", *options).out.splitlines()
    assert all(a != b for a, b in zip(marked, wanted, strict=True))

    made = run(command, own, model / "lines", "--out", tmp_path / "made", "--engine", "torch")
    assert made.code == 0, made.err
    assert (tmp_path / "made").read_text().splitlines() == wanted


def test_a_scale_is_learned_from_translations_without_marks(model: Path, tmp_path: Path):
    files = [model / "valid.fr", model / "valid.en"]
    points = []
    for below in ({}, {"below": 0.99}, {"below": 0.99, "doubtful": "leave"}):
        path = with_own(tmp_path, f"b{len(points)}", scale=True, **below)
        found = run("evaluate", path, *files, "--calibrate", "--engine", "torch")
        assert found.code == 0, found.err
        points.append(load_bundle(path).quality_points)
    assert points[0] is not None
    assert points[0] == points[1] == points[2]


def test_a_models_own_bound_without_a_scale_is_left_out_with_one_warning(
    model: Path, tmp_path: Path
):
    own = with_own(tmp_path, "own", scale=False, below=0.3)
    plain = with_own(tmp_path, "plain", scale=False)
    lines, files = model / "lines", [model / "valid.fr", model / "valid.en"]
    for command, *arguments in (
        ("translate", lines),
        ("translate", lines, "--with", plain),
        ("score", lines, lines),
        ("evaluate", *files, "--calibrate"),
    ):
        engine = [] if command == "score" or "--with" in arguments else ["--engine", "torch"]
        found = run(command, own, *arguments, *engine)
        assert found.code == 0, found.err
        assert found.err.count("decoding.below is left out") == 1
        if command in ("translate", "score"):
            assert found.out == run(command, plain, *arguments, *engine).out

    # Calibrating has given it a scale, so its own bound holds; scores do not depend on it.
    found = run("translate", own, lines, "--engine", "torch")
    assert "left out" not in found.err
    assert run("score", own, lines, lines).out == run("score", plain, lines, lines).out


def test_an_ensemble_has_no_scale_for_the_bound_of_its_first_model(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    own = with_own(tmp_path, "own", scale=True, below=0.99)
    plain = with_own(tmp_path, "plain", scale=True)
    caplog.clear()
    found = load_ensemble([own, plain]).translate(LINES)
    assert [each.text for each in found] == [
        each.text for each in load_ensemble([plain, plain]).translate(LINES)
    ]
    left_out = f"{own}: decoding.below is left out, as there is no scale of quality"
    assert [text for text in caplog.messages if "below" in text] == [left_out]


def test_a_model_without_a_part_is_measured_without_the_bound(tmp_path: Path):
    figures = []
    for name, search in (("own", {"below": 0.99}), ("plain", {})):
        path = with_own(tmp_path, name, scale=True, **search)
        [part] = ablate(path, LINES, LINES, parts=["decoder.layers.1"]).parts
        figures.append((part.bleu, part.loss))
    assert figures[0] == figures[1]


def test_addresses_go_through_an_ensemble_as_through_one_model(model: Path, tmp_path: Path):
    plain = with_own(tmp_path, "plain", scale=False)
    text = b"https://example.org/a?b=c\n{name}\n%(count)d\n"
    alone = pellucid("translate", plain, "--engine", "torch", stdin=text)
    twice = pellucid("translate", plain, "--with", plain, stdin=text)
    assert alone.out.encode() == twice.out.encode() == text
    lost = b"il dort sur {name}\n"
    alone = pellucid("translate", plain, "--engine", "torch", "--json", stdin=lost)
    twice = pellucid("translate", plain, "--with", plain, "--json", stdin=lost)
    warnings = [json.loads(each.out)["warnings"] for each in (alone, twice)]
    assert warnings[0] == warnings[1]
    assert "{name}" in warnings[0][-1]["message"]
