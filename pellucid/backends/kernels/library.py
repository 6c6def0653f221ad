"""The library of the wheel pellucid-kernels, called through ctypes.

Its structures and constants are those of ``kernels/pellucid_kernels/kernels.c``; a library of
another version is refused.
"""

import ctypes
import dataclasses
import functools
import weakref
from collections.abc import Sequence
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
    Ssru,
    Weights,
)
from pellucid.core.errors import BundleError, PellucidError
from pellucid.core.special import BOS_ID, EOS_ID, PAD_ID

_VERSION = 1
_ACTIVATIONS = ("relu", "swish")
_POSITIONS = ("none", "added", "rotary")
BOUNDS = ("at the limit", "at the next token", "now")
"""The length whose penalty bounds the score of a hypothesis (``DecodingConfig.bound_penalty``)."""

_Pointer = ctypes.c_void_p


class _Sizes(ctypes.Structure):
    _fields_ = [
        *(
            (name, ctypes.c_int32)
            for name in ("d_model", "d_ff", "heads", "key_size", "value_size")
        ),
        *((name, ctypes.c_int32) for name in ("encoder_layers", "decoder_layers")),
        *((name, ctypes.c_int32) for name in ("source_words", "target_words")),
        *((name, ctypes.c_int32) for name in ("position_kind", "position_count")),
        *((name, ctypes.c_int32) for name in ("activation", "decoder", "pre_norm")),
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
    _fields_ = [(name, _Pointer) for name in ("ids", "log_probs", "sizes")]


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
        if version != _VERSION:
            raise PellucidError(
                f"pellucid-kernels has interface {version}, and interface {_VERSION} is needed",
                hint="install pellucid-kernels again, from the same release",
            )

        for name, returns, takes in (
            ("pk_instructions", ctypes.c_char_p, [ctypes.c_int]),
            ("pk_uses", ctypes.c_char_p, [_Pointer]),
            ("pk_close", None, [_Pointer]),
            (
                "pk_open",
                ctypes.c_int,
                [_Pointer, _Pointer, ctypes.c_int32, ctypes.c_char_p, _Pointer],
            ),
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

    def open(self, weights: Weights, instructions: str | None = None) -> "Model":
        """The model, copied and packed. Raises BundleError if its sizes do not fit together."""
        tensors, alive = _tensors(weights)
        sizes = _sizes(weights)
        opened = ctypes.c_void_p()
        error = self._functions.pk_open(
            ctypes.byref(sizes),
            ctypes.byref(tensors),
            len(tensors),
            _name(instructions),
            ctypes.byref(opened),
        )
        del alive  # the library has copied all of it
        _raise(error)
        return Model(self._functions, opened, weights.position_count)


class Model:
    """A packed model. Several threads may search with it at once."""

    def __init__(self, functions: Any, opened: ctypes.c_void_p, position_count: int | None) -> None:
        self._functions = functions
        self._opened = opened
        self.position_count = position_count
        # Not when the program ends: a daemon thread may still be searching then.
        weakref.finalize(self, functions.pk_close, opened).atexit = False

    @property
    def instructions(self) -> str:
        """The set of instructions that it uses."""
        return str(self._functions.pk_uses(self._opened).decode())

    def search(self, search: Search) -> Found:
        """The hypotheses of each sentence. Other threads run meanwhile.

        Raises PellucidError if the model gives no finite number, or the request is not possible.
        """
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
        result = _Result(ids.ctypes.data, log_probs.ctypes.data, sizes.ctypes.data)

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


def _name(instructions: str | None) -> bytes | None:
    return None if instructions is None else instructions.encode()


def _raise(error: int) -> None:
    match error:
        case 0:
            return
        case 1:
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
    words = [_outputs(each) for each in (weights.source, weights.target)]
    return _Sizes(
        d_model=d_model,
        d_ff=weights.d_ff,
        heads=weights.heads,
        key_size=weights.key_size,
        value_size=weights.value_size,
        encoder_layers=len(weights.encoder),
        decoder_layers=len(weights.decoder),
        source_words=words[0],
        target_words=words[1],
        position_kind=_POSITIONS.index(weights.positions),
        position_count=weights.position_count or 0,
        activation=_ACTIVATIONS.index(weights.activation),
        decoder=int(isinstance(weights.decoder[0].reading, Ssru)),
        pre_norm=int(weights.norm == "pre"),
        norm_eps=weights.norm_eps,
        embedding_scale=weights.embedding_scale,
    )


def _outputs(matrix: Matrix) -> int:
    assert isinstance(matrix, Rounded)
    return len(matrix.whole)


def _tensors(weights: Weights) -> tuple[Any, list[Any]]:
    """All tensors in the order in which ``pk_open`` reads them, and the arrays they point to."""
    tensors: list[_Tensor] = []
    alive: list[Any] = []

    def add(
        rows: npt.NDArray[np.int8] | None, numbers: Numbers | None, bias: Numbers | None = None
    ) -> None:
        """Append one tensor: whole numbers with their scales, or numbers alone."""
        outputs = 0 if numbers is None else numbers.size
        # The library is given no size of a bias, and reads one number of it for each output.
        if bias is not None and bias.shape != (outputs,):
            raise BundleError("the kernels cannot compute a model of these sizes")
        arrays = [
            each if each is None else np.ascontiguousarray(each) for each in (rows, numbers, bias)
        ]
        alive.extend(arrays)
        pointers = [None if each is None else each.ctypes.data for each in arrays]
        tensors.append(_Tensor(*pointers, outputs, 0 if rows is None else rows.shape[1]))

    def matrix(each: Matrix) -> None:
        assert isinstance(each, Rounded)
        add(each.whole, each.scale, each.bias)

    def norm(each: Norm | None) -> None:
        if each is not None:
            add(None, each.gain)
            add(None, each.bias)

    def layer(each: Layer) -> None:
        """Append the tensors of a layer, in the order of its sublayers."""
        match each.reading:
            case SelfAttention(packed, out):
                matrix(packed)
                matrix(out)
            case Ssru(both):
                matrix(both)
        norm(each.reading_norm)

        if each.cross is not None:
            matrix(each.cross.query)
            matrix(each.cross.memory)
            matrix(each.cross.out)
            norm(each.cross_norm)

        matrix(each.inner)
        matrix(each.outer)
        norm(each.feed_norm)

    if weights.table is not None:
        add(None, weights.table)
    matrix(weights.source)
    for each, before in ((weights.target, weights.source), (weights.output, weights.target)):
        if each is before:  # packed once
            add(None, None)
        else:
            matrix(each)
    for each_layer in (*weights.encoder, *weights.decoder):
        layer(each_layer)
    norm(weights.encoder_norm)
    norm(weights.decoder_norm)

    return (_Tensor * len(tensors))(*tensors), alive
