"""A film of a run: one sentence, read by what the run has kept of itself."""

import itertools
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import tiny_runs
from commands import pellucid
from playwright.sync_api import Browser, Page

from pellucid.core.errors import ConfigError, InputMissingError
from pellucid.core.files import MANIFEST_NAME
from pellucid.inspection.capture import inspect
from pellucid.inspection.film import Film, KeptModel, _spread, film, kept_models
from pellucid.inspection.report.film_content import film_content
from pellucid.training.journal import read_history
from pellucid.training.presets import read_config
from pellucid.training.train import train

SOURCE, TARGET = "le chat dort", "the cat sleeps"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six updates with frames at 0, 2, 4 and 6."""
    path = tmp_path_factory.mktemp("film") / "run"
    changed = ["training.film_every=2", "training.max_steps=6", "training.validate_every=3"]
    train(read_config("demo", [*tiny_runs.SETTINGS, *changed]), path)
    return path


@pytest.fixture(scope="module")
def found(run: Path) -> Film:
    return film(run, SOURCE, TARGET)


def test_every_frame_reads_the_same_target_and_translates_by_itself(run: Path, found: Film):
    steps = [frame.step for frame in found.frames]
    assert steps == [0, 2, 4, 6]
    assert {frame.capture.text for frame in found.frames} == {TARGET}
    confidences = [frame.capture.confidences for frame in found.frames]
    assert len(set(confidences)) == 4
    last = found.frames[-1]
    assert last.kind == "bundle"  # that the run stands for
    assert last.capture.confidences == pytest.approx(
        inspect(run, SOURCE, TARGET, only=("logits",)).confidences
    )
    for frame in found.frames:
        assert len(frame.own_tokens) == len(frame.own_confidences)
        assert all(0 < each <= 1 for each in frame.own_confidences)


def test_loss_and_bleu_are_those_of_the_journal_until_then(run: Path, found: Film):
    history = read_history(run)
    losses = {event["step"]: event["negative_log_likelihood"] for event in history.train}
    scores = {event["step"]: event["bleu"] for event in history.validations}
    figures = [(frame.loss, frame.bleu) for frame in found.frames]
    assert figures == [
        (None, None),
        (losses[2], None),
        (losses[4], scores[3]),
        (losses[6], scores[6]),
    ]


def test_without_frames_bundles_and_checkpoints_are_the_film(run: Path, tmp_path: Path):
    plain = tmp_path / "run"
    shutil.copytree(run, plain)
    shutil.rmtree(plain / "film")
    kept = kept_models(plain)
    checkpoints = {int(folder.name[5:]) for folder in (plain / "checkpoints").iterdir()}
    bundles = {int(folder.name[5:]) for folder in (plain / "bundles").iterdir()}
    assert [each.step for each in kept] == sorted(checkpoints | bundles)
    assert {each.step for each in kept if each.kind == "bundle"} == bundles
    assert film(plain, SOURCE, TARGET).frames[0].kind == kept[0].kind


def test_a_damaged_frame_is_left_out(run: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture):
    copy = tmp_path / "run"
    shutil.copytree(run, copy)
    (copy / "film" / "step-00000002" / MANIFEST_NAME).write_text("{}")
    assert [each.step for each in kept_models(copy)] == [0, 4, 6]
    assert "left out of the film" in caplog.text


def test_what_has_no_past_is_refused(run: Path, tmp_path: Path):
    bundle = next((run / "bundles").iterdir())
    with pytest.raises(InputMissingError, match="is no run folder: it has no journal"):
        film(bundle, SOURCE)
    copy = tmp_path / "run"
    shutil.copytree(run, copy)
    for name in ("film", "checkpoints"):
        shutil.rmtree(copy / name)
    for folder in sorted((copy / "bundles").iterdir())[:-1]:
        shutil.rmtree(folder)
    with pytest.raises(ConfigError, match=r"at least two models of one run, .* has kept 1"):
        film(copy, SOURCE)


def test_of_many_frames_some_are_taken_closer_together_at_the_beginning():
    kept = [KeptModel(step, "frame", Path()) for step in range(0, 1001, 10)]
    steps = [each.step for each in _spread(kept, 8)]
    assert len(steps) == len(set(steps)) == 8
    assert (steps[0], steps[-1]) == (0, 1000)
    gaps = [b - a for a, b in itertools.pairwise(steps)]
    assert gaps[0] < gaps[-2] < gaps[-1]
    assert _spread(kept[:8], 8) == kept[:8]


def test_a_film_of_what_is_drawn_is_a_fraction_of_the_whole(found: Film):
    whole, drawn = (film_content(found, drawn_only=each)["frames"][0] for each in (False, True))
    assert drawn["words"] == whole["words"]
    left_out = whole["matrices"].keys() - drawn["matrices"].keys()
    assert drawn["matrices"].keys() < whole["matrices"].keys()
    assert {name.rpartition(".")[2] for name in left_out} >= {"query", "key", "value", "scores"}
    assert not any(name.endswith((".weights", ".hidden")) for name in left_out)


def test_a_film_without_room_is_cut_by_what_it_holds_itself(found: Film):
    """Its frames share the budget, and the pages of a report, which it does not have, take none."""
    size = len(json.dumps(film_content(found)))
    frames = film_content(found, budget=size * 5 // 4)["frames"]
    assert all(each["shape"] == each["of"] for each in frames[0]["matrices"].values())
    few = film_content(found, budget=size // 2)
    assert len(json.dumps(few)) < 0.75 * size
    assert any(each["shape"] != each["of"] for each in few["frames"][0]["matrices"].values())


def test_a_film_needs_a_report(run: Path):
    refused = pellucid("inspect", run, SOURCE, "--film")
    assert refused.code == 2
    assert "--film is part of a report" in refused.err


@pytest.fixture(scope="module")
def page(browser: Browser, run: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    path = tmp_path_factory.mktemp("film report") / "report.html"
    made = pellucid("inspect", run, SOURCE, "--target", TARGET, "--report", path, "--film")
    assert made.code == 0
    assert "film: updates 0, 2, 4, 6" in made.err
    context = browser.new_context(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
    page, problems = context.new_page(), list[str]()
    page.on("console", lambda message: problems.append(message.text))
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(path.as_uri())
    yield page
    assert problems == []
    context.close()


def test_an_exported_page_has_the_film_too(browser: Browser, run: Path, tmp_path: Path):
    path = tmp_path / "model.html"
    assert pellucid("export", "web", run, path, "--film", SOURCE).code == 0
    context = browser.new_context(reduced_motion="reduce")
    page = context.new_page()
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-ready]")
    assert page.input_value("#source") == SOURCE
    page.locator("#explorer").scroll_into_view_if_needed()
    page.locator(".film input").fill("0")
    assert page.locator(".film-told").inner_text().startswith("Before the first update")
    assert page.locator(".tower .frame").count() > 20
    assert page.locator(".tower .frame.missing").count() == 0
    first = film(run, SOURCE).frames[0].capture.confidences
    assert shown(page) == pytest.approx(first, abs=2e-3)
    page.fill("#source", "le chat")  # something else to show: the film steps back
    page.locator(".film-leave").wait_for(state="hidden")
    context.close()


def shown(page: Page) -> list[float]:
    """The probabilities beside the words of the translation."""
    shares = page.locator(".said-word .share").evaluate_all(
        "all => all.map((each) => Number(getComputedStyle(each).getPropertyValue('--share')))"
    )
    return [float(share) for share in shares]


def test_the_slider_shows_the_model_of_another_update(page: Page, found: Film):
    slider = page.locator(".film input")
    assert "After 6 updates" in page.locator(".film-told").inner_text()
    for index, frame in enumerate(found.frames):
        slider.fill(str(index))
        assert shown(page) == pytest.approx(frame.capture.confidences, abs=2e-3)
        words = page.locator(".film-own").inner_text().split()
        assert words == list(frame.own_tokens) or words == ["(nothing)"]
    slider.fill("0")
    assert page.locator(".film-told").inner_text().startswith("Before the first update")
    page.locator(".film-leave").click()
    assert shown(page) == pytest.approx(found.frames[-1].capture.confidences, abs=2e-3)
    assert page.locator(".film-leave").is_hidden()


def test_it_plays_to_the_end_and_can_be_paused(page: Page):
    play = page.locator(".film-play")
    play.click()
    assert play.inner_text() == "Pause"
    assert page.locator(".film input").input_value() == "0"
    page.locator(".film-told", has_text="After 2 updates").wait_for()
    play.click()
    assert play.inner_text() == "Play"
    page.locator(".film-leave").click()
