"""The translators before the Transformer on one page: recurrent, with attention and without.

An encoder reads the source word by word; a decoder goes on from its last state (Sutskever et al.
2014; Cho et al. 2014), or attends to all its states before every word (Bahdanau et al. 2015; Luong
et al. 2015). ``pellucid.clear(bundle)`` opens a trained model as the ``RecurrentTranslator`` here.
"""

import dataclasses
from collections.abc import Sequence
from typing import assert_never

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from pellucid.core.special import BOS_ID, PAD_ID
from pellucid.equations.alignment import (
    additive_attention,
    attentional_state,
    dot_product_attention,
    general_attention,
)
from pellucid.equations.choices import Cell as CellKind
from pellucid.equations.choices import RecurrentAttention
from pellucid.equations.embedding import embed, output_logits, scaled_embedding, shift_right
from pellucid.equations.losses import smoothed_cross_entropy
from pellucid.equations.masks import padding_mask
from pellucid.equations.recurrent import concatenate_directions, gru, lstm, reverse_sequences
from pellucid.equations.shapes import Number
from pellucid.equations.weights import Dropout, NoDropout

Cell = tuple[Tensor, Tensor, Tensor, Tensor]
"""W_ih, W_hh, b_ih and b_hh of an LSTM or a GRU."""
LayerState = tuple[Tensor, ...]
"""(h, c) of an LSTM, (h,) of a GRU."""


@dataclasses.dataclass(frozen=True)
class RecurrentAttentionWeights:
    """The weights of the attention of 2015; ``dot`` has only w_c, ``additive`` has all."""

    kind: RecurrentAttention
    w_query: Float[Tensor, "d_model d_model"] | None
    w_key: Float[Tensor, "d_model d_model"] | None
    v: Float[Tensor, " d_model"] | None
    w_c: Float[Tensor, "context_and_hidden d_model"]


@dataclasses.dataclass(frozen=True)
class RecurrentTranslator:
    """A recurrent encoder-decoder: its settings and all its weights."""

    source_embedding: Float[Tensor, "source_vocabulary d_model"]
    target_embedding: Float[Tensor, "vocabulary d_model"]
    encoder: Sequence[Sequence[Cell]]
    """One cell for each layer, or two, forwards and backwards."""
    decoder: Sequence[Cell]
    attention: RecurrentAttentionWeights | None
    w_s: Float[Tensor, "d_model vocabulary"]
    b_s: Float[Tensor, " vocabulary"] | None
    cell: CellKind
    scale_embeddings: bool
    input_feeding: bool
    """With attention: the decoder reads its last output beside every word."""
    feed_summary: bool
    """Without: it reads the last state of the encoder beside every word."""
    reverse_source: bool
    dropout: float
    training: Dropout = dataclasses.field(default_factory=NoDropout)


def read(
    x: Float[Tensor, "sentence length inputs"],
    state: LayerState,
    cell: Cell,
    kind: CellKind,
) -> tuple[Float[Tensor, "sentence length hidden"], list[Float[Tensor, "sentence length hidden"]]]:
    """One layer over a sequence: its outputs, and its states (h, or h and c) after every word.

        (xₜ, hₜ) → hₜ₊₁

    EQ: 131, 132.  Source: Lee, Before Transformers; Sutskever et al. (2014), §2.
    """
    match kind:
        case "lstm":
            states = list(lstm(x, state[0], state[1], *cell))
        case "gru":
            states = [gru(x, state[0], *cell)]
        case _:
            assert_never(kind)
    return states[0], states


def encode(
    model: RecurrentTranslator, source: Int[Tensor, "sentence source"]
) -> tuple[Float[Tensor, "sentence source d_model"], list[LayerState]]:
    """The hidden states of the last layer at every word, and the final state of every layer.

        →hₜ = f(xₜ, →hₜ₋₁),   ←hₜ = f(xₜ, ←hₜ₊₁),   H = ([→hₜ ; ←hₜ])ₜ

    EQ: 131, 133, 134.  Source: Sutskever et al. (2014), §2, §3.3; Bahdanau et al. (2015), §3.2.
    A sentence of padding alone is read as one word.
    """
    # at least 1, as in the fast program, whose kernel takes no empty sequences
    lengths = padding_mask(source, PAD_ID).sum(dim=1).clamp(min=1)
    # (sentence, source); padding stands only at the end of a sentence
    is_word = torch.arange(source.shape[1]) < lengths[:, None]
    sentences = torch.arange(len(source))
    x = _embed(model, source, model.source_embedding)

    ends: list[LayerState] = []
    for directions in model.encoder:
        # With ``reverse_source`` the words are read from the last to the first; EOS stays last.
        x = reverse_sequences(x, lengths - 1) if model.reverse_source else x
        start = _zeros(x, directions[0], model.cell)
        outputs, states = read(x, start, directions[0], model.cell)
        # the state after the last word of each sentence, not after its padding
        last = [each[sentences, lengths - 1] for each in states]

        # reversed within each sentence, so that the backward cell starts at the last word
        if len(directions) == 2:
            mirrored = reverse_sequences(x, lengths)
            backward, back_states = read(mirrored, start, directions[1], model.cell)
            outputs = concatenate_directions(outputs, reverse_sequences(backward, lengths))
            ends_back = [each[sentences, lengths - 1] for each in back_states]
            last = [torch.cat(pair, dim=-1) for pair in zip(last, ends_back, strict=True)]

        ends.append(tuple(last))

        # a cell goes on over padding; what it gives there must not reach the next layer
        outputs = outputs.masked_fill(~is_word.unsqueeze(-1), 0.0)
        outputs = reverse_sequences(outputs, lengths - 1) if model.reverse_source else outputs
        x = model.training.drop(outputs, model.dropout)
    return x, ends


def attend(
    hidden: Float[Tensor, "sentence target d_model"],
    states: Float[Tensor, "sentence source d_model"],
    may_attend: Bool[Tensor, "sentence 1 source"],
    weights: RecurrentAttentionWeights,
) -> Float[Tensor, "sentence target d_model"]:
    """The state that the decoder predicts from, after attention to the encoder's states.

        h̃ₜ = tanh([cₜ ; hₜ] W_c),   cₜ = Σₛ softmaxₛ(score(hₜ, h̄ₛ)) h̄ₛ

    EQ: 135, 136.  Source: Luong et al. (2015), §3.1; Bahdanau et al. (2015), §3.1.
    """
    w_query, w_key, v = weights.w_query, weights.w_key, weights.v
    match weights.kind:
        case "dot":
            context = dot_product_attention(hidden, states, states, may_attend)
        case "general":
            assert w_query is not None
            context = general_attention(hidden, states, states, w_query, may_attend)
        case "additive":
            assert w_query is not None
            assert w_key is not None
            assert v is not None
            context = additive_attention(hidden, states, states, w_query, w_key, v, may_attend)
        case _:
            assert_never(weights.kind)

    return attentional_state(context, hidden, weights.w_c)


def logits(
    model: RecurrentTranslator,
    source: Int[Tensor, "sentence source"],
    target_input: Int[Tensor, "sentence target"],
) -> Float[Tensor, "sentence target vocabulary"]:
    """The logits of a recurrent translator at every position of the target.

    EQ: 112, 132, 133, 136.  Source: Sutskever et al. (2014), §2; Luong et al. (2015), §3.3, for
    input feeding; Cho et al. (2014), §2.2, for the summary beside every word.
    """
    states, layers = encode(model, source)
    summary = layers[-1][0]
    may_attend = padding_mask(source, PAD_ID).unsqueeze(1)
    words = _embed(model, target_input, model.target_embedding)
    # beside every word: (sentence, target, 2 · d_model)
    if model.feed_summary:
        words = torch.cat((words, summary.unsqueeze(1).expand_as(words)), dim=-1)

    outputs: list[Tensor] = []
    last_output = torch.zeros_like(summary)
    # with input feeding a word needs the output before it; without, all words are read at once
    for x in torch.split(words, 1, dim=1) if model.input_feeding else [words]:
        if model.input_feeding:
            x = torch.cat((x, last_output.unsqueeze(1)), dim=-1)

        for index, cell in enumerate(model.decoder):
            x = x if index == 0 else model.training.drop(x, model.dropout)
            x, all_states = read(x, layers[index], cell, model.cell)
            layers[index] = tuple(each[:, -1] for each in all_states)

        if model.attention is not None:
            x = attend(x, states, may_attend, model.attention)
        outputs.append(model.training.drop(x, model.dropout))
        last_output = outputs[-1][:, -1]

    return output_logits(torch.cat(outputs, dim=1), model.w_s, model.b_s)


def loss(
    model: RecurrentTranslator,
    source: Int[Tensor, "sentence source"],
    labels: Int[Tensor, "sentence target"],
    smoothing: Number = 0.1,
) -> Float[Tensor, ""]:
    """The training loss: cross-entropy against smoothed labels, summed over tokens, in nats.

    EQ: 118, 120, 121, 133.  Source: Lee, Before Transformers. Labels that are PAD do not count.
    """
    z = logits(model, source, shift_right(labels, BOS_ID))
    return smoothed_cross_entropy(z, labels, smoothing, "sum", PAD_ID)


def _embed(
    model: RecurrentTranslator, ids: Int[Tensor, "sentence length"], weight: Tensor
) -> Float[Tensor, "sentence length d_model"]:
    lookup = scaled_embedding if model.scale_embeddings else embed
    return model.training.drop(lookup(ids, weight), model.dropout)


def _zeros(x: Tensor, cell: Cell, kind: CellKind) -> LayerState:
    zeros = x.new_zeros(x.shape[0], cell[1].shape[1])
    return (zeros, zeros) if kind == "lstm" else (zeros,)
