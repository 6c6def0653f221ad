"""The steps of a decoder in NumPy, for a search with few hypotheses on a CPU.

For one sentence a step consists of a hundred operations on a few hundred numbers each. PyTorch
takes several times as long as NumPy to begin an operation, and longer than the operation itself.
With many hypotheses the products take most of the time, and PyTorch computes them as fast.

Law: tests/laws/test_array_steps_equal_torch.py, equal to the steps of ``model/blocks.py``.
"""

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any, Protocol, cast

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from pellucid.equations.choices import ADDED_POSITIONS
from pellucid.equations.positions import sinusoidal_positions
from pellucid.model.attention import CrossAttention, MultiHeadAttention, SelfAttention
from pellucid.model.blocks import Block, Stack
from pellucid.model.cache import FilledSlots
from pellucid.model.embedding import Embedding
from pellucid.model.layers import FeedForward, Norm
from pellucid.model.ssru import Ssru
from pellucid.model.state import mask_for_heads

Array = npt.NDArray[np.floating[Any]]
Kept = tuple[Array, ...]
"""Arrays of a sublayer between steps: a KV cache, keys and values of the source, or cells."""

_MOST_SENTENCES = 4
"""With more sentences at once PyTorch is as fast."""
_ROTATIONS = 512
"""How many matrices of rotary positions are kept: 2 MB in float32 for heads of 32 features."""
_FEW_ROWS, _SMALL = 5, 1 << 21
"""So many rows are multiplied one by one with a matrix of at most so many numbers, which stays in
the processor's cache: five with 128 x 8,000 take 0.39 ms and not 0.73, two 0.28 and not 0.56."""
_ROOM = 16
"""A cache grows by this many slots per beam."""


@dataclasses.dataclass(frozen=True)
class _Step:
    """Numbers that all sublayers share in a step of one token."""

    sentences: int
    position: int
    taken: int
    """How many slots are filled before it."""
    end: int
    """How many are filled after it."""
    overwrites: bool
    """Whether the new slots of the caches may be written where they are."""
    hidden: Array | None
    """Added to scores, (sentence, 1, beam, slot): -inf at the slots of other hypotheses."""
    memory_hidden: Array | None
    """Added to scores of the source, (sentence, 1, 1, source): -inf at padding."""


class _Sublayer(Protocol):
    """A sublayer without its residual connection and norm, as ``SublayerModule``."""

    def start(self, memory: Array) -> Kept:
        """The arrays before the first token."""
        ...

    def step(self, x: Array, kept: Kept, step: _Step) -> tuple[Array, Kept]:
        """Read the newest token of each hypothesis, (row, d_model)."""
        ...

    def select(
        self, kept: Kept, rows: npt.NDArray[np.int64], sentences: npt.NDArray[np.int64] | None
    ) -> Kept:
        """Keep these rows; ``sentences`` is None if every sentence goes on in its place."""
        ...


class _Attention:
    """The parameters and the arithmetic that both kinds of attention share."""

    def __init__(self, module: MultiHeadAttention) -> None:
        self.heads = module.heads
        self.query_width, self.value_width = module.query_width, module.value_width
        # (d_model, packed): a product is then x W
        self.weight = _array(module.packed_weight).T
        self.bias = _array(module.b_qkv)
        self.out, self.out_bias = _array(module.w_o).T, _array(module.b_o)
        key_size = self.query_width // self.heads
        # 1 / √dₖ, or 1 where the model does not divide by it
        self.scale = module.undo_scale / math.sqrt(key_size)

    def split(self, x: Array, sentences: int) -> Array:
        """(sentence · length, heads · size) → (sentence, heads, length, size), a view."""
        return x.reshape(sentences, len(x) // sentences, self.heads, -1).swapaxes(1, 2)

    def attend(self, query: Array, keys: Array, values: Array, hidden: Array | None) -> Array:
        """Attend to keys and values (sentence, heads, key, size), and project: (row, d_model).

        The beams of a sentence are queries to the same keys: (sentence, heads, beam, size). Queries
        or keys are scaled already.
        """
        scores = query @ keys.mT
        if hidden is not None:
            scores += hidden
        # one call in place of the five that NumPy needs
        weights = torch.softmax(torch.from_numpy(scores), -1).numpy()
        merged = (weights @ values).swapaxes(1, 2).reshape(-1, len(self.out))
        return _linear(merged, self.out, self.out_bias)


class _SelfAttention(_Attention):
    def __init__(self, module: SelfAttention) -> None:
        super().__init__(module)
        assert module.positions is not None
        self.is_rotary = module.positions.kind == "rotary"

    def start(self, memory: Array) -> Kept:
        sizes = self.query_width // self.heads, self.value_width // self.heads
        return tuple(np.empty((len(memory), self.heads, 0, size), memory.dtype) for size in sizes)

    def step(self, x: Array, kept: Kept, step: _Step) -> tuple[Array, Kept]:
        """Attend to all slots, the newest included, which is written first."""
        packed = _linear(x, self.weight, self.bias)
        both = packed[:, : 2 * self.query_width].reshape(len(x), 2 * self.heads, -1)
        if self.is_rotary:
            # a matrix product, scaled by the root on both sides, in place of four operations
            both = both @ _rotation(both.shape[2], step.position, x.dtype, math.sqrt(self.scale))
        query, key = both[:, : self.heads], both[:, self.heads :]
        if not self.is_rotary:
            query = query * self.scale

        caches = kept
        if not step.overwrites:
            room = step.taken + _ROOM * (step.end - step.taken)
            caches = tuple(_grown(each, step.taken, room) for each in kept)
        keys, values = (cache[:, :, : step.end] for cache in caches)
        keys[:, :, step.taken :] = self.split(key, step.sentences)
        values[:, :, step.taken :] = self.split(packed[:, 2 * self.query_width :], step.sentences)
        return self.attend(self.split(query, step.sentences), keys, values, step.hidden), caches

    def select(
        self,
        kept: Kept,
        rows: npt.NDArray[np.int64],  # noqa: ARG002  # beams share the slots of their sentence
        sentences: npt.NDArray[np.int64] | None,
    ) -> Kept:
        return kept if sentences is None else tuple(each[sentences] for each in kept)


def _grown(cache: Array, taken: int, room: int) -> Array:
    """A copy of the first slots of (sentence, heads, slot, size), with room for more."""
    sentences, heads, _, size = cache.shape
    grown = np.empty((sentences, heads, room, size), cache.dtype)
    grown[:, :, :taken] = cache[:, :, :taken]
    return grown


class _CrossAttention(_Attention):
    def __init__(self, module: CrossAttention) -> None:
        super().__init__(module)
        # the first columns are W^Q, the others W^K and W^V
        width = self.query_width
        self.weight_memory = np.ascontiguousarray(self.weight[:, width:])
        self.weight = np.ascontiguousarray(self.weight[:, :width])
        self.bias_memory = None if self.bias is None else self.bias[width:]
        self.bias = None if self.bias is None else self.bias[:width]

    def start(self, memory: Array) -> Kept:
        rows = memory.reshape(-1, memory.shape[2])
        packed = _linear(rows, self.weight_memory, self.bias_memory)
        keys = self.split(packed[:, : self.query_width], len(memory)) * self.scale
        # contiguous, as every step reads them
        values = self.split(packed[:, self.query_width :], len(memory))
        return np.ascontiguousarray(keys), np.ascontiguousarray(values)

    def step(self, x: Array, kept: Kept, step: _Step) -> tuple[Array, Kept]:
        """Attend to the source, whose keys and values never change."""
        query = _linear(x, self.weight, self.bias)
        keys, values = kept
        return self.attend(self.split(query, len(keys)), keys, values, step.memory_hidden), kept

    def select(
        self,
        kept: Kept,
        rows: npt.NDArray[np.int64],  # noqa: ARG002  # beams share their sentence
        sentences: npt.NDArray[np.int64] | None,
    ) -> Kept:
        return kept if sentences is None else tuple(each[sentences] for each in kept)


class _Ssru:
    def __init__(self, module: Ssru) -> None:
        self.gate, self.gate_bias = _array(module.gate.weight).T, _array(module.gate.bias)
        self.candidate = _array(module.candidate.weight).T

    def start(self, memory: Array) -> Kept:
        return (np.zeros((len(memory), len(self.candidate)), memory.dtype),)

    def step(self, x: Array, kept: Kept, step: _Step) -> tuple[Array, Kept]:  # noqa: ARG002
        gates = _linear(x, self.gate, self.gate_bias)
        np.negative(gates, out=gates)
        with np.errstate(over="ignore"):  # 1 / (1 + ∞) is the 0 that it should be
            gates = 1 / (1 + np.exp(gates, out=gates))
        candidates = x @ self.candidate
        cells = candidates + gates * (kept[0] - candidates)
        return np.maximum(cells, 0), (cells,)

    def select(
        self,
        kept: Kept,
        rows: npt.NDArray[np.int64],
        sentences: npt.NDArray[np.int64] | None,  # noqa: ARG002
    ) -> Kept:
        return (kept[0][rows],)


class _FeedForward:
    def __init__(self, module: FeedForward) -> None:
        self.inner, self.inner_bias = _array(module.inner.weight).T, _array(module.inner.bias)
        self.outer, self.outer_bias = _array(module.outer.weight).T, _array(module.outer.bias)
        self.activate = module.activate if module.activation != "relu" else None

    def start(self, memory: Array) -> Kept:  # noqa: ARG002
        return ()

    def step(self, x: Array, kept: Kept, step: _Step) -> tuple[Array, Kept]:  # noqa: ARG002
        hidden = _linear(x, self.inner, self.inner_bias)
        if self.activate is None:
            np.maximum(hidden, 0, out=hidden)
        else:
            hidden = self.activate(torch.from_numpy(hidden)).numpy()
        return _linear(hidden, self.outer, self.outer_bias), ()

    def select(
        self,
        kept: Kept,
        rows: npt.NDArray[np.int64],  # noqa: ARG002
        sentences: npt.NDArray[np.int64] | None,  # noqa: ARG002
    ) -> Kept:
        return kept


@dataclasses.dataclass(frozen=True)
class ArrayDecoder:
    """The parameters of a decoder as arrays that share its memory, in the order of computation."""

    embed: Callable[[Tensor, int], Array]
    """From ids and their position to hidden states."""
    sublayers: tuple[tuple[_Sublayer, Callable[[Array], Array], bool], ...]
    """Each with its norm, and whether that stands before the sublayer."""
    last_norm: Callable[[Array], Array]

    def start(
        self,
        memory: Float[Tensor, "sentence source d_model"],
        may_attend: Bool[Tensor, "sentence source"],
    ) -> "ArrayState":
        """The state before the first target token, with one beam for each sentence."""
        states = memory.numpy()
        kept = tuple(each.start(states) for each, _, _ in self.sublayers)
        mask = mask_for_heads(may_attend)
        hidden = None if mask is None else np.where(mask.numpy(), 0.0, -np.inf).astype(states.dtype)
        slots = np.empty((len(states), 1, 0), np.int64)
        return ArrayState(self, kept, hidden, slots, 0, FilledSlots(0))

    def step(
        self, ids: Int[Tensor, "sentence beam"], state: "ArrayState"
    ) -> tuple[Array, "ArrayState"]:
        """Run all blocks for the newest token alone; return the hidden states and the new state."""
        step, filled, slots = state.next_step()
        array = self.embed(ids, step.position)
        after = []
        for (sublayer, norm, is_before), own in zip(self.sublayers, state.kept, strict=True):
            output, new = sublayer.step(norm(array) if is_before else array, own, step)
            output += array
            array = output if is_before else norm(output)
            after.append(new)

        result = ArrayState(self, tuple(after), state.memory_hidden, slots, step.end, filled)
        return self.last_norm(array), result


@dataclasses.dataclass(frozen=True)
class ArrayState:
    """The state of such a decoder as a value; a row is ``sentence · beam_count + beam``."""

    decoder: ArrayDecoder
    kept: tuple[Kept, ...]
    memory_hidden: Array | None
    slots: npt.NDArray[np.int64]
    """The slots of the tokens of each hypothesis, in order: (sentence, beam, length)."""
    taken: int
    """How many slots are filled, those of dropped hypotheses included."""
    filled: FilledSlots

    @property
    def sentence_count(self) -> int:
        """How many source sentences are being translated."""
        return int(self.slots.shape[0])

    @property
    def beam_count(self) -> int:
        """How many hypotheses each of them has."""
        return int(self.slots.shape[1])

    @property
    def length(self) -> int:
        """How many tokens have been fed so far."""
        return int(self.slots.shape[2])

    def next_step(self) -> tuple[_Step, FilledSlots, npt.NDArray[np.int64]]:
        """The masks after one more token of every hypothesis, and the slots."""
        sentences, beams, length = self.slots.shape
        end = self.taken + beams
        slots = np.empty((sentences, beams, length + 1), np.int64)
        slots[:, :, :length] = self.slots
        slots[:, :, length] = np.arange(self.taken, end)

        hidden = None
        if length + 1 < end:  # else every slot belongs to the one hypothesis
            rows = sentences * beams
            hidden = np.full((rows, end), -np.inf, np.float32)
            hidden[np.arange(rows)[:, None], slots.reshape(rows, -1)] = 0.0
            hidden = hidden.reshape(sentences, 1, beams, end)

        # room for several steps, so that most steps copy nothing
        filled = self.filled
        overwrites = self.taken > 0 and self._room >= end and filled.take(self.taken, beams)
        if not overwrites:
            filled = FilledSlots(end)
        step = _Step(sentences, length, self.taken, end, overwrites, hidden, self.memory_hidden)
        return step, filled, slots

    def without_sentences(self) -> "ArrayState":
        """The state after a step that no sentence took: only the length grows."""
        slots = np.empty((0, self.beam_count, self.length + 1), np.int64)
        return dataclasses.replace(self, slots=slots, taken=self.taken + self.beam_count)

    def select(self, rows: Int[Tensor, "sentence beam"]) -> "ArrayState":
        """Keep these rows; the beams of a new sentence must all come from one old sentence."""
        chosen = rows.numpy()
        slots = self.slots.reshape(-1, self.length)[chosen]
        # the first beam tells: all of them come from one sentence
        sentences = chosen[:, 0] // self.beam_count
        flat = chosen.reshape(-1)

        if len(chosen) == self.sentence_count and (sentences == np.arange(len(chosen))).all():
            kept, hidden = self._select(flat, None), self.memory_hidden
            return ArrayState(self.decoder, kept, hidden, slots, self.taken, self.filled)

        hidden = None if self.memory_hidden is None else self.memory_hidden[sentences]
        # the copied caches are this state's own, so their free slots may be filled in place
        kept, filled = self._select(flat, sentences), FilledSlots(self.taken)
        return ArrayState(self.decoder, kept, hidden, slots, self.taken, filled)

    def _select(
        self, rows: npt.NDArray[np.int64], sentences: npt.NDArray[np.int64] | None
    ) -> tuple[Kept, ...]:
        pairs = zip(self.decoder.sublayers, self.kept, strict=True)
        return tuple(each.select(own, rows, sentences) for (each, _, _), own in pairs)

    @property
    def _room(self) -> int:
        """How many slots the caches have; without a cache none are needed."""
        rooms = [
            own[0].shape[2]
            for (each, _, _), own in zip(self.decoder.sublayers, self.kept, strict=True)
            if isinstance(each, _SelfAttention)
        ]
        return min(rooms, default=0)


def array_decoder(
    stack: Stack, embedding: Embedding, memory: Float[Tensor, "sentence source d_model"]
) -> ArrayDecoder | None:
    """The decoder as arrays, or None where PyTorch is to take the steps.

    That is for more than a few sentences, outside of inference mode, away from the CPU, where
    matrices are in bfloat16, for positions that go by the order of the keys, and for modules that
    somebody exchanged or gave hooks.
    """
    is_here = torch.is_inference_mode_enabled() and memory.device.type == "cpu"
    if not is_here or not 0 < len(memory) <= _MOST_SENTENCES or stack.training:
        return None
    if torch.is_autocast_enabled("cpu") or memory.dtype not in (torch.float32, torch.float64):
        return None

    sublayers = []
    for block in stack.layers:
        for each in cast("Block", block).sublayers:
            built = _sublayer(each.module, memory.dtype)
            if built is None or _has_hooks(each.around):
                return None
            norm = _norm(each.around.norm)
            sublayers.append((built, norm, each.around.placement == "pre"))
    return ArrayDecoder(_embed(embedding), tuple(sublayers), _norm(stack.last_norm))


def _has_hooks(module: nn.Module) -> bool:
    return bool(module._forward_hooks or module._forward_pre_hooks)


def _sublayer(module: nn.Module, dtype: torch.dtype) -> _Sublayer | None:
    # exactly these: whoever puts a module of his own in the place of one wants it called
    if type(module) is SelfAttention and not module.needs_order:
        return _SelfAttention(module) if module.w_o.dtype is dtype else None
    if type(module) is CrossAttention:
        return _CrossAttention(module) if module.w_o.dtype is dtype else None
    if type(module) is Ssru:
        return _Ssru(module) if module.candidate.weight.dtype is dtype else None
    if type(module) is FeedForward:
        return _FeedForward(module) if module.inner.weight.dtype is dtype else None
    return None


def _embed(module: Embedding) -> Callable[[Tensor, int], Array]:
    """The embeddings of ids at a position, (row, d_model); those of networks are PyTorch's."""
    positions = module.positions
    is_added = positions.kind in ADDED_POSITIONS
    is_plain = is_added or positions.kind in ("rotary", "none")
    if not is_plain or module.w_x is not None or module.starts_from_zero or _has_hooks(module):
        return lambda ids, position: module(ids.reshape(-1, 1), start=position).squeeze(1).numpy()

    weight = _array(module.weight)

    def embed(ids: Tensor, position: int) -> Array:
        rows: Array = weight[ids.numpy().reshape(-1)] * module.scale
        if is_added:
            rows += positions.rows(position, 1).numpy()
        return rows

    return embed


def _norm(module: nn.Module) -> Callable[[Array], Array]:
    """A norm of rows; all but LayerNorm are PyTorch's."""
    if isinstance(module, nn.Identity):
        return lambda x: x
    if type(module) is not Norm or module.kind != "layer" or _has_hooks(module):
        return lambda x: cast("Tensor", module(torch.from_numpy(x))).numpy()
    gain, bias, eps = module.gain, module.bias, module.eps

    def norm(x: Array) -> Array:
        # ``fused_layer_norm`` in one call, in place of NumPy's eight
        return torch.layer_norm(torch.from_numpy(x), x.shape[-1:], gain, bias, eps).numpy()

    return norm


@functools.lru_cache(maxsize=_ROTATIONS)
def _rotation(size: int, position: int, dtype: "np.dtype[Any]", scale: float) -> Array:
    """The matrix that rotates the pairs of a query or key at a position: x R, times ``scale``."""
    kind = torch.from_numpy(np.empty(0, dtype)).dtype
    [wave] = sinusoidal_positions(1, size, position, kind).numpy()
    sines, cosines = wave[::2], wave[1::2]
    matrix = np.zeros((size // 2, 2, size // 2, 2))
    pair = np.arange(size // 2)
    # (a, b) → (a cos − b sin, b cos + a sin)
    matrix[pair, 0, pair, 0] = matrix[pair, 1, pair, 1] = cosines
    matrix[pair, 0, pair, 1], matrix[pair, 1, pair, 0] = sines, -sines
    return (scale * matrix.reshape(size, size)).astype(dtype)


def logits_of(
    hidden: Array, weight: Float[Tensor, "vocabulary d_model"]
) -> Float[Tensor, "row vocabulary"]:
    """hidden Wᵀ, the product with the largest matrix of the model (EQ-112)."""
    return torch.from_numpy(_product(hidden, _array(weight).T))


def _product(x: Array, weight: Array) -> Array:
    """x W. For a few rows OpenBLAS would copy the whole matrix first, which takes longest."""
    if 1 < len(x) <= _FEW_ROWS and weight.size <= _SMALL:
        return cast("Array", (x[:, None] @ weight)[:, 0])  # each row times the matrix
    return cast("Array", np.dot(x, weight))  # as ``x @ weight``, and begins sooner


def _linear(x: Array, weight: Array, bias: Array | None) -> Array:
    product = _product(x, weight)
    if bias is not None:
        product += bias
    return product


def _array(parameter: Tensor | None) -> Any:
    return None if parameter is None else parameter.detach().numpy()
