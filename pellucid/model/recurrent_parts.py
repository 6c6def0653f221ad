"""Embedding, encoder and decoder of the recurrent translators of 2014 and 2015."""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from pellucid.core.special import PAD_ID
from pellucid.equations.recurrent import reverse_sequences
from pellucid.model.config import ModelConfig
from pellucid.model.dropout import Dropout, DropoutSource
from pellucid.model.recurrent_attention import Look, RecurrentAttention
from pellucid.model.recurrent_layer import LayerState, RecurrentLayer
from pellucid.model.recurrent_state import RecurrentState
from pellucid.model.trace import UNWATCHED, Trace


class TokenEmbedding(nn.Module):
    """√d_model · W[id]; the order of the words needs no numbers where they are read in turn.

    EQ: 14, 15.  Source: Sutskever et al. (2014), §3.4; the scale is that of the Transformer.
    """

    def __init__(self, config: ModelConfig, vocabulary_size: int, source: DropoutSource) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(vocabulary_size, config.d_model))
        self.scale = math.sqrt(config.d_model) if config.scale_embeddings else 1.0
        self.dropout = Dropout(config.dropout, source)

    def forward(
        self, ids: Int[Tensor, "row length"], trace: Trace = UNWATCHED
    ) -> Float[Tensor, "row length d_model"]:
        """Rows for ``ids``."""
        rows = functional.embedding(ids, self.weight, padding_idx=PAD_ID)
        rows = trace.keep("lookup", rows)
        output: Tensor = self.dropout(trace.keep("embedding", rows * self.scale))
        return output


class RecurrentEncoder(nn.Module):
    """Reads the source forwards, with ``reverse_source`` backwards, with attention both ways.

    EQ: 131, 134.  Source: Sutskever et al. (2014), §2 and §3.3; Bahdanau et al. (2015), §3.2.
    Whichever way it reads, row i is about word i.
    """

    def __init__(self, config: ModelConfig, source: DropoutSource) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            RecurrentLayer(
                config.cell,
                config.d_model,
                config.d_model,
                bidirectional=config.kind == "rnn-attention",
            )
            for _ in range(config.encoder_layers)
        )
        self.dropout = Dropout(config.dropout, source)
        self.reverse_source = config.reverse_source

    def forward(
        self,
        x: Float[Tensor, "sentence source d_model"],
        lengths: Int[Tensor, " sentence"],
        trace: Trace = UNWATCHED,
    ) -> tuple[Float[Tensor, "sentence source d_model"], tuple[LayerState, ...]]:
        """The last layer's states, and where each layer ended."""
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
        """In the order of reading; from that order, in the order of the words. STOP stays last."""
        return reverse_sequences(x, lengths.to(x.device) - 1) if self.reverse_source else x


class RecurrentDecoder(nn.Module):
    """Goes on from where the encoder ended; with attention it looks back before it speaks.

    EQ: 132, 135, 136.  Source: Sutskever et al. (2014), §2; Luong et al. (2015), §3 and §3.3.
    With input feeding, what was said last enters the first layer beside the next word; with
    ``feed_summary`` it is the encoder's last state that enters beside every word.
    """

    def __init__(self, config: ModelConfig, source: DropoutSource) -> None:
        super().__init__()
        self.cross_attention = (
            RecurrentAttention(config) if config.kind == "rnn-attention" else None
        )
        self.input_feeding = self.cross_attention is not None and config.input_feeding
        self.feed_summary = config.feed_summary
        is_fed = self.input_feeding or self.feed_summary
        first_size = 2 * config.d_model if is_fed else config.d_model
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
        """Read any number of words from ``state`` on; a row to predict from after each."""
        if x.shape[1] == 0:
            return x, state  # no word was read
        layers, fed, looks = state.layers, state.fed, list[Look]()
        spoken, heard = [], []
        if self.feed_summary:
            x = torch.cat([x, fed.unsqueeze(1).expand_as(x)], dim=-1)
        for words in torch.split(x, 1, dim=1) if self.input_feeding else [x]:
            if self.input_feeding:
                words = torch.cat([words, fed.unsqueeze(1)], dim=-1)
            each_hidden, layers = self._read(words, layers)
            heard.append(each_hidden)
            hidden = each_hidden[-1]
            if self.cross_attention is not None:
                beams = state.beam_count * hidden.shape[1]
                beside = hidden.reshape(state.sentence_count, beams, hidden.shape[-1])
                looks.append(self.cross_attention(beside, state.memory))
                hidden = looks[-1].output.view(hidden.shape)
            said = self.dropout(hidden)
            spoken.append(said)
            fed = fed if self.feed_summary else said[:, -1]
        for index, parts in enumerate(zip(*heard, strict=True)):
            if trace.wants(f"layers.{index}.hidden"):
                trace.keep(f"layers.{index}.hidden", torch.cat(parts, dim=1))
        if looks:
            _join(looks).keep(trace.under("cross_attention"))
        output = trace.keep("output", torch.cat(spoken, dim=1))
        length = state.length + x.shape[1]
        return output, RecurrentState(layers, fed, state.memory, state.beam_count, length)

    def _read(
        self, x: Float[Tensor, "row time inputs"], layers: tuple[LayerState, ...]
    ) -> tuple[list[Float[Tensor, "row time d_model"]], tuple[LayerState, ...]]:
        """What each layer says, and where it stands."""
        hidden, new_layers = list[Tensor](), []
        for index, (layer, state) in enumerate(zip(self.layers, layers, strict=True)):
            x, new_state = layer(x if index == 0 else self.dropout(x), state)
            hidden.append(x)
            new_layers.append(new_state)
        return hidden, tuple(new_layers)


def _join(looks: list[Look]) -> Look:
    """Looks of one word each as one of all words."""
    return Look(
        scores=torch.cat([look.scores for look in looks], dim=1),
        weights=torch.cat([look.weights for look in looks], dim=1),
        context=torch.cat([look.context for look in looks], dim=1),
        output=torch.cat([look.output for look in looks], dim=1),
    )
