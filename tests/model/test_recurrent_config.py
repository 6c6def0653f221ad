"""Kinds of models: each knows its settings, refuses those of others, and is read back whole."""

import pytest

from pellucid.core.errors import ConfigError
from pellucid.model.build import build_model
from pellucid.model.config import RnnConfig, parse_model_config
from pellucid.training.presets import read_config


def problem_of(**settings: object) -> str:
    with pytest.raises(ConfigError) as caught:
        parse_model_config(settings, origin="model")
    return str(caught.value)


def test_settings_of_another_kind_are_refused_all_at_once_with_the_reason():
    assert problem_of(kind="rnn", attention="dot", input_feeding=True, heads=8, d_model=2) == (
        "model: heads is for model.kind=transformer or encoder or decoder, not for rnn: no other"
        " kind is made of its blocks; attention and input_feeding are for model.kind=rnn-attention,"
        " not for rnn: the decoder of a plain rnn has nothing to look back at, and that of a"
        " Transformer looks by scaled dot products"
    )
    assert problem_of(kind="rnn-attention", reverse_source=True, feed_summary=True) == (
        "model: feed_summary and reverse_source are for model.kind=rnn, not for rnn-attention: no"
        " other kind has to put a whole sentence into one vector"
    )
    assert problem_of(cell="gru", heads=7) == (
        "model: cell is for model.kind=rnn or rnn-attention, not for transformer: no other kind"
        " has recurrent cells; d_model must be a multiple of heads, got d_model=512 and heads=7;"
        " the nearest that fits is 511"
    )
    assert problem_of(kind="rnn-attention", norm="pre", encoder_layers=1).startswith(
        "model: norm is for model.kind=transformer or encoder or decoder, not for rnn-attention:"
        " no other kind is made of its blocks; encoder_layers must equal"
    )


def test_a_decoder_needs_as_many_layers_as_begin_beside_it_and_directions_halves():
    assert problem_of(kind="rnn-attention", d_model=7, encoder_layers=1, decoder_layers=2) == (
        "model: encoder_layers must equal decoder_layers for model.kind=rnn-attention, where each"
        " decoder layer begins in the last state of the encoder layer beside it, got 1 and 2;"
        " d_model must be even for model.kind=rnn-attention, half for each direction of the"
        " encoder, got 7"
    )
    assert RnnConfig(d_model=7).d_model == 7


@pytest.mark.parametrize(
    ("settings", "foreign"),
    [
        ({}, {"cell", "attention", "input_feeding", "reverse_source", "feed_summary"}),
        ({"kind": "rnn"}, {"heads", "d_ff", "positions", "attention", "input_feeding"}),
        ({"kind": "rnn-attention", "cell": "gru"}, {"heads", "d_ff", "norm", "feed_summary"}),
    ],
)
def test_what_is_written_down_is_what_the_kind_knows_and_can_be_read_back(
    settings: dict[str, object], foreign: set[str]
):
    config = parse_model_config(settings)
    table = config.to_table()
    assert table.keys().isdisjoint(foreign)
    assert parse_model_config(table).to_table() == table
    assert parse_model_config(table) == config


def test_a_shared_embedding_needs_one_vocabulary_for_every_kind():
    with pytest.raises(ConfigError, match="got 7 source and 9 target tokens"):
        build_model(RnnConfig(d_model=4), 7, 9)


def test_another_kind_takes_from_a_preset_what_it_knows():
    model = read_config("demo", ["model.kind=rnn-attention", "model.cell=gru"]).model
    assert (model.kind, model.cell, model.d_model, model.encoder_layers) == (
        "rnn-attention",
        "gru",
        128,
        2,
    )
    assert read_config("demo", ["model.kind=transformer"]) == read_config("demo")


def test_settings_named_beside_another_kind_are_still_refused():
    with pytest.raises(ConfigError, match=r"heads is for model\.kind=transformer or"):
        read_config("demo", ["model.heads=4", "model.kind=rnn"])
    with pytest.raises(ConfigError, match=r"model\.kind: input should be 'transformer', 'rnn',"):
        read_config("demo", ["model.kind=3"])


@pytest.mark.parametrize("kind", ["rnn", "rnn-attention"])
def test_the_preset_named_after_a_kind_is_of_that_kind(kind: str):
    assert read_config(kind).model.kind == kind


@pytest.mark.parametrize(
    ("settings", "summary"),
    [
        (
            {},
            "6 encoder and 6 decoder layers, width 512, feed-forward 2048, 8 heads, post-norm,"
            " sinusoidal positions",
        ),
        (
            {"kind": "rnn"},
            "6 encoder and 6 decoder layers of lstm cells, width 512, no attention",
        ),
        (
            {"kind": "rnn-attention", "cell": "gru", "input_feeding": False},
            "6 encoder and 6 decoder layers of gru cells, width 512, bidirectional encoder,"
            " additive attention, without input feeding",
        ),
    ],
)
def test_a_model_sums_itself_up(settings: dict[str, object], summary: str):
    assert parse_model_config(settings).summary() == summary
