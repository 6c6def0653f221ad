"""Marian's model in NumPy, in its own names, for the self-check of what is read and written.

It follows ``src/models/transformer.h`` of marian-dev and uses none of our modules or tables, so
that an error in those cannot be repeated here. It is slow and reads one sentence at a time.
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from pellucid.backends.marian_files.items import Floats
from pellucid.backends.marian_files.settings import FileSettings

_Rows = npt.NDArray[np.float64]


def marian_logits(
    arrays: Mapping[str, Floats],
    settings: FileSettings,
    source: Sequence[int],
    target: Sequence[int],
) -> _Rows:
    """The logits (target + 1, vocabulary) of the words after each prefix of ``target``.

    ``source`` ends with the stop; the decoder begins with a vector of zeros. Ids are Marian's.
    """
    model = _Model(arrays, settings)
    memory = model.encode(source)
    return model.decode(memory, target)


class _Model:
    def __init__(self, arrays: Mapping[str, Floats], settings: FileSettings) -> None:
        self._arrays = arrays
        self._settings = settings
        tied = settings.is_all_tied
        self._source = "Wemb" if tied else "encoder_Wemb"
        self._target = "Wemb" if tied else "decoder_Wemb"

    def encode(self, ids: Sequence[int]) -> _Rows:
        x = self._embed(self._get(self._source)[list(ids)])
        for layer in range(1, self._settings.encoder_layers + 1):
            x = self._attention(f"encoder_l{layer}_self", x, x, causal=False)
            x = self._network(f"encoder_l{layer}_ffn", x)
        return x

    def decode(self, memory: _Rows, ids: Sequence[int]) -> _Rows:
        """The decoder's rows for a beginning of zeros and the words ``ids``."""
        words = self._get(self._target)
        zeros = np.zeros((1, self._settings.d_model))
        x = self._embed(np.concatenate((zeros, words[list(ids)])))
        for layer in range(1, self._settings.decoder_layers + 1):
            if self._settings.autoreg == "rnn":
                x = self._ssru(f"decoder_l{layer}_rnn", x)
            else:
                x = self._attention(f"decoder_l{layer}_self", x, x, causal=True)
            x = self._attention(f"decoder_l{layer}_context", x, memory, causal=False)
            x = self._network(f"decoder_l{layer}_ffn", x)
        logits: _Rows = x @ words.T + self._get("decoder_ff_logit_out_b")
        return logits

    def _get(self, name: str) -> _Rows:
        return self._arrays[name].astype(np.float64)

    def _embed(self, x: _Rows) -> _Rows:
        length, width = x.shape
        half = width // 2
        # as addPositionalEmbeddings: the steps are those between the first and the last wave
        rates = np.exp(-np.arange(half) * math.log(10000.0) / (half - 1.0))
        angles = np.arange(length)[:, None] * rates
        waves: _Rows = np.concatenate((np.sin(angles), np.cos(angles)), axis=1)
        return math.sqrt(width) * x + waves

    def _affine(self, x: _Rows, prefix: str, suffix: str) -> _Rows:
        product: _Rows = x @ self._get(f"{prefix}_W{suffix}") + self._get(f"{prefix}_b{suffix}")
        return product

    def _norm(self, x: _Rows, prefix: str) -> _Rows:
        mean, variance = x.mean(1, keepdims=True), x.var(1, keepdims=True)
        scale, bias = self._get(f"{prefix}_ln_scale"), self._get(f"{prefix}_ln_bias")
        normalized: _Rows = scale * (x - mean) / np.sqrt(variance + 1e-6) + bias
        return normalized

    def _attention(self, prefix: str, x: _Rows, keys: _Rows, *, causal: bool) -> _Rows:
        heads = self._settings.heads

        def split(rows: _Rows) -> _Rows:
            return rows.reshape(len(rows), heads, -1).transpose(1, 0, 2)

        query, key, value = (
            split(self._affine(rows, prefix, part))
            for rows, part in ((x, "q"), (keys, "k"), (keys, "v"))
        )
        scores = query @ key.transpose(0, 2, 1) / math.sqrt(query.shape[-1])
        if causal:
            scores = np.where(np.tri(len(x), dtype=bool), scores, -99999999.0)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        joined = (weights @ value).transpose(1, 0, 2).reshape(len(x), -1)
        return self._norm(self._affine(joined, prefix, "o") + x, f"{prefix}_Wo")

    def _ssru(self, prefix: str, x: _Rows) -> _Rows:
        added = x @ self._get(f"{prefix}_W")
        gates = 1.0 / (1.0 + np.exp(-self._affine(x, prefix, "f")))
        cell, outputs = np.zeros(x.shape[1]), []
        for gate, new in zip(gates, added, strict=True):
            cell = gate * cell + (1.0 - gate) * new
            outputs.append(np.maximum(cell, 0.0))
        return self._norm(np.stack(outputs) + x, f"{prefix}_ffn")

    def _network(self, prefix: str, x: _Rows) -> _Rows:
        inner = self._affine(x, prefix, "1")
        if self._settings.activation == "relu":
            inner = np.maximum(inner, 0.0)
        else:
            inner = inner / (1.0 + np.exp(-inner))
        return self._norm(self._affine(inner, prefix, "2") + x, f"{prefix}_ffn")
