"""What a run shows to the person who started it, where there is no terminal: plain lines."""

import pytest
from journals import validated, validated_text

from pellucid.cli.display import Display


def said(
    capsys: pytest.CaptureFixture[str], *events: dict[str, object], quiet: bool = False
) -> str:
    with Display(quiet=quiet) as display:
        for event in events:
            display.hear(event)
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err


TRAINED = {
    "event": "train",
    "step": 1200,
    "seconds": 5400.0,
    "loss": 2.3456,
    "tokens_per_second": 10_350.2,
    "share_done": 0.75,
}
SHOWN = {"is_best": True, "rate_lowered": True, "exact_match": 12.5, "sample": ["a", "b", "c"]}


def test_training_shows_the_loss_the_speed_and_the_time_left(capsys: pytest.CaptureFixture[str]):
    """After 1:30 hours three quarters are done: half an hour is left."""
    line = "step 1,200  loss 2.346  10,350 tokens/s  30:00 left\n"
    assert said(capsys, TRAINED) == line
    assert said(capsys, {**TRAINED, "share_done": 0.1}).endswith("  13:30:00 left\n")
    assert said(capsys, {**TRAINED, "share_done": 0.0}).endswith(" tokens/s  \n")


def test_a_validation_shows_its_scores_and_one_sentence(capsys: pytest.CaptureFixture[str]):
    event = {**validated(600, 31.256, 50.0, 1.9), **SHOWN}
    assert said(capsys, event) == (
        "step 600  1:00:01  BLEU 31.26  chrF 50.00  exact 12.5%  loss 1.900"
        "  (best)  (rate lowered)\n"
        "    a  ->  c   (reference: b)\n"
    )
    text = {**validated_text(6, 1.9), **SHOWN, "is_best": False, "rate_lowered": False}
    assert said(capsys, text).splitlines()[0] == "step 6  0:37  loss 1.900"


def test_quiet_says_nothing(capsys: pytest.CaptureFixture[str]):
    assert said(capsys, TRAINED, {"event": "end", "step": 3, "reason": "x"}, quiet=True) == ""
