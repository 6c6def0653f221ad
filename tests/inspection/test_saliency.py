"""Which source words a prediction hangs on: axioms, and a model that reads one word only."""

import contextlib

import pytest
import torch
from tiny_models import tiny_bundle
from torch.utils._python_dispatch import TorchDispatchMode

from pellucid.bundle import Bundle
from pellucid.core.errors import CancelledError, ConfigError
from pellucid.inspection.report.views import _saliency_steps
from pellucid.inspection.saliency import _quadrature, is_steep, saliency, saliency_of
from pellucid.inspection.sentence import open_model, read_sentence
from pellucid.model.build import build_model
from pellucid.model.config import TransformerConfig
from pellucid.model.trace import Trace
from pellucid.text.tokenizers.vocabulary import Vocabulary
from pellucid.text.tokenizers.word_tokenizers import WordTokenizer

SOURCE, TARGET = "a b c d", "c a b"


@pytest.mark.parametrize("variant", ["paper", "pre-norm", "swish", "additive", "lstm"])
def test_integrated_gradients_sum_to_what_the_source_changes(variant: str):
    """Completeness (Sundararajan et al. 2017, proposition 1), with 300 points."""
    result = saliency(tiny_bundle(variant), SOURCE, TARGET, steps=300)
    assert result.scores.shape == (4, 5)
    torch.testing.assert_close(result.scores.sum(-1), result.gains, rtol=0, atol=5e-3)
    assert result.gains.abs().max() > 0.02


def test_the_gains_are_those_of_two_forward_passes():
    bundle = tiny_bundle()
    result = saliency(bundle, SOURCE, TARGET)
    ids = torch.tensor([[4, 5, 6, 7, 3]]), torch.tensor([[2, 6, 4, 5]])
    without = Trace(edits={"encoder.embedding": torch.zeros_like})
    said = [6, 4, 5, 3]
    expected = [
        logits[0].log_softmax(-1)[range(4), said]
        for logits in (bundle.model(*ids), bundle.model(*ids, without))
    ]
    torch.testing.assert_close(result.gains, expected[0] - expected[1])


def test_gradient_times_input_is_the_slope_along_each_word():
    """f((1 + h) xⱼ) - f((1 - h) xⱼ) over 2h, for each word j, by finite differences."""
    bundle = tiny_bundle("pre-norm")
    result = saliency(bundle, SOURCE, TARGET, method="gradient_x_input")
    ids = torch.tensor([[4, 5, 6, 7, 3]]), torch.tensor([[2, 6, 4, 5]])
    h, said = 1e-5, [6, 4, 5, 3]
    for word in range(5):
        ends = []
        for factor in (1 + h, 1 - h):
            scale = torch.ones(5, 1, dtype=torch.float64)
            scale[word] = factor
            trace = Trace(edits={"encoder.embedding": lambda value, scale=scale: value * scale})
            ends.append(bundle.model(*ids, trace)[0].log_softmax(-1)[range(4), said])
        slope = (ends[0] - ends[1]) / (2 * h)
        torch.testing.assert_close(result.scores[:, word], slope, rtol=1e-5, atol=1e-7)


class Watcher:
    """Ends the work at its ``last`` call."""

    needs_steps = False

    def __init__(self, last: int) -> None:
        self.last = last
        self.calls = 0

    def before_step(self, length: int) -> None:
        self.calls += 1
        if self.calls == self.last:
            raise CancelledError("nobody waits any more")

    def saw_step(self, step: object) -> None: ...


def test_each_pass_forward_and_backward_can_be_ended():
    """9 tokens: 113 of the 300 points go into a pass, so 3 forward, each with 4 rows backward;
    before them one pass for the embeddings, after them one for the gains."""
    count = 1 + 3 * (1 + 4) + 1
    for last in range(1, count + 2):
        watcher = Watcher(last)
        opened = open_model(tiny_bundle(), watcher)
        sentence = read_sentence(opened, SOURCE, TARGET)
        ending = pytest.raises(CancelledError) if last <= count else contextlib.nullcontext()
        with ending:
            saliency_of(opened, sentence, "integrated_gradients", 300)
        assert watcher.calls == min(last, count)


def test_words_that_the_decoder_cannot_see_have_no_share():
    """Without a single path from the source all shares are zero."""
    bundle = tiny_bundle()
    for layer in bundle.model.decoder.layers:
        layer.cross_attention.w_o.zero_()
    result = saliency(bundle, SOURCE, TARGET)
    assert (result.scores == 0).all()
    assert (result.gains == 0).all()


def test_no_gradient_is_left_on_the_model():
    bundle = tiny_bundle()
    bundle.model.requires_grad_(True)
    saliency(bundle, SOURCE, TARGET)
    assert all(parameter.grad is None for parameter in bundle.model.parameters())


def test_where_no_position_is_added_the_points_are_where_the_prediction_changes(
    monkeypatch: pytest.MonkeyPatch,
):
    """Spread evenly, 64 points miss the whole change: their sum is off by as much as the gain."""

    def error() -> float:
        result = saliency(tiny_bundle("rotary"), SOURCE, TARGET, steps=64)
        return float((result.scores.sum(-1) - result.gains).abs().max())

    steep = error()
    monkeypatch.setattr("pellucid.inspection.saliency.is_steep", lambda _config: False)
    assert steep < 0.1
    assert error() > 2 * steep


@pytest.mark.parametrize(("variant", "steep"), [("paper", False), ("alibi, pre-norm", True)])
def test_the_weights_of_the_points_sum_to_one(variant: str, *, steep: bool):
    assert is_steep(tiny_bundle(variant).model.config) == steep
    places, weights = _quadrature(200, is_steep=steep)
    assert float(weights.sum()) == pytest.approx(1.0)
    assert float((weights * places).sum()) == pytest.approx(0.5)
    assert 0 < places.min() < places.max() < 1


class WideProducts(TorchDispatchMode):
    """Counts the matrix products that have an axis of the given size."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size, self.count = size, 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        is_product = function.overloadpacket in (torch.ops.aten.mm, torch.ops.aten.addmm)
        tensors = [each for each in args if isinstance(each, torch.Tensor)]
        self.count += is_product and any(self.size in each.shape for each in tensors)
        return function(*args, **(kwargs or {}))


def test_the_vocabulary_is_passed_once_and_not_once_a_row():
    """Eight rows in one pass: the last linear map forward, back once for all rows, and forward for
    the two ends of the path."""
    words = WordTokenizer("word", Vocabulary.of([f"w{n}" for n in range(4000)]))
    config = TransformerConfig(d_model=8, d_ff=8, heads=2, encoder_layers=1, decoder_layers=1)
    size = words.vocabulary_size
    model = build_model(config, size, size, seed=0).eval().requires_grad_(False)
    opened = open_model(Bundle(model, words, words, {}, {}))
    sentence = read_sentence(opened, "w1 w2 w3", " ".join(f"w{n}" for n in range(7)))
    assert len(sentence.target_ids) == 8
    with WideProducts(size) as products:
        saliency_of(opened, sentence, "integrated_gradients", 4)
    assert products.count == 3


@pytest.mark.parametrize(("variant", "most"), [("paper", 16), ("rotary", 64)])
def test_a_report_of_a_long_sentence_has_no_more_work_than_one_of_a_short(variant: str, most: int):
    """Tokens that backward passes read: points · rows · (source + target), stops included."""
    opened = open_model(tiny_bundle(variant))

    def points_and_tokens(words: int) -> tuple[int, int]:
        text = " ".join("abcdefghi"[n % 9] for n in range(words))
        points = _saliency_steps(opened, read_sentence(opened, text, text))
        return points, points * (words + 1) * 2 * (words + 1)

    assert points_and_tokens(10)[0] == most
    for words in (40, 80, 120, 200):
        assert points_and_tokens(words)[1] <= 200_000
    assert points_and_tokens(400)[0] == 1


def test_an_integral_has_a_point():
    with pytest.raises(ConfigError, match="steps must be at least 1, got 0"):
        saliency(tiny_bundle(), SOURCE, TARGET, steps=0)
