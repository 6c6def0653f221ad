"""What a batch costs: plain, read twice, with words hidden, and with a teacher."""

import dataclasses

import numpy as np
import pytest
import torch
from tiny_models import VOCABULARY, tiny_model
from torch import Tensor

from pellucid.core.special import PAD_ID, SPECIAL_COUNT, UNK_ID
from pellucid.equations import transformer
from pellucid.equations.fused_views import LossTerms, fused_linear_loss_of_views
from pellucid.equations.losses import smoothed_cross_entropy
from pellucid.equations.regularization import (
    distillation_loss,
    r_drop_loss,
    simcut_loss,
    top_k_distillation_loss,
)
from pellucid.equations.weights import EmbeddingWeights
from pellucid.model.build import build_any_model
from pellucid.model.clear import clear_transformer
from pellucid.model.config import parse_model_config
from pellucid.model.dropout import DropoutSource, chosen_words, drop_words
from pellucid.model.ensemble import Ensemble
from pellucid.model.seq2seq import SequenceModel
from pellucid.text.batching import Batch, TopTokens, collate_pairs, collate_sources
from pellucid.training.config import TrainingConfig
from pellucid.training.distributed import Share
from pellucid.training.objective import CrossEntropy, Objective, Teacher, Views, build_objective
from pellucid.training.step import build_optimizer, update

PAIRS = [([5, 6], [7]), ([8], [4, 5, 6, 7, 8]), ([9, 10, 11], [12, 4]), ([4, 4], [11, 10, 9])]
BATCH = collate_pairs(*zip(*PAIRS, strict=True))
TOKENS = 11 + len(PAIRS)


def config(**settings: object) -> TrainingConfig:
    return TrainingConfig.parse({"max_steps": 1, **settings})


def real_logits(model: SequenceModel, batch: Batch) -> Tensor:
    """The logits of every real token, teacher-forced."""
    return model(batch.source, batch.target_input)[batch.labels != PAD_ID]


def seeded(model: SequenceModel) -> SequenceModel:
    model.dropout_source.seed(3)
    return model


def learner(**settings: object) -> SequenceModel:
    return tiny_model(**{"dropout": 0.25, **settings}).train()


def gradients(objective: Objective, model: SequenceModel, batch: Batch = BATCH) -> list[Tensor]:
    return list(torch.autograd.grad(objective(model, batch).loss, list(model.parameters())))


def test_by_default_it_is_the_model_s_own_loss_to_the_last_bit_and_draws_nothing_more():
    objective = build_objective(config(label_smoothing=0.2))
    assert objective == CrossEntropy(0.2)
    model = learner()
    ours = objective(seeded(model), BATCH)
    after = model.dropout_source.state()
    own = seeded(model).loss(BATCH.source, BATCH.target_input, BATCH.labels, 0.2)
    assert torch.equal(ours.loss, own.loss)
    assert after == model.dropout_source.state()


def test_r_drop_is_its_equation_over_two_passes_of_one_batch():
    model = learner()
    sums = build_objective(config(r_drop=5.0))(seeded(model), BATCH)
    twice = (each.repeat(2, 1) for each in (BATCH.source, BATCH.target_input))
    is_real = BATCH.labels != PAD_ID
    first, second = (each[is_real] for each in seeded(model)(*twice).chunk(2))
    assert not torch.equal(first, second)
    labels = BATCH.labels[is_real]
    expected = r_drop_loss(first, second, labels, 0.1, 5.0)
    torch.testing.assert_close(sums.loss, expected, rtol=1e-12, atol=0)
    assert sums.token_count == TOKENS
    ours = torch.autograd.grad(sums.loss, list(model.parameters()))
    theirs = torch.autograd.grad(expected, list(model.parameters()))
    for mine, referee in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine, referee, rtol=1e-10, atol=1e-12)


def with_nothing_word(embedding: EmbeddingWeights) -> EmbeddingWeights:
    """The embeddings with one word more, the last, whose vector is zero."""
    nothing = torch.zeros_like(embedding.weight[:1])
    return dataclasses.replace(embedding, weight=torch.cat((embedding.weight, nothing)))


@pytest.mark.parametrize("variant", ["paper", "pre-norm"])
def test_simcut_is_its_equation_over_the_page_whose_cut_words_have_no_vector(variant: str):
    """Each word that the second pass misses is, on the page, one whose embedding is zero."""
    model = tiny_model(variant, dropout=0.25).train()
    sums = build_objective(config(simcut=3.0, simcut_rate=0.4))(seeded(model), BATCH)

    source, target_input = (each.repeat(2, 1) for each in (BATCH.source, BATCH.target_input))
    seeded(model)
    missed = []
    for ids in (source, target_input):
        is_cut = chosen_words(ids, 0.4, model.dropout_source)
        is_cut[: len(PAIRS)] = False
        missed.append(ids.masked_fill(is_cut, VOCABULARY))
    assert all(bool((ids == VOCABULARY).any()) for ids in missed)

    page = clear_transformer(model)
    embeddings = [
        with_nothing_word(each) for each in (page.source_embedding, page.target_embedding)
    ]
    page = dataclasses.replace(page, source_embedding=embeddings[0], target_embedding=embeddings[1])
    is_real = BATCH.labels != PAD_ID
    whole, cut = (each[is_real] for each in transformer.logits(page, *missed).chunk(2))
    expected = simcut_loss(whole, cut, BATCH.labels[is_real], 0.1, 3.0)
    torch.testing.assert_close(sums.loss, expected, rtol=1e-12, atol=0)
    assert sums.token_count == TOKENS
    ours = torch.autograd.grad(sums.loss, list(model.parameters()))
    theirs = torch.autograd.grad(expected, list(model.parameters()))
    for (name, _), mine, referee in zip(model.named_parameters(), ours, theirs, strict=True):
        torch.testing.assert_close(mine, referee, rtol=1e-10, atol=1e-12, msg=name)


ENCIPHERED = collate_sources([[9, 4, 7], [6, 6, 5, 10], [8], [5, 11]])


@pytest.mark.parametrize("variant", ["lstm", "additive"])
def test_recurrent_models_read_enciphered_sources_too(variant: str):
    """A source that is its own cipher gives the passes of R-Drop; another one does not."""
    model = tiny_model(variant, dropout=0.2).train()
    same = dataclasses.replace(BATCH, enciphered=BATCH.source)
    other = dataclasses.replace(BATCH, enciphered=ENCIPHERED)
    objective = build_objective(config(), enciphered=True)
    r_drop = build_objective(config(r_drop=5.0))
    losses = [objective(seeded(model), each).loss for each in (same, other)]
    assert torch.equal(losses[0], r_drop(seeded(model), BATCH).loss)
    assert not torch.allclose(losses[0], losses[1])


def test_a_teacher_reads_plain_sources_alone_and_both_passes_learn_from_it():
    """At no weight of their divergence the loss is the mean of the two passes by themselves."""
    model, teacher = learner(dropout=0.0), tiny_model(seed=7)
    batch = dataclasses.replace(BATCH, enciphered=ENCIPHERED)
    taught = Teacher([teacher], 0.5, 2.0)
    is_real = BATCH.labels.view(-1) != PAD_ID
    labels, rows = BATCH.labels.view(-1)[is_real], taught.rows(BATCH, is_real)
    both = Views(smoothing=0.1, r_drop=0.0, word_dropout=0.0, teacher=taught, cipher=0.0)
    alone = []
    for source in (BATCH.source, ENCIPHERED):
        hidden = model.output_states(source, BATCH.target_input)
        flat = hidden.hidden.flatten(0, 1)[is_real]
        terms = LossTerms(0.1, 0.0, rows)
        loss, _ = fused_linear_loss_of_views(flat[None], hidden.weight, hidden.bias, labels, terms)
        alone.append(loss)
    torch.testing.assert_close(both(model, batch).loss, sum(alone) / 2, rtol=1e-12, atol=0)


@pytest.mark.parametrize("variant", ["paper", "lstm", "additive"])
def test_in_evaluation_simcut_reads_everything_and_costs_what_one_pass_does(variant: str):
    model = tiny_model(variant).eval()
    plain = build_objective(config())(model, BATCH)
    twice = build_objective(config(simcut=3.0))(model, BATCH)
    torch.testing.assert_close(twice.loss, plain.loss, rtol=1e-12, atol=0)


@pytest.mark.parametrize("variant", ["paper", "lstm", "additive"])
def test_the_cut_pass_of_every_kind_differs_even_without_dropout(variant: str):
    model = learner(dropout=0.0) if variant == "paper" else tiny_model(variant, dropout=0.0).train()
    weak, strong = (
        build_objective(config(simcut=alpha, simcut_rate=0.5))(seeded(model), BATCH).loss
        for alpha in (1e-9, 5.0)
    )
    assert strong > weak + 0.001


@pytest.mark.parametrize("variant", ["paper", "lstm", "additive"])
def test_passes_without_dropout_agree_and_cost_what_one_does(variant: str):
    model = tiny_model(variant).eval()
    plain = build_objective(config())(model, BATCH)
    twice = build_objective(config(r_drop=5.0))(model, BATCH)
    torch.testing.assert_close(twice.loss, plain.loss, rtol=1e-12, atol=0)
    torch.testing.assert_close(
        twice.negative_log_likelihood, plain.negative_log_likelihood, rtol=1e-12, atol=0
    )


def test_a_model_that_continues_texts_learns_the_same_ways():
    sizes = {"kind": "decoder", "d_model": 8, "d_ff": 8, "heads": 2, "decoder_layers": 1}
    model = build_any_model(parse_model_config(sizes), VOCABULARY, VOCABULARY).double().eval()
    texts = [target for _, target in PAIRS]
    batch = collate_pairs(texts, texts)
    plain = build_objective(config())(model, batch)
    twice = build_objective(config(r_drop=5.0, teacher_weight=0.0), [model])(model, batch)
    torch.testing.assert_close(twice.loss, plain.loss, rtol=1e-12, atol=0)


@pytest.mark.parametrize("clip_norm", [0.0, 0.01])
def test_accumulated_batches_equal_one_large_batch_with_everything_on(clip_norm: float):
    settings = config(clip_norm=clip_norm, r_drop=5.0)
    teacher = tiny_model(seed=7)
    reports, models = [], []
    for cuts in ([1, 3], [4]):
        model, rows = tiny_model(dropout=0.0), iter(PAIRS)
        batches = [
            collate_pairs(*zip(*[next(rows) for _ in range(cut)], strict=True)) for cut in cuts
        ]
        objective = build_objective(settings, [teacher])
        reports.append(
            update(model, build_optimizer(model, settings), batches, objective, settings, 0.1)
        )
        models.append(model)
    assert reports[0].token_count == reports[1].token_count == TOKENS
    assert reports[0].loss == pytest.approx(reports[1].loss, rel=1e-12)
    for left, right in zip(models[0].parameters(), models[1].parameters(), strict=True):
        torch.testing.assert_close(left.grad, right.grad, rtol=1e-10, atol=1e-14)


def test_hidden_words_are_ordinary_ones_and_as_many_as_asked_for():
    ids = torch.randint(0, 50, (100, 100), generator=torch.Generator().manual_seed(1))
    hidden = drop_words(ids, 0.2, DropoutSource())
    changed = hidden != ids
    assert bool((hidden[changed] == UNK_ID).all())
    assert bool((ids[changed] >= SPECIAL_COUNT).all())
    share = changed.sum().item() / (ids >= SPECIAL_COUNT).sum().item()
    assert share == pytest.approx(0.2, abs=0.02)  # five standard deviations


@dataclasses.dataclass
class Reader:
    """An objective that remembers what it was given to read."""

    seen: list[Batch]

    def __call__(self, model: SequenceModel, batch: Batch):
        self.seen.append(batch)
        return CrossEntropy(0.0)(model, batch)


def test_word_dropout_hides_words_on_both_sides_in_training_alone_and_labels_stay():
    objective = build_objective(config(word_dropout=0.5))
    reader = Reader([])
    watched = dataclasses.replace(objective, objective=reader)
    watched(learner(), BATCH)
    watched(tiny_model().eval(), BATCH)
    hidden, plain = reader.seen
    assert plain is BATCH
    assert bool((hidden.source == UNK_ID).any())
    assert bool((hidden.target_input == UNK_ID).any())
    assert torch.equal(hidden.labels, BATCH.labels)
    model = learner(dropout=0.0)
    first, second = (objective(seeded(model), BATCH).loss for _ in range(2))
    assert torch.equal(first, second)  # drawn from the source that a checkpoint saves
    assert not torch.equal(second, objective(model, BATCH).loss)


def test_both_passes_of_r_drop_miss_words_of_their_own():
    """Without any other dropout they would agree; hidden words alone set them apart."""
    model = learner(dropout=0.0)
    weak, strong = (
        build_objective(config(r_drop=alpha, word_dropout=0.5))(seeded(model), BATCH).loss
        for alpha in (1e-9, 5.0)
    )
    assert strong > weak + 0.01


@pytest.mark.parametrize("alpha", [0.0, 5.0])
def test_a_teacher_that_nobody_listens_to_changes_nothing(alpha: float):
    model = learner()
    without = Views(smoothing=0.1, r_drop=alpha, word_dropout=0.0)
    taught = Teacher([tiny_model(seed=7)], 0.0, 2.0)
    beside = Views(smoothing=0.1, r_drop=alpha, word_dropout=0.0, teacher=taught)
    expected = without(seeded(model), BATCH)
    got = beside(seeded(model), BATCH)
    assert torch.equal(got.loss, expected.loss)
    for mine, referee in zip(
        gradients(beside, seeded(model)), gradients(without, seeded(model)), strict=True
    ):
        torch.testing.assert_close(mine, referee, rtol=1e-12, atol=1e-14)


def test_a_student_like_its_teacher_has_no_gradient():
    student, teacher = tiny_model(), tiny_model()
    objective = build_objective(config(teacher_weight=1.0, teacher_temperature=2.0), [teacher])
    assert objective(student, BATCH).loss.item() == pytest.approx(0.0, abs=1e-10)
    for gradient in gradients(objective, student):
        torch.testing.assert_close(gradient, torch.zeros_like(gradient), rtol=0, atol=1e-10)


def test_a_teacher_s_part_is_its_equation():
    student, teacher = learner(dropout=0.0), tiny_model(seed=7)
    objective = build_objective(config(teacher_weight=0.3, teacher_temperature=2.0), [teacher])
    sums = objective(student, BATCH)
    logits, theirs = real_logits(student, BATCH), real_logits(teacher, BATCH)
    labels = BATCH.labels[BATCH.labels != PAD_ID]
    expected = 0.7 * smoothed_cross_entropy(logits, labels, 0.1)
    expected = expected + 0.3 * distillation_loss(logits, theirs.detach(), 2.0).sum()
    torch.testing.assert_close(sums.loss, expected, rtol=1e-12, atol=0)
    assert sums.token_count == TOKENS


@pytest.mark.parametrize("has_bias", [(False, False), (True, True), (True, False)])
@pytest.mark.parametrize("temperature", [1.0, 2.0])
def test_several_teachers_teach_what_their_ensemble_says(
    temperature: float, has_bias: tuple[bool, bool]
):
    """Values and gradients: learned from is the ensemble that a search uses, of any sizes."""
    student = learner(dropout=0.0)
    teachers = [
        tiny_model(seed=7, output_bias=has_bias[0]),
        tiny_model(seed=8, output_bias=has_bias[1], d_model=12, heads=3),
    ]
    settings = config(teacher_weight=0.3, teacher_temperature=temperature)
    sums = build_objective(settings, teachers)(student, BATCH)
    with torch.no_grad():
        theirs = Ensemble(teachers)(BATCH.source, BATCH.target_input)[BATCH.labels != PAD_ID]
    logits, labels = real_logits(student, BATCH), BATCH.labels[BATCH.labels != PAD_ID]
    expected = 0.7 * smoothed_cross_entropy(logits, labels, 0.1)
    expected = expected + 0.3 * distillation_loss(logits, theirs, temperature).sum()
    torch.testing.assert_close(sums.loss, expected, rtol=1e-12, atol=0)
    ours = torch.autograd.grad(sums.loss, list(student.parameters()))
    referee = torch.autograd.grad(expected, list(student.parameters()))
    for mine, right in zip(ours, referee, strict=True):
        torch.testing.assert_close(mine, right, rtol=1e-10, atol=1e-13)


def test_a_batch_that_brings_the_likeliest_tokens_is_not_read_by_the_teacher():
    student, teacher = learner(dropout=0.0), tiny_model(seed=7)
    top = real_logits(teacher, BATCH).detach().topk(3)
    batch = dataclasses.replace(BATCH, top_tokens=TopTokens(top.indices, top.values))
    teacher.register_forward_pre_hook(lambda *_: pytest.fail("the teacher read the batch"))
    settings = config(teacher_weight=0.3, teacher_temperature=2.0)
    sums = build_objective(settings, [teacher])(student, batch.to("cpu"))

    logits, labels = real_logits(student, BATCH), BATCH.labels[BATCH.labels != PAD_ID]
    expected = 0.7 * smoothed_cross_entropy(logits, labels, 0.1)
    taught = top_k_distillation_loss(logits, top.values, top.indices, 2.0)
    expected = expected + 0.3 * taught.sum()
    torch.testing.assert_close(sums.loss, expected, rtol=1e-12, atol=0)
    ours = torch.autograd.grad(sums.loss, list(student.parameters()))
    referee = torch.autograd.grad(expected, list(student.parameters()))
    for mine, right in zip(ours, referee, strict=True):
        torch.testing.assert_close(mine, right, rtol=1e-10, atol=1e-13)


def test_a_share_without_labels_has_no_likeliest_tokens_either():
    top = TopTokens(torch.zeros(TOKENS, 3, dtype=torch.int64), torch.zeros(TOKENS, 3))
    batch = dataclasses.replace(BATCH, top_tokens=top)
    blank = Share(0, np.array([1]), is_blank=True).taught(batch)
    model = learner()
    sums = build_objective(config(), [tiny_model(seed=7)])(model, blank)
    sums.loss.backward()
    assert (sums.loss.item(), sums.token_count) == (0.0, 0)
    assert all(not each.grad.any() for each in model.parameters() if each.grad is not None)


def test_a_teacher_without_r_drop_has_the_batch_read_once():
    """Twice would cost twice as much, and average over two dropout masks."""
    model, rows = learner(), []
    model.encoder.register_forward_hook(lambda _, inputs, __: rows.append(len(inputs[0])))
    teacher = tiny_model(seed=1)
    build_objective(config(teacher_weight=0.5), [teacher])(model, BATCH)
    build_objective(config(r_drop=1.0))(model, BATCH)
    assert rows == [len(PAIRS), 2 * len(PAIRS)]


def test_a_teacher_reads_every_word_and_is_left_as_it_was():
    student = learner(dropout=0.0)
    objective = build_objective(config(teacher_weight=1.0, word_dropout=0.9), [tiny_model()])
    loss = objective(seeded(student), BATCH).loss
    assert loss > 0.01  # the student missed words that its equal had
    assert isinstance(objective, Views)
    assert objective.teacher is not None
    loss.backward()
    [teacher] = objective.teacher.models
    assert all(each.grad is None for each in teacher.parameters())


def test_an_update_in_bfloat16_is_the_one_in_float32_within_its_tolerance():
    settings = config(r_drop=1.0)
    reports = []
    for precision in ("fp32", "bf16"):
        model = tiny_model(dropout=0.0).float()
        objective = build_objective(settings, [tiny_model(seed=7).float()])
        optimizer = build_optimizer(model, settings)
        reports.append(update(model, optimizer, [BATCH], objective, settings, 0.1, precision))
    full, half = reports
    assert half.applied
    assert half.loss == pytest.approx(full.loss, rel=2e-2)
    assert half.loss != full.loss
