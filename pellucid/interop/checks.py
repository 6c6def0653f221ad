"""Checks of every export and import: a free output folder, and equal logits before writing."""

import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor

from pellucid.bundle import Bundle
from pellucid.core.errors import BundleError, OutputExistsError
from pellucid.core.special import START_ID, STOP_ID
from pellucid.interop.marian_reference import marian_logits
from pellucid.interop.marian_settings import MarianSettings
from pellucid.model.seq2seq import Seq2Seq

SENTENCES = (
    "Hello, world!",
    "Where is the train to the sea, and when does it leave?",
    "Un petit chat noir ne dort pas sur la grande table rouge.",
)
"""Source and target of the self-check; any text would do."""
_MOST_PIECES = 64
"""Tokens of a sentence that are used, so that the check is fast with a byte vocabulary."""
_TOLERANCE = 1e-4
"""Relative to the largest logit, in float32 or else in float64, where only the sinusoid is rounded.
A wrong row, feature or head gives differences as large as the logits."""


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


def refuse_to_overwrite(out: Path) -> None:
    """Raise OutputExistsError unless ``out`` is free or an empty folder."""
    if out.exists() and not (out.is_dir() and not any(out.iterdir())):
        raise OutputExistsError(
            f"{out} already holds something", hint="name a new folder, or remove this one first"
        )


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
        _compare(bundle, bundle.model, tensors, settings, tables, outputs)
    except BundleError:
        # Again in float64, so that rounding is not taken for an error. Only after a failure,
        # because the copy takes twice the memory of the model.
        model = copy.deepcopy(bundle.model).double()
        wide = Converted(tensors, torch.float64)
        _compare(bundle, model, wide, settings, tables, outputs)


def _compare(
    bundle: Bundle,
    model: Seq2Seq,
    tensors: Mapping[str, Tensor],
    settings: MarianSettings,
    to_marian: Sequence[Mapping[int, int]],
    outputs: Sequence[int],
) -> None:
    """Raise BundleError if ``model`` and ``tensors`` differ in their logits."""
    source_table, target_table = to_marian
    for text in SENTENCES:
        source = [*bundle.source_tokenizer.encode(text)[:_MOST_PIECES], STOP_ID]
        target = [START_ID, *bundle.target_tokenizer.encode(text)[:_MOST_PIECES]]

        with torch.inference_mode():
            ours = model(torch.tensor([source]), torch.tensor([target]))[0]
            theirs = marian_logits(
                tensors,
                settings,
                [source_table[id_] for id_ in source],
                [target_table[id_] for id_ in target],
                model.config.norm_eps,
            )

        difference = (ours[:, list(outputs)] - theirs).abs().max().item()
        largest = theirs.abs().max().item()
        if not difference <= _TOLERANCE * max(largest, 1.0):  # also true for NaN
            raise BundleError(
                f"the self-check failed: on {text!r} the logits of the two models differ by"
                f" {difference:g}, the largest being {largest:g}",
                hint="this is a defect of Pellucid, or the model holds numbers that are not finite",
            )
