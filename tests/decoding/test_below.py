"""A model is calibrated by a test set, and its doubtful translations are marked or left."""

import dataclasses
import json
from pathlib import Path

import pytest
from commands import Result, pellucid
from small_bundle import SENTENCES, small_bundle

from pellucid.bundle import load_bundle, save_bundle

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
