"""N1, N5: no mask and no batch, however odd, makes a number that is none."""

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tiny_models import VOCABULARY, tiny_model

from pellucid.core.special import PAD_ID, SPECIAL_COUNT
from pellucid.model.build import build_model
from pellucid.model.config import parse_model_config
from pellucid.model.seq2seq import Seq2Seq
from pellucid.text.batching import Batch, collate_pairs
from pellucid.training.config import TrainingConfig
from pellucid.training.objective import build_objective
from pellucid.training.precision import Precision, autocast
from pellucid.training.step import build_optimizer, find_gradient, update

CONFIG = TrainingConfig(max_steps=1, clip_norm=1.0)
KINDS = ("paper", "pre-norm", "rotary", "relative", "alibi, pre-norm", "additive")
ID = st.integers(SPECIAL_COUNT, VOCABULARY - 1)
SENTENCE = st.lists(ID, max_size=5)
PAIRS = st.lists(st.tuples(SENTENCE, SENTENCE), min_size=1, max_size=4)


def gradients(model: Seq2Seq) -> list[torch.Tensor]:
    return [each.grad for each in model.parameters() if each.grad is not None]


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("variant", KINDS)
@settings(max_examples=5, deadline=None)
@example(pairs=[([], []), ([4], [5, 6])], hidden=1)
@given(pairs=PAIRS, hidden=st.integers(0, 3))
def test_empty_sentences_and_hidden_rows_leave_only_numbers(
    variant: str, precision: Precision, pairs: list[tuple[list[int], list[int]]], hidden: int
):
    """Sentences of no words among others, and one source of padding alone."""
    sources, targets = zip(*pairs, strict=True)
    batch = collate_pairs(sources, targets)
    batch.source[hidden % len(pairs)] = PAD_ID
    model = tiny_model(variant, dropout=0.1).float()
    optimizer = build_optimizer(model, CONFIG)
    report = find_gradient(model, optimizer, [batch], build_objective(CONFIG), CONFIG, precision)
    assert report.is_finite
    assert all(each.isfinite().all() for each in gradients(model))
    model.eval()
    with torch.no_grad(), autocast(precision, "cpu"):
        assert model(batch.source, batch.target_input).isfinite().all()


def small_model(**changed: object) -> Seq2Seq:
    sizes = {"d_model": 8, "d_ff": 8, "heads": 2, "encoder_layers": 1, "decoder_layers": 1}
    return build_model(parse_model_config({**sizes, "dropout": 0.0, **changed}), 5, 5)


@pytest.mark.parametrize(
    ("sources", "targets"),
    [([[4]], [[4]]), ([[]], [[]]), ([[4] * 39], [[4] * 39])],
    ids=["one word", "no word", "all positions there are"],
)
@pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
def test_one_pair_of_one_word_is_learned_from(
    positions: str, sources: list[list[int]], targets: list[list[int]]
):
    """A vocabulary of one word and the four special tokens; 39 words and a stop are 40."""
    limit = {"max_positions": 40} if positions == "learned" else {}
    model = small_model(positions=positions, **limit)
    batch = collate_pairs(sources, targets)
    report = update(
        model, build_optimizer(model, CONFIG), [batch], build_objective(CONFIG), CONFIG, 0.1
    )
    assert report.applied
    assert all(each.isfinite().all() for each in model.parameters())


@pytest.mark.parametrize("second", [{}, {"r_drop": 1.0}, {"simcut": 1.0}], ids=str)
def test_a_batch_without_a_label_moves_nothing_and_costs_nothing(second: dict[str, float]):
    full = collate_pairs([[4], [4, 4]], [[4], [4, 4]])
    labels = torch.full_like(full.labels, PAD_ID)
    batch = Batch(full.source, full.target_input, labels, target_token_count=0)
    config = TrainingConfig(max_steps=1, **second)
    model = small_model()
    before = [each.clone() for each in model.parameters()]
    report = update(
        model, build_optimizer(model, config), [batch], build_objective(config), config, 0.1
    )
    assert (report.loss, report.token_count, report.gradient_norm) == (0.0, 0, 0.0)
    for old, new in zip(before, model.parameters(), strict=True):
        torch.testing.assert_close(old, new, rtol=0, atol=0)
