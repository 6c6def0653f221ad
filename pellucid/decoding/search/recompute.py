"""Search without a KV cache: the whole prefix again at every step, with or without the causal mask.

It is slow. Without the mask it is the only way to decode as the Single Page does at inference; with
the mask it is the reference for the KV cache.
"""

import dataclasses

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from pellucid.core.errors import ConfigError
from pellucid.core.special import BOS_ID, EOS_ID, PAD_ID
from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.engine import SearchWatcher
from pellucid.decoding.result import Hypothesis, make_hypothesis
from pellucid.decoding.search.candidates import NO_CONSTRAINTS, make_rules
from pellucid.equations.search import most_likely
from pellucid.model.seq2seq import Memory, State
from pellucid.model.transformer import Transformer


@dataclasses.dataclass(frozen=True)
class PrefixState:
    """The state of a decoder without a KV cache: the tokens so far."""

    memory: Memory
    ids: Int[Tensor, "sentence beam length"]

    @property
    def sentence_count(self) -> int:
        """How many source sentences are being translated."""
        return self.ids.shape[0]

    @property
    def beam_count(self) -> int:
        """How many hypotheses each of them has."""
        return self.ids.shape[1]

    @property
    def length(self) -> int:
        """How many tokens have been fed so far."""
        return self.ids.shape[2]

    def select(self, rows: Int[Tensor, "sentence beam"]) -> "PrefixState":
        """Keep these rows; the beams of a new sentence must all come from one old sentence."""
        # all rows of a new sentence come from one old one, so the first row names it
        sentences = rows[:, 0] // self.beam_count
        memory = Memory(self.memory.states[sentences], self.memory.may_attend[sentences])
        return PrefixState(memory, self.ids.flatten(0, 1)[rows])


class Recomputing(nn.Module):
    """A Transformer for searches that computes the whole prefix at every step.

    Without ``mask_at_inference`` each generated word attends to later ones, unlike in training.
    EQ: 84, 123.  Source: Single Page, Inference Phase; ER-36.
    """

    def __init__(self, model: object, *, mask_at_inference: bool) -> None:
        """Raises ConfigError for any other kind of model."""
        if not isinstance(model, Transformer):
            raise ConfigError(
                "use_cache=false and repredict need a single model of kind transformer: no other"
                " has a mask that could be left off"
            )
        if not mask_at_inference and model.config.decoder == "ssru":
            raise ConfigError(
                "mask_at_inference=false needs a decoder with self-attention: an SSRU reads the"
                " words in their order and has no mask"
            )
        super().__init__()
        self._model = model
        self._causal = mask_at_inference

    @property
    def target_vocabulary_size(self) -> int:
        """How many tokens it chooses from."""
        return self._model.target_vocabulary_size

    @property
    def max_length(self) -> int | None:
        """The longest sequence it can number, in tokens with the stop; None is no limit."""
        return self._model.max_length

    def forward(
        self,
        source: Int[Tensor, "sentence source"],
        target_input: Int[Tensor, "sentence target"],
    ) -> Float[Tensor, "sentence target vocabulary"]:
        """The logits of the next token after each prefix of a target: those of the steps."""
        if self._causal:
            return self._model.forward(source, target_input)

        # without the mask a word depends on those after it, so each prefix is computed by itself
        memory, prefixes = self.encode(source), target_input.unsqueeze(1)
        lengths = range(1, target_input.shape[-1] + 1)
        rows = [self.logits(memory, prefixes[:, :, :length])[:, 0, -1] for length in lengths]
        return torch.stack(rows, dim=1)

    def encode(self, source: Int[Tensor, "sentence source"]) -> Memory:
        """Read source ids, each row ending in EOS and filled up with PAD."""
        return self._model.encode(source)

    def start(self, memory: Memory) -> PrefixState:
        """The state before the first target token, with one beam for each sentence."""
        count = memory.states.shape[0]
        return PrefixState(
            memory, torch.empty(count, 1, 0).to(memory.may_attend.device, torch.long)
        )

    def step(
        self, ids: Int[Tensor, "sentence beam"], state: State
    ) -> tuple[Float[Tensor, "sentence beam vocabulary"], PrefixState]:
        """Feed one token to each hypothesis; return the logits of the next and the new state."""
        assert isinstance(state, PrefixState)
        prefix = torch.cat([state.ids, ids.unsqueeze(-1)], dim=-1)

        # (sentence, beam, length, vocabulary) → the last position alone
        logits = self.logits(state.memory, prefix)[:, :, -1]
        return logits, PrefixState(state.memory, prefix)

    def logits(
        self, memory: Memory, prefix: Int[Tensor, "sentence beam length"]
    ) -> Float[Tensor, "sentence beam length vocabulary"]:
        """The logits after every word of every prefix, without a cache."""
        beams = prefix.shape[1]
        # a copy of the memory for each beam: ``decode`` knows sentences, not beams
        rows = Memory(
            memory.states.repeat_interleave(beams, dim=0),
            memory.may_attend.repeat_interleave(beams, dim=0),
        )
        hidden = self._model.decode(rows, prefix.flatten(0, 1), causal=self._causal)
        logits = functional.linear(hidden, self._model.output_weight, self._model.output_bias)
        return logits.view(*prefix.shape, -1)


def repredict_search(
    model: Recomputing,
    source: Int[Tensor, "sentence source"],
    settings: DecodingConfig,
    watcher: SearchWatcher | None = None,
) -> list[Hypothesis]:
    """Predict every token again at every step, until one of them is EOS.

        w⁽ᵏ⁾ = argmax decoder(BOS, w⁽ᵏ⁻¹⁾),   one word longer than w⁽ᵏ⁻¹⁾

    EQ: 124.  Source: Single Page, Concrete Example; ER-37.
    With the mask this is greedy search, since no position attends to later ones; without it,
    earlier words may change. Log-probabilities are those of the last pass. Raises PellucidError if
    one is not finite, ConfigError for a watcher that needs the steps, and as the watcher does.
    """
    if watcher is not None and watcher.needs_steps:
        raise ConfigError(
            "repredict predicts all tokens again at every step, so no step continues another: it"
            " cannot be watched step by step"
        )

    rules = make_rules(source, model, settings, NO_CONSTRAINTS)
    memory = model.encode(source)
    return [
        _repredict(model, _one_of(memory, row), limit, settings, watcher)
        for row, limit in enumerate(rules.limits)
    ]


def _one_of(memory: Memory, row: int) -> Memory:
    return Memory(memory.states[row : row + 1], memory.may_attend[row : row + 1])


def _repredict(
    model: Recomputing,
    memory: Memory,
    limit: int,
    settings: DecodingConfig,
    watcher: SearchWatcher | None,
) -> Hypothesis:
    # (sentence, beam, length): one sentence, one hypothesis
    prefix = torch.full((1, 1, 1), BOS_ID, device=memory.may_attend.device)

    while True:
        if watcher is not None:
            watcher.before_step(prefix.shape[-1] - 1)
        log_probs = model.logits(memory, prefix)[0, 0].log_softmax(dim=-1)  # (position, vocabulary)
        # a copy, as the log-probabilities that are returned are the model's own
        allowed = log_probs.clone()
        allowed[:, [PAD_ID, BOS_ID]] = -torch.inf
        tokens = most_likely(allowed)
        is_longest = len(tokens) > limit
        if is_longest:  # as in every search, EOS is forced then
            tokens[-1] = EOS_ID

        # argmax of zeros and ones is the first EOS; without one it is 0, which the test excludes
        length = int((tokens == EOS_ID).long().argmax()) + 1
        if tokens[length - 1] == EOS_ID:
            values = log_probs.gather(-1, tokens[:, None])[:length, 0].tolist()
            if is_longest and length == len(tokens) and settings.forced_stop == "free":
                values[-1] = 0.0
            return make_hypothesis(tokens[:length].tolist(), values, settings.penalty)

        # BOS, then all the tokens just predicted: one more than at the step before
        prefix = torch.cat([prefix[:, :, :1], tokens[None, None]], dim=-1)
