"""Statistics of a parallel corpus: the amount and kind of text, and how both sides are related.

Everything is counted on at most 100,000 pairs, spread evenly over the corpus, so that a large
corpus takes little more than reading it once. ``pellucid.training.recipe`` chooses settings from
these facts; nothing here depends on models.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pellucid.core.errors import DataError
from pellucid.text.corpus.pairs import is_blank_pair
from pellucid.text.normalization import normalize
from pellucid.text.scripts import CHINESE_OR_JAPANESE, SPACELESS

SAMPLED_PAIRS = 50_000
"""At most twice as many pairs are counted: enough for rates of a tenth of a percent."""
_HELD_OUT = 10
"""Every tenth line counts as new text; its words are looked for in the other nine tenths."""
_SPACELESS_OR_TIBETAN = re.compile(f"[{SPACELESS}\u0f00-\u0fff]")
"""Tibetan has marks between syllables, and spaces where other languages have commas."""
_CHINESE_OR_JAPANESE_LETTER = re.compile(f"[{CHINESE_OR_JAPANESE}]")


@dataclass(frozen=True)
class SideFacts:
    """One language of a corpus. Words are separated by white space."""

    words: float
    """Words in a line, on average."""
    characters: float
    """Characters in a line without white space, on average."""
    different_words: int
    """Different words in the sample."""
    new_words: float
    """Share of the words of every tenth line that do not occur in the other lines: 0.01 to 0.06 for
    some ten thousand sentences of a natural language, 0 for a formal one."""
    different_characters: int
    """Different characters in the sample, without white space."""
    one_character_words: float
    """Share of the words that are a single character: 1 where words are spelled ``l i k e``."""
    one_word_lines: float
    """Share of the lines that are a single word."""
    spaceless: float = 0.0
    """Share of the running characters that belong to scripts without spaces between words."""
    chinese: float = 0.0
    """Share of the running characters that are Chinese or Japanese."""


@dataclass(frozen=True)
class CorpusFacts:
    """A parallel corpus in numbers."""

    pairs: int
    """Pairs in which neither side is blank."""
    source: SideFacts
    target: SideFacts
    common_characters: float
    """Share of the running characters of one side that occur on the other side too; the smaller of
    the two shares."""
    repeated_sources: int
    """Source lines of the sample that occur more than once."""
    ambiguous_sources: int
    """Repeated sources that have different targets."""
    translated_signs: float = 0.0
    """Share of the pairs whose source has no letter and whose target is another text."""
    copied_signs: float = 0.0
    """Share of the pairs whose source has no letter and whose target is the same text."""
    different_pairs: float = 1.0
    """Share of the pairs that are no copy of an earlier one."""


@dataclass(frozen=True)
class PairSample:
    """Pairs spread evenly over a corpus."""

    total: int
    """Pairs in the whole corpus, blank ones left out."""
    sources: list[str]
    targets: list[str]

    @property
    def is_whole(self) -> bool:
        """Whether it contains every pair of the corpus."""
        return len(self.sources) == self.total


def sample_pairs(pairs: Iterable[tuple[str, str]], most: int = SAMPLED_PAIRS) -> PairSample:
    """Every pair, or every second, fourth, eighth ... so that fewer than ``2 * most`` are kept.

    The sample is not random: the same pairs give the same sample. Blank pairs do not count.
    Raises DataError if there are no others, and whatever ``pairs`` raises.
    """
    kept: list[tuple[str, str]] = []
    stride, total = 1, 0

    for pair in pairs:
        if is_blank_pair(*pair):
            continue
        if total % stride == 0:
            kept.append(pair)

            if len(kept) == 2 * most:  # keep the even ones, and half as many from here on
                kept, stride = kept[::2], 2 * stride
        total += 1

    if not kept:
        raise DataError("the corpus must hold a pair with text on both sides, got none")
    return PairSample(total, [source for source, _ in kept], [target for _, target in kept])


def corpus_facts(sample: PairSample) -> CorpusFacts:
    """The facts of the corpus that ``sample`` was drawn from."""
    # Letters of both sides tell whether the languages share a script, and so whether they can share
    # a vocabulary.
    source_letters, target_letters = _letters(sample.sources), _letters(sample.targets)

    # How often each source occurs, and with how many different targets.
    times = Counter(sample.sources)
    different_pairs = set(zip(sample.sources, sample.targets, strict=True))
    different = Counter(source for source, _ in different_pairs)

    # Such as numbers in a table, or Braille and dates that are to be written in words.
    signs = [
        normalize(source) == normalize(target)
        for source, target in zip(sample.sources, sample.targets, strict=True)
        if not any(map(str.isalpha, source))
    ]

    return CorpusFacts(
        pairs=sample.total,
        source=_side_facts(sample.sources, source_letters),
        target=_side_facts(sample.targets, target_letters),
        common_characters=min(
            _common(source_letters, target_letters), _common(target_letters, source_letters)
        ),
        repeated_sources=sum(count > 1 for count in times.values()),
        ambiguous_sources=sum(count > 1 for count in different.values()),
        translated_signs=signs.count(False) / len(sample.sources),
        copied_signs=signs.count(True) / len(sample.sources),
        different_pairs=len(different_pairs) / len(sample.sources),
    )


def _side_facts(lines: Sequence[str], letters: Counter[str]) -> SideFacts:
    # White space is the only rule that needs no knowledge of the language.
    split = [line.split() for line in lines]
    counts = Counter(word for words in split for word in words)
    word_count = max(1, counts.total())
    return SideFacts(
        words=counts.total() / len(lines),
        characters=letters.total() / len(lines),
        different_words=len(counts),
        new_words=_new_words(split),
        different_characters=len(letters),
        one_character_words=sum(n for word, n in counts.items() if len(word) == 1) / word_count,
        one_word_lines=sum(len(words) == 1 for words in split) / len(lines),
        spaceless=_share(_SPACELESS_OR_TIBETAN, letters),
        chinese=_share(_CHINESE_OR_JAPANESE_LETTER, letters),
    )


def _share(kind: re.Pattern[str], letters: Counter[str]) -> float:
    """The share of the running characters that are of this kind."""
    return sum(n for letter, n in letters.items() if kind.match(letter)) / max(1, letters.total())


def _new_words(split: Sequence[Sequence[str]]) -> float:
    """Share of the words in every tenth line that occur in none of the other nine tenths."""
    known = {word for row, words in enumerate(split) if row % _HELD_OUT for word in words}
    unseen = [word for words in split[::_HELD_OUT] for word in words]
    return sum(word not in known for word in unseen) / max(1, len(unseen))


def _letters(lines: Sequence[str]) -> Counter[str]:
    """How often each character occurs, white space left out."""
    counts: Counter[str] = Counter()
    for line in lines:
        # A string is an iterable of its characters: ``update`` counts them in C.
        counts.update(line)
    return Counter({letter: n for letter, n in counts.items() if not letter.isspace()})


def _common(own: Counter[str], other: Counter[str]) -> float:
    """Share of ``own`` running characters that ``other`` has too."""
    return sum(n for letter, n in own.items() if letter in other) / max(1, own.total())
