"""Checks the laws of docs/laws.md on any model and machine, in seconds.

A law says that two ways to compute the same thing agree: the fast program and the page of
equations, with a KV cache and without, batched and alone. ``pellucid doctor`` runs these checks.
"""

import copy
import dataclasses
import math
import time
from collections.abc import Callable, Iterator
from typing import assert_never

import torch
from torch import Tensor

from pellucid.core.errors import ConfigError, PellucidError
from pellucid.core.special import BOS_ID, EOS_ID, PAD_ID, SPECIAL_COUNT
from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.search.beam import beam_search
from pellucid.decoding.search.greedy import greedy_search
from pellucid.equations import recurrent_translator, transformer
from pellucid.equations.attention import attention
from pellucid.equations.fused import fused_attention
from pellucid.equations.masks import causal_mask
from pellucid.equations.recurrent_translator import RecurrentTranslator
from pellucid.equations.weights import TextModel, Transformer
from pellucid.model.build import build_model
from pellucid.model.clear import clear_model
from pellucid.model.config import KINDS, own_settings, parse_model_config
from pellucid.model.dropout import without_dropout
from pellucid.model.seq2seq import Seq2Seq
from pellucid.model.trace import Trace

TOLERANCE = 1e-9
"""The largest allowed difference in float64, relative to the largest logit. The tests allow tiny
models 1e-12; rounding errors of large models add up to more."""
_KERNEL_TOLERANCE = 1e-12
_FLOAT32_TOLERANCE = 1e-3
_LENGTHS = (6, 2, 4)
_TARGET_LENGTH = 5
_TINY = {"d_model": 16, "d_ff": 24, "heads": 2, "encoder_layers": 2, "decoder_layers": 2}
_TINY_VOCABULARY = 31


@dataclasses.dataclass(frozen=True)
class LawResult:
    """The result of checking a law on a model on this machine."""

    law: str
    subject: str
    """The model that was checked."""
    holds: bool
    difference: float
    """The largest difference between the two ways, relative to the largest value; 0 is exact."""
    tolerance: float
    seconds: float


@dataclasses.dataclass(frozen=True)
class _Batch:
    """Random source sentences of different lengths, with decoder inputs."""

    source: Tensor
    target: Tensor


def tiny_models() -> dict[str, Seq2Seq]:
    """A small random model of each kind, by the name of its kind."""
    # One for each kind that translates: two layers and two heads are the fewest that can be mixed
    # up.
    models = {}
    for kind, each in KINDS.items():
        if not each.translates:
            continue
        config = parse_model_config({**own_settings(each, _TINY), "kind": kind})
        models[kind] = build_model(config, _TINY_VOCABULARY, _TINY_VOCABULARY, seed=1).eval()
    return models


def check_laws(model: Seq2Seq, subject: str) -> Iterator[LawResult]:
    """Check every law on ``model``, one after another; the model is not changed.

    All are checked on a copy in float64. The last result compares the model in its own precision
    with that copy.
    """
    # In float64 a difference of more than rounding is an error of the program.
    exact = copy.deepcopy(model).double()

    batch = _random_batch(exact)
    laws: dict[str, tuple[Callable[[Seq2Seq, _Batch], float], float]] = {
        "program = page of equations": (_clear, TOLERANCE),
        "gradients in training = page's": (_clear_gradients, TOLERANCE),
        "watched = unwatched": (_watched, TOLERANCE),
        "chunked loss = clear loss": (_loss, TOLERANCE),
        "cached = full": (_cached, TOLERANCE),
        "selected = alone": (_selected, TOLERANCE),
        "batched = alone": (_batched, TOLERANCE),
        "causal": (_causal, 0.0),
        "one beam = greedy": (_one_beam, 0.0),
    }
    if not _has_page(exact):
        laws = {law: each for law, each in laws.items() if "page" not in law}

    with torch.no_grad(), without_dropout(exact), without_dropout(model):
        for law, (difference, tolerance) in laws.items():
            began = time.perf_counter()
            found = difference(exact, batch)
            yield _judge(law, subject, found, tolerance, began)
        began = time.perf_counter()
        found = _difference(_run(model, batch), _run(exact, batch))
        yield _judge("own precision = float64", subject, found, _FLOAT32_TOLERANCE, began)


def check_kernels() -> Iterator[LawResult]:
    """Compare the fused kernels with their equations, values and gradients, in float64."""
    generator = torch.Generator().manual_seed(3)
    for law, mask in (
        ("fused = clear, nothing hidden", None),
        ("fused = clear, causal", causal_mask(5)),
        ("fused = clear, padding", (torch.arange(5) < 3).expand(5, 5)),
    ):
        began = time.perf_counter()
        inputs = [  # query, key and value, (batch, head, token, feature)
            torch.randn(2, 3, 5, 4, dtype=torch.float64, generator=generator).requires_grad_()
            for _ in range(3)
        ]

        ways: tuple[Callable[..., Tensor], ...] = (fused_attention, attention)
        values = [way(*inputs, mask) for way in ways]
        # The sine makes the incoming gradient differ from output to output; a plain sum has ones.
        gradients = [torch.autograd.grad(value.sin().sum(), inputs) for value in values]
        pairs = [values, *zip(*gradients, strict=True)]

        found = max(_difference(one.detach(), other.detach()) for one, other in pairs)
        yield _judge(law, "attention", found, _KERNEL_TOLERANCE, began)


def _judge(law: str, subject: str, found: float, tolerance: float, began: float) -> LawResult:
    seconds = time.perf_counter() - began
    return LawResult(law, subject, found <= tolerance, found, tolerance, seconds)


def _random_batch(model: Seq2Seq) -> _Batch:
    generator = torch.Generator().manual_seed(7)
    device = next(model.parameters()).device
    count = len(_LENGTHS)

    # Random ids: the laws hold for every sentence, also for nonsense.
    source = torch.randint(
        SPECIAL_COUNT,
        max(model.source_vocabulary_size, SPECIAL_COUNT + 1),
        (count, max(_LENGTHS)),
        generator=generator,
    )

    for row, length in enumerate(_LENGTHS):
        source[row, length - 1] = EOS_ID
        source[row, length:] = PAD_ID  # the lengths differ, so that masks of padding matter

    target = torch.randint(
        SPECIAL_COUNT,
        max(model.target_vocabulary_size, SPECIAL_COUNT + 1),
        (count, _TARGET_LENGTH),
        generator=generator,
    )
    # As the decoder reads it: the start, then words, without a stop.
    target[:, 0] = BOS_ID

    return _Batch(source.to(device), target.to(device))


def _run(model: Seq2Seq, batch: _Batch) -> Tensor:
    logits: Tensor = model(batch.source, batch.target)
    return logits


def _difference(got: Tensor, expected: Tensor) -> float:
    """The largest difference relative to the largest expected value; infinite for NaN."""
    got, expected = got.double(), expected.double()
    # The clamp is for logits that are all zero, such as those of an untrained output layer.
    difference = float((got - expected).abs().max() / expected.abs().max().clamp(min=1e-300))
    return math.inf if math.isnan(difference) else difference


def _has_page(model: Seq2Seq) -> bool:
    try:
        clear_model(model)
    except ConfigError:
        return False
    return True


def _page(model: Seq2Seq, batch: _Batch) -> Tensor:
    """The logits as the page of equations for the model's kind computes them."""
    # Views of the model's own parameters in the shapes of the paper, so that gradients reach them.
    weights = clear_model(model)
    match weights:
        case Transformer():
            return transformer.logits(weights, batch.source, batch.target)
        case RecurrentTranslator():
            return recurrent_translator.logits(weights, batch.source, batch.target)
        case TextModel():
            raise AssertionError("laws are held against models that translate")
        case _:
            assert_never(weights)


def _clear(model: Seq2Seq, batch: _Batch) -> float:
    return _difference(_run(model, batch), _page(model, batch))


def _clear_gradients(model: Seq2Seq, batch: _Batch) -> float:
    """Compare gradients in training mode, with the same dropout masks on both sides."""
    model = copy.deepcopy(model).requires_grad_(True).train()
    parameters = [each for each in model.parameters() if each.is_floating_point()]
    gradients = []
    with torch.enable_grad():
        for run in (_run, _page):
            model.dropout_source.seed(7)  # both ways draw the same masks
            # Any function of all logits would do.
            loss = run(model, batch).log_softmax(-1)[:, :, EOS_ID].sum()
            gradients.append(torch.autograd.grad(loss, parameters, allow_unused=True))

    # One vector for each way; a parameter that a way does not use has a gradient of zero.
    flat = [
        torch.cat(
            [
                torch.zeros(parameter.numel()).to(parameter) if each is None else each.flatten()
                for each, parameter in zip(way, parameters, strict=True)
            ]
        )
        for way in gradients
    ]

    return _difference(*flat)


def _watched(model: Seq2Seq, batch: _Batch) -> float:
    """A trace of everything makes attention use its equation instead of the fused kernel."""
    return _difference(model(batch.source, batch.target, Trace("*")), _run(model, batch))


def _loss(model: Seq2Seq, batch: _Batch) -> float:
    """Compare the chunked loss, which never holds all logits, with the plain cross-entropy."""
    labels = torch.cat([batch.target[:, 1:], batch.target.new_full((3, 1), EOS_ID)], dim=1)
    # Labels are the input shifted left, with a stop at the end.
    sums = model.loss(batch.source, batch.target, labels, 0.0)
    log_probs = _run(model, batch).log_softmax(-1).gather(-1, labels.unsqueeze(-1))
    return _difference(sums.loss, -log_probs.sum())


@torch.inference_mode()  # as a search, which has steps of its own for a few sentences
def _cached(model: Seq2Seq, batch: _Batch) -> float:
    state = model.start(model.encode(batch.source))
    steps = []
    # One token at a time, with the keys and values of all tokens before it.
    for position in range(_TARGET_LENGTH):
        logits, state = model.step(batch.target[:, position : position + 1], state)
        # (sentence, 1, vocabulary) → (sentence, vocabulary)
        steps.append(logits[:, 0])
    return _difference(torch.stack(steps, dim=1), _run(model, batch))


@torch.inference_mode()
def _selected(model: Seq2Seq, batch: _Batch) -> float:
    """Two beams of each sentence are swapped in mid-sentence and continue as if alone."""
    device = batch.source.device

    state = model.start(model.encode(batch.source))
    _, state = model.step(batch.target[:, :1], state)

    rows = torch.arange(len(_LENGTHS), device=device).unsqueeze(1)  # (sentence, 1)
    state = state.select(rows.expand(-1, 2))
    _, state = model.step(batch.target[:, 1:3], state)  # two beams: the second and third word
    # Beam b of sentence s is row 2 s + b of the state: swap the beams of each sentence.
    state = state.select(torch.cat([2 * rows + 1, 2 * rows], dim=1))
    logits, _ = model.step(batch.target[:, 3:5], state)

    largest = 0.0
    # After the swap, beam 0 has read token 2 and then 3, beam 1 tokens 1 and 4.
    for beam, (first, second) in enumerate(((2, 3), (1, 4))):
        prefix = batch.target[:, [0, first, second]]
        alone = model(batch.source, prefix)[:, -1]
        largest = max(largest, _difference(logits[:, beam], alone))

    return largest


def _batched(model: Seq2Seq, batch: _Batch) -> float:
    together = _run(model, batch)
    # The same sentences in another order: no row may depend on its neighbors.
    backwards = model(batch.source.flip(0), batch.target.flip(0)).flip(0)
    largest = _difference(backwards, together)

    # Alone a sentence has no padding.
    for row, length in enumerate(_LENGTHS):
        alone = model(batch.source[row : row + 1, :length], batch.target[row : row + 1])
        largest = max(largest, _difference(alone[0], together[row]))

    return largest


def _causal(model: Seq2Seq, batch: _Batch) -> float:
    before, largest = _run(model, batch), 0.0
    # Held exactly: the logits of earlier positions are computed from the same numbers.
    for position in range(1, _TARGET_LENGTH):
        changed = batch.target.clone()
        # Another word at one position; logits before it must not notice.
        changed[:, position] = EOS_ID
        after = model(batch.source, changed)
        largest = max(largest, _difference(after[:, :position], before[:, :position]))
    return largest


def _one_beam(model: Seq2Seq, batch: _Batch) -> float:
    settings = DecodingConfig(beam_size=1, n_best=1, max_length=8)
    try:
        # Two programs: greedy search has no hypotheses to compare, beam search has.
        greedy = greedy_search(model, batch.source, settings)
        beams = [best for [best] in beam_search(model, batch.source, settings)]
    except PellucidError:  # the model gives NaN or infinity
        return math.inf

    same = [
        one.ids == other.ids and one.score == other.score
        for one, other in zip(beams, greedy, strict=True)
    ]
    return 0.0 if all(same) else math.inf
