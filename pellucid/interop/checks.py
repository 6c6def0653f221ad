"""What every export and import is held to before anything is written."""

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
"""Read and said in the self-check; what they mean does not matter."""
_MOST_PIECES = 64
"""Of a sentence, so that the check ends soon on a vocabulary of bytes."""
_TOLERANCE = 1e-4
"""Of the largest logit, in float32 or else in float64, where only the sinusoid is rounded; a wrong
row, feature or head gives differences as large as the logits."""


class Converted(Mapping[str, Tensor]):
    """Tensors that are converted one at a time, when they are asked for."""

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
    """See that our model and Marian's ``tensors`` give the same logits on a few sentences.

    ``to_marian`` gives Marian's id of ours, on the source and on the target side; ``outputs``
    the one of our ids that each Marian output stands for. Raises BundleError if they differ.
    """
    tables = tuple(to_marian)
    try:
        _compare(bundle, bundle.model, tensors, settings, tables, outputs)
    except BundleError:
        # So that no rounding is taken for an error. Only now, as a copy in float64 takes twice
        # the memory of the model.
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
        if not difference <= _TOLERANCE * max(largest, 1.0):
            raise BundleError(
                f"the self-check failed: on {text!r} the logits of the two models differ by"
                f" {difference:g}, the largest being {largest:g}",
                hint="this is a defect of Pellucid, or the model holds numbers that are not finite",
            )
