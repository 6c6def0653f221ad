"""Layers, attention, encoder and decoder of the recurrent translators of 2014 and 2015."""

import contextlib
import dataclasses
import math
from typing import assert_never

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from pellucid.core.special import PAD_ID
from pellucid.equations.alignment import attentional_state, general_scores
from pellucid.equations.attention import dot_products
from pellucid.equations.choices import Cell
from pellucid.equations.masks import masked_softmax
from pellucid.equations.recurrent import reverse_sequences
from pellucid.model.config import (
    NetworkSettings,
    RecurrentSettings,
    RnnAttentionConfig,
    RnnConfig,
)
from pellucid.model.dropout import Dropout, DropoutSource
from pellucid.model.seq2seq import Memory
from pellucid.model.trace import UNWATCHED, Trace


@dataclasses.dataclass(frozen=True)
class AttendedMemory:
    """The keys and values of the source, shared by all beams of a sentence."""

    keys: Float[Tensor, "sentence source d_model"]
    values: Float[Tensor, "sentence source d_model"]
    may_attend: Bool[Tensor, "sentence source"]
    """False at padding."""

    def select(self, sentences: Int[Tensor, " chosen"]) -> "AttendedMemory":
        """Keep these sentences."""
        return AttendedMemory(
            self.keys[sentences], self.values[sentences], self.may_attend[sentences]
        )


@dataclasses.dataclass(frozen=True)
class AttentionOutput:
    """The output of attention to the source, with its intermediates."""

    scores: Float[Tensor, "sentence target source"]
    weights: Float[Tensor, "sentence target source"]
    context: Float[Tensor, "sentence target d_model"]
    output: Float[Tensor, "sentence target d_model"]

    def keep(self, trace: Trace) -> None:
        """Offer everything to ``trace``, as attention with one head."""
        # (sentence, 1 head, target, source), as in multi-head attention
        trace.keep("scores", self.scores.unsqueeze(1))
        trace.keep("weights", self.weights.unsqueeze(1))
        trace.keep("context", self.context)
        trace.keep("output", self.output)


class RecurrentAttention(nn.Module):
    """h̃ₜ = tanh([cₜ ; hₜ] W_c), where cₜ is the mean of the source by fit to hₜ.

        dot:       score = hₜ · h̄ₛ
        general:   score = hₜᵀ W_a h̄ₛ
        additive:  score = v · tanh(hₜ W_a + h̄ₛ U_a)

    EQ: 135, 136.  Source: Luong et al. (2015), §3 and §3.1; Bahdanau et al. (2015), §3.1.
    Differs: Bahdanau et al. attend with the state before the word is read and feed the context to
    the cell; here every kind attends with the state after it, as Luong et al. do.
    Law: tests/laws/test_recurrent_equals_clear.py.
    """

    def __init__(self, config: RnnAttentionConfig) -> None:
        super().__init__()
        width = config.d_model
        self.scoring = config.attention
        has_query, has_key = self.scoring != "dot", self.scoring == "additive"
        self.w_query = nn.Parameter(torch.empty(width, width)) if has_query else None
        self.w_key = nn.Parameter(torch.empty(width, width)) if has_key else None
        self.v = nn.Parameter(torch.empty(width)) if has_key else None
        self.w_output = nn.Parameter(torch.empty(2 * width, width))

    def remember(
        self,
        states: Float[Tensor, "sentence source d_model"],
        may_attend: Bool[Tensor, "sentence source"],
    ) -> AttendedMemory:
        """The keys and values of the source, computed once for all steps."""
        # additive scores multiply every state by the same matrix at every step: once is enough
        keys = states if self.w_key is None else states @ self.w_key
        return AttendedMemory(keys, states, may_attend)

    def forward(
        self, hidden: Float[Tensor, "sentence target d_model"], memory: AttendedMemory
    ) -> AttentionOutput:
        """Attend from each state of the decoder; the beams of a sentence lie along ``target``."""
        scores = self._scores(hidden, memory.keys)
        weights = masked_softmax(scores, memory.may_attend.unsqueeze(1))
        # under autocast the products are bfloat16, and the state is not
        context = (weights @ memory.values).to(hidden.dtype)
        output = attentional_state(context, hidden, self.w_output)
        return AttentionOutput(scores, weights, context, output.to(hidden.dtype))

    def _scores(
        self,
        hidden: Float[Tensor, "sentence target d_model"],
        keys: Float[Tensor, "sentence source d_model"],
    ) -> Float[Tensor, "sentence target source"]:
        match self.scoring:
            case "dot":
                return dot_products(hidden, keys)
            case "general":
                assert self.w_query is not None
                return general_scores(hidden, keys, self.w_query)
            case "additive":
                assert self.w_query is not None
                assert self.v is not None
                query = (hidden @ self.w_query).unsqueeze(2)  # (sentence, target, 1, d_model)
                return torch.tanh(query + keys.unsqueeze(1)) @ self.v
            case _:
                assert_never(self.scoring)


@dataclasses.dataclass(frozen=True)
class LayerState:
    """The recurrent state of a layer, one row for each sequence."""

    hidden: Float[Tensor, "row d_model"]
    cell: Float[Tensor, "row d_model"] | None
    """None for a GRU, which has no separate cell."""

    def select(self, rows: Int[Tensor, " chosen"]) -> "LayerState":
        """Keep these rows."""
        return LayerState(self.hidden[rows], None if self.cell is None else self.cell[rows])


class RecurrentLayer(nn.Module):
    """(xₜ, hₜ) → hₜ₊₁ along a sequence; bidirectional: [→hₜ ; ←hₜ] for each of its words.

    EQ: 131, 132, 134.  Source: Sutskever et al. (2014), §2 (LSTM); Cho et al. (2014), §2.3 (GRU).
    A bidirectional layer gives half of ``d_model`` to each direction.
    Law: tests/laws/test_recurrent_equals_clear.py, with ``lstm`` and ``gru`` of the equations.
    """

    def __init__(self, cell: Cell, input_size: int, d_model: int, *, bidirectional: bool) -> None:
        super().__init__()
        build = nn.LSTM if cell == "lstm" else nn.GRU
        self.network: nn.LSTM | nn.GRU = build(
            input_size,
            d_model // 2 if bidirectional else d_model,
            batch_first=True,
            bidirectional=bidirectional,
        )

    def forward(
        self, x: Float[Tensor, "row time inputs"], state: LayerState
    ) -> tuple[Float[Tensor, "row time d_model"], LayerState]:
        """Continue from ``state``: the hidden state after each element, and the new state."""
        if (
            x.numel() == 0
        ):  # torch's kernels refuse a sequence without words and a batch without rows
            return x.new_zeros(*x.shape[:2], self.network.hidden_size), state

        # (layer · direction, row, hidden), as torch.nn needs it, also with ``batch_first``
        hidden = state.hidden.unsqueeze(0)
        if state.cell is None:
            outputs, last = self.network(x, hidden)
            return outputs.to(x.dtype), LayerState(last.squeeze(0).to(x.dtype), None)

        with _autocast_of_lstm(x.device):
            outputs, (last, cell) = self.network(x, (hidden, state.cell.unsqueeze(0)))
        new_state = LayerState(last.squeeze(0).to(x.dtype), cell.squeeze(0).to(x.dtype))
        return outputs.to(x.dtype), new_state  # under autocast the kernel may return bfloat16

    def read(
        self, x: Float[Tensor, "row time inputs"], lengths: Int[Tensor, " row"]
    ) -> tuple[Float[Tensor, "row time d_model"], LayerState]:
        """Whole sequences from a state of zeros, each within its own length (on the CPU, above 0).

        Outputs after the end are zero. The state is [→h after the last word ; ←h after the first].
        """
        # packing refuses a batch without rows
        if len(x) == 0:
            none = x.new_zeros(
                0, self.network.hidden_size * (2 if self.network.bidirectional else 1)
            )
            cell = none if isinstance(self.network, nn.LSTM) else None
            return none.new_zeros(0, x.shape[1], none.shape[1]), LayerState(none, cell)

        # packed, so that the backward direction starts at each last word and not in the padding
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        is_lstm = isinstance(self.network, nn.LSTM)
        with _autocast_of_lstm(x.device) if is_lstm else contextlib.nullcontext():
            packed_outputs, last = self.network(packed)
        outputs, _ = pad_packed_sequence(packed_outputs, batch_first=True, total_length=x.shape[1])
        outputs = outputs.to(x.dtype)

        if isinstance(last, Tensor):
            return outputs, LayerState(_side_by_side(last).to(x.dtype), None)
        hidden, cell = (_side_by_side(each).to(x.dtype) for each in last)
        return outputs, LayerState(hidden, cell)


def _autocast_of_lstm(device: torch.device) -> contextlib.AbstractContextManager[object]:
    """No autocast on a CPU for which oneDNN has no LSTM in the dtype of autocast: it would raise.

    It has one in bfloat16 for AVX-512, and none in float16.
    """
    if device.type != "cpu" or (
        torch.get_autocast_dtype("cpu") == torch.bfloat16
        and torch.backends.cpu.get_cpu_capability().startswith("AVX512")
    ):
        return contextlib.nullcontext()
    return torch.autocast("cpu", enabled=False)


def _side_by_side(
    last: Float[Tensor, "direction row hidden"],
) -> Float[Tensor, "row direction*hidden"]:
    return torch.cat(last.unbind(0), dim=-1)


@dataclasses.dataclass(frozen=True)
class RecurrentMemory(Memory):
    """The last state of every encoder layer; hidden states to attend to only with attention.

    Without attention ``states`` has length 0: whatever the length of the source, the decoder gets
    only ``last`` (EQ-133).
    """

    last: tuple[LayerState, ...]


@dataclasses.dataclass(frozen=True)
class RecurrentState:
    """The state of a recurrent decoder; a row is ``sentence · beam_count + beam``."""

    layers: tuple[LayerState, ...]
    fed: Float[Tensor, "row d_model"]
    """The input beside the next word: with input feeding the last output hidden state, and zeros at
    the start; with ``feed_summary`` always the last state of the encoder."""
    memory: AttendedMemory
    beam_count: int
    length: int

    @property
    def sentence_count(self) -> int:
        """How many source sentences are being translated."""
        return self.memory.may_attend.shape[0]

    def select(self, rows: Int[Tensor, "sentence beam"]) -> "RecurrentState":
        """Keep these rows; the beams of a new sentence must all come from one old sentence."""
        # rows have their own state; the source is kept once for a sentence, whatever its beams
        flat = rows.flatten()
        return RecurrentState(
            layers=tuple(layer.select(flat) for layer in self.layers),
            fed=self.fed[flat],
            memory=self.memory.select(rows[:, 0] // self.beam_count),
            beam_count=rows.shape[1],
            length=self.length,
        )


class TokenEmbedding(nn.Module):
    """√d_model · W[id]; a network that reads word by word needs no positions.

    EQ: 14, 15.  Source: Sutskever et al. (2014), §3.4; the scale is that of the Transformer.
    """

    def __init__(
        self, config: NetworkSettings, vocabulary_size: int, source: DropoutSource
    ) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(vocabulary_size, config.d_model))
        self.scale = math.sqrt(config.d_model) if config.scale_embeddings else 1.0
        self.dropout = Dropout(config.dropout, source)

    def forward(
        self, ids: Int[Tensor, "row length"], trace: Trace = UNWATCHED
    ) -> Float[Tensor, "row length d_model"]:
        """The embeddings of ``ids``."""
        # the row of PAD gets no gradient
        rows = functional.embedding(ids, self.weight, padding_idx=PAD_ID)
        rows = trace.keep("lookup", rows)
        output: Tensor = self.dropout(trace.keep("embedding", rows * self.scale))
        return output


class RecurrentEncoder(nn.Module):
    """Reads the source forwards, with ``reverse_source`` backwards, with attention both ways.

    EQ: 131, 134.  Source: Sutskever et al. (2014), §2 and §3.3; Bahdanau et al. (2015), §3.2.
    In every case hidden state i belongs to word i.
    """

    def __init__(self, config: RecurrentSettings, source: DropoutSource) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            RecurrentLayer(
                config.cell,
                config.d_model,
                config.d_model,
                bidirectional=isinstance(config, RnnAttentionConfig),
            )
            for _ in range(config.encoder_layers)
        )
        self.dropout = Dropout(config.dropout, source)
        self.reverse_source = isinstance(config, RnnConfig) and config.reverse_source

    def forward(
        self,
        x: Float[Tensor, "sentence source d_model"],
        lengths: Int[Tensor, " sentence"],
        trace: Trace = UNWATCHED,
    ) -> tuple[Float[Tensor, "sentence source d_model"], tuple[LayerState, ...]]:
        """The hidden states of the last layer, and the final state of each layer."""
        last = []
        for index, layer in enumerate(self.layers):
            assert isinstance(layer, RecurrentLayer)
            hidden, state = layer.read(self._as_read(x, lengths), lengths)
            last.append(state)
            hidden = self._as_read(hidden, lengths)
            x = self.dropout(trace.keep(f"layers.{index}.hidden", hidden))
        return trace.keep("output", x), tuple(last)

    def _as_read(
        self, x: Float[Tensor, "sentence source d_model"], lengths: Int[Tensor, " sentence"]
    ) -> Float[Tensor, "sentence source d_model"]:
        """Change between the order of reading and the order of the words. EOS stays last."""
        return reverse_sequences(x, lengths.to(x.device) - 1) if self.reverse_source else x


class RecurrentDecoder(nn.Module):
    """Starts from the encoder's last state; with attention it attends to the source for each word.

    EQ: 132, 135, 136.  Source: Sutskever et al. (2014), §2; Luong et al. (2015), §3 and §3.3.
    With input feeding, the last output hidden state enters the first layer beside the next word;
    with ``feed_summary`` the last state of the encoder enters beside every word.
    """

    def __init__(self, config: RecurrentSettings, source: DropoutSource) -> None:
        super().__init__()
        self.cross_attention = (
            RecurrentAttention(config) if isinstance(config, RnnAttentionConfig) else None
        )
        self.input_feeding = isinstance(config, RnnAttentionConfig) and config.input_feeding
        self.feed_summary = isinstance(config, RnnConfig) and config.feed_summary

        is_fed = self.input_feeding or self.feed_summary
        first_size = 2 * config.d_model if is_fed else config.d_model

        # what is fed stands beside the word, so only the first layer is wider
        sizes = [first_size] + [config.d_model] * (config.decoder_layers - 1)

        self.layers = nn.ModuleList(
            RecurrentLayer(config.cell, size, config.d_model, bidirectional=False) for size in sizes
        )
        self.dropout = Dropout(config.dropout, source)

    def forward(
        self,
        x: Float[Tensor, "row target d_model"],
        state: RecurrentState,
        trace: Trace = UNWATCHED,
    ) -> tuple[Float[Tensor, "row target d_model"], RecurrentState]:
        """Read any number of words after ``state``; return the output hidden state after each."""
        if x.shape[1] == 0:
            return x, state  # no word was read

        layers, fed, attended = state.layers, state.fed, list[AttentionOutput]()
        outputs, heard = [], []

        # the same vector beside every word: (row, target, 2 · d_model)
        if self.feed_summary:
            x = torch.cat([x, fed.unsqueeze(1).expand_as(x)], dim=-1)

        # with input feeding one word at a time, as each needs the output before it
        for words in torch.split(x, 1, dim=1) if self.input_feeding else [x]:
            if self.input_feeding:
                words = torch.cat([words, fed.unsqueeze(1)], dim=-1)
            each_hidden, layers = self._read(words, layers)
            heard.append(each_hidden)

            hidden = each_hidden[-1]
            if self.cross_attention is not None:
                # the beams of a sentence attend to one memory: (sentence, beam · word, d_model)
                beams = state.beam_count * hidden.shape[1]
                beside = hidden.reshape(state.sentence_count, beams, hidden.shape[-1])
                attended.append(self.cross_attention(beside, state.memory))
                hidden = attended[-1].output.view(hidden.shape)

            output = self.dropout(hidden)
            outputs.append(output)
            fed = fed if self.feed_summary else output[:, -1]

        # one entry for each piece of ``x``, joined to the whole length for the trace
        for index, parts in enumerate(zip(*heard, strict=True)):
            if trace.wants(f"layers.{index}.hidden"):
                trace.keep(f"layers.{index}.hidden", torch.cat(parts, dim=1))
        if attended:
            _join(attended).keep(trace.under("cross_attention"))

        output = trace.keep("output", torch.cat(outputs, dim=1))
        length = state.length + x.shape[1]
        return output, RecurrentState(layers, fed, state.memory, state.beam_count, length)

    def _read(
        self, x: Float[Tensor, "row time inputs"], layers: tuple[LayerState, ...]
    ) -> tuple[list[Float[Tensor, "row time d_model"]], tuple[LayerState, ...]]:
        """The outputs of each layer, and its new state."""
        hidden, new_layers = list[Tensor](), []
        for index, (layer, state) in enumerate(zip(self.layers, layers, strict=True)):
            x, new_state = layer(x if index == 0 else self.dropout(x), state)
            hidden.append(x)
            new_layers.append(new_state)
        return hidden, tuple(new_layers)


def _join(attended: list[AttentionOutput]) -> AttentionOutput:
    """Join the outputs of single words to one of all words."""
    return AttentionOutput(
        scores=torch.cat([each.scores for each in attended], dim=1),
        weights=torch.cat([each.weights for each in attended], dim=1),
        context=torch.cat([each.context for each in attended], dim=1),
        output=torch.cat([each.output for each in attended], dim=1),
    )
