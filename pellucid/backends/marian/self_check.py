"""The self-check of imports and exports, with a second implementation of Marian's model.

``marian_logits`` follows the definition in transformers (models/marian/modeling_marian.py), in
Marian's own names and layout, and uses none of our modules or tables, so that an error in those
cannot be repeated there. It is slow and computes one sentence at a time.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from pellucid.backends.capability import SENTENCES
from pellucid.backends.marian.settings import MARIAN_NORM_EPS, MarianSettings
from pellucid.bundle import Bundle
from pellucid.core.errors import BundleError
from pellucid.core.special import BOS_ID, EOS_ID
from pellucid.model.config import TransformerConfig

_MOST_PIECES = 64
"""Tokens of a sentence that are used, so that the check is fast with a byte vocabulary."""
_TOLERANCE = 1e-4
"""Relative to the largest logit, in float32 or else in float64, where only the sinusoid is rounded.
A wrong row, feature or head gives differences as large as the logits."""

_HEAD_AXIS = 1
_SIDES = ("encoder", "decoder")


class Converted(Mapping[str, Tensor]):
    """Tensors that are converted to ``dtype`` one at a time, on access."""

    def __init__(self, stored: Mapping[str, Tensor], dtype: torch.dtype) -> None:
        self._stored = stored
        self._dtype = dtype

    def __getitem__(self, name: str) -> Tensor:
        return self._stored[name].to(self._dtype)

    def __iter__(self) -> Iterator[str]:
        return iter(self._stored)

    def __len__(self) -> int:
        return len(self._stored)


def prove_equal(
    bundle: Bundle,
    tensors: Mapping[str, Tensor],
    settings: MarianSettings,
    to_marian: Iterable[Mapping[int, int]],
    outputs: Sequence[int],
) -> None:
    """Check that our model and Marian's ``tensors`` give the same logits on a few sentences.

    ``to_marian`` maps our ids to Marian's, for the source and the target side; ``outputs`` holds
    our id for each of Marian's outputs. Raises BundleError if the logits differ.
    """
    tables = tuple(to_marian)
    try:
        _compare(bundle, tensors, settings, tables, outputs)
    except BundleError:
        # Again in float64, so that rounding is not taken for an error.
        with _InFloat64():
            _compare(bundle, tensors, settings, tables, outputs)


class _InFloat64(TorchFunctionMode):
    """Within it every float32 tensor is converted to float64 before PyTorch computes with it.

    So a model computes in float64 while only the matrix at hand is in memory a second time: a copy
    of all parameters would take twice the memory of the model.
    """

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        named = dict(kwargs or {})
        if getattr(func, "__name__", "") == "__get__":  # a shape, a dtype, a transposed view
            got = func(*args, **named)
            return torch.float64 if got is torch.float32 else got
        if func in _MOVING:
            return func(*args, **named)
        if func in _PRODUCTS and args[1].dim() == 2 and max(args[1].shape) > _ROWS_AT_ONCE:
            return _product_in_blocks(func, *map(_widened, args[:1]), *args[1:], **named)
        return func(*map(_widened, args), **{name: _widened(each) for name, each in named.items()})


_MOVING = {
    Tensor.__getitem__,
    Tensor.float,
    Tensor.to,
    Tensor.transpose,
    Tensor.view,
    functional.embedding,
    torch.frombuffer,
}
"""Functions that choose or arrange numbers; the next computation converts the result."""
_PRODUCTS = {functional.linear, Tensor.matmul, Tensor.__matmul__, torch.matmul}
_ROWS_AT_ONCE = 1 << 12
"""The number of rows of the output matrix, which is a large part of a model, that are converted at
once."""


def _product_in_blocks(
    func: Callable[..., Any], x: Tensor, matrix: Tensor, bias: Tensor | None = None
) -> Tensor:
    """The product of ``x`` and a matrix with many outputs, some of its outputs at a time."""
    # (output, input) for a linear map, (input, output) for a product
    axis = 0 if func is functional.linear else 1
    blocks = []
    for block in torch.split(matrix, _ROWS_AT_ONCE, dim=axis):
        wide = block.double()
        blocks.append(x @ (wide.T if axis == 0 else wide))
    product = torch.cat(blocks, dim=-1)
    return product if bias is None else product + bias.double()


def _widened(value: Any) -> Any:
    """A tensor in float64 if it has float32, also in a list or tuple, as of ``torch.cat``."""
    if isinstance(value, list | tuple):
        return type(value)(map(_widened, value))
    is_narrow = isinstance(value, Tensor) and value.dtype == torch.float32
    return value.double() if is_narrow else value


def _compare(
    bundle: Bundle,
    tensors: Mapping[str, Tensor],
    settings: MarianSettings,
    to_marian: Sequence[Mapping[int, int]],
    outputs: Sequence[int],
) -> None:
    """Raise BundleError if the bundle's model and ``tensors`` differ in their logits."""
    source_table, target_table = to_marian
    model, config = bundle.model, bundle.config
    assert isinstance(config, TransformerConfig)
    for text in SENTENCES:
        source = [*bundle.source_tokenizer.encode(text)[:_MOST_PIECES], EOS_ID]
        target = [BOS_ID, *bundle.target_tokenizer.encode(text)[:_MOST_PIECES]]

        with torch.inference_mode():
            ours = model(torch.tensor([source]), torch.tensor([target]))[0]
            theirs = marian_logits(
                tensors,
                settings,
                [source_table[id_] for id_ in source],
                [target_table[id_] for id_ in target],
                config.norm_eps,
            )

        difference = (ours[:, list(outputs)] - theirs).abs().max().item()
        largest = theirs.abs().max().item()
        if not difference <= _TOLERANCE * max(largest, 1.0):  # also true for NaN
            raise BundleError(
                f"the self-check failed: on {text!r} the logits of the two models differ by"
                f" {difference:g}, the largest being {largest:g}",
                hint="this is a defect of Pellucid, or the model holds numbers that are not finite",
            )


def marian_logits(
    tensors: Mapping[str, Tensor],
    settings: MarianSettings,
    source: Sequence[int],
    target: Sequence[int],
    norm_eps: float = MARIAN_NORM_EPS,
) -> Tensor:
    """The logits (target, vocabulary) after each of the ``target`` ids, given the ``source`` ids.

    Ids are Marian's; ``source`` ends with its stop, ``target`` begins with its start. A
    ``norm_eps`` other than Marian's keeps that one known difference out of a comparison.
    """
    # The shared matrix is not even asked for where each side has its own: it may come from a file.
    source_table, target_table = (
        tensors[own if own in tensors else "model.shared.weight"]
        for own in (f"model.{side}.embed_tokens.weight" for side in _SIDES)
    )

    # No batch axis and no padding: one sentence at a time needs no mask in the encoder.
    memory = _embed(source_table, source, settings)  # (source, d_model)
    for index in range(settings.encoder_layers):
        name = f"model.encoder.layers.{index}"
        memory = _attend(tensors, f"{name}.self_attn", memory, memory, settings, norm_eps)
        memory = _feed(tensors, name, memory, settings, norm_eps)

    x = _embed(target_table, target, settings)  # (target, d_model)
    # (query, key), true above the diagonal: what comes later.
    future = torch.ones(len(target), len(target), dtype=torch.bool).triu(1)
    for index in range(settings.decoder_layers):
        name = f"model.decoder.layers.{index}"
        x = _attend(tensors, f"{name}.self_attn", x, x, settings, norm_eps, future)
        x = _attend(tensors, f"{name}.encoder_attn", x, memory, settings, norm_eps)
        x = _feed(tensors, name, x, settings, norm_eps)

    # (vocabulary, d_model)
    output = target_table if settings.tie_word_embeddings else tensors["lm_head.weight"]
    return x @ output.T + tensors["final_logits_bias"]


def _embed(table: Tensor, ids: Sequence[int], settings: MarianSettings) -> Tensor:
    d = settings.d_model
    # float64, as our sinusoids: the comparison must not find their rounding
    exponents = torch.arange(0, d, 2).double() / d
    angles = torch.arange(len(ids)).double()[:, None] / 10000.0**exponents

    # All sines, then all cosines; of an odd width the last angle has no cosine.
    waves = torch.cat([angles.sin(), angles[:, : d // 2].cos()], dim=1).to(table.dtype)

    scale = math.sqrt(d) if settings.scale_embedding else 1.0
    return table[torch.tensor(ids)] * scale + waves


def _attend(
    tensors: Mapping[str, Tensor],
    name: str,
    x: Tensor,
    memory: Tensor,
    settings: MarianSettings,
    norm_eps: float,
    hidden: Tensor | None = None,
) -> Tensor:
    heads = settings.encoder_attention_heads
    query = _split(_linear(tensors, f"{name}.q_proj", x), heads)
    key = _split(_linear(tensors, f"{name}.k_proj", memory), heads)
    value = _split(_linear(tensors, f"{name}.v_proj", memory), heads)

    # (head, query, key)
    scores = query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1])
    if hidden is not None:  # (query, key), true where attention is forbidden
        scores = scores.masked_fill(hidden, -math.inf)
    # (head, token, width) to (token, d_model)
    merged = (scores.softmax(-1) @ value).transpose(0, _HEAD_AXIS).flatten(1)
    output = _linear(tensors, f"{name}.out_proj", merged)
    # post-norm, Marian's only kind here
    return _norm(tensors, f"{name}_layer_norm", x + output, norm_eps)


def _split(x: Tensor, heads: int) -> Tensor:
    return x.view(x.shape[0], heads, -1).transpose(0, _HEAD_AXIS)  # (head, token, width)


def _feed(
    tensors: Mapping[str, Tensor], name: str, x: Tensor, settings: MarianSettings, norm_eps: float
) -> Tensor:
    activations: dict[str, Callable[[Tensor], Tensor]] = {
        "relu": functional.relu,
        "gelu": functional.gelu,
        "swish": functional.silu,
        "silu": functional.silu,
    }
    activation = activations[settings.activation_function]
    inner = activation(_linear(tensors, f"{name}.fc1", x))
    output = _linear(tensors, f"{name}.fc2", inner)
    return _norm(tensors, f"{name}.final_layer_norm", x + output, norm_eps)


def _linear(tensors: Mapping[str, Tensor], name: str, x: Tensor) -> Tensor:
    return functional.linear(x, tensors[f"{name}.weight"], tensors[f"{name}.bias"])


def _norm(tensors: Mapping[str, Tensor], name: str, x: Tensor, eps: float) -> Tensor:
    gain, bias = tensors[f"{name}.weight"], tensors[f"{name}.bias"]
    return functional.layer_norm(x, x.shape[-1:], gain, bias, eps)
