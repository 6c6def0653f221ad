"""Traces: kept is what was asked for, under names that say where it was."""

import torch

from pellucid.model import UNWATCHED, ModelConfig, Trace, build_model

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


def test_every_part_of_the_drawing_has_a_name():
    """Vaswani et al. (2017), Figures 1 and 2: each box and each arrow can be asked for."""
    settings = {"d_model": 8, "d_ff": 12, "heads": 2, "encoder_layers": 1, "decoder_layers": 1}
    model = build_model(ModelConfig.parse(settings), 9, 9).eval()
    trace = Trace("*")
    model(torch.tensor([[4, 3]]), torch.tensor([[2, 5, 6]]), trace)
    attention = ["query", "key", "value", "scores", "weights", "heads", "output"]
    around = ["residual", "norm"]
    expected = ["logits"]
    for side in ("encoder", "decoder"):
        expected += [f"{side}.embedding.{name}" for name in ("tokens", "positions", "sum")]
        expected += [f"{side}.output"]
        block = f"{side}.layers.0"
        expected += [f"{block}.self_attention.{name}" for name in attention + around]
        expected += [f"{block}.feed_forward.{name}" for name in ["hidden", "output", *around]]
    expected += [f"decoder.layers.0.cross_attention.{name}" for name in attention + around]
    assert sorted(trace.values) == sorted(expected)
    assert trace.values["decoder.layers.0.self_attention.scores"].shape == (1, 2, 3, 3)
    assert trace.values["encoder.layers.0.feed_forward.hidden"].shape == (1, 2, 12)
