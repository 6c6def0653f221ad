"""MetricX, a metric that is a model: an mT5 that was trained to give the errors of a translation.

The model reads a candidate with its source, its reference or both, and one number of its first
output is the score: 0 is a perfect translation, 25 the worst. It is read from a folder as data, and
computed here: a T5 of whose decoder one step is needed is two pages.

config.json          the sizes
model.safetensors    the parameters, in one file or several; or pytorch_model.bin, read as tensors
spiece.model         the sentencepiece model of mT5, which MetricX's own folders leave out

Source: Juraska et al. (2023), MetricX-23; Juraska et al. (2024), MetricX-24; the model is
Raffel et al. (2020), T5, in its version 1.1 (Xue et al. 2021, mT5).
"""

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal, get_args

import pydantic
import sentencepiece
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional

from pellucid.backends.huggingface.pytorch_file import load_torch_tensors
from pellucid.core.errors import BundleError, InputMissingError, UnsafeFormatError
from pellucid.core.files import LARGEST_TABLE, read_plain, sha256_of
from pellucid.core.tensors import load_tensors
from pellucid.decoding.engine import token_batches
from pellucid.evaluation.metrics import Judged

MetricXVersion = Literal["metricx-23", "metricx-23-qe", "metricx-24", "metricx-24-qe"]
VERSIONS: tuple[MetricXVersion, ...] = get_args(MetricXVersion)
"""By year, as the years put the parts of the input in another order; ``qe`` reads no reference."""

_SCORE_ID = 250_089
"""The output that was trained to be the score: ``<extra_id_10>`` of mT5's vocabulary."""
_WORST = 25.0
_LONGEST = {"23": 1024, "24": 1536}
"""Tokens that are read, as in the programs of the papers; what is beyond is cut."""
_BATCH_TOKENS = 4096
_HASH_LENGTH = 12


_Size = Annotated[int, pydantic.Field(ge=1, le=4096)]
"""A number of layers, a width or a distance; the largest mT5 has 24 layers and 64 heads of 64."""


class _Sizes(pydantic.BaseModel):
    """The settings of config.json that decide what is computed."""

    model_config = pydantic.ConfigDict(strict=True, frozen=True)

    d_kv: _Size
    num_heads: _Size
    num_layers: _Size
    num_decoder_layers: _Size
    relative_attention_num_buckets: Annotated[_Size, pydantic.Field(ge=4)]
    relative_attention_max_distance: _Size
    layer_norm_epsilon: Annotated[float, pydantic.Field(gt=0, lt=1)]

    @classmethod
    def read(cls, folder: Path) -> "_Sizes":
        """Raises InputMissingError, and BundleError for a model that is no mT5."""
        path = folder / "config.json"
        try:
            table = json.loads(read_plain(path, LARGEST_TABLE))
            kind, feed_forward = table["model_type"], table["feed_forward_proj"]
            if (kind, feed_forward) != ("mt5", "gated-gelu"):
                raise BundleError(
                    f"{path} must be of an mT5 with gated-gelu, got {kind} with {feed_forward}"
                )
            if table.get("num_decoder_layers") is None:
                table["num_decoder_layers"] = table["num_layers"]
            sizes = cls.model_validate(table)
        except OSError as error:
            raise InputMissingError(f"cannot read {path}: {error.strerror}") from error
        except pydantic.ValidationError as error:
            first = error.errors()[0]
            raise BundleError(f"{path}: {first['loc'][0]}: {first['msg']}") from error
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise BundleError(f"{path} is not the config of an mT5: {error!r}") from error

        # Shorter distances have a bias each, in each direction.
        exact = sizes.relative_attention_num_buckets // 4
        if sizes.relative_attention_max_distance <= exact:
            raise BundleError(
                f"{path}: relative_attention_max_distance: must be greater than {exact}, got"
                f" {sizes.relative_attention_max_distance}"
            )
        return sizes


class MetricX:
    """A MetricX model; ``version`` says how its input is written.

    Raises InputMissingError, BundleError for what is no MetricX model, UnsafeFormatError for a
    ``pytorch_model.bin`` that holds more than tensors.
    """

    def __init__(self, folder: Path, version: MetricXVersion) -> None:
        self.version = version
        self._sizes = _Sizes.read(folder)
        self._weights, digest = _read_weights(folder)
        self._check(folder)

        vocabulary = folder / "spiece.model"
        if not vocabulary.is_file():
            raise InputMissingError(
                f"{folder} has no spiece.model",
                hint="it is the file of that name of the mT5 that the metric was made from",
            )
        self._processor = sentencepiece.SentencePieceProcessor()
        try:
            self._processor.LoadFromSerializedProto(read_plain(vocabulary, LARGEST_TABLE))
        except (RuntimeError, ValueError, IndexError, TypeError) as error:
            raise BundleError(f"{vocabulary} is not a sentencepiece model: {error}") from error
        self.signature = f"{version}|model:{digest[:_HASH_LENGTH]}"

    def judge(
        self, sources: Sequence[str], hypotheses: Sequence[str], references: Sequence[str]
    ) -> Judged:
        """The score of each line, and their mean; lower is better."""
        texts = [self._input(*line) for line in zip(sources, hypotheses, references, strict=True)]
        longest = _LONGEST[self.version.split("-")[1]]
        rows = [self._processor.encode(text)[:longest] for text in texts]

        scores = [0.0] * len(rows)
        for batch in token_batches([len(row) for row in rows], _BATCH_TOKENS):
            found = self._scores([rows[index] for index in batch])
            for index, score in zip(batch, found, strict=True):
                scores[index] = score
        return Judged(math.fsum(scores) / len(scores), scores, self.signature)

    def _input(self, source: str, hypothesis: str, reference: str) -> str:
        match self.version:
            case "metricx-23":
                return f"candidate: {hypothesis} reference: {reference}"
            case "metricx-23-qe":
                return f"candidate: {hypothesis} source: {source}"
            case "metricx-24":
                return f"source: {source} candidate: {hypothesis} reference: {reference}"
            case "metricx-24-qe":
                return f"source: {source} candidate: {hypothesis}"

    def _scores(self, rows: Sequence[Sequence[int]]) -> list[float]:
        length = max(1, *map(len, rows))
        ids = torch.tensor([[*row, *[0] * (length - len(row))] for row in rows])
        is_read = torch.tensor([[each < len(row) for each in range(length)] for row in rows])
        with torch.inference_mode():
            memory = self._encode(ids, is_read)
            output = self._first_output(memory, is_read)
        scores: list[float] = output.clamp(0.0, _WORST).tolist()
        return scores

    def _encode(
        self, ids: Int[Tensor, "line token"], is_read: Bool[Tensor, "line token"]
    ) -> Float[Tensor, "line token d_model"]:
        """The hidden states of the encoder."""
        x = functional.embedding(ids, self._weights["shared.weight"])
        bias = self._position_bias(ids.shape[1])
        # (line, head, query, key): what is padding is never attended to
        bias = bias.masked_fill(~is_read[:, None, None, :], -torch.inf)
        for number in range(self._sizes.num_layers):
            name = f"encoder.block.{number}.layer"
            normed = self._norm(x, f"{name}.0.layer_norm")
            x = x + self._attend(normed, normed, bias, f"{name}.0.SelfAttention")
            x = x + self._feed_forward(self._norm(x, f"{name}.1.layer_norm"), f"{name}.1")
        return self._norm(x, "encoder.final_layer_norm")

    def _first_output(
        self, memory: Float[Tensor, "line token d_model"], is_read: Bool[Tensor, "line token"]
    ) -> Float[Tensor, " line"]:
        """The score's logit at the decoder's first position, whose input is the padding."""
        start = self._weights["shared.weight"][0]
        x = start.expand(len(memory), 1, -1)
        nothing = memory.new_zeros(len(memory), 1, 1, 1)
        bias = memory.new_zeros(is_read.shape).masked_fill(~is_read, -torch.inf)

        for number in range(self._sizes.num_decoder_layers):
            name = f"decoder.block.{number}.layer"
            # it attends to itself alone, with the weight 1 whatever the bias of its position
            normed = self._norm(x, f"{name}.0.layer_norm")
            x = x + self._attend(normed, normed, nothing, f"{name}.0.SelfAttention")
            normed = self._norm(x, f"{name}.1.layer_norm")
            attention = f"{name}.1.EncDecAttention"
            x = x + self._attend(normed, memory, bias[:, None, None, :], attention)
            x = x + self._feed_forward(self._norm(x, f"{name}.2.layer_norm"), f"{name}.2")

        x = self._norm(x, "decoder.final_layer_norm")
        return x[:, 0] @ self._weights["lm_head.weight"][_SCORE_ID]

    def _attend(
        self,
        x: Float[Tensor, "line query d_model"],
        memory: Float[Tensor, "line key d_model"],
        bias: Float[Tensor, "#line #head #query key"],
        name: str,
    ) -> Float[Tensor, "line query d_model"]:
        """softmax(Q Kᵀ + B) V, without the division by √dₖ, which T5 keeps in its weights."""
        query, key, value = (
            # (line, position, head · d_kv) -> (line, head, position, d_kv)
            functional.linear(rows, self._weights[f"{name}.{part}.weight"])
            .reshape(*rows.shape[:2], self._sizes.num_heads, self._sizes.d_kv)
            .transpose(1, 2)
            for part, rows in (("q", x), ("k", memory), ("v", memory))
        )
        shares = (query @ key.transpose(-2, -1) + bias).softmax(dim=-1)
        heads = (shares @ value).transpose(1, 2).flatten(2)
        return functional.linear(heads, self._weights[f"{name}.o.weight"])

    def _feed_forward(
        self, x: Float[Tensor, "line position d_model"], name: str
    ) -> Float[Tensor, "line position d_model"]:
        """(gelu(x W₀) ⊙ x W₁) Wₒ."""
        gate, inner = (
            functional.linear(x, self._weights[f"{name}.DenseReluDense.{part}.weight"])
            for part in ("wi_0", "wi_1")
        )
        product = functional.gelu(gate, approximate="tanh") * inner
        return functional.linear(product, self._weights[f"{name}.DenseReluDense.wo.weight"])

    def _norm(self, x: Float[Tensor, "*rows d_model"], name: str) -> Float[Tensor, "*rows d_model"]:
        weight = self._weights[f"{name}.weight"]
        return functional.rms_norm(x, weight.shape, weight, self._sizes.layer_norm_epsilon)

    def _position_bias(self, length: int) -> Float[Tensor, "1 head query key"]:
        """The learned bias of each distance, which all blocks share; far ones have one together."""
        half = self._sizes.relative_attention_num_buckets // 2
        exact, farthest = half // 2, self._sizes.relative_attention_max_distance
        positions = torch.arange(length)
        # key minus query: positive where the key is behind
        distance = positions[None, :] - positions[:, None]
        size = distance.abs()
        far = exact + (
            (size.clamp(min=1) / exact).log() / math.log(farthest / exact) * (half - exact)
        ).long().clamp(max=half - exact - 1)
        bucket = torch.where(size < exact, size, far) + half * (distance > 0)
        table = self._weights[f"{_FIRST_ATTENTION}.relative_attention_bias.weight"]
        # (query, key, head) -> (1, head, query, key)
        return table[bucket].permute(2, 0, 1)[None]

    def _check(self, folder: Path) -> None:
        """Raise BundleError unless the parameters are those that the sizes need."""
        sizes, got = self._sizes, {name: tuple(each.shape) for name, each in self._weights.items()}
        inner = sizes.num_heads * sizes.d_kv

        vocabulary, width = got.get("shared.weight", (0, 0))
        if vocabulary <= _SCORE_ID:
            raise BundleError(
                f"{folder} is no MetricX model: its score is output {_SCORE_ID}, and it has"
                f" {vocabulary}"
            )

        middle = got.get(f"{_FIRST_FEED_FORWARD}.wi_0.weight", (0, 0))[0]
        wanted: dict[str, tuple[int, ...]] = {
            "shared.weight": (vocabulary, width),
            "lm_head.weight": (vocabulary, width),
            f"{_FIRST_ATTENTION}.relative_attention_bias.weight": (
                sizes.relative_attention_num_buckets,
                sizes.num_heads,
            ),
        }

        for side, layers, kinds in (
            ("encoder", sizes.num_layers, ("SelfAttention",)),
            ("decoder", sizes.num_decoder_layers, ("SelfAttention", "EncDecAttention")),
        ):
            wanted[f"{side}.final_layer_norm.weight"] = (width,)
            for number in range(layers):
                name = f"{side}.block.{number}.layer"
                for place, kind in enumerate(kinds):
                    wanted[f"{name}.{place}.layer_norm.weight"] = (width,)
                    wanted |= {f"{name}.{place}.{kind}.{p}.weight": (inner, width) for p in "qkv"}
                    wanted[f"{name}.{place}.{kind}.o.weight"] = (width, inner)

                last = f"{name}.{len(kinds)}"
                wanted[f"{last}.layer_norm.weight"] = (width,)
                dense = f"{last}.DenseReluDense"
                wanted |= {f"{dense}.{part}.weight": (middle, width) for part in ("wi_0", "wi_1")}
                wanted[f"{dense}.wo.weight"] = (width, middle)

        wrong = [name for name, shape in wanted.items() if got.get(name) != shape]
        if wrong:
            raise BundleError(
                f"{folder} does not fit its config.json: {wrong[0]} should be {wanted[wrong[0]]},"
                f" is {got.get(wrong[0], 'missing')}"
            )


_FIRST_ATTENTION = "encoder.block.0.layer.0.SelfAttention"
_FIRST_FEED_FORWARD = "encoder.block.0.layer.1.DenseReluDense"


def _read_weights(folder: Path) -> tuple[Mapping[str, Tensor], str]:
    """The parameters in float32, and a hash of their files."""
    if not folder.is_dir():
        raise InputMissingError(
            f"there is no folder {folder}", hint="name a folder with config.json and weights"
        )
    # A large model lies in several files, of which each names its number and their count.
    safe, other = (
        sorted([*folder.glob(f"{stem}.{end}"), *folder.glob(f"{stem}-*-of-*.{end}")])
        for stem, end in (("model", "safetensors"), ("pytorch_model", "bin"))
    )
    if not safe and not other:
        if any(folder.glob("**/*.ckpt")):
            raise UnsafeFormatError(
                f"{folder} holds a checkpoint of Lightning (.ckpt), a pickle that may run code",
                hint="docs/decisions.md says why no model of COMET is read",
            )
        raise InputMissingError(f"{folder} must hold model.safetensors or pytorch_model.bin")

    weights: dict[str, Tensor] = {}
    digest = hashlib.sha256()
    for path in safe or other:
        tensors = load_tensors(path) if safe else load_torch_tensors(path)
        weights |= {name: each.float() for name, each in tensors.items()}
        digest.update(sha256_of(path).encode())
    return weights, digest.hexdigest()
