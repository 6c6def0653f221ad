"""The library of the wheel pellucid-kernels, called through ctypes.

Its structures and constants are those of ``kernels/pellucid_kernels/kernels.c``; a library of
another version is refused.
"""

import ctypes
import dataclasses
import functools
import weakref
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pellucid.backends.kernels.weights import (
    Layer,
    Matrix,
    Norm,
    Numbers,
    Rounded,
    SelfAttention,
    Shortlist,
    Ssru,
    Weights,
)
from pellucid.core.errors import BundleError, PellucidError
from pellucid.core.special import BOS_ID, EOS_ID, PAD_ID

VERSION = 4
"""The interface of the library, and the layout of a packed model."""
_LINE = 64
"""Bytes of a line of the cache, at which a block begins."""
PANEL = 16
"""Words of the output whose weights lie together."""
_ACTIVATIONS = ("relu", "swish")
_POSITIONS = ("none", "added", "rotary")
BOUNDS = ("at the limit", "at the next token", "now")
"""The length whose penalty bounds the score of a hypothesis (``DecodingConfig.bound_penalty``)."""

_Pointer = ctypes.c_void_p


class _Sizes(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_int32) for name in ("d_model", "d_ff", "heads", "key_size")),
        *((name, ctypes.c_int32) for name in ("value_size", "encoder_layers", "decoder_layers")),
        *((name, ctypes.c_int32) for name in ("source_words", "target_words", "position_kind")),
        *((name, ctypes.c_int32) for name in ("position_count", "activation", "decoder")),
        *((name, ctypes.c_int32) for name in ("pre_norm", "target_is_source")),
        *((name, ctypes.c_int32) for name in ("output_is_target", "start_is_zero", "axes")),
        ("norm_eps", ctypes.c_float),
        ("embedding_scale", ctypes.c_float),
    ]


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("rows", _Pointer),
        ("scales", _Pointer),
        ("bias", _Pointer),
        ("outputs", ctypes.c_int64),
        ("inputs", ctypes.c_int64),
    ]


class _Request(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_int32) for name in ("sentences", "beam", "kept", "n_best")),
        *((name, ctypes.c_int32) for name in ("pad", "bos", "eos", "bound", "free_stop", "most")),
        ("enough", ctypes.c_double),
        *((name, _Pointer) for name in ("source", "source_sizes", "limits", "penalties", "forced")),
    ]


class _Result(ctypes.Structure):
    _fields_ = [(name, _Pointer) for name in ("ids", "log_probs", "sizes", "states", "counts")]


SIZES = tuple(each[0] for each in _Sizes._fields_)
"""The names of the sizes and choices of a model, in the order of the library."""


@dataclasses.dataclass(frozen=True)
class Packed:
    """A model as products read it: one block of bytes, the same for all sets of instructions."""

    sizes: Mapping[str, int | float]
    """Each of ``SIZES``."""
    block: npt.NDArray[np.uint8]


def empty_block(size: int) -> npt.NDArray[np.uint8]:
    """Zeros that begin with a line of the processor's cache."""
    room = np.zeros(size + _LINE, np.uint8)
    first = -room.ctypes.data % _LINE
    return room[first : first + size]


@dataclasses.dataclass(frozen=True)
class Search:
    """A search of a batch, as the library takes it."""

    sources: Sequence[Sequence[int]]
    """Ids without the stop."""
    limits: Sequence[int]
    """The most tokens of each translation, without the stop."""
    penalties: Numbers
    """The divisor of a log-probability by length, as long as the largest limit and 3 more."""
    beam_size: int = 1
    kept: int = 1
    """How many finished hypotheses decide when a sentence ends."""
    n_best: int = 1
    bound: int = 0
    """An index of ``BOUNDS``."""
    enough: float = 1.0
    """A sentence ends when so many hypotheses have finished."""
    free_stop: bool = False
    """Whether a stop at the limit has the log-probability 0."""
    forced: Sequence[Sequence[int]] | None = None
    """Translations that must be generated, of ``limits`` tokens each."""


Found = list[list[tuple[list[int], list[float]]]]
"""For each sentence its hypotheses, best first: ids with the stop, and log p of each."""


@dataclasses.dataclass(frozen=True)
class Guesses:
    """The guesses of a search with a shortlist."""

    words: int
    """Tokens that it guessed right, or that were set."""
    missed: int
    """Guesses that were wrong, each taken back with those behind it."""
    panels: int
    """Panels of 16 words that it computed for guesses."""


class Library:
    """The functions of one shared library."""

    def __init__(self, path: Path) -> None:
        """Raises PellucidError if it cannot be loaded or is of another version."""
        try:
            self._functions: Any = ctypes.CDLL(str(path))
            version = self._functions.pk_version()
        except (OSError, AttributeError) as error:
            raise PellucidError(
                f"the library of pellucid-kernels cannot be loaded: {error}"
            ) from None
        if version != VERSION:
            raise PellucidError(
                f"pellucid-kernels has interface {version}, and interface {VERSION} is needed",
                hint="install pellucid-kernels again, from the same release",
            )

        block = _Pointer, _Pointer, ctypes.c_int64  # the sizes, and a block with its length
        for name, returns, takes in (
            ("pk_instructions", ctypes.c_char_p, [ctypes.c_int]),
            ("pk_uses", ctypes.c_char_p, [_Pointer]),
            ("pk_close", None, [_Pointer]),
            ("pk_measure", ctypes.c_int, [_Pointer, _Pointer, _Pointer]),
            ("pk_pack", ctypes.c_int, [*block, ctypes.c_int32, _Pointer]),
            ("pk_open", ctypes.c_int, [*block, ctypes.c_char_p, _Pointer]),
            ("pk_search", ctypes.c_int, [_Pointer, _Pointer, _Pointer]),
        ):
            function = getattr(self._functions, name)
            function.restype, function.argtypes = returns, takes

    def instructions(self) -> list[str]:
        """The sets of instructions that this processor has, the fastest first."""
        names: list[str] = []
        while (name := self._functions.pk_instructions(len(names))) is not None:
            names.append(name.decode())
        return names

    def pack(self, weights: Weights) -> Packed:
        """The model as products read it. Raises BundleError if its sizes do not fit together."""
        sizes = _sizes(weights)
        size, count = self._measure(sizes)
        tensors = list(_tensors(weights))
        if len(tensors) != count:
            _raise(1)
        block = empty_block(size)
        for number, (tensor, _alive) in enumerate(tensors):
            self._pack(sizes, block, number, tensor)
        return Packed({name: getattr(sizes, name) for name in SIZES}, block)

    def with_shortlist(self, packed: Packed, shortlist: Shortlist) -> Packed:
        """The same model with a shortlist behind it, in a block of its own.

        Raises BundleError if it is of another size.
        """
        sizes = _Sizes(**{**packed.sizes, "axes": shortlist.axes})
        size, count = self._measure(sizes)
        block = empty_block(size)
        block[: packed.block.size] = packed.block
        tensors = (_matrix(shortlist.turn), _matrix(shortlist.first))
        for number, (tensor, _alive) in enumerate(tensors, start=count - len(tensors)):
            self._pack(sizes, block, number, tensor)
        return Packed({name: getattr(sizes, name) for name in SIZES}, block)

    def _pack(
        self, sizes: _Sizes, block: npt.NDArray[np.uint8], number: int, tensor: _Tensor
    ) -> None:
        """Pack the tensor with this number into the block."""
        _raise(
            self._functions.pk_pack(
                ctypes.byref(sizes), block.ctypes.data, block.size, number, ctypes.byref(tensor)
            )
        )

    def _measure(self, sizes: _Sizes) -> tuple[int, int]:
        """The bytes of a packed model, and how many tensors it is made of."""
        size, count = ctypes.c_int64(), ctypes.c_int32()
        error = self._functions.pk_measure(
            ctypes.byref(sizes), ctypes.byref(size), ctypes.byref(count)
        )
        _raise(error)
        return size.value, count.value

    def open(self, weights: Weights, instructions: str | None = None) -> "Model":
        """The model, packed. Raises BundleError if its sizes do not fit together."""
        return self.open_packed(self.pack(weights), instructions)

    def open_packed(self, packed: Packed, instructions: str | None = None) -> "Model":
        """The model, which reads the block as long as it lives.

        Raises BundleError if the block is not of these sizes, or no search could stay within it.
        """
        sizes = _Sizes(**packed.sizes)
        opened = ctypes.c_void_p()
        error = self._functions.pk_open(
            ctypes.byref(sizes),
            packed.block.ctypes.data,
            packed.block.size,
            None if instructions is None else instructions.encode(),
            ctypes.byref(opened),
        )
        _raise(error)
        return Model(self._functions, opened, packed)


class Model:
    """A packed model. Several threads may search with it at once."""

    def __init__(self, functions: Any, opened: ctypes.c_void_p, packed: Packed) -> None:
        self._functions = functions
        self._opened = opened
        self._packed = packed  # the library reads its block
        count = packed.sizes["position_count"]
        self.position_count = int(count) if count else None
        """How many positions it can number; None is no limit."""
        # Not when the program ends: a daemon thread may still be searching then.
        weakref.finalize(self, functions.pk_close, opened).atexit = False

    @property
    def instructions(self) -> str:
        """The set of instructions that it uses."""
        return str(self._functions.pk_uses(self._opened).decode())

    @property
    def axes(self) -> int:
        """The axes of its shortlist; 0 without one."""
        return int(self._packed.sizes["axes"])

    def search(self, search: Search) -> Found:
        """The hypotheses of each sentence. Other threads run meanwhile.

        Raises PellucidError if the model gives no finite number, or the request is not possible.
        """
        return self._search(search)

    def guesses(self, search: Search) -> tuple[Found, Guesses]:
        """The same, and how often it guessed. Raises as ``search`` does."""
        counts = np.zeros(3, np.int32)
        return self._search(search, counts=counts), Guesses(*counts.tolist())

    def states(self, search: Search) -> tuple[Found, Numbers]:
        """The hypotheses of a greedy search, and the states that the output read for their tokens.

        (token, d_model), those of one sentence after another. Raises as ``search`` does.
        """
        longest, width = max(search.limits, default=0) + 1, int(self._packed.sizes["d_model"])
        states = np.zeros((len(search.sources), longest, width), np.float32)
        found = self._search(search, states)
        sizes = [len(best[0][0]) if best else 0 for best in found]
        return found, np.concatenate(
            [rows[:size] for rows, size in zip(states, sizes, strict=True)]
        )

    def _search(
        self,
        search: Search,
        states: Numbers | None = None,
        counts: npt.NDArray[np.int32] | None = None,
    ) -> Found:
        """Search with room for what ``states`` and ``guesses`` ask for."""
        count, most = len(search.sources), max(search.limits, default=0)
        source = np.array([id_ for ids in search.sources for id_ in (*ids, EOS_ID)], np.int32)
        source_sizes = np.array([len(ids) + 1 for ids in search.sources], np.int32)
        limits = np.array(search.limits, np.int32)
        penalties = np.ascontiguousarray(search.penalties, np.float32)
        assert len(limits) == count
        assert len(penalties) >= most + 3
        forced = None
        if search.forced is not None:
            forced = np.zeros((count, most), np.int32)
            for row, given in zip(forced, search.forced, strict=True):
                row[: len(given)] = np.array(given, np.int32)

        request = _Request(
            **{name: getattr(search, name) for name in ("kept", "n_best", "bound", "enough")},
            sentences=count,
            beam=search.beam_size,
            pad=PAD_ID,
            bos=BOS_ID,
            eos=EOS_ID,
            free_stop=search.free_stop,
            most=most,
            source=source.ctypes.data,
            source_sizes=source_sizes.ctypes.data,
            limits=limits.ctypes.data,
            penalties=penalties.ctypes.data,
            forced=None if forced is None else forced.ctypes.data,
        )
        ids = np.zeros((count, search.n_best, most + 1), np.int32)
        log_probs = np.zeros_like(ids, np.float32)
        sizes = np.zeros((count, search.n_best), np.int32)
        more = [None if each is None else each.ctypes.data for each in (states, counts)]
        result = _Result(ids.ctypes.data, log_probs.ctypes.data, sizes.ctypes.data, *more)

        _raise(self._functions.pk_search(self._opened, ctypes.byref(request), ctypes.byref(result)))
        return [
            [
                (ids[sentence, rank, :size].tolist(), log_probs[sentence, rank, :size].tolist())
                for rank, size in enumerate(lengths)
                if size
            ]
            for sentence, lengths in enumerate(sizes.tolist())
        ]


@functools.cache
def installed_library() -> Library:
    """The library of the installed wheel.

    Raises PellucidError without it, and as ``Library`` does.
    """
    try:
        import pellucid_kernels

        path: Path = pellucid_kernels.library_path()
    except (ImportError, FileNotFoundError):  # the latter in a folder of sources, never built
        raise PellucidError(
            "the engine kernels needs pellucid-kernels, which is not installed",
            hint="in a checkout of Pellucid: pip install ./kernels, which needs a C compiler",
        ) from None
    return Library(path)


def _raise(error: int) -> None:
    match error:
        case 0:
            return
        case 1:  # BAD_SIZES
            raise BundleError("the kernels cannot compute a model of these sizes")
        case 2:
            raise PellucidError("there is not enough memory for this search")
        case 3:
            raise PellucidError("the kernels were given ids, lengths or limits out of range")
        case _:
            raise PellucidError(
                "no translation is possible: the model gives NaN or infinity",
                hint="look for NaN in its weights",
            )


def _sizes(weights: Weights) -> _Sizes:
    d_model = len(weights.decoder[0].reading_norm.gain)
    assert isinstance(weights.source, Rounded)
    assert isinstance(weights.target, Rounded)
    return _Sizes(
        d_model=d_model,
        d_ff=weights.d_ff,
        heads=weights.heads,
        key_size=weights.key_size,
        value_size=weights.value_size,
        encoder_layers=len(weights.encoder),
        decoder_layers=len(weights.decoder),
        source_words=len(weights.source.whole),
        target_words=len(weights.target.whole),
        position_kind=_POSITIONS.index(weights.positions),
        position_count=weights.position_count or 0,
        activation=_ACTIVATIONS.index(weights.activation),
        decoder=int(isinstance(weights.decoder[0].reading, Ssru)),
        pre_norm=int(weights.norm == "pre"),
        target_is_source=int(weights.target is weights.source),
        output_is_target=int(weights.output is weights.target),
        start_is_zero=int(weights.start_is_zero),
        axes=0,
        norm_eps=weights.norm_eps,
        embedding_scale=weights.embedding_scale,
    )


_Given = tuple[_Tensor, list[Any]]
"""A tensor with the arrays that it points to."""


def _tensor(
    rows: npt.NDArray[np.int8] | None, numbers: Numbers, bias: Numbers | None = None
) -> _Given:
    """One tensor: whole numbers with their scales, or numbers alone."""
    # The library is given no size of a bias, and reads one number of it for each output.
    if bias is not None and bias.shape != (numbers.size,):
        raise BundleError("the kernels cannot compute a model of these sizes")
    arrays = [
        each if each is None else np.ascontiguousarray(each) for each in (rows, numbers, bias)
    ]
    pointers = [None if each is None else each.ctypes.data for each in arrays]
    inputs = 0 if rows is None else rows.shape[1]
    return _Tensor(*pointers, numbers.size, inputs), arrays


def _matrix(each: Matrix) -> _Given:
    assert isinstance(each, Rounded)
    return _tensor(each.whole, each.scale, each.bias)


def _tensors(weights: Weights) -> Iterator[_Given]:
    """All tensors in the order of ``visit`` in the library but those of a shortlist."""

    def norm(each: Norm | None) -> Iterator[_Given]:
        if each is not None:
            yield _tensor(None, each.gain)
            yield _tensor(None, each.bias)

    def layer(each: Layer) -> Iterator[_Given]:
        """The tensors of a layer, in the order of its sublayers."""
        match each.reading:
            case SelfAttention(packed, out):
                yield _matrix(packed)
                yield _matrix(out)
            case Ssru(both):
                yield _matrix(both)
        yield from norm(each.reading_norm)

        if each.cross is not None:
            yield _matrix(each.cross.query)
            yield _matrix(each.cross.memory)
            yield _matrix(each.cross.out)
            yield from norm(each.cross_norm)

        yield _matrix(each.inner)
        yield _matrix(each.outer)
        yield from norm(each.feed_norm)

    if weights.table is not None:
        yield _tensor(None, weights.table)
    yield _matrix(weights.source)
    for each, before in ((weights.target, weights.source), (weights.output, weights.target)):
        if each is not before:  # else packed once
            yield _matrix(each)
    for each_layer in (*weights.encoder, *weights.decoder):
        yield from layer(each_layer)
    yield from norm(weights.encoder_norm)
    yield from norm(weights.decoder_norm)
