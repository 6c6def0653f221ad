"""EQ-104, 108 and 115 in plain loops over Python floats: the module is the written lines.

The referee knows no matrices and no masks. It follows the Single Page number by number, ``Z[i]``
being row i of a matrix, and shares no line with the package.
"""

import math

import pytest
import torch

from pellucid.model.build import build_model
from pellucid.model.config import parse_model_config
from pellucid.model.seq2seq import Seq2Seq
from pellucid.model.state import Reading

Row = list[float]
Matrix = list[Row]

SETTINGS = {
    "d_model": 6,
    "d_ff": 5,
    "heads": 2,
    "d_k": 2,
    "d_v": 4,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "tie_output": False,
    "output_bias": True,
    "share_embeddings": False,
    "norm_eps": 1e-30,
}
SOURCE = [4, 5, 6]
"""je suis étudiant"""
SHIFTED = [2, 7, 8, 9]
"""∅ i am a"""
WITH_POSITIONS = {"rtol": 1e-6, "atol": 1e-6}
"""The module keeps its table of sinusoids in float32."""


def times(a: Matrix, b: Matrix) -> Matrix:
    return [
        [sum(a[i][k] * b[k][j] for k in range(len(b))) for j in range(len(b[0]))]
        for i in range(len(a))
    ]


def plus(a: Matrix, b: Matrix) -> Matrix:
    return [
        [x + y for x, y in zip(left, right, strict=True)] for left, right in zip(a, b, strict=True)
    ]


def softmax(row: Row) -> Row:
    total = sum(math.exp(x) for x in row)
    return [math.exp(x) / total for x in row]


def layer_norm(z: Matrix, gain: Row, bias: Row) -> Matrix:
    result = []
    for row in z:
        mean = sum(row) / len(row)
        deviation = math.sqrt(sum((x - mean) ** 2 for x in row) / len(row))
        result.append(
            [g * (x - mean) / deviation + b for x, g, b in zip(row, gain, bias, strict=True)]
        )
    return result


def feed_forward(z: Matrix, w_1: Matrix, b_1: Row, w_2: Matrix, b_2: Row) -> Matrix:
    """max(0, z W₁ + b₁) W₂ + b₂."""
    inner = plus(times(z, w_1), [b_1] * len(z))
    return plus(times([[max(0.0, x) for x in row] for row in inner], w_2), [b_2] * len(z))


def attention(q: Matrix, k: Matrix, v: Matrix, *, masked: bool) -> Matrix:
    """Row i of a masked attention sees the rows up to i and no more."""
    result = []
    for i, query in enumerate(q):
        seen = range(i + 1) if masked else range(len(k))
        scores = [
            sum(x * y for x, y in zip(query, k[j], strict=True)) / math.sqrt(len(query))
            for j in seen
        ]
        weights = softmax(scores)
        result.append([sum(weights[j] * v[j][c] for j in seen) for c in range(len(v[0]))])
    return result


class Weights:
    """The module's numbers as the matrices that the Single Page writes, right factors of a row."""

    def __init__(self, model: Seq2Seq) -> None:
        self._numbers = {name: each.tolist() for name, each in model.named_parameters()}

    def __call__(self, name: str) -> list:
        return self._numbers[name]

    def transposed(self, name: str) -> Matrix:
        return [list(column) for column in zip(*self._numbers[name], strict=True)]

    def heads(self, block: str) -> list[tuple[Matrix, Matrix, Matrix]]:
        """W_i^Q, W_i^K, W_i^V of each head i."""
        packed, h, d_k, d_v = self(f"{block}.w_qkv"), 2, 2, 4
        parts = []
        for i in range(h):
            q = packed[i * d_k : (i + 1) * d_k]
            k = packed[h * d_k + i * d_k : h * d_k + (i + 1) * d_k]
            v = packed[2 * h * d_k + i * d_v : 2 * h * d_k + (i + 1) * d_v]
            parts.append(
                tuple([list(column) for column in zip(*rows, strict=True)] for rows in (q, k, v))
            )
        return parts

    def multi_head(self, block: str, x: Matrix, memory: Matrix, *, masked: bool = False) -> Matrix:
        """Concat(head₁, …, headₕ) W^O."""
        heads = [
            attention(times(x, w_q), times(memory, w_k), times(memory, w_v), masked=masked)
            for w_q, w_k, w_v in self.heads(block)
        ]
        side_by_side = [[number for head in heads for number in head[i]] for i in range(len(x))]
        return times(side_by_side, self.transposed(f"{block}.w_o"))

    def norm(self, block: str, z: Matrix) -> Matrix:
        return layer_norm(z, self(f"{block}.norm.gain"), self(f"{block}.norm.bias"))

    def ffn(self, block: str, z: Matrix) -> Matrix:
        return feed_forward(
            z,
            self.transposed(f"{block}.inner.weight"),
            self(f"{block}.inner.bias"),
            self.transposed(f"{block}.outer.weight"),
            self(f"{block}.outer.bias"),
        )


def embedded(ids: list[int], table: Matrix) -> Matrix:
    """X = √d_model · W[id]; X' = X + PE(X) (EQ-15, EQ-29)."""
    width = len(table[0])
    rows = []
    for place, each in enumerate(ids):
        row = []
        for j in range(width):
            angle = place / 10000 ** ((j - j % 2) / width)
            wave = math.sin(angle) if j % 2 == 0 else math.cos(angle)
            row.append(math.sqrt(width) * table[each][j] + wave)
        rows.append(row)
    return rows


def encoder_block(w: Weights, i: int, z_0: Matrix) -> Matrix:
    """EQ-104, its four lines."""
    block = f"encoder.layers.{i}"
    z_1 = w.multi_head(f"{block}.self_attention", z_0, z_0)
    z_2 = w.norm(f"{block}.self_attention_norm", plus(z_0, z_1))
    z_3 = w.ffn(f"{block}.feed_forward", z_2)
    return w.norm(f"{block}.feed_forward_norm", plus(z_2, z_3))


def decoder_block(w: Weights, i: int, z_0: Matrix, memory: Matrix) -> Matrix:
    """EQ-108, its six lines."""
    block = f"decoder.layers.{i}"
    z_1 = w.multi_head(f"{block}.self_attention", z_0, z_0, masked=True)
    z_2 = w.norm(f"{block}.self_attention_norm", plus(z_0, z_1))
    z_3 = w.multi_head(f"{block}.cross_attention", z_2, memory)
    z_4 = w.norm(f"{block}.cross_attention_norm", plus(z_2, z_3))
    z_5 = w.ffn(f"{block}.feed_forward", z_4)
    return w.norm(f"{block}.feed_forward_norm", plus(z_4, z_5))


def transformer(w: Weights, source: list[int], shifted: list[int]) -> tuple[Matrix, Matrix, Matrix]:
    """EQ-115: the memory, the decoder's output and the probabilities P."""
    memory = embedded(source, w("source_embedding.weight"))
    for i in range(SETTINGS["encoder_layers"]):
        memory = encoder_block(w, i, memory)
    z = embedded(shifted, w("target_embedding.weight"))
    for i in range(SETTINGS["decoder_layers"]):
        z = decoder_block(w, i, z, memory)
    logits = plus(times(z, w.transposed("output_weight")), [w("output_bias")] * len(z))
    return memory, z, [softmax(row) for row in logits]


@pytest.fixture(scope="module")
def model() -> Seq2Seq:
    """Every number random, also the gains and biases that would start at one and zero."""
    built = build_model(parse_model_config(SETTINGS), 10, 11).double().eval().requires_grad_(False)
    generator = torch.Generator().manual_seed(4)
    for parameter in built.parameters():
        parameter += 0.5 * torch.randn(parameter.shape, generator=generator)
    return built


def as_tensor(matrix: Matrix) -> torch.Tensor:
    return torch.tensor(matrix, dtype=torch.float64)


@pytest.mark.property
def test_the_encoder_block_is_its_four_lines(model: Seq2Seq):
    """EQ-104, ER-08: attention reads x alone, and x is added to what it gives."""
    x = torch.randn(3, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    got = model.encoder.layers[0](x[None], Reading())[0]
    expected = encoder_block(Weights(model), 0, x.tolist())
    torch.testing.assert_close(got, as_tensor(expected), rtol=1e-12, atol=1e-12)


@pytest.mark.property
def test_the_decoder_block_is_its_six_lines(model: Seq2Seq):
    """EQ-89, EQ-97, EQ-108, EQ-109, ER-61: queries come from after the first Add & Norm."""
    generator = torch.Generator().manual_seed(2)
    x = torch.randn(4, 6, dtype=torch.float64, generator=generator)
    memory = torch.randn(3, 6, dtype=torch.float64, generator=generator)
    got = model.decoder.layers[1](x[None], Reading(causal=True, memory=memory[None]))[0]
    expected = decoder_block(Weights(model), 1, x.tolist(), memory.tolist())
    torch.testing.assert_close(got, as_tensor(expected), rtol=1e-12, atol=1e-12)


@pytest.mark.property
def test_the_whole_transformer_is_the_formulas_of_the_single_page(model: Seq2Seq):
    """Three words in, "∅ i am a" beside them: P is 4 × V.

    EQ-85, EQ-90, EQ-105, EQ-107, EQ-110 to EQ-113, EQ-115, EQ-116, EQ-122. Each block reads what
    the one before it gave (ER-10), each decoder block the encoder's output (ER-11).
    """
    memory, _, probabilities = transformer(Weights(model), SOURCE, SHIFTED)
    source, shifted = torch.tensor([SOURCE]), torch.tensor([SHIFTED])
    encoded = model.encode(source).states[0]
    torch.testing.assert_close(encoded, as_tensor(memory), **WITH_POSITIONS)
    got = model(source, shifted).softmax(-1)[0]
    assert got.shape == (4, 11)
    torch.testing.assert_close(got, as_tensor(probabilities), **WITH_POSITIONS)


@pytest.mark.property
def test_the_loss_is_the_sum_of_minus_the_logarithms_of_the_right_words(model: Seq2Seq):
    """EQ-118, the labels being "i am a student"."""
    labels = [7, 8, 9, 10]
    _, _, probabilities = transformer(Weights(model), SOURCE, SHIFTED)
    expected = -sum(math.log(row[label]) for row, label in zip(probabilities, labels, strict=True))
    sums = model.loss(
        torch.tensor([SOURCE]), torch.tensor([SHIFTED]), torch.tensor([labels]), smoothing=0.0
    )
    assert sums.loss.item() == pytest.approx(expected, rel=1e-6)
    assert sums.token_count == 4
