import math

import pytest
import torch
from small_bundle import small_bundle
from table_models import sources

from pellucid.core.errors import ConfigError
from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.search.beam import beam_search
from pellucid.decoding.search.greedy import greedy_search
from pellucid.model.build import build_model
from pellucid.model.config import TransformerConfig
from pellucid.model.ensemble import Ensemble

BATCH = sources([5, 6, 7], [8], [9, 10])
WANTED = DecodingConfig(beam_size=3, n_best=2, max_length=6)


@torch.inference_mode()
def test_an_ensemble_of_one_or_of_twins_is_the_model_itself():
    model = small_bundle().model
    alone = beam_search(model, BATCH, WANTED)
    for ensemble in (Ensemble([model]), Ensemble([model, model])):
        together = beam_search(ensemble, BATCH, WANTED)
        for expected, found in zip(alone, together, strict=True):
            assert [h.ids for h in found] == [h.ids for h in expected]
            assert [h.score for h in found] == pytest.approx([h.score for h in expected])


@torch.inference_mode()
def test_the_logarithms_are_averaged():
    """The geometric mean of both models' probabilities, shared out anew, token by token."""
    first, second = small_bundle(seed=1).model, small_bundle(seed=2).model
    [found, *_] = greedy_search(Ensemble([first, second]), BATCH, WANTED)
    prefix = torch.tensor([[2, *found.ids]])
    source = BATCH[:1]
    means = (first(source, prefix).softmax(-1) * second(source, prefix).softmax(-1)).sqrt()
    shares = means / means.sum(-1, keepdim=True)
    chosen = [*found.ids, 3]
    expected = [math.log(shares[0, place, token]) for place, token in enumerate(chosen)]
    assert found.token_log_probs == pytest.approx(expected, abs=1e-10)


def test_the_shortest_reach_counts():
    learned, endless = small_bundle(positions="learned").model, small_bundle().model
    assert Ensemble([endless, learned]).max_length == 24
    assert Ensemble([endless]).max_length is None
    sizes = endless.source_vocabulary_size, endless.target_vocabulary_size
    shorter = learned.config.model_copy(update={"max_positions": 9})
    assert Ensemble([learned, build_model(shorter, *sizes)]).max_length == 9
    state = Ensemble([endless, learned]).start(Ensemble([endless, learned]).encode(BATCH))
    assert (state.sentence_count, state.beam_count, state.length) == (3, 1, 0)


def test_models_with_other_vocabularies_are_refused():
    config = TransformerConfig(d_model=8, d_ff=8, heads=2, encoder_layers=1, decoder_layers=1)
    other = build_model(config, 30, 30)
    with pytest.raises(ConfigError, match=r"one target vocabulary, got sizes \[30, 20\]"):
        Ensemble([other, build_model(config, 20, 20)])
    with pytest.raises(ConfigError, match=r"one target vocabulary, got sizes \[\]"):
        Ensemble([])
