"""The facts that ``pellucid.training.recipe`` chooses by: the kind of text, sizes, measured speeds.

All are pure functions of numbers. Each constant has its reason beside it. Where the reason is a
measurement, ``auto.md`` or ``quality.md`` of ``benchmarks/results`` has it, on validation text.
"""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, Literal

from pellucid.text.corpus.facts import CorpusFacts, SideFacts

Unit = Literal["bpe", "word", "character"]

_CLOSED_WORDS = 0.001
"""The vocabulary of a side is closed if at most this share of the words in unseen lines is new.
SCAN and CMUdict have 0, a generated grammar of 1,200 words 0.0004; Multi30k, Tatoeba and Europarl
0.011 to 0.052."""
_FEW_WORDS = 200
"""A closed vocabulary of so few words is a notation, whose words need not be cut into pieces."""
_MOST_LETTERS = 200
"""An alphabet with its accents, or a syllabary, has no more characters; a hundred lines of Chinese
have more."""
_SPELLED = 0.95
"""Share of the words, or lines, that must be spelled for the side to count as spelled."""
_LONGEST_WORD = 25.0
"""Mean characters of a line that is one word; a longer one is a sentence."""
NO_SPACES = 0.5
"""Share of characters of scripts without spaces between words, such as Thai's, from which on a line
without a space may be a sentence of any length."""
_CHARACTERS_PER_WORD = 6.0
"""In a script without spaces so many characters count as a word, but for:"""
_CHINESE_PER_WORD = 1.64
"""Chinese Treebank 6.0 (LDC2007T36) has 1,285,149 characters in 781,351 words. Taken for Japanese
as well."""
_MOST_PASSES = 200
"""A run ends after so many passes, whatever the minutes: more would only overfit."""
_LEAST_UPDATES = 2000
"""A corpus of a few hundred pairs has more passes than that, until it has had so many updates."""

_NOTATION_RATE = 2 / 3
"""A target in words or letters of a notation needs a lower learning rate than sentences, as in the
presets ``scan`` and ``cmudict``. Exact matches on validation text after equally many updates, with
3e-3 and with 2e-3: SCAN 83.2% and 89.2%, CMUdict 43.1% and 44.2%, but the phrasebook 99.6% and
98.6%."""
_OF_ADAM = {"muon": 2.0}
"""The learning rate of each other optimizer as a multiple of that of AdamW; so Multi30k is learned
in half the time (docs/figures.md)."""
VALIDATING_SHARE = 0.1
"""The largest share of the time for validation, not counting the last one, when time is up."""


@dataclasses.dataclass(frozen=True)
class Size:
    """The shape of a Transformer, and the peak learning rate of AdamW that suits its width."""

    d_model: int
    d_ff: int
    heads: int
    encoder_layers: int
    decoder_layers: int
    learning_rate: float

    @property
    def block_parameters(self) -> int:
        """Weights of all blocks, embeddings and norms left out."""
        # Attention has four d_model × d_model matrices; a decoder layer has two attentions.
        attention, feed_forward = 4 * self.d_model**2, 2 * self.d_model * self.d_ff
        return self.encoder_layers * (attention + feed_forward) + self.decoder_layers * (
            2 * attention + feed_forward
        )

    @property
    def settings(self) -> dict[str, Any]:
        """Return settings of a config, with those that suit every size."""
        return {
            "model.d_model": self.d_model,
            "model.d_ff": self.d_ff,
            "model.heads": self.heads,
            "model.encoder_layers": self.encoder_layers,
            "model.decoder_layers": self.decoder_layers,
            # Pre-norm needs less warm-up than the paper's post-norm (Xiong et al. 2020); both it
            # and rotary positions learn faster in the first hour (benchmarks/results/quality.md,
            # benchmarks/results/road.md).
            "model.norm": "pre",
            "model.positions": "rotary",
        }

    def __str__(self) -> str:
        return (
            f"{self.encoder_layers}+{self.decoder_layers} layers of width {self.d_model},"
            f" feed-forward {self.d_ff}, {self.heads} heads"
        )


SIZES = (
    Size(128, 256, 4, 2, 2, 3e-3),
    Size(128, 256, 4, 4, 4, 3e-3),
    Size(192, 768, 4, 3, 3, 2.5e-3),
    Size(256, 512, 4, 4, 3, 2e-3),
    Size(256, 1024, 4, 6, 6, 2e-3),
    Size(384, 1536, 6, 6, 6, 1.4e-3),
    Size(512, 2048, 8, 6, 6, 1e-3),
)
"""From the smallest to the base model of Vaswani et al. (2017). The first four are those of the
presets ``scan``, ``multi30k``, ``cmudict`` and ``tatoeba``, with about their learning rates, which
were found on validation text; those of the wider ones fall with the width."""


@dataclasses.dataclass(frozen=True)
class Pace:
    """Measured means of one update with a certain model size and batch size."""

    seconds: float
    target_tokens: float
    pairs: float

    def updates_in(self, minutes: float) -> float:
        """How many updates fit into ``minutes``, less the share for validation."""
        return max(1.0, (1.0 - VALIDATING_SHARE) * 60.0 * minutes / self.seconds)

    def tokens_in(self, minutes: float) -> float:
        """Target tokens that are learned from in ``minutes``."""
        return self.updates_in(minutes) * self.target_tokens


@dataclasses.dataclass(frozen=True)
class Plan:
    """Everything that the choices depend on."""

    facts: CorpusFacts
    minutes: float
    """Infinite if passes or updates alone end the run."""
    size: Size
    batch_tokens: int
    pace: Pace
    validation_seconds: float = 0.0
    most_updates: float = math.inf
    """A limit of another kind than minutes, if one was set."""
    optimizer: str = "muon"
    given_rate: float | None = None
    """The learning rate that the user set; weight decay follows it."""
    best_by: str = "bleu"
    """The figure that can decide on text as the target's."""
    r_drop: float = 0.0
    """α of R-Drop, with which ``pace`` was measured."""

    @property
    def passes(self) -> float:
        """How often the corpus will be read."""
        # Time and the user's own limit: the smaller number of updates decides.
        updates = min(self.pace.updates_in(self.minutes), self.most_updates)
        return min(updates / self.updates_per_pass, float(self.most_passes))

    @property
    def run_minutes(self) -> float:
        """How long the run takes, with its validations; less than ``minutes`` where another limit
        ends it."""
        seconds = self.passes * self.updates_per_pass * self.pace.seconds
        return min(self.minutes, seconds / 60.0 / (1.0 - VALIDATING_SHARE))

    @property
    def most_passes(self) -> int:
        """How often it may be read."""
        return max(_MOST_PASSES, math.ceil(_LEAST_UPDATES / self.updates_per_pass))

    @property
    def updates(self) -> int:
        """How many updates the run will have, about."""
        return max(1, round(self.passes * self.updates_per_pass))

    @property
    def updates_per_pass(self) -> float:
        """How many batches hold the whole corpus."""
        return self.facts.pairs / self.pace.pairs

    @property
    def learns_sentences_by_muon(self) -> bool:
        """Whether what was measured with Muon on sentences applies: word vectors, weight decay."""
        is_text = unit_of(self.facts.target, is_target=True) == "bpe"
        return self.optimizer == "muon" and is_text and not is_deterministic(self.facts)

    @property
    def learning_rate(self) -> float:
        """The highest rate, which the warm-up reaches."""
        if self.given_rate is not None:
            return self.given_rate
        is_notation = unit_of(self.facts.target, is_target=True) != "bpe"
        factor = _NOTATION_RATE if is_notation else 1.0
        return round(self.size.learning_rate * factor * _OF_ADAM.get(self.optimizer, 1.0), 5)


@dataclasses.dataclass(frozen=True)
class Choice:
    """Settings that belong together, and the reason for them."""

    settings: Mapping[str, Any]
    """By dotted name, such as ``model.dropout``."""
    what: str
    why: str

    def __str__(self) -> str:
        return f"{self.what}: {self.why}"


def is_closed(side: SideFacts) -> bool:
    """Whether future text will have hardly any word that this text does not have."""
    return side.new_words <= _CLOSED_WORDS


def is_deterministic(facts: CorpusFacts) -> bool:
    """Whether every source seems to have one right target, as in a formal language.

    Both vocabularies are closed, and no source occurs with two targets.
    """
    return is_closed(facts.source) and is_closed(facts.target) and not facts.ambiguous_sources


def is_spelled(side: SideFacts) -> bool:
    """Whether each line is one word, spelled with or without spaces between the letters."""
    if side.different_characters > _MOST_LETTERS:
        return False

    is_one_word = side.one_word_lines >= _SPELLED and side.characters <= _LONGEST_WORD
    if side.spaceless > NO_SPACES:
        is_one_word = False
    return is_one_word or side.one_character_words >= _SPELLED


def unit_of(side: SideFacts, *, is_target: bool) -> Unit:
    """The unit of tokenization that suits a side."""
    # A target with spaces between its letters is cut into words of one letter, so that decoding
    # brings the spaces back.
    if is_spelled(side) and not (is_target and side.one_character_words >= _SPELLED):
        return "character"
    if is_closed(side) and side.different_words <= _FEW_WORDS:
        return "word"
    return "bpe"


def running_words(facts: CorpusFacts) -> float:
    """Words of the corpus, both sides."""
    return facts.pairs * sum(map(words_in_line, (facts.source, facts.target)))


def words_in_line(side: SideFacts) -> float:
    """Words in a line; in a script without spaces some characters count as one."""
    chinese = side.characters * side.chinese
    others = side.characters * side.spaceless - chinese
    return max(side.words, chinese / _CHINESE_PER_WORD + others / _CHARACTERS_PER_WORD)
