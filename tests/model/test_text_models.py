"""Models of plain text: encoder-only, decoder-only and skip-gram."""

import math

import pytest
import torch
from torch import Tensor

from pellucid.core.errors import ConfigError
from pellucid.core.special import BOS_ID, EOS_ID, MASK_ID, PAD_ID
from pellucid.equations.word2vec import noise_distribution, skipgram_pairs
from pellucid.model.build import build_any_model, build_model
from pellucid.model.config import parse_model_config
from pellucid.model.seq2seq import SequenceModel
from pellucid.model.skipgram import SkipGram
from pellucid.model.text_models import DecoderOnly, EncoderOnly
from pellucid.model.trace import Trace

VOCABULARY = 13
BLOCKS = {"d_model": 8, "d_ff": 12, "heads": 2}
EXACT = {"rtol": 1e-12, "atol": 1e-12}


def tiny(kind: str, **settings: object) -> SequenceModel:
    config = parse_model_config({"kind": kind, **settings})
    model = build_any_model(config, VOCABULARY, VOCABULARY).double()
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter += 0.3 * torch.randn(parameter.shape, generator=generator)
    return model.eval()


def encoder(**settings: object) -> EncoderOnly:
    model = tiny("encoder", **BLOCKS, encoder_layers=2, **settings)
    assert isinstance(model, EncoderOnly)
    return model


def decoder(**settings: object) -> DecoderOnly:
    model = tiny("decoder", **BLOCKS, decoder_layers=2, **settings)
    assert isinstance(model, DecoderOnly)
    return model


def skipgram(**settings: object) -> SkipGram:
    model = tiny("skipgram", d_model=6, **{"window": 2, "subsample": 0.0, **settings})
    assert isinstance(model, SkipGram)
    return model


def text(*rows: list[int]) -> Tensor:
    """Rows of words, each ended by EOS, padded."""
    longest = max(map(len, rows)) + 1
    return torch.tensor([[*row, EOS_ID] + [PAD_ID] * (longest - 1 - len(row)) for row in rows])


@pytest.mark.property
def test_in_an_encoder_the_first_row_depends_on_the_last_word():
    """EQ-137: there is no mask."""
    model = encoder()
    before, after = model(text([4, 5, 6])), model(text([4, 5, 7]))
    assert not torch.equal(before[0, 0], after[0, 0])


def test_an_encoder_reads_a_sentence_alone_as_in_a_batch():
    model = encoder()
    together = model(text([4, 5, 6, 7], [8, 9]))
    torch.testing.assert_close(together[1, :3], model(text([8, 9]))[0], **EXACT)


def test_an_encoder_is_asked_about_its_share_of_the_words_and_no_others():
    """Of 20,000 words 15% are chosen: 80% hidden, 10% replaced, 10% as they were."""
    model = encoder().train()
    ids = torch.randint(4, VOCABULARY, (100, 201), generator=torch.Generator().manual_seed(0))
    ids[:, -1] = EOS_ID
    ids[:, 100] = PAD_ID
    hidden, chosen = model.hide(ids)
    words = 100 * 199
    assert chosen.sum().item() / words == pytest.approx(0.15, abs=0.01)
    assert not chosen[:, [100, 200]].any()
    assert torch.equal(hidden[~chosen], ids[~chosen])
    is_mask = hidden[chosen] == MASK_ID
    assert is_mask.double().mean().item() == pytest.approx(0.8, abs=0.02)
    changed = (hidden[chosen] != ids[chosen]) & ~is_mask  # one in nine is replaced by itself
    assert changed.double().mean().item() == pytest.approx(0.1 * 8 / 9, abs=0.015)
    assert hidden[chosen].max().item() == VOCABULARY - 1


def test_an_encoder_s_loss_is_the_cross_entropy_of_the_chosen_words():
    model = encoder(output_bias=True)
    ids = text([4, 5, 6, 7, 8, 9, 10], [11, 12, 4])
    hidden, chosen = model.hide(ids)
    assert torch.equal(model.hide(ids)[0], hidden)  # in evaluation the same for the same batch
    sums = model.loss(ids, ids, ids, 0.0)
    logits = model(hidden)[chosen]
    expected = torch.nn.functional.cross_entropy(logits, ids[chosen], reduction="sum")
    torch.testing.assert_close(sums.loss, expected, **EXACT)
    assert sums.token_count == chosen.sum().item() > 0


def test_a_batch_of_one_word_still_asks_a_question():
    _, chosen = encoder(mask_rate=0.001).hide(text([4]))
    assert chosen.tolist() == [[True, False]]


def test_in_training_an_encoder_s_questions_come_from_the_generator_that_is_saved():
    model = encoder().train()
    ids = text([4, 5, 6, 7, 8, 9, 10, 11])
    state = model.dropout_source.state()
    first, second = model.hide(ids)[0], model.hide(ids)[0]
    assert not torch.equal(first, second)
    model.dropout_source.restore(state)
    assert torch.equal(model.hide(ids)[0], first)


@pytest.mark.property
@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "relative", "rotary", "alibi"])
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_a_decoder_s_cached_steps_are_the_whole_prefix(positions: str, norm: str):
    """EQ-138 and EQ-130; beams are crossed over on the way."""
    model = decoder(positions=positions, norm=norm, start_symbol="zero")
    ids = torch.tensor([[BOS_ID, 5, 6, 7], [BOS_ID, 8, 9, 10]])
    full = model(ids)
    state = model.start(model.encode(text([4], [4])))
    for place in range(4):
        logits, state = model.step(ids[:, place : place + 1], state)
        torch.testing.assert_close(logits[:, 0], full[:, place], **EXACT)
    state = state.select(torch.tensor([[1, 1]]))
    assert (state.sentence_count, state.beam_count, state.length) == (1, 2, 4)
    logits, _ = model.step(torch.tensor([[11, 12]]), state)
    for beam, word in enumerate((11, 12)):
        expected = model(torch.tensor([[BOS_ID, 8, 9, 10, word]]))[0, -1]
        torch.testing.assert_close(logits[0, beam], expected, **EXACT)


@pytest.mark.property
def test_a_decoder_never_looks_ahead():
    """EQ-76."""
    model = decoder()
    before = model(torch.tensor([[BOS_ID, 5, 6, 7]]))
    after = model(torch.tensor([[BOS_ID, 5, 6, 8]]))
    assert torch.equal(before[:, :3], after[:, :3])
    assert not torch.equal(before[:, 3], after[:, 3])


def test_a_decoder_s_loss_has_labels_shifted_by_one():
    model = decoder()
    inputs, labels = torch.tensor([[BOS_ID, 5, 6]]), text([5, 6])
    sums = model.loss(labels, inputs, labels, 0.0)
    expected = torch.nn.functional.cross_entropy(model(inputs)[0], labels[0], reduction="sum")
    torch.testing.assert_close(sums.loss, expected, **EXACT)
    assert sums.token_count == 3


@pytest.mark.property
def test_a_decoder_block_has_two_norms_and_no_cross_attention():
    """ER-70, EQ-138: Lee's "decoder blocks" would have three sublayers."""
    names = [name for name, _ in decoder().named_parameters()]
    assert sum(name.endswith("norm.norm.gain") for name in names) == 4  # two blocks
    assert not any("cross" in name for name in names)


@pytest.mark.parametrize("model", [encoder, decoder])
def test_attention_is_captured_under_the_usual_names(model):
    built = model()
    trace = Trace("*.weights")
    built(torch.tensor([[BOS_ID, 5, 6]]), trace)
    side = built.config.kind
    assert f"{side}.layers.1.self_attention.weights" in trace.values


def test_in_evaluation_the_noise_is_its_own_expectation():
    """All that can be drawn, each by its chance: nothing is random, and training comes near it."""
    model = skipgram(negatives=2)
    model.count([torch.tensor([4] * 5 + [5]), torch.tensor([5] * 2 + [6, 7])])
    labels = text([4, 5, 6, 7, 4])
    expected = model.loss(labels, labels, labels, 0.0).loss
    pairs = torch.tensor(skipgram_pairs([4, 5, 6, 7, 4], 2))
    agreement = (model.w_in[pairs[:, 0]] * model.w_out[pairs[:, 1]]).sum(1)
    repulsion = torch.nn.functional.softplus(model.w_in[pairs[:, 0]] @ model.w_out.T)
    chances = noise_distribution(model.counts)
    by_hand = torch.nn.functional.softplus(-agreement).sum() + 2 * (repulsion @ chances).sum()
    torch.testing.assert_close(expected, by_hand, **EXACT)
    model.train()
    drawn = [model.loss(labels, labels, labels, 0.0).loss.item() for _ in range(300)]
    assert len(set(drawn)) > 50
    assert sum(drawn) / len(drawn) == pytest.approx(expected.item(), rel=0.01)


def test_noise_words_come_as_often_as_the_noise_distribution_says():
    model = skipgram()
    model.count([torch.tensor([4] * 81 + [5] * 16 + [6])])
    assert model.counts[4:7].tolist() == [81, 16, 1]
    model.train()
    drawn = model._drawn_noise(2500).flatten()
    shares = torch.bincount(drawn, minlength=VOCABULARY) / len(drawn)
    expected = noise_distribution(model.counts)
    assert expected[4].item() == pytest.approx(27 / (27 + 8 + 1))
    torch.testing.assert_close(shares.double(), expected.double(), rtol=0, atol=0.01)


def test_the_last_word_of_the_vocabulary_is_noise_like_any_other():
    model = skipgram()
    model.count([torch.tensor([4, VOCABULARY - 1])])
    drawn = model.train()._drawn_noise(250).flatten()
    shares = torch.bincount(drawn, minlength=VOCABULARY) / len(drawn)
    assert shares[[4, VOCABULARY - 1]].tolist() == pytest.approx([0.5, 0.5], abs=0.05)


def test_frequent_words_are_thinned_out_before_neighbors_are_taken():
    """A word of share f stays with √(t / f): 10% for f = 1, t = 0.01; what stays moves together."""
    model = skipgram(subsample=0.01).train()
    model.count([torch.full((1000,), 4)])
    share = model._is_kept(torch.full((50, 200), 4)).double().mean().item()
    assert share == pytest.approx(0.1, abs=0.01)

    # a word in a thousand stays of 4, and all of the others
    model = skipgram(subsample=1e-6, window=1).train()
    model.count([torch.full((1_000_000,), 4)])
    labels = text([5, 4, 4, 6, 4, 7, 4])
    assert model.loss(labels, labels, labels, 0.0).token_count == 4


def test_a_word_alone_has_no_neighbors_and_costs_nothing():
    sums = skipgram().train().loss(text([4]), text([4]), text([4]), 0.0)
    assert (sums.loss.item(), sums.token_count) == (0.0, 0)


def test_the_paper_s_losses_at_the_start():
    """w_out = 0: every word is equally likely, log V a pair, and (1 + k) log 2 with k negatives."""
    config = parse_model_config({"kind": "skipgram", "d_model": 6, "subsample": 0.0, "window": 2})
    model = build_any_model(config, VOCABULARY, VOCABULARY).double()
    labels = text([4, 5, 6])
    sums = model.train().loss(labels, labels, labels, 0.0)
    assert sums.loss.item() / sums.token_count == pytest.approx(6 * math.log(2))
    config = config.model_copy(update={"negatives": 0})
    model = build_any_model(config, VOCABULARY, VOCABULARY).double()
    sums = model.loss(labels, labels, labels, 0.0)
    assert sums.loss.item() / sums.token_count == pytest.approx(math.log(VOCABULARY))


@pytest.mark.parametrize("kind", ["encoder", "decoder", "skipgram"])
def test_models_of_plain_text_do_not_translate(kind: str):
    with pytest.raises(ConfigError) as caught:
        build_model(parse_model_config({"kind": kind}), 9, 9)
    assert str(caught.value) == (f"model.kind={kind} learns from plain text and does not translate")


def test_settings_of_the_other_side_are_refused():
    with pytest.raises(ConfigError) as caught:
        parse_model_config({"kind": "skipgram", "heads": 2, "dropout": 0.1, "mask_rate": 0.2})
    for problem in (
        "heads is for model.kind=transformer or encoder or decoder, not for skipgram",
        "dropout is for model.kind=transformer or rnn or rnn-attention or encoder or decoder, not"
        " for skipgram: skipgram is two matrices and nothing else",
        "mask_rate is for model.kind=encoder, not for skipgram: no other kind learns by filling"
        " masks",
    ):
        assert problem in str(caught.value)
