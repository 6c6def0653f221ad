"""Traces: kept is what was asked for, under names that say where it was."""

import torch

from pellucid.model.build import build_model
from pellucid.model.config import parse_model_config
from pellucid.model.trace import UNWATCHED, Trace

X = torch.ones(2)


def test_a_trace_keeps_what_matches_any_of_its_patterns():
    trace = Trace("encoder.*.weights", "logits")
    trace.keep("logits", X)
    trace.keep("weights", X)
    trace.under("encoder").under("layers.0").keep("weights", X)
    trace.under("encoder").under("layers.0").keep("scores", X)
    assert list(trace.values) == ["logits", "encoder.layers.0.weights"]


def test_a_trace_says_beforehand_whether_it_wants_something():
    trace = Trace("decoder.*").under("decoder")
    assert trace.wants("scores")
    assert Trace("a.scores").under("a").wants("weights", "scores")
    assert not Trace("a.scores").under("b").wants("weights", "scores")


def test_patterns_know_upper_from_lower_case():
    trace = Trace("Logits")
    trace.keep("logits", X)
    assert trace.values == {}


def test_the_trace_that_wants_nothing_is_never_copied_and_stays_empty():
    assert UNWATCHED.under("encoder") is UNWATCHED
    UNWATCHED.keep("logits", X)
    assert UNWATCHED.values == {}
    assert not UNWATCHED.wants("logits")


def test_what_is_edited_goes_on_changed_and_is_kept_as_changed():
    trace = Trace("a.*", edits={"a.b": lambda value: value + 1, "*": lambda value: value * 2})
    torch.testing.assert_close(trace.under("a").keep("b", X), 4 * X)
    torch.testing.assert_close(trace.under("c").keep("b", X), 2 * X)
    assert list(trace.values) == ["a.b"]
    torch.testing.assert_close(trace.values["a.b"], 4 * X)


def test_what_is_edited_is_wanted():
    """Else the fused twin would run, which has no weights to edit."""
    assert Trace(edits={"*.weights": torch.zeros_like}).under("a").wants("weights")


def test_every_part_of_the_drawing_has_a_name():
    """Vaswani et al. (2017), Figures 1 and 2: each box and each arrow can be asked for."""
    settings = {"d_model": 8, "d_ff": 12, "heads": 2, "encoder_layers": 1, "decoder_layers": 1}
    model = build_model(parse_model_config(settings), 9, 9).eval()
    trace = Trace("*")
    model(torch.tensor([[4, 3]]), torch.tensor([[2, 5, 6]]), trace)
    attention = ["query", "key", "value", "scores", "masked_scores", "weights", "heads"]
    attention += ["concatenation", "output"]
    around = ["residual", "norm"]
    expected = ["logits", "probabilities"]
    for side in ("encoder", "decoder"):
        expected += [f"{side}.{name}" for name in ("lookup", "embedding", "positions", "input")]
        expected += [f"{side}.output"]
        block = f"{side}.layers.0"
        expected += [f"{block}.output"]
        expected += [f"{block}.self_attention.{name}" for name in attention + around]
        fed = ["preactivation", "hidden", "output"]
        expected += [f"{block}.feed_forward.{name}" for name in fed + around]
    expected += [f"decoder.layers.0.cross_attention.{name}" for name in attention + around]
    assert sorted(trace.values) == sorted(expected)
    assert trace.values["decoder.layers.0.self_attention.scores"].shape == (1, 2, 3, 3)
    assert trace.values["encoder.layers.0.feed_forward.hidden"].shape == (1, 2, 12)
