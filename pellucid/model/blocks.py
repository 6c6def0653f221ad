"""Blocks: sublayers one after another, each with Add & Norm; and stacks of blocks (EQ-105, 110)."""

from collections.abc import Iterable
from typing import NamedTuple, assert_never, cast

from jaxtyping import Bool, Float
from torch import Tensor, nn

from pellucid.model.attention import CrossAttention, SelfAttention
from pellucid.model.config import BlockSettings
from pellucid.model.dropout import DropoutSource, LayerDrop
from pellucid.model.layers import AddAndNorm, FeedForward, Norm, SublayerModule
from pellucid.model.ssru import Ssru
from pellucid.model.state import BlockState, Reading, StackState, Step, SublayerState
from pellucid.model.sublayers import SublayerKind
from pellucid.model.trace import UNWATCHED, Trace


def build_sublayer(
    kind: SublayerKind, config: BlockSettings, source: DropoutSource
) -> SublayerModule:
    """The module of a kind of sublayer."""
    match kind.name:
        case "self_attention":
            return SelfAttention(config, source)
        case "ssru":
            return Ssru(config)
        case "cross_attention":
            return CrossAttention(config, source)
        case "feed_forward":
            return FeedForward(config, source)
        case _:
            assert_never(kind.name)


class Sublayer(NamedTuple):
    """One sublayer of a block: what it is, its module, and what stands around it."""

    kind: SublayerKind
    module: SublayerModule
    around: AddAndNorm

    @property
    def name(self) -> str:
        """The name of its module and of its intermediates within the block."""
        return self.kind.name

    def read(
        self, x: Float[Tensor, "sentence length d_model"], reading: Reading, trace: Trace
    ) -> Float[Tensor, "sentence length d_model"]:
        """Run the sublayer with its residual connection and norm over whole sequences."""
        inner = trace.under(self.name)
        output: Tensor = self.around(x, lambda rows: self.module(rows, reading, inner), inner)
        return output

    def step(
        self, x: Float[Tensor, "row d_model"], state: SublayerState, step: Step
    ) -> tuple[Float[Tensor, "row d_model"], SublayerState]:
        """Run the sublayer with its residual connection and norm for the newest token alone."""
        after = state

        def newest(rows: Tensor) -> Tensor:
            nonlocal after
            output, after = self.module.step(rows, state, step)
            return output

        return self.around(x, newest), after


class Block(nn.Module):
    """Sublayers one after another, each with Add & Norm.

    EQ: 104, 108, 109.  Source: Vaswani et al. (2017), §3.1 and Figure 1: self-attention and
    feed-forward in the encoder, between them cross-attention in the decoder.
    """

    def __init__(
        self, config: BlockSettings, kinds: tuple[SublayerKind, ...], source: DropoutSource
    ) -> None:
        super().__init__()
        self.kinds = kinds
        # by name, as files of parameters have them: ``feed_forward`` and ``feed_forward_norm``
        for kind in kinds:
            self.add_module(kind.name, build_sublayer(kind, config, source))
            self.add_module(kind.norm_name, AddAndNorm(config, source))

    @property
    def sublayers(self) -> list[Sublayer]:
        """The sublayers, in the order of computation."""
        modules = self._modules
        return [
            Sublayer(
                kind,
                cast("SublayerModule", modules[kind.name]),
                cast("AddAndNorm", modules[kind.norm_name]),
            )
            for kind in self.kinds
        ]

    def forward(
        self,
        x: Float[Tensor, "sentence length d_model"],
        reading: Reading,
        trace: Trace = UNWATCHED,
    ) -> Float[Tensor, "sentence length d_model"]:
        """Run the block over whole sequences."""
        for sublayer in self.sublayers:
            x = sublayer.read(x, reading, trace)
        return trace.keep("output", x)

    def start(self, memory: Float[Tensor, "sentence source d_model"]) -> BlockState:
        """The states of its sublayers before the first token."""
        return BlockState(tuple(each.module.start(memory) for each in self.sublayers))

    def step(
        self, x: Float[Tensor, "row d_model"], state: BlockState, step: Step
    ) -> tuple[Float[Tensor, "row d_model"], BlockState]:
        """Run the block for the newest token alone (EQ-130, EQ-138)."""
        after = []
        for sublayer, own in zip(self.sublayers, state.sublayers, strict=True):
            x, new = sublayer.step(x, own, step)
            after.append(new)
        return x, BlockState(tuple(after))


def blocks(
    count: int, config: BlockSettings, kinds: tuple[SublayerKind, ...], source: DropoutSource
) -> nn.ModuleList:
    """A stack of blocks of these kinds of sublayers."""
    return nn.ModuleList(Block(config, kinds, source) for _ in range(count))


def last_norm(config: BlockSettings) -> nn.Module:
    """The norm that closes a pre-norm stack; nothing for a post-norm stack.

    Pre-norm adds unnormalized outputs to the residual stream; a post-norm block ends with a norm
    already (Xiong et al., 2020).
    """
    return Norm(config) if config.norm == "pre" else nn.Identity()


def read_blocks(
    kept: Iterable[tuple[int, nn.Module]],
    x: Float[Tensor, "sentence length d_model"],
    reading: Reading,
    trace: Trace,
) -> Float[Tensor, "sentence length d_model"]:
    """Run the numbered blocks over whole sequences at once."""
    for index, block in kept:
        x = block(x, reading, trace.under(f"layers.{index}"))
    return x


def start_blocks(
    layers: Iterable[nn.Module],
    memory: Float[Tensor, "sentence source d_model"],
    may_attend: Bool[Tensor, "sentence source"],
) -> StackState:
    """The state of a stack before the first target token, with one beam for each sentence."""
    states = tuple(cast("Block", layer).start(memory) for layer in layers)
    return StackState.before_the_first_token(states, may_attend)


def step_blocks(
    layers: Iterable[nn.Module], x: Float[Tensor, "row d_model"], state: StackState
) -> tuple[Float[Tensor, "row d_model"], StackState]:
    """Run a stack for the newest token of each hypothesis alone."""
    step, after = state.next_step(), []
    for layer, own in zip(layers, state.layers, strict=True):
        x, new = cast("Block", layer).step(x, own, step)
        after.append(new)
    return x, state.after(step, tuple(after))


class Stack(nn.Module):
    """X⁽⁰⁾ → X⁽¹⁾ → … → X⁽ᴺ⁾: an encoder or a decoder; with pre-norm a last norm closes it.

    EQ: 90, 105, 110.  Source: Vaswani et al. (2017), §3.1. All blocks of a decoder read the same
    memory.
    """

    def __init__(
        self,
        count: int,
        config: BlockSettings,
        kinds: tuple[SublayerKind, ...],
        source: DropoutSource,
    ) -> None:
        super().__init__()
        self.layers = blocks(count, config, kinds, source)
        self.layer_drop = LayerDrop(config.layer_drop, source)
        self.last_norm = last_norm(config)

    def forward(
        self,
        x: Float[Tensor, "sentence length d_model"],
        reading: Reading,
        trace: Trace = UNWATCHED,
    ) -> Float[Tensor, "sentence length d_model"]:
        """Run all blocks over whole sequences at once."""
        x = read_blocks(self.layer_drop.kept(self.layers), x, reading, trace)
        return trace.keep("output", self.last_norm(x))

    def start(
        self,
        memory: Float[Tensor, "sentence source d_model"],
        may_attend: Bool[Tensor, "sentence source"],
    ) -> StackState:
        """The state before the first target token."""
        return start_blocks(self.layers, memory, may_attend)

    def step(
        self, x: Float[Tensor, "row d_model"], state: StackState
    ) -> tuple[Float[Tensor, "row d_model"], StackState]:
        """Run all blocks for the newest token alone; return the state after it."""
        x, state = step_blocks(self.layers, x, state)
        return self.last_norm(x), state
