"""The whole Transformer on one page: from token ids to logits, loss and a translation.

In the order of Figure 1 of Vaswani et al. (2017): embedding, attention, feed-forward, Add & Norm,
encoder, decoder, logits, loss, greedy and beam search. Every line is an equation of this folder;
nothing is cached, fused or packed. ``pellucid.clear(bundle)`` opens a trained model as the
``Transformer`` that these functions take, and tests/laws/test_clear_equals_fast.py holds the
program that people run to them: values and gradients, in evaluation and in training, under every
setting.
"""

import math
from collections.abc import Callable
from typing import assert_never

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from pellucid.core.special import BOS_ID, EOS_ID, PAD_ID
from pellucid.equations.attention import attention_scores
from pellucid.equations.embedding import embed, output_logits, scaled_embedding, shift_right
from pellucid.equations.feed_forward import activate, feed_forward
from pellucid.equations.heads import multi_head_attention
from pellucid.equations.losses import smoothed_cross_entropy
from pellucid.equations.masks import causal_mask, masked_softmax, padding_mask
from pellucid.equations.normalization import normalize
from pellucid.equations.penalties import length_penalty
from pellucid.equations.positions import encode_positions, network_embedding
from pellucid.equations.recurrent import ssru
from pellucid.equations.relative import (
    alibi_bias,
    relative_scores,
    relative_values,
    rotary_positions,
)
from pellucid.equations.residual import add_and_norm, norm_and_add
from pellucid.equations.search import most_likely
from pellucid.equations.shapes import Number
from pellucid.equations.softmax import log_softmax
from pellucid.equations.weights import (
    AttentionWeights,
    BlockWeights,
    DecoderBlockWeights,
    EmbeddingWeights,
    FeedForwardWeights,
    NormWeights,
    Settings,
    Transformer,
)

Ids = Int[Tensor, "sentence length"]
Rows = Float[Tensor, "sentence length d_model"]
Mask = Bool[Tensor, "#sentence #query key"]
"""True where a query may attend to a key."""


def embed_tokens(ids: Ids, weights: EmbeddingWeights, settings: Settings) -> Rows:
    """The input of the first block: scaled embeddings plus positions, with dropout.

        X⁽⁰⁾ = Dropout(√d_model · W_Embedding[ids] + P)

    EQ: 15, 28, 29, 106, 107.  Source: Vaswani et al. (2017), §3.4, §3.5, §5.4.
    """
    lookup = scaled_embedding if settings.scale_embeddings else embed
    x = lookup(ids, weights.weight)
    # Single Page: the decoder starts from a zero vector, to which only a position is added
    if settings.start_symbol == "zero":
        x = x.masked_fill((ids == BOS_ID).unsqueeze(-1), 0.0)

    if weights.network is not None:
        x = network_embedding(x, *weights.network)

    # only the sinusoids have a first position to choose; tables are indexed from 0
    has_choice = settings.positions in ("sinusoidal", "sinusoidal_t2t")
    start = settings.start_position if has_choice else 0
    x = encode_positions(x, settings.positions, weights.positions, start)
    return settings.training.drop(x, settings.dropout)


def attend(
    query: Float[Tensor, "sentence query d_model"],
    memory: Float[Tensor, "sentence key d_model"],
    may_attend: Mask,
    weights: AttentionWeights,
    settings: Settings,
) -> Float[Tensor, "sentence query d_model"]:
    """Multi-head attention; self-attention if the queries are the memory itself.

        MultiHead(Q, K, V) = Concat(head₁, …, head_h) W^O,   headᵢ = Dropout(softmax(S + M)) Vᵢ

    EQ: 31, 51, 61, 77, 78, 82, 83, 89.  Source: Vaswani et al. (2017), §3.2; Shaw et al. (2018),
    Su et al. (2021) and Press et al. (2022) for positions inside self-attention.
    Symbols: S = the scores, with positions where they act here; M hides what is not allowed.
    """
    positions = settings.positions if query is memory else "none"

    def head(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        """All heads at once: q, k, v and the result are (sentence, heads, position, head size)."""
        # q · k then depends on the distance between the two alone (Su et al., 2021, eq. (11))
        if positions == "rotary":
            q, k = rotary_positions(q), rotary_positions(k)

        if not settings.scale_attention:
            q = q * math.sqrt(q.shape[-1])  # the scores divide by it again: Luong's dot product

        if positions == "relative" and weights.key_distances is not None:
            scores = relative_scores(q, k, weights.key_distances)
        else:
            scores = attention_scores(q, k)  # (sentence, heads, query, key)

        if positions == "alibi":
            # one slope for each head; not learned
            heads, query_count, key_count = scores.shape[1:]
            bias = alibi_bias(heads, query_count, key_count, dtype=q.dtype, device=q.device)
            scores = scores + bias

        mixture = settings.training.drop(masked_softmax(scores, mask), settings.attention_dropout)
        if positions == "relative" and weights.value_distances is not None:
            # the values get distances of their own (Shaw et al., 2018, eq. (3))
            return relative_values(mixture, v, weights.value_distances)
        return mixture @ v

    projections = weights.w_q, weights.w_k, weights.w_v, weights.w_o
    return multi_head_attention(
        query, memory, memory, *projections, may_attend, weights.biases, head
    )


def feed(x: Rows, weights: FeedForwardWeights, settings: Settings) -> Rows:
    """The feed-forward network with dropout after its activation, each position alone.

        FFN(x) = Dropout(activation(x W₁ + b₁)) W₂ + b₂

    EQ: 99, 100.  Source: Vaswani et al. (2017), §3.3, eq. (2).
    """

    def activation(rows: Tensor) -> Tensor:
        return settings.training.drop(
            activate(rows, settings.activation), settings.activation_dropout
        )

    return feed_forward(x, weights.w_1, weights.b_1, weights.w_2, weights.b_2, activation)


def sublayer(
    x: Rows, function: Callable[[Tensor], Tensor], weights: NormWeights, settings: Settings
) -> Rows:
    """Apply a sublayer with what stands around it: dropout, residual connection and norm.

        post-norm:  LayerNorm(x + Dropout(Sublayer(x)))
        pre-norm:   x + Dropout(Sublayer(LayerNorm(x)))

    EQ: 95, 96.  Source: Vaswani et al. (2017), §3.1 and §5.4; Xiong et al. (2020) for pre-norm.
    """

    def norm(rows: Tensor) -> Tensor:
        return last_norm(rows, weights, settings)

    def dropped(rows: Tensor) -> Tensor:
        return settings.training.drop(function(rows), settings.dropout)

    match settings.norm:
        case "post":
            return add_and_norm(x, dropped(x), norm)
        case "pre":
            return norm_and_add(x, dropped, norm)
        case _:
            assert_never(settings.norm)


def last_norm(x: Rows, weights: NormWeights | None, settings: Settings) -> Rows:
    """The norm that closes a pre-norm stack; without weights for it, the rows themselves."""
    if weights is None:
        return x
    return normalize(x, settings.norm_kind, weights.gain, weights.bias, settings.norm_eps)


def encoder_block(x: Rows, may_attend: Mask, weights: BlockWeights, settings: Settings) -> Rows:
    """An encoder block: self-attention, then feed-forward, each with Add & Norm.

        O₁ = MultiHead(X, X, X),  X₁ = LayerNorm(X + O₁),  O₂ = FFN(X₁),  X₂ = LayerNorm(X₁ + O₂)

    EQ: 104.  Source: Vaswani et al. (2017), §3.1 and Figure 1, left.
    """
    x = sublayer(
        x,
        lambda rows: attend(rows, rows, may_attend, weights.self_attention, settings),
        weights.self_attention_norm,
        settings,
    )

    return sublayer(
        x,
        lambda rows: feed(rows, weights.feed_forward, settings),
        weights.feed_forward_norm,
        settings,
    )


def read_before(
    y: Rows, may_attend: Mask, weights: DecoderBlockWeights, settings: Settings
) -> Rows:
    """The first sublayer of a decoder block: each target position reads itself and those before it.

        Z₁ = MaskedMultiHead(Y, Y, Y),   or   Z₁ = SSRU(Y)

    EQ: 83, 108.  Source: Vaswani et al. (2017), §3.1; Kim et al. (2019) for the SSRU, which needs
    no mask: it reads from the left to the right.
    """
    own, unit = weights.self_attention, weights.ssru
    if unit is not None and weights.ssru_norm is not None:
        w = unit.w, unit.w_f, unit.b_f
        return sublayer(y, lambda rows: ssru(rows, *w), weights.ssru_norm, settings)

    assert own is not None
    assert weights.self_attention_norm is not None
    return sublayer(
        y,
        lambda rows: attend(rows, rows, may_attend, own, settings),
        weights.self_attention_norm,
        settings,
    )


def decoder_block(
    y: Float[Tensor, "sentence target d_model"],
    memory: Float[Tensor, "sentence source d_model"],
    may_attend: Mask,
    memory_may_attend: Bool[Tensor, "sentence 1 source"],
    weights: DecoderBlockWeights,
    settings: Settings,
) -> Float[Tensor, "sentence target d_model"]:
    """A decoder block: masked self-attention, cross-attention to the encoder's output, feed-
    forward. An SSRU may stand in place of self-attention.

        O₁ = MaskedMultiHead(Y, Y, Y),      Y₁ = LayerNorm(Y + O₁),
        O₂ = MultiHead(Y₁, memory, memory), Y₂ = LayerNorm(Y₁ + O₂),
        O₃ = FFN(Y₂),                       Y₃ = LayerNorm(Y₂ + O₃)

    EQ: 90, 108, 109.  Source: Vaswani et al. (2017), §3.1 and Figure 1, right.
    """
    y = read_before(y, may_attend, weights, settings)

    y = sublayer(
        y,
        lambda rows: attend(rows, memory, memory_may_attend, weights.cross_attention, settings),
        weights.cross_attention_norm,
        settings,
    )

    return sublayer(
        y,
        lambda rows: feed(rows, weights.feed_forward, settings),
        weights.feed_forward_norm,
        settings,
    )


def encode(model: Transformer, source: Ids) -> Rows:
    """Run all encoder blocks over the whole source; padding is masked.

        X⁽⁰⁾ → X⁽¹⁾ → … → X⁽ᴺ⁾

    EQ: 105.  Source: Vaswani et al. (2017), §3.1; Fan et al. (2020) for blocks left out.
    """
    settings = model.settings
    may_attend = padding_mask(source, PAD_ID).unsqueeze(1)  # (sentence, 1, source)

    x = embed_tokens(source, model.source_embedding, settings)

    # LayerDrop: in training a whole block may be left out
    for weights in model.encoder:
        if not settings.training.skips_layer(settings.layer_drop):
            x = encoder_block(x, may_attend, weights, settings)

    # pre-norm only: the sum of the residual stream was not normalized yet
    return last_norm(x, model.encoder_norm, settings)


def decode(
    model: Transformer,
    memory: Float[Tensor, "sentence source d_model"],
    source: Int[Tensor, "sentence source"],
    target_input: Int[Tensor, "sentence target"],
    *,
    causal: bool = True,
) -> Float[Tensor, "sentence target vocabulary"]:
    """Run all decoder blocks, which read the same memory, and return the logits of every next word.

        Y⁽⁰⁾ → Y⁽¹⁾ → … → Y⁽ᴺ⁾,   Z = Y⁽ᴺ⁾ W^S + b^S

    EQ: 84, 90, 110, 112.  Source: Vaswani et al. (2017), §3.1 and §3.4. Without ``causal`` every
    position attends to later ones too (ER-36).
    """
    # the mask is the same for all sentences; padding needs none, as it comes after every word
    settings, length = model.settings, target_input.shape[1]
    may_attend = causal_mask(length) if causal else torch.ones(length, length, dtype=torch.bool)
    # cross-attention may see the whole source, whatever the position of the target
    memory_may_attend = padding_mask(source, PAD_ID).unsqueeze(1)  # (sentence, 1, source)

    y = embed_tokens(target_input, model.target_embedding, settings)

    for weights in model.decoder:
        if not settings.training.skips_layer(settings.layer_drop):
            masks = may_attend.unsqueeze(0), memory_may_attend
            y = decoder_block(y, memory, *masks, weights, settings)

    return output_logits(last_norm(y, model.decoder_norm, settings), model.w_s, model.b_s)


def logits(
    model: Transformer,
    source: Int[Tensor, "sentence source"],
    target_input: Int[Tensor, "sentence target"],
) -> Float[Tensor, "sentence target vocabulary"]:
    """The whole Transformer: a logit for every word at every position of the target.

    EQ: 115.  Source: Vaswani et al. (2017), Figure 1.
    """
    return decode(model, encode(model, source), source, target_input)


def loss(
    model: Transformer,
    source: Int[Tensor, "sentence source"],
    labels: Int[Tensor, "sentence target"],
    smoothing: Number = 0.1,
) -> Float[Tensor, ""]:
    """The training loss: cross-entropy against smoothed labels, summed over tokens, in nats.

        L = Σᵢ CE(qᵢ, softmax(zᵢ)),   Z = logits(source, (BOS, y₁, …, yₙ₋₁))

    EQ: 106, 118, 120, 121.  Source: Vaswani et al. (2017), §5.4; the decoder reads the true words
    (teacher forcing). Labels that are PAD do not count.
    """
    # one pass for all positions: the mask hides the words to come
    z = logits(model, source, shift_right(labels, BOS_ID))
    return smoothed_cross_entropy(z, labels, smoothing, "sum", PAD_ID)


def greedy(model: Transformer, source: Int[Tensor, "sentence source"], max_length: int) -> Ids:
    """Translations by the likeliest next word, until EOS or ``max_length`` words.

        eₜ = argmaxᵥ p(v | e₁, …, eₜ₋₁, source)

    EQ: 123, 125.  Source: Cho et al. (2014), §3. PAD and BOS are never generated; a sentence
    that has ended is filled up with PAD.
    """
    # once: the source does not change while the target grows
    memory = encode(model, source)
    # (sentence, 1): every translation begins with BOS
    prefix = torch.full_like(source[:, :1], BOS_ID)
    has_ended = torch.zeros_like(prefix, dtype=torch.bool)
    for length in range(max_length + 1):
        # the whole prefix again at every step, as there is no KV cache
        z = decode(model, memory, source, prefix)[:, -1:]  # (sentence, 1, vocabulary)
        # (sentence, 1)
        word = most_likely(z.index_fill(-1, torch.tensor([PAD_ID, BOS_ID]), -math.inf))

        # a translation that reaches the limit is ended by force
        if length == max_length:
            word = torch.full_like(word, EOS_ID)

        # a sentence that has ended keeps its place in the batch and gets PAD
        prefix = torch.cat((prefix, word.masked_fill(has_ended, PAD_ID)), dim=1)
        has_ended = has_ended | (word == EOS_ID)

        if bool(has_ended.all()):
            break

    # without BOS
    return prefix[:, 1:]


def beam(
    model: Transformer,
    source: Int[Tensor, "1 source"],
    beam_size: int,
    alpha: Number,
    max_length: int,
) -> tuple[list[int], float]:
    """The best translation that a beam of ``beam_size`` prefixes finds, and its score.

        s(Y) = log P(Y | X) / lp(Y),   lp(Y) = ((5 + |Y|) / 6)^α

    EQ: 123, 127, 128.  Source: Lee, Before Transformers; Wu et al. (2016), §7, eq. (14); Vaswani
    et al. (2017), §6.1, with four beams and α = 0.6.
    Symbols: alpha = α; |Y| counts EOS, which a translation of ``max_length`` words is made to end
    with. A prefix that ends is set aside; the search ends when ``beam_size`` of them have ended.
    PAD and BOS are never generated.
    """
    memory = encode(model, source)
    prefixes: list[tuple[float, list[int]]] = [(0.0, [])]
    finished: list[tuple[float, list[int]]] = []

    while prefixes and len(finished) < beam_size:
        candidates: list[tuple[float, list[int]]] = []
        for log_prob, words in prefixes:
            target_input = torch.tensor([[BOS_ID, *words]])
            next_words = log_softmax(decode(model, memory, source, target_input)[0, -1]).tolist()
            # at the limit EOS is the only continuation, with the model's own probability
            if len(words) == max_length:
                candidates.append((log_prob + next_words[EOS_ID], [*words, EOS_ID]))
            else:
                candidates += [
                    (log_prob + each, [*words, word])
                    for word, each in enumerate(next_words)
                    if word not in (PAD_ID, BOS_ID)
                ]

        # Python's sort is stable: of equal scores the earlier prefix and the lower id stay first
        candidates.sort(key=lambda candidate: -candidate[0])

        # an EOS that is not among the best ``beam_size`` candidates is lost
        for log_prob, words in candidates[:beam_size]:
            if words[-1] == EOS_ID:
                finished.append((float(log_prob / length_penalty(len(words), alpha)), words))

        prefixes = [each for each in candidates if each[1][-1] != EOS_ID][:beam_size]

    score, words = max(finished, key=lambda each: each[0])
    return words, score


def repredict(model: Transformer, source: Int[Tensor, "1 source"], max_length: int) -> list[int]:
    """A translation all of whose words are predicted again at every step, without a mask.

        w⁽ᵏ⁾ = argmax decoder(BOS, w⁽ᵏ⁻¹⁾),   one word longer than w⁽ᵏ⁻¹⁾

    EQ: 84, 124.  Source: Single Page, Concrete Example (ER-36, ER-37). It ends with the first EOS,
    which takes the place of the last word after ``max_length`` words.
    """
    memory = encode(model, source)
    words = source.new_empty(0)

    while True:
        prefix = torch.cat((words.new_tensor([BOS_ID]), words)).unsqueeze(0)
        # one logit row for each position of the prefix, so ``words`` grows by one word a step
        z = decode(model, memory, source, prefix, causal=False)
        words = most_likely(z.index_fill(-1, torch.tensor([PAD_ID, BOS_ID]), -math.inf))[0]
        # the loop has to end even if the model never predicts EOS
        if len(words) > max_length:
            words[-1] = EOS_ID

        predicted = words.tolist()
        if EOS_ID in predicted:
            return predicted[: predicted.index(EOS_ID) + 1]
