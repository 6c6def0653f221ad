"""Who looks at whom: the weights of the model, with the words beside them, and their picture."""

import builtins
from pathlib import Path

import pytest
import torch

from pellucid.bundle import Bundle, load_bundle
from pellucid.core.errors import MissingExtraError, WriteError
from pellucid.inspection.attention import AttentionMap, cross_attention
from pellucid.inspection.figures import draw_attention
from pellucid.model import Trace

SOURCE, TARGET = "le chat dort", "the cat sleeps"


@pytest.fixture(scope="module")
def bundle(tiny_run: Path) -> Bundle:
    return load_bundle(tiny_run)


def test_a_map_has_a_row_for_each_token_said_and_a_column_for_each_read(bundle: Bundle):
    attention = cross_attention(bundle, SOURCE, TARGET)
    assert attention.source_tokens == ("le", "chat", "dort", "</s>")
    assert attention.target_tokens == ("the", "cat", "sleeps", "</s>")
    assert attention.weights.shape == (2, 2, 4, 4)
    torch.testing.assert_close(attention.weights.sum(-1), torch.ones(2, 2, 4))


def test_the_weights_are_those_of_the_model_layer_by_layer(bundle: Bundle):
    attention = cross_attention(bundle, SOURCE, TARGET)
    trace = Trace("*.cross_attention.weights")
    source = torch.tensor([[*bundle.source_tokenizer.encode(SOURCE), 3]])
    target = torch.tensor([[2, *bundle.target_tokenizer.encode(TARGET)]])
    with torch.inference_mode():
        bundle.model(source, target, trace)
    for layer in range(2):
        expected = trace.values[f"decoder.layers.{layer}.cross_attention.weights"][0]
        torch.testing.assert_close(attention.weights[layer], expected)
    assert not torch.equal(attention.weights[0], attention.weights[1])


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_a_picture_is_drawn_in_the_format_of_its_suffix(
    suffix: str, tmp_path: Path, bundle: Bundle
):
    path = tmp_path / f"a b 🌾.{suffix}"
    draw_attention(cross_attention(bundle, SOURCE, TARGET), path)
    magic = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}[suffix]
    assert path.read_bytes().startswith(magic)


@pytest.mark.parametrize("token", ["$", "$x_$", "\\frac", "字", "🌾", "a\nb", ""])
def test_any_token_can_stand_beside_the_picture(token: str, tmp_path: Path):
    """Neither formulas of matplotlib's own nor missing glyphs stop it, or warn."""
    attention = AttentionMap(torch.full((1, 1, 2, 2), 0.5), (token, "</s>"), (token, "</s>"))
    draw_attention(attention, tmp_path / "x.png")
    assert (tmp_path / "x.png").stat().st_size > 1000


def test_a_picture_that_cannot_be_written_is_told(tmp_path: Path):
    attention = AttentionMap(torch.ones(1, 1, 1, 1), ("</s>",), ("</s>",))
    with pytest.raises(WriteError, match=r"cannot write .*x\.png: No such file or directory"):
        draw_attention(attention, tmp_path / "none" / "x.png")


def test_without_matplotlib_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    real = builtins.__import__

    def without(name: str, *rest: object) -> object:
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    attention = AttentionMap(torch.ones(1, 1, 1, 1), ("</s>",), ("</s>",))
    with pytest.raises(MissingExtraError) as caught:
        draw_attention(attention, tmp_path / "x.png")
    assert str(caught.value) == "drawing a picture needs matplotlib, which is not installed"
    assert caught.value.hint == "pip install 'pellucid[plot]'"
