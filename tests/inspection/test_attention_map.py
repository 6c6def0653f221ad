"""Heat maps of attention, with the words beside them, and of ablations."""

import builtins
import dataclasses
import itertools
import math
import re
from pathlib import Path

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from tiny_models import tiny_bundle

from pellucid.core.errors import ConfigError, MissingExtraError, WriteError
from pellucid.core.installation import install_command
from pellucid.inspection.ablation import Ablation, AblationStudy, ablate
from pellucid.inspection.capture import Capture, inspect
from pellucid.inspection.figures import attention
from pellucid.inspection.figures.attention import _tables, draw_ablation, draw_attention

SOURCE, TARGET = "a b c", "d e"


def captured(*only: str, variant: str = "paper") -> Capture:
    return inspect(tiny_bundle(variant), SOURCE, TARGET, only=only)


def texts(picture: Path) -> list[str]:
    """What is written in an SVG; matplotlib leaves each text in a comment beside its glyphs."""
    return re.findall(r"<!-- (.*?) -->", picture.read_text("utf-8"))


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_a_picture_is_drawn_in_the_format_of_its_suffix(suffix: str, tmp_path: Path):
    path = tmp_path / f"a b 🌾.{suffix}"
    draw_attention(captured("decoder.layers.1.cross_attention.heads.*.weights"), path)
    magic = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}[suffix]
    assert path.read_bytes().startswith(magic)


def test_every_attention_has_a_row_and_every_head_a_map(tmp_path: Path):
    draw_attention(captured("*.weights"), tmp_path / "all.svg")
    written = texts(tmp_path / "all.svg")
    for name in ("encoder 0, self-attention", "decoder 1, cross-attention"):
        assert written.count(name) == 1
    assert written.count("head 1") == 6
    assert written.count("mean of the heads") == 6
    assert "Attention weights: softmax(Q Kᵀ / √dₖ), EQ-51, EQ-52, EQ-53, EQ-60, EQ-73" in written


def test_the_words_read_stand_below_and_those_said_on_the_left(tmp_path: Path):
    capture = captured("decoder.layers.0.cross_attention.heads.0.weights")
    draw_attention(capture, tmp_path / "one.svg")
    written = texts(tmp_path / "one.svg")
    assert [word for word in written if word in ("a", "b", "c")] == ["a", "b", "c"]
    assert written.index("c") < written.index("d") < written.index("e")
    assert written.count("&lt;/s&gt;") + written.count("</s>") == 2
    assert "mean of the heads" not in written


@pytest.mark.parametrize(
    ("variant", "formula"),
    [
        ("additive", "softmax(v · tanh(h W + H U)), EQ-38, EQ-135, EQ-139"),
        ("dot, gru", "softmax(h Hᵀ), EQ-38, EQ-135, EQ-136, EQ-139"),
        ("general", "softmax(h W Hᵀ), EQ-38, EQ-135, EQ-136, EQ-139"),
    ],
)
def test_a_recurrent_model_is_drawn_under_its_own_equation(
    variant: str, formula: str, tmp_path: Path
):
    draw_attention(captured("*.heads.*.weights", variant=variant), tmp_path / "x.svg")
    assert f"Attention weights: {formula}" in texts(tmp_path / "x.svg")


@pytest.mark.parametrize("token", ["$", "$x_$", "\\frac", "字", "🌾", "a\nb", "", "<b>"])
def test_any_token_can_stand_beside_the_picture(token: str, tmp_path: Path):
    """Neither formulas of matplotlib's own nor missing glyphs stop it, or warn."""
    capture = captured("decoder.layers.0.cross_attention.heads.0.weights")
    sentence = dataclasses.replace(
        capture.sentence, source_tokens=(token,) * 4, target_tokens=(token,) * 3
    )
    draw_attention(dataclasses.replace(capture, sentence=sentence), tmp_path / "x.png")
    assert (tmp_path / "x.png").stat().st_size > 1000


def test_a_capture_without_weights_and_one_with_too_many_are_told(tmp_path: Path):
    with pytest.raises(ConfigError, match="must show from 1 to 150 heat maps, got 0"):
        draw_attention(captured("logits"), tmp_path / "x.png")
    many = inspect(tiny_bundle(encoder_layers=51), SOURCE, TARGET, only=("encoder.*.weights",))
    with pytest.raises(ConfigError, match="must show from 1 to 150 heat maps, got 153"):
        draw_attention(many, tmp_path / "x.png")


def test_a_plain_rnn_has_nothing_to_draw(tmp_path: Path):
    with pytest.raises(ConfigError) as caught:
        draw_attention(captured(variant="lstm"), tmp_path / "x.png")
    assert str(caught.value) == ("a picture of attention needs attention, and a plain rnn has none")


def test_a_picture_that_cannot_be_written_is_told(tmp_path: Path):
    capture = captured("decoder.layers.0.cross_attention.heads.0.weights")
    with pytest.raises(WriteError, match=r"cannot write .*x\.png: No such file or directory"):
        draw_attention(capture, tmp_path / "none" / "x.png")


def test_without_matplotlib_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    real = builtins.__import__

    def without(name: str, *rest: object) -> object:
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *rest)

    capture = captured("decoder.layers.0.cross_attention.heads.0.weights")
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtraError) as caught:
        draw_attention(capture, tmp_path / "x.png")
    assert str(caught.value) == "drawing a picture needs matplotlib, which is not installed"
    assert caught.value.hint == install_command("plot")


def test_a_study_is_drawn_with_every_change_in_its_place(tmp_path: Path):
    study = ablate(tiny_bundle(), ["a b c"], ["c b a d"])
    parts = tuple(
        dataclasses.replace(part, bleu=study.bleu - number)
        for number, part in enumerate(study.parts)
    )
    draw_ablation(dataclasses.replace(study, parts=parts), tmp_path / "x.svg")
    written = texts(tmp_path / "x.svg")
    for title in ("encoder, self-attention", "decoder, cross-attention", "whole layers"):
        assert title in written
    assert [f"-{number}.0" in written for number in range(1, 16)] == [True] * 15
    assert "+0.0" in written or "-0.0" in written


def test_an_ssru_and_a_study_of_some_parts_are_drawn_under_their_own_names(tmp_path: Path):
    names = [
        "decoder.layers.0.ssru",
        "decoder.layers.1.cross_attention.heads.1",
        "encoder.layers.0",
        "decoder.layers.1",
    ]
    parts = tuple(Ablation(name, 10.0 - number, 1.0) for number, name in enumerate(names, start=1))
    study = AblationStudy(bleu=10.0, loss=1.0, signature="", sentences=1, parts=parts)
    tables = {
        title: (table.tolist(), columns) for title, (table, columns) in _tables(study).items()
    }
    nan = pytest.approx(math.nan, nan_ok=True)
    assert tables == {
        "decoder, ssru": ([[-1.0]], ["all"]),
        "decoder, cross-attention": ([[nan], [-2.0]], ["head 1"]),
        "whole layers": ([[-3.0, nan], [nan, -4.0]], ["encoder", "decoder"]),
    }
    draw_ablation(study, tmp_path / "x.svg")
    assert "decoder, ssru" in texts(tmp_path / "x.svg")


def test_a_study_of_a_recurrent_model_and_an_empty_one(tmp_path: Path):
    draw_ablation(ablate(tiny_bundle("additive"), ["a"], ["b"]), tmp_path / "x.png")
    assert (tmp_path / "x.png").stat().st_size > 1000
    empty = AblationStudy(bleu=1.0, loss=1.0, signature="", sentences=1, parts=())
    with pytest.raises(ConfigError, match="needs a part that was off, got none"):
        draw_ablation(empty, tmp_path / "y.png")


def test_a_picture_of_too_many_pixels_is_refused_and_drawn_in_lines(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setattr("pellucid.inspection.figures.attention._MOST_PIXELS", 100_000)
    with pytest.raises(ConfigError, match="million pixels"):
        draw_attention(captured("*weights"), tmp_path / "a.png")
    draw_attention(captured("*weights"), tmp_path / "a.svg")


@pytest.mark.parametrize(
    ("only", "product"),
    [
        ("decoder.layers.0.self_attention.*", "softmax(Q Kᵀ / √dₖ − m |i − j|)"),
        ("decoder.layers.0.cross_attention.*", "softmax(Q Kᵀ / √dₖ)"),
        ("decoder.layers.0.*", "softmax(scores)"),
    ],
)
def test_the_title_has_the_formula_of_what_is_drawn(only: str, product: str, tmp_path: Path):
    path = tmp_path / "a.svg"
    draw_attention(captured(only, variant="alibi, pre-norm"), path)
    assert any(product in text for text in texts(path)), texts(path)[:5]


@pytest.mark.parametrize("only", ["*.weights", "decoder.layers.1.cross_attention.heads.0.weights"])
def test_no_name_is_cut_off_or_lies_on_another_where_words_are_few(
    only: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    """An empty text has its stop alone: one column, narrower than the title above it."""
    drawn = []
    monkeypatch.setattr(attention, "save_picture", lambda figure, _path: drawn.append(figure))
    draw_attention(inspect(tiny_bundle("rotary"), "", "", only=(only,)), tmp_path / "x.png")
    [figure] = drawn
    FigureCanvasAgg(figure).draw()
    titles = [axis.title for axis in figure.axes if axis.title.get_text()]
    names = [axis.yaxis.label for axis in figure.axes if axis.yaxis.label.get_text()]
    boxes = [each.get_window_extent() for each in (*figure.texts, *titles, *names)]
    assert len(boxes) >= 4
    for box in boxes:
        assert figure.bbox.containsx(box.x0)
        assert figure.bbox.containsx(box.x1)
        assert figure.bbox.containsy(box.y0)
        assert figure.bbox.containsy(box.y1)
    for left, right in itertools.combinations(boxes, 2):
        assert not left.overlaps(right)
