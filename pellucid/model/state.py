"""The state of a stack of blocks between two steps of a search, as a value (EQ-130).

Each sublayer has a state of its own, of its own kind: a KV cache, the last state of a recurrence,
or nothing. Beside them stands what all share: which tokens belong to which hypothesis.
"""

import dataclasses
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor


@dataclasses.dataclass(frozen=True)
class Kept:
    """The rows with which a search goes on; a row is ``sentence · beam_count + beam``."""

    rows: Int[Tensor, "sentence beam"]
    sentences: Int[Tensor, " sentence"] | None
    """The old number of each sentence; None if every sentence goes on in its place."""


@runtime_checkable
class SublayerState(Protocol):
    """The state of one sublayer as a value: a step returns a new one."""

    def select(self, kept: Kept) -> "SublayerState":
        """The state of the kept rows; all beams of a new sentence come from one old sentence."""
        ...


@dataclasses.dataclass(frozen=True)
class NoState:
    """The state of a sublayer to which earlier tokens do not matter."""

    def select(self, kept: Kept) -> "NoState":  # noqa: ARG002  # the protocol's signature
        """The same empty state."""
        return self


@dataclasses.dataclass(frozen=True)
class BlockState:
    """The states of the sublayers of a block, in their order."""

    sublayers: tuple[SublayerState, ...]

    def select(self, kept: Kept) -> "BlockState":
        """Let each sublayer keep these rows."""
        return BlockState(tuple([each.select(kept) for each in self.sublayers]))


@dataclasses.dataclass(frozen=True)
class Reading:
    """The masks and the memory that all sublayers of a stack share while it reads sequences."""

    may_attend: Bool[Tensor, "sentence 1 1 key"] | None = None
    """The positions of the sequences that are words; None for all."""
    causal: bool = False
    """Whether a position may read no later one."""
    memory: Float[Tensor, "sentence source d_model"] | None = None
    """The encoder's output; None in an encoder, and in a model without one."""
    memory_may_attend: Bool[Tensor, "sentence 1 1 source"] | None = None


@dataclasses.dataclass(frozen=True)
class Step:
    """The slots and masks that all sublayers of a stack share in a step of one token.

    Tokens lie in slots, numbered alike in every layer: the beams of a sentence share its slots, a
    slot is filled once, and each hypothesis knows which slots are its own.
    """

    slots: Int[Tensor, "sentence beam length"]
    """The slots of the tokens of each hypothesis, in order, the newest last."""
    may_attend: Bool[Tensor, "sentence 1 beam slot"] | None
    """The same as a mask; None if there is one beam, to which all slots belong."""
    memory_may_attend: Bool[Tensor, "sentence 1 1 source"] | None

    @property
    def position(self) -> int:
        """The position of the newest tokens in their sentences, from 0."""
        return self.slots.shape[2] - 1

    def in_order(
        self, cached: Float[Tensor, "sentence slot width"]
    ) -> Float[Tensor, "row length width"]:
        """The slots of each hypothesis alone, copied in the order of its tokens."""
        # (sentence, 1, 1): with ``slots`` it indexes each sentence's own cache
        sentences = torch.arange(cached.shape[0], device=cached.device)[:, None, None]
        # (sentence, beam, length, width) → (sentence · beam, length, width)
        return cached[sentences, self.slots].flatten(0, 1)


@dataclasses.dataclass(frozen=True)
class StackState:
    """The state of a stack of decoder blocks; a row is ``sentence · beam_count + beam``.

    A model of plain text has no source: its memory has the length 0.
    """

    layers: tuple[BlockState, ...]
    memory_may_attend: Bool[Tensor, "sentence source"]
    memory_mask: Bool[Tensor, "sentence 1 1 source"] | None
    """The same for all heads; None if nothing is hidden."""
    slots: Int[Tensor, "sentence beam length"]
    """The slots of the tokens of each hypothesis, in order."""
    taken: int
    """How many slots are filled, those of dropped hypotheses included."""

    @classmethod
    def before_the_first_token(
        cls, layers: tuple[BlockState, ...], memory_may_attend: Bool[Tensor, "sentence source"]
    ) -> "StackState":
        """The state of one beam for each sentence, to which nothing was fed."""
        slots = torch.empty(
            (len(memory_may_attend), 1, 0), dtype=torch.long, device=memory_may_attend.device
        )
        mask = mask_for_heads(memory_may_attend)
        return cls(layers, memory_may_attend, mask, slots, 0)

    @property
    def sentence_count(self) -> int:
        """How many source sentences are being translated."""
        return self.slots.shape[0]

    @property
    def beam_count(self) -> int:
        """How many hypotheses each of them has."""
        return self.slots.shape[1]

    @property
    def length(self) -> int:
        """How many tokens have been fed so far."""
        return self.slots.shape[2]

    def next_step(self) -> Step:
        """The slots and masks after one more token for every hypothesis."""
        end = self.taken + self.beam_count
        newest = torch.arange(self.taken, end, device=self.slots.device)[None, :, None]

        # one slot for each beam: beam b of every sentence fills slot taken + b
        slots = torch.cat([self.slots, newest.expand(self.sentence_count, -1, -1)], dim=-1)

        # every slot belongs to the one hypothesis, so there is nothing to mask
        if slots.shape[2] == end:
            return Step(slots, None, self.memory_mask)

        # (sentence, 1, beam, slot): True at the slots of each hypothesis, for all heads
        nothing = torch.zeros((*slots.shape[:2], end), dtype=torch.bool, device=slots.device)
        return Step(slots, nothing.scatter(2, slots, True)[:, None], self.memory_mask)

    def after(self, step: Step, layers: tuple[BlockState, ...]) -> "StackState":
        """The state after ``step``, which left the blocks in the states ``layers``."""
        taken = self.taken + self.beam_count
        return dataclasses.replace(self, layers=layers, slots=step.slots, taken=taken)

    def without_sentences(self) -> "StackState":
        """The state after a step that no sentence took: only the length grows."""
        newest = self.slots.new_empty(0, self.beam_count, 1)
        slots = torch.cat([self.slots, newest], dim=-1)
        return dataclasses.replace(self, slots=slots, taken=self.taken + self.beam_count)

    def select(self, rows: Int[Tensor, "sentence beam"]) -> "StackState":
        """Keep these rows; the beams of a new sentence must all come from one old sentence."""
        slots = self.slots.flatten(0, 1)[rows]

        # the first beam tells: all of them come from one sentence
        sentences = rows[:, 0] // self.beam_count
        # the usual step: every sentence goes on, and only its beams change
        every_goes_on = rows.shape[0] == self.sentence_count and torch.equal(
            sentences, torch.arange(self.sentence_count, device=rows.device)
        )

        kept = Kept(rows, None if every_goes_on else sentences)
        layers = tuple([each.select(kept) for each in self.layers])
        if every_goes_on:
            return dataclasses.replace(self, layers=layers, slots=slots)

        may_attend = self.memory_may_attend[sentences]
        return StackState(layers, may_attend, mask_for_heads(may_attend), slots, self.taken)


def mask_for_heads(
    may_attend: Bool[Tensor, "sentence source"],
) -> Bool[Tensor, "sentence 1 1 source"] | None:
    """One mask for all heads and queries; None on a CPU if nothing is masked.

    Attention without a mask is faster. On an accelerator the check itself would cost more: the host
    would have to wait for its result.
    """
    if may_attend.device.type == "cpu" and bool(may_attend.all()):
        return None
    return may_attend[:, None, None, :]
