"""Lines of several sentences: split, translated one by one and joined again.

A model that was trained on single sentences translates the first sentence of a line and drops the
others, or generates one sentence for all of them.
"""

import bisect
import dataclasses
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

from pellucid.core.special import EOS_ID
from pellucid.decoding.requests import Request
from pellucid.decoding.result import Translation
from pellucid.decoding.suspicious import MOST_CHARACTERS
from pellucid.decoding.warnings import merged
from pellucid.text.normalization import check_text
from pellucid.text.scripts import SPACELESS, SPACELESS_LETTER, is_wide
from pellucid.text.splitting import Sentence, split_sentences
from pellucid.text.tokenizers.vocabulary import SPECIAL_TOKENS

_Item = TypeVar("_Item")
SHARE_KEY = "several_sentences"
"""The manifest's key for the share of training lines that hold several sentences."""
MOST_SEVERAL = 0.1
"""A model that has seen more such lines can translate them whole. Of the lines of Multi30k 0%, of
Tatoeba 1%, of Europarl, whose lines are called sentences, 8% hold several."""


_LATIN_STOP = re.compile(rf"(?:^|[^{SPACELESS}])[.!?…]+[)\]}}\"'”’»*†‡\d]*$")
"""The end of a sentence of a script that has spaces between sentences."""


def knows_single_sentences(manifest: Mapping[str, Any]) -> bool:
    """Whether a model was trained on lines of single sentences, by its bundle's manifest.

    True for bundles without the entry, such as older and imported ones.
    """
    share = manifest.get(SHARE_KEY)
    return not isinstance(share, int | float) or share <= MOST_SEVERAL


@dataclasses.dataclass(frozen=True)
class SplitLine:
    """A request and the sentences of its source, each a request of its own."""

    request: Request
    sentences: tuple[Sentence, ...]
    """At least two, or none if the line is translated as it is."""

    @classmethod
    def of(cls, request: Request, language: str | None) -> "SplitLine":
        """Split by the rules of a language; None does not split.

        Constraints hold for the whole translation and not for its sentences, so a line with a
        prefix or required phrases stays whole; so does one that is too long to be read.
        """
        check_text(request.source)
        is_too_long = len(request.source) > MOST_CHARACTERS
        if language is None or request.prefix or request.must or request.terms or is_too_long:
            return cls(request, ())

        sentences = split_sentences(request.source, language)
        return cls(request, tuple(sentences) if len(sentences) > 1 else ())

    @property
    def requests(self) -> list[Request]:
        """The requests to translate."""
        if not self.sentences:
            return [self.request]
        return [dataclasses.replace(self.request, source=each.text) for each in self.sentences]

    def joined(self, found: Sequence[Translation]) -> Translation:
        """One translation from those of ``requests``.

        The k-th best of the line is made of the k-th best of each sentence.
        """
        if not self.sentences:
            return found[0]

        count = max(len(each.n_best) for each in found)
        ranked = [
            # a sentence with fewer hypotheses repeats its last one
            [(each.n_best or (each,))[min(k, len(each.n_best) - 1)] for each in found]
            for k in range(count)
        ]

        n_best = [self._join(each) for each in ranked]
        return dataclasses.replace(
            n_best[0] if n_best else self._join(found), n_best=tuple(n_best), sentences=tuple(found)
        )

    def _join(self, parts: Sequence[Translation]) -> Translation:
        text, starts = "", []
        for number, part in enumerate(parts):
            if number:
                text += self._space(number, text, part.text)
            starts.append(len(text))
            text += part.text

        # tokens of a sentence are numbered from 0, those of the line across all its sentences
        source_offsets = _offsets(len(part.source_tokens) for part in parts)
        target_offsets = _offsets(len(part.tokens) for part in parts)
        qualities = [part.quality for part in parts if part.quality is not None]
        utilities = [part.expected_utility for part in parts if part.expected_utility is not None]

        return Translation(
            text=text,
            score=sum(part.score for part in parts),
            tokens=_with_stops([part.tokens for part in parts], SPECIAL_TOKENS[EOS_ID]),
            token_log_probs=_log_probs_of(parts),
            n_best=(),
            source=self.request.source,
            token_ids=_with_stops([part.token_ids for part in parts], EOS_ID),
            source_tokens=_with_stops(
                [part.source_tokens for part in parts], SPECIAL_TOKENS[EOS_ID]
            ),
            alignment=_shifted([part.alignment for part in parts], source_offsets, target_offsets),
            word_alignment=self._word_alignment(parts, text, starts),
            expected_utility=sum(utilities) / len(utilities) if utilities else None,
            truncated=any(part.truncated for part in parts),
            warnings=merged(part.warnings for part in parts),
            quality=min(qualities, default=None),
        )

    def _word_alignment(
        self, parts: Sequence[Translation], text: str, starts: Sequence[int]
    ) -> tuple[tuple[int, int], ...] | None:
        """The links of all sentences, with the word numbers of the whole line."""
        links = [part.word_alignment for part in parts]
        if any(each is None for each in links):
            return None
        sources = _words_at(self.request.source, [each.start for each in self.sentences])
        return _shifted(links, sources, _words_at(text, starts))

    def _space(self, number: int, left: str, right: str) -> str:
        """The text between two translations."""
        before, behind = self.sentences[number - 1], self.sentences[number]
        between = before.after + behind.before
        if not left or not right:
            return between if "\n" in between else ""
        return space_between(between, (before.text, behind.text), left, right)


def space_between(between: str, sources: tuple[str, str], left: str, right: str = "") -> str:
    """The text between two translations: that ``between`` their source sentences.

    Where one of the two languages is written without spaces, the script of the translation
    decides. ``right`` is empty while the second translation is not known.
    """
    has_wide = is_wide(left[-1]) or (right != "" and is_wide(right[0]))
    if not has_wide:
        # the space that is as wide as a letter of Chinese is one of its text alone
        return between.replace("\u3000", " ") or _space_of_none(*sources)
    # a line end or a tab separates more than a space does, so it stays in every script
    return between if between.strip(" ") else ""


def _space_of_none(before: str, behind: str) -> str:
    """The space between two translations whose source sentences have none.

    A full stop of Latin letters needs a space behind it, so where somebody left it out
    (``running!A dog``) the translation has none either; nor have the parts of one long word. The
    marks of other scripts need none.
    """
    is_latin = _LATIN_STOP.search(before) is not None
    is_one_word = before[-1:].isalnum() and behind[:1].isalnum()
    return "" if (is_latin or is_one_word) and not SPACELESS_LETTER.match(behind) else " "


def _offsets(counts: Iterator[int]) -> list[int]:
    """The index of the first token of each part, with a stop between two parts."""
    offsets, total = [], 0
    for count in counts:
        offsets.append(total)
        total += count + 1
    return offsets


def _words_at(text: str, starts: Sequence[int]) -> list[int]:
    """The number of the word at each character, as white space separates words."""
    ends = [word.end() for word in re.finditer(r"\S+", text)]
    return [bisect.bisect_right(ends, start) for start in starts]


def _log_probs_of(parts: Sequence[Translation]) -> tuple[float, ...]:
    """Return the log-probabilities of all parts, empty if no part has any; the stop of a copied
    sentence has the probability 1."""
    if not any(part.token_log_probs for part in parts):
        return ()
    return tuple(each for part in parts for each in part.token_log_probs or (0.0,))


def _with_stops(parts: Sequence[tuple[_Item, ...]], stop: _Item) -> tuple[_Item, ...]:
    return tuple(
        item for number, part in enumerate(parts) for item in ((stop,) if number else ()) + part
    )


def _shifted(
    links: Sequence[tuple[tuple[int, int], ...] | None],
    sources: Sequence[int],
    targets: Sequence[int],
) -> tuple[tuple[int, int], ...] | None:
    if any(each is None for each in links):
        return None
    return tuple(
        # two links may become one, as a word can span the border of two sentences
        dict.fromkeys(
            (source + first, target + second)
            for each, first, second in zip(links, sources, targets, strict=True)
            for source, target in each or ()
        )
    )
