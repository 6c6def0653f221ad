"""Law: what is generated, and what a given text scores, is what the page of equations says."""

import pytest
import torch
from tiny_models import VOCABULARY, sources, targets, tiny_model

from pellucid.core.special import BOS_ID, EOS_ID, PAD_ID
from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.search.candidates import NO_CONSTRAINTS
from pellucid.decoding.search.scoring import score_targets
from pellucid.decoding.search.search import search
from pellucid.equations import transformer
from pellucid.equations.embedding import (
    embed,
    embed_one_hot,
    one_hot,
    shift_right,
    shift_right_zero,
)
from pellucid.equations.losses import (
    distribution_cross_entropy,
    sequence_log_prob,
    smooth_labels,
    smoothed_cross_entropy,
)
from pellucid.equations.penalties import length_penalty
from pellucid.equations.search import sequence_score
from pellucid.model.clear import clear_transformer

EXACT = {"rtol": 1e-12, "atol": 1e-12}


@pytest.mark.parametrize("variant", ["paper", "pre-norm"])
def test_searches_say_what_the_page_of_equations_says(variant: str):
    """Greedy search and re-prediction of three random models, word for word."""
    source = sources(5, 3, 4)
    for seed in range(3):
        model = tiny_model(variant, seed=seed)
        page = clear_transformer(model)
        again = DecodingConfig(beam_size=1, max_length=7, repredict=True, mask_at_inference=False)
        with torch.inference_mode():
            greedy = search(
                model, source, DecodingConfig(beam_size=1, max_length=7), NO_CONSTRAINTS
            )
            repredicted = search(model, source, again, NO_CONSTRAINTS)
            expected = transformer.greedy(page, source, 7).tolist()
            rows = [source[[row], : (source[row] != PAD_ID).sum()] for row in range(3)]
            expected_again = [transformer.repredict(page, row, 7) for row in rows]
        for each, ids in zip(greedy, expected, strict=True):
            assert [*each[0].ids, EOS_ID] == [word for word in ids if word != PAD_ID]
        assert [[*each[0].ids, EOS_ID] for each in repredicted] == expected_again


@pytest.mark.property
@pytest.mark.parametrize(("beam_size", "alpha"), [(1, 0.6), (3, 0.0), (3, 2.0)])
def test_a_beam_finds_what_the_page_of_equations_finds(beam_size: int, alpha: float):
    """EQ-127: the words and the score of the best, for two random models and two sentences."""
    source = sources(4, 2)
    settings = DecodingConfig(beam_size=beam_size, length_penalty=alpha, max_length=4)
    for seed in range(2):
        model = tiny_model(seed=seed)
        page = clear_transformer(model)
        with torch.inference_mode():
            found = search(model, source, settings, NO_CONSTRAINTS)
            for row, [best, *_] in zip(source, found, strict=True):
                sentence = row[None, : (row != PAD_ID).sum()]
                words, score = transformer.beam(page, sentence, beam_size, alpha, 4)
                assert [*best.ids, EOS_ID] == words
                assert best.score == pytest.approx(score, rel=1e-12)


@pytest.mark.property
def test_a_given_text_scores_what_the_equations_say():
    """EQ-117, EQ-127: the log-probability of whole sentences, and what a search ranks them by."""
    model, source = tiny_model(), sources(5, 3)
    given = [[4, 7, 9], [6]]
    labels = torch.tensor([[4, 7, 9, EOS_ID], [6, EOS_ID, PAD_ID, PAD_ID]])
    with torch.inference_mode():
        scored = score_targets(model, source, given, lambda length: length_penalty(length, 0.6))
        logits = transformer.logits(clear_transformer(model), source, shift_right(labels, BOS_ID))
    log_probs = sequence_log_prob(logits, labels, PAD_ID)
    for row, hypothesis in enumerate(scored):
        assert sum(hypothesis.token_log_probs) == pytest.approx(log_probs[row].item(), rel=1e-12)
    expected = sequence_score(log_probs, torch.tensor([4, 2]), 0.6)
    assert [each.score for each in scored] == pytest.approx(expected.tolist(), rel=1e-12)


@pytest.mark.property
def test_looking_a_row_up_is_multiplying_by_a_one_hot_row():
    """EQ-13, EQ-14: the page looks rows up, the text multiplies."""
    weight = clear_transformer(tiny_model()).source_embedding.weight
    ids = sources(5, 3)
    rows = one_hot(ids, VOCABULARY, torch.float64)
    torch.testing.assert_close(embed_one_hot(rows, weight), embed(ids, weight), **EXACT)


@pytest.mark.property
def test_a_zero_start_symbol_is_the_shift_of_embedded_labels():
    """EQ-106, ER-44: the page sets the row of BOS to zero; the text shifts vectors."""
    model = tiny_model(start_symbol="zero", positions="none", dropout=0.0)
    page = clear_transformer(model)
    labels = targets(2, 5, seed=4)
    shifted = transformer.embed_tokens(
        shift_right(labels, BOS_ID), page.target_embedding, page.settings
    )
    embedded = transformer.embed_tokens(labels, page.target_embedding, page.settings)
    torch.testing.assert_close(shifted, shift_right_zero(embedded), **EXACT)


@pytest.mark.property
def test_the_smoothed_loss_is_the_cross_entropy_with_smoothed_labels():
    """EQ-120: the program never holds the smoothed distribution; the text writes it out."""
    logits = torch.randn(6, VOCABULARY, generator=torch.Generator().manual_seed(1)).double()
    labels = torch.tensor([4, 5, 6, 7, 8, 3])
    written = distribution_cross_entropy(
        smooth_labels(labels, VOCABULARY, 0.1, torch.float64), logits
    )
    torch.testing.assert_close(smoothed_cross_entropy(logits, labels, 0.1), written.sum(), **EXACT)
