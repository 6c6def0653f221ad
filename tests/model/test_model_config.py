"""The config of a model: the paper's by default, impossible combinations refused at birth."""

import pytest

from pellucid.core.errors import ConfigError
from pellucid.model.build import build_model
from pellucid.model.config import TransformerConfig, parse_model_config


def problem_of(**settings: object) -> str:
    with pytest.raises(ConfigError) as caught:
        parse_model_config(settings, origin="model")
    return str(caught.value)


def test_the_defaults_are_the_paper_s_base_model():
    """Vaswani et al. (2017), Table 3, row "base"."""
    config = TransformerConfig()
    assert (config.d_model, config.d_ff, config.heads) == (512, 2048, 8)
    assert (config.encoder_layers, config.decoder_layers) == (6, 6)
    assert (config.key_size, config.value_size) == (64, 64)
    assert (config.dropout, config.norm, config.positions) == (0.1, "post", "sinusoidal")
    assert config.share_embeddings
    assert config.tie_output
    assert config.scale_embeddings
    assert not config.output_bias


@pytest.mark.parametrize(
    ("d_model", "heads", "nearest"), [(10, 3, 9), (11, 3, 12), (1, 2, 2), (512, 7, 511)]
)
def test_a_width_that_heads_do_not_divide_is_told_with_the_nearest_that_fits(
    d_model: int, heads: int, nearest: int
):
    assert problem_of(d_model=d_model, heads=heads) == (
        f"model: d_model must be a multiple of heads, got d_model={d_model} and heads={heads};"
        f" the nearest that fits is {nearest}"
    )


def test_heads_of_chosen_widths_need_not_divide_anything():
    config = TransformerConfig(d_model=10, heads=3, d_k=4, d_v=5)
    assert (config.key_size, config.value_size) == (4, 5)


@pytest.mark.parametrize("chosen", [{"d_k": 4}, {"d_v": 4}])
def test_one_chosen_width_alone_leaves_the_other_to_be_divided(chosen: dict[str, int]):
    assert "d_model must be a multiple" in problem_of(d_model=10, heads=3, **chosen)


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"heads": 0}, "heads: input should be greater than or equal to 1, got 0"),
        ({"d_model": 0}, "d_model: input should be greater than or equal to 1, got 0"),
        ({"decoder_layers": 0}, "decoder_layers: input should be greater than or equal to 1"),
        ({"encoder_layers": -1}, "encoder_layers: input should be greater than or equal to 0"),
        ({"dropout": 1.0}, "dropout: input should be less than 1, got 1.0"),
        ({"dropout": float("nan")}, "dropout: input should be"),
        ({"norm": "Post"}, "norm: input should be 'post' or 'pre', got 'Post'"),
        (
            {"kind": "lstm"},
            "kind: input should be 'transformer', 'rnn', 'rnn-attention', 'encoder', 'decoder' or"
            " 'skipgram', got 'lstm'",
        ),
        ({"head": 4}, "head is not a setting; did you mean heads?"),
    ],
)
def test_a_problem_is_told_with_its_name(settings: dict[str, object], problem: str):
    assert problem in problem_of(**settings)


def test_a_shared_embedding_needs_one_vocabulary():
    with pytest.raises(ConfigError) as caught:
        build_model(TransformerConfig(d_model=4, heads=1, d_ff=4), 7, 9)
    assert str(caught.value) == (
        "model.share_embeddings needs one vocabulary for both sides, got 7 source and 9 target"
        " tokens"
    )
    assert caught.value.hint == "set tokenizer.shared=true or model.share_embeddings=false"
