"""What the other files leave: errata that a few lines settle, and tables of the five sources."""

import math

import pytest
import torch
from equation_checks import close
from torch import Tensor

from pellucid.equations.attention import attention_weights
from pellucid.equations.embedding import one_hot, shift_right
from pellucid.equations.feed_forward import feed_forward
from pellucid.equations.heads import multi_head_attention
from pellucid.equations.losses import distribution_cross_entropy
from pellucid.equations.masks import causal_mask, masked_softmax, padding_mask
from pellucid.equations.notation.columns import project_columns
from pellucid.equations.notation.elman import rnn
from pellucid.equations.notation.jacobian import scaled_softmax
from pellucid.equations.residual import add_and_norm
from pellucid.equations.search import most_likely
from pellucid.equations.softmax import softmax

BOS = 0


def block_weights(d_model: int = 6, heads: int = 2) -> list[Tensor]:
    size = d_model // heads
    return [*torch.randn(3, heads, d_model, size).unbind(), torch.randn(d_model, d_model)]


def block(x: Tensor, weights: list[Tensor], may_attend: Tensor | None) -> Tensor:
    return add_and_norm(x, multi_head_attention(x, x, x, *weights, may_attend))


class Speaker:
    """Two random blocks over eight words: enough for a table of inference."""

    def __init__(self) -> None:
        self.embedding = torch.randn(8, 6)
        self.blocks = [block_weights(), block_weights()]

    def predict(self, ids: list[int], *, masked: bool = True) -> list[int]:
        """The likeliest next word after each of the words."""
        x = self.embedding[ids]
        mask = causal_mask(len(ids)) if masked else None
        for weights in self.blocks:
            x = block(x, weights, mask)
        return most_likely(x @ self.embedding.T).tolist()

    def say(self, length: int) -> list[int]:
        """Greedy, appending."""
        said: list[int] = []
        for _ in range(length):
            said.append(self.predict([BOS, *said])[-1])
        return said


@pytest.mark.property
def test_er_13_the_inner_width_is_free_and_no_gain_would_fit():
    """ER-13, EQ-100: 4 → 7 → 4; d_ff is no width of the model."""
    parts = torch.randn(4, 7), torch.randn(7), torch.randn(7, 4), torch.randn(4)
    x = torch.randn(3, 4)
    by_hand = torch.stack([(row @ parts[0] + parts[1]).clamp(min=0) @ parts[2] for row in x])
    close(feed_forward(x, *parts), by_hand + parts[3])


@pytest.mark.property
def test_er_14_in_cross_attention_queries_are_the_target():
    """ER-14, EQ-116: four target words look at three source words: 4 × 3, not 3 × 4."""
    target, source = torch.randn(4, 6), torch.randn(3, 6)
    weights = attention_weights(target, source)
    assert weights.shape == (4, 3)
    close(weights.sum(-1), torch.ones(4))
    assert multi_head_attention(target, source, source, *block_weights()).shape == (4, 6)


@pytest.mark.property
def test_er_16_n_plus_one_words_give_n_plus_two_states():
    """ER-16, EQ-131: f₀ … f₃ are four words; with h₀ there are five states, h₀ … h₄."""
    hidden = torch.randn(2)
    parts = torch.randn(2, 3), torch.randn(2, 2), torch.randn(2), torch.randn(2)
    words = torch.randn(4, 3)
    states = torch.cat((hidden.unsqueeze(0), rnn(words, hidden, *parts)))
    assert states.shape == (5, 2)
    close(rnn(words[:3], hidden, *parts)[-1], states[3])


@pytest.mark.by_hand
def test_er_18_cross_entropy_has_a_formula():
    """ER-18, EQ-118: -Σ y log p with labels and probabilities, p = (.5, .25, .25), label 1."""
    logits = torch.tensor([[0.5, 0.25, 0.25]]).log()
    close(distribution_cross_entropy(one_hot(torch.tensor([1]), 3), logits), [math.log(4)])


@pytest.mark.by_hand
def test_er_24_the_argument_is_scaled_and_not_the_softmax():
    """ER-24, EQ-45: softmax(s)/√dₖ sums to ½ for dₖ = 4."""
    s = torch.tensor([1.0, 2, 4])
    close(scaled_softmax(s, 2).sum(), 1.0)
    close((softmax(s) / 2).sum(), 0.5)
    close(scaled_softmax(s, 2), softmax(torch.tensor([0.5, 1, 2])))
    query, key = torch.tensor([[1.0, 1, 1, 1]]), torch.tensor([[1.0, 0, 0, 0], [0, 0, 2, 0]])
    close(attention_weights(query, key), scaled_softmax(torch.tensor([[1.0, 2]]), 2))


@pytest.mark.property
def test_er_27_embeddings_are_as_wide_as_all_heads_together():
    """ER-27, EQ-64: four heads of two from columns of eight, so that a residual can be added."""
    e, w = torch.randn(8, 5), torch.randn(4, 2, 8)
    merged = project_columns(w, e).flatten(0, 1)
    assert merged.shape == e.shape
    close(merged, w.reshape(8, 8) @ e)


@pytest.mark.property
def test_er_34_blocks_follow_one_another():
    """ER-34, EQ-111: another first block changes what the second one gets; in series ≠ beside."""
    x, first, second, other = torch.randn(3, 6), *(block_weights() for _ in range(3))
    series = block(block(x, first, None), second, None)
    assert not series.allclose(block(block(x, other, None), second, None))
    assert not series.allclose((block(x, first, None) + block(x, second, None)) / 2)


@pytest.mark.property
def test_er_37_predicting_anew_is_appending_as_long_as_there_is_a_mask():
    """ER-37, EQ-124: "∅ he" cannot become "i am"; without the mask it can."""
    changed = 0
    for _ in range(20):
        speaker = Speaker()
        said: list[int] = []
        unmasked: list[int] = []
        for _ in range(4):
            anew = speaker.predict([BOS, *said])
            assert anew[:-1] == said
            said = anew
            before, unmasked = unmasked, speaker.predict([BOS, *unmasked], masked=False)
            changed += unmasked[:-1] != before
        assert said == speaker.say(4)
    assert changed > 0


@pytest.mark.property
def test_er_39_the_table_of_inference_reads_whole_prefixes():
    """ER-39, EQ-129: row k is (start, prediction 1, …, k - 1); one word alone would not do."""
    speaker = Speaker()
    said = speaker.say(4)
    table = [[BOS, *said[:k]] for k in range(4)]
    assert [speaker.predict(row)[-1] for row in table] == speaker.predict(table[3]) == said
    assert table[3] == shift_right(torch.tensor(said), BOS).tolist()
    wholes = [Speaker() for _ in range(20)]
    prefix = [BOS, 3, 5, 1]
    assert any(each.predict(prefix)[-1] != each.predict(prefix[-1:])[-1] for each in wholes)


@pytest.mark.property
def test_er_66_padding_is_not_looked_at():
    """ER-66, EQ-73: a sentence of two in a row of four has the weights it has alone."""
    scores = torch.randn(2, 4)
    real = padding_mask(torch.tensor([5, 6, 0, 0]), pad_id=0)
    weights = masked_softmax(scores, real.unsqueeze(0))
    close(weights[:, :2], softmax(scores[:, :2]))
    close(weights[:, 2:], torch.zeros(2, 2))
