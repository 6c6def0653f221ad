"""Law: SwitchOut = the page. As many words are switched, and learned from, as the equations say."""

import pytest
import torch
from tiny_models import VOCABULARY, tiny_model

from pellucid.core.special import PAD_ID, SPECIAL_COUNT
from pellucid.equations import transformer
from pellucid.equations.losses import smoothed_cross_entropy
from pellucid.equations.regularization import r_drop_loss, switch_probabilities, switch_tokens
from pellucid.model.clear import clear_transformer
from pellucid.model.dropout import DropoutSource, switch_words
from pellucid.text.batching import collate_pairs
from pellucid.training.config import TrainingConfig
from pellucid.training.objective import SwitchOut, build_objective

DRAWS = 20_000


@pytest.mark.parametrize("tau", [0.3, 1.0, 50.0])
def test_counts_positions_and_words_are_drawn_as_the_equation_says(tau: float):
    """Six standard deviations of 20,000 draws; special symbols and padding are never switched."""
    row = [3, 5, 9, 1, 7, 6, 2, PAD_ID]
    ids = torch.tensor([row]).expand(DRAWS, -1)
    switched = switch_words(ids, tau, 12, DropoutSource())
    changed = switched != ids
    assert not changed[:, [0, 3, 6, 7]].any()
    assert bool((switched[changed] >= SPECIAL_COUNT).all())
    assert bool((switched < 12).all())

    def near(found: torch.Tensor, chances: torch.Tensor, count: int) -> bool:
        return bool(((found / count - chances).abs() <= 6 * (chances / count).sqrt() + 1e-9).all())

    expected = switch_probabilities(4, tau)
    counts = changed.sum(dim=1)
    assert near(counts.bincount(minlength=5), expected, DRAWS)
    one = changed[counts == 1][:, [1, 2, 4, 5]]
    assert near(one.sum(dim=0), torch.full((4,), 0.25), len(one))
    words = switched[changed[:, 1], 1]
    others = torch.tensor([each != 5 for each in range(SPECIAL_COUNT, 12)]).double() / 7
    assert near((words - SPECIAL_COUNT).bincount(minlength=8), others, len(words))


@pytest.mark.parametrize("lengths", [(0, 1), (1, 0)])
def test_a_sentence_without_words_and_a_vocabulary_of_one_stay(lengths: tuple[int, int]):
    ids = torch.tensor([[4] * length + [3] + [PAD_ID] * (1 - length) for length in lengths])
    assert torch.equal(switch_words(ids, 1e6, SPECIAL_COUNT + 1, DropoutSource()), ids)
    drawn = torch.stack([switch_words(ids, 1e6, 9, source) for source in [DropoutSource()] * 30])
    assert bool((drawn != ids).any(dim=0).eq(ids >= SPECIAL_COUNT).all())


@pytest.mark.parametrize("alpha", [0.0, 5.0])
@pytest.mark.parametrize("sides", ["both", "source", "target"])
def test_an_update_follows_the_loss_of_switched_inputs_and_labels_that_stay(
    sides: str, alpha: float
):
    """Values and gradients in training mode; with R-Drop each pass has words of its own."""
    model = tiny_model("paper", dropout=0.25).train()
    rows = ([[5, 6, 7, 8], [9], [4, 10]], [[7, 4], [4, 5, 6], [11]])
    batch, views = collate_pairs(*rows), 2 if alpha else 1
    config = TrainingConfig(max_steps=1, switch_out=3.0, switch_out_sides=sides, r_drop=alpha)
    model.dropout_source.seed(3)
    sums = build_objective(config)(model, batch)

    model.dropout_source.seed(3)
    read = []
    for side, ids in (("source", batch.source), ("target", batch.target_input)):
        ids = ids.repeat(views, 1)
        wanted = sides in ("both", side)
        switched = switch_words(ids, 3.0, VOCABULARY, model.dropout_source) if wanted else ids
        assert bool((switched != ids).any()) == wanted
        steps = (switched - ids) % (VOCABULARY - SPECIAL_COUNT)
        again = switch_tokens(
            ids, switched != ids, steps, SPECIAL_COUNT, VOCABULARY - SPECIAL_COUNT
        )
        assert torch.equal(again, switched)
        read.append(switched)
    is_real = (batch.labels != PAD_ID).repeat(views, 1)
    logits = transformer.logits(clear_transformer(model), *read)[is_real]
    labels = batch.labels[batch.labels != PAD_ID]
    if alpha:
        expected = r_drop_loss(*logits.chunk(2), labels, 0.1, alpha)
    else:
        expected = smoothed_cross_entropy(logits, labels, 0.1)

    torch.testing.assert_close(sums.loss, expected, rtol=1e-12, atol=0)
    ours = torch.autograd.grad(sums.loss, list(model.parameters()))
    theirs = torch.autograd.grad(expected, list(model.parameters()))
    for (name, _), mine, referee in zip(model.named_parameters(), ours, theirs, strict=True):
        torch.testing.assert_close(mine, referee, rtol=1e-10, atol=1e-12, msg=name)


@pytest.mark.parametrize("more", [{}, {"r_drop": 2.0}])
def test_in_evaluation_nothing_is_switched_and_each_side_has_its_own_words(
    more: dict[str, float],
):
    model = tiny_model("paper", dropout=0.0)
    batch = collate_pairs([[5, 6, 7]], [[4, 5]])
    switching = build_objective(TrainingConfig(max_steps=1, switch_out=9.0, **more))
    plain = build_objective(TrainingConfig(max_steps=1, **more))
    assert torch.equal(switching(model.eval(), batch).loss, plain(model, batch).loss)
    assert not torch.equal(switching(model.train(), batch).loss, plain(model, batch).loss)
    # ids of a smaller target vocabulary reach no row that it lacks
    model.target_vocabulary_size = 6
    for _ in range(20):
        drawn = SwitchOut(9.0)(model, batch)
        assert int(drawn.target_input.max()) < 6
        assert torch.equal(drawn.labels, batch.labels)
