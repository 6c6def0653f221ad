"""Lines that a model should not read as they are: with emoji, in capitals, without a word.

Emoji, faces such as :-) and the dash or the number of an item are taken out before the search and
put back into the translation, because a model that has never seen one loses it or the words around
it. A line in upper case or in Title Case can be read as the same line in lower case, because its
words are cut into other pieces than those that the model has learned. So can a single word in upper
case, if the model knows it better in lower case. A sign that the vocabulary lacks, such as ’, is
read as one that looks alike. A line without a letter is its own translation.
"""

import bisect
import dataclasses
import functools
import itertools
import re
import unicodedata
from collections.abc import Callable, Sequence

from pellucid.core.special import UNK_ID
from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.requests import Request
from pellucid.decoding.result import Translation
from pellucid.text.edits import Edited, Offsets, composed, edited, moved
from pellucid.text.languages import UNKNOWN, language_of_code
from pellucid.text.letter_case import is_in_capitals, lower, upper
from pellucid.text.normalization import CLASSES, check_text
from pellucid.text.scripts import combining_marks, is_mark, is_wide
from pellucid.text.seen_words import SeenWords
from pellucid.text.tokenizers.interface import Tokenizer
from pellucid.text.tokenizers.marian import MARIAN_KIND

_SPACE = f"[ {CLASSES['spaces']}]"
_PICTURE = (
    "(?:[\U0001f000-\U0001faff\u2600-\u27bf\u2b05-\u2b55\u231a-\u23ff\u3030\u303d\u3297\u3299]"
    "|[\u00a9\u00ae\u203c\u2049\u2122\u2139\u2194-\u21aa\u25aa-\u25fe\u24c2\u2934\u2935]\ufe0f"
    "|[0-9#*]\ufe0f?\u20e3)"
)
"""A character that is a picture by itself, or by the sign that follows it."""
_EMOJI = f"{_PICTURE}[\ufe0e\ufe0f\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]*"
"""A picture with its variation, tone of skin or tags. Source: Unicode Technical Standard 51."""
_JOINED = f"{_EMOJI}(?:\u200d{_EMOJI})*"
_BULLET = (
    f"^{_SPACE}*(?:[\u2022\u2023\u2043\u25a0-\u25ff\uf0a7\uf0b7*\u2013\u2014-]|>+|#{{1,6}}"
    f"|\\[[ xX]\\]|\\(?(?:[0-9]{{1,3}}|[A-Za-z]|[ivx]{{2,4}})\\))(?={_SPACE})"
)
"""A bullet, a dash or the number of an item, such as ``2)``, at the start of a line, or the mark of
a quotation or a heading; Word writes two bullets as private characters. Elsewhere such a sign is
part of the text, as in ▲5% and 二○○八."""
_ORDINAL = re.compile(
    r"\(?(?:[A-Za-z]|(?=[IVX])X{0,3}(?:IX|IV|V?I{0,3})|(?=[ivx])x{0,3}(?:ix|iv|v?i{0,3}))[.)]"
)
"""The letter or the Roman number of an item by itself, ``I.`` or ``b)``: it is no word, and I is no
pronoun."""
_EMOTICON = (
    f"(?:^|{_SPACE})(?:(?:[:;=]['’]?-?[()]|[:;]-?[DPp]|:-?[/|]|\\^\\^)"
    f"(?![^{CLASSES['spaces']} .,!?])|<3(?=[{CLASSES['spaces']} .,!?]*(?:$|{_PICTURE})))"
)
"""A face of marks, such as ``:-)``, as a word of its own, with one space to its left, so that a run
of spaces takes linear time. A heart stands at the end or before emoji: ``<3 years`` is a number."""
EMOJI = f"{_JOINED}(?:{_SPACE}*{_JOINED})*|{_BULLET}|{_EMOTICON}"
"""Emoji in a row, joined ones included, a bullet or a face of marks; an expression that browsers
read as well."""
_SIGN = re.compile(EMOJI)
_ONE_SIGN = re.compile(f"[\U0001f1e6-\U0001f1ff]{{2}}|{_JOINED}")
FINAL_MARKS = ".,;:!?…‥。、，；：！？．｡､؟،؛۔।॥։።။၊។།"
"""Marks that end a sentence or a part of one, before which an emoji may stand."""
_CLOSING = (
    "Pe",
    "Pf",
    "Pi",
)  # Pi: a German quotation is closed by the mark that opens an English one
_MOST_MARKS = 8
"""Marks behind an emoji that are counted."""
_LEAST_WORDS, _LEAST_LETTERS = 2, 2
"""Words of so many letters that a line in upper case has: a single one may be an abbreviation."""
_UNIT = r"(?<=\d)[ \u00a0\u202f]?(?:[a-zµ]{1,3}|[km][A-Z][hz]?)(?:[²³]|/h)?(?![^\W_])"
"""A number's unit with small letters."""
_CODE = (
    r"(?P<code>(?<!\S)\S*(?:[=_@\\]|://)\S*"
    r"|(?<![^\W_])(?:(?:[^\W\d_]{1,4}-)+\d+|[^\W_]*[^\W\d_]\d[^\W_]*)"
    r"(?:-(?:[^\W\d_]{1,4}|[^\W_]*\d[^\W_]*))*(?![^\W_])"
    r"|(?<![^\W_])(?=[A-Z]*[a-z])(?:[A-Z][a-z]?){2,}(?![^\W_])"
    r"|\{[^{}]{1,60}\}|&[a-z]{2,8};|</?[a-z][^<>]{0,200}>|%(?:\d+\$|\(\w{1,60}\))?[\d.]*l{0,2}[a-z](?![^\W_])"
    rf"|{_UNIT})"
)
"""Codes, which keep their case: ``CC(=O)O``, an address, ``SN-4711-ABX``, ``A4``, ``NaCl``, what
stands for something (``{name}``, ``<b>``, ``%s``), and the unit of a number, ``5 km``.
Digits before capitals, such as 5TH and 3D, are read as words are."""
_CODES, _UNITS = re.compile(_CODE), re.compile(_UNIT)
_LETTERS = re.compile(rf"{_CODE}|(?:[^\W\d_][{combining_marks()}]*){{{_LEAST_LETTERS},}}")
_WORD = re.compile(r"[^\W_]")
_ANY_LETTERS = re.compile(rf"{_CODE}|(?:[^\W\d_][{combining_marks()}]*)+")
_LEAST_ALONE, _LEAST_WORD, _LEAST_LONG_WORD = 3, 4, 7
"""Letters of a single word in capitals, from which on it is read in lower case: if it is all the
text, if that is one piece, and if it is several. US is not us, WHO is not who, and UNESCO is among
the longest abbreviations."""
_TITLE_WORDS, _LONG_WORD = 4, 4
"""Words of a title, at least, and the length from which all of its words begin in upper case."""


@dataclasses.dataclass(frozen=True)
class _Sign:
    """Emoji in a row, as they stand in a text."""

    text: str
    before: str
    """White space to its left."""
    after: str
    """White space to its right."""
    share: float
    """How much of the other text stands before it, from 0 to 1."""
    finals: int
    """How many final marks end the text behind it, if no word does."""
    closers: int
    """How many brackets or quotation marks close there."""


@dataclasses.dataclass(frozen=True)
class OddLine:
    """A request, what is searched for it, and how its translation is made of that."""

    request: Request
    plain: Request
    """The request to search for; blank if there is nothing to translate."""
    signs: tuple[_Sign, ...] = ()
    shifts: tuple[tuple[int, int], ...] = ()
    """How far characters are moved by what was replaced, without the emoji."""
    is_upper: bool = False
    is_copied: bool = False
    """The source is its own translation."""
    target_language: str = ""
    """The language whose capitals the translation has."""
    kept: str = ""
    """Matches the codes with small letters, which a translation in capitals has as they are."""
    banned: tuple[str, ...] = ()
    """Phrases that no translation has, also none in capitals."""

    @classmethod
    def of(
        cls,
        request: Request,
        settings: DecodingConfig,
        tokenizer: Tokenizer | None = None,
        seen: SeenWords | None = None,
        *,
        copies_numbers: bool = False,
        languages: tuple[str, str] = ("", ""),
    ) -> "OddLine":
        """The line as ``copy_symbols`` and ``recase`` have it read.

        With the ``tokenizer`` of the source, signs that it does not know are read as those that
        look alike; words in upper case, and all words of a line in upper or title case, are read in
        the case in which it cuts them into the fewest pieces; of a model whose training words are
        known, only those among ``seen``. With ``copies_numbers`` a line of numbers and marks is its
        own translation too, and so is the ordinal of an item. ``languages`` are source and target.
        A request with a prefix keeps emoji and case, for the prefix may have any. The translation
        of one with required words has these as they are, so it is not written in capitals.
        """
        text = request.source
        signs: tuple[_Sign, ...] = ()
        if copies_symbols(request, settings):
            is_word = str.isalpha if copies_numbers else str.isalnum
            is_marker = copies_numbers and _ORDINAL.fullmatch(text.strip()) is not None
            if not (request.must or request.terms or text.isspace()) and (
                is_marker or not any(map(is_word, text))
            ):
                check_text(text)  # as the tokenizer, which does not see it, would
                return cls(request, Request(""), is_copied=True)
            text, signs = _without_signs(text)

        alike: Offsets = []
        if tokenizer is not None:
            text, alike = tokenizer.look_alikes(text)
        is_upper, recased = False, Edited(text, [])
        if settings.recase is not False and not request.prefix:
            recased, is_upper = _recased(text, tokenizer, seen, settings.recase, languages[0])
            is_upper = is_upper and not request.must

        text = recased.text
        if text == request.source:
            return cls(request, request)
        plain = dataclasses.replace(request, source=text)
        shifts = tuple(composed(alike, recased.offsets, len(text)))
        kept = _kept(text) if is_upper else ""
        return cls(
            request,
            plain,
            signs,
            shifts,
            is_upper,
            banned=settings.banned,
            target_language=languages[1],
            kept=kept,
        )

    def plain_target(self, text: str) -> str:
        """A translation of the request as the model would have written that of ``plain``."""
        if self.signs:
            text = without_emoji(text)
        return self._in_case(lower, text) if self.is_upper else text

    def _in_case(self, change: Callable[[str, str], str], text: str) -> str:
        """The text in lower or upper case, but for the codes of the source."""
        made, end = "", 0
        for found in re.finditer(self.kept, text) if self.kept else ():
            made += change(text[end : found.start()], self.target_language) + found[0]
            end = found.end()
        return made + change(text[end:], self.target_language)

    def restored(self, found: Translation) -> Translation:
        """The translation of the request, from that of ``plain``."""
        if self.plain is self.request:
            return found
        best = self._restored(found)
        # The best one is first among the n best.
        return dataclasses.replace(best, n_best=tuple(map(self._restored, found.n_best)))

    def source_offsets(self) -> Offsets:
        """How far the characters of ``plain`` are moved in the request."""
        cuts = _cuts(self.request.source) if self.signs else []
        return composed(cuts, list(self.shifts), len(self.plain.source))

    def target_offsets(self, text: str) -> Offsets:
        """How far the characters of ``text``, the translation of ``plain``, are moved."""
        if not self.is_upper:
            return _with_signs(text, self.signs)[1] if self.signs else []

        inserted = _with_signs(self._in_case(upper, text), self.signs)[1]
        return composed(inserted, _grown(text), len(text))

    def _restored(self, found: Translation) -> Translation:
        if self.is_copied:
            return dataclasses.replace(
                found, text=self.request.source.strip(), source=self.request.source
            )

        text = found.text
        if self.is_upper:
            capitals = self._in_case(upper, text)
            text = text if any(each in capitals for each in self.banned) else capitals
        whole, inserted = _with_signs(text, self.signs)
        links = found.word_alignment
        if links is not None and self.signs:
            # The words of both sides are numbered with the emoji.
            sources = _word_numbers(self.plain.source, self.request.source, self.source_offsets())
            targets = _word_numbers(text, whole, inserted)
            links = tuple(
                (sources[min(first, len(sources) - 1)], targets[min(second, len(targets) - 1)])
                for first, second in links
            )
        return dataclasses.replace(
            found, text=whole, source=self.request.source, word_alignment=links
        )


def copies_symbols(request: Request, settings: DecodingConfig) -> bool:
    """Whether what needs no translation is copied: not beside a prefix, and nothing banned."""
    is_banned = any(each in request.source for each in settings.banned)
    return settings.copy_symbols and not request.prefix and not is_banned


def has_no_letter_beside(text: str, spans: Sequence[tuple[int, int]]) -> bool:
    """Whether each letter of a text stands in one of the ``spans``, which are in order."""
    ends = [0, *(end for _, end in spans)]
    starts = [*(start for start, _ in spans), len(text)]
    between = (text[end:start] for end, start in zip(ends, starts, strict=True))
    return not any(map(str.isalpha, "".join(between)))


def emoji_of(text: str) -> list[str]:
    """Every emoji of a text, in order."""
    return _ONE_SIGN.findall(text)


def without_emoji(text: str) -> str:
    """The text without its emoji and the white space that belongs to them."""
    return _without_signs(text)[0]


def _without_signs(text: str) -> tuple[str, tuple[_Sign, ...]]:
    """The text without emoji, and these."""
    parts, found = _SIGN.split(text), _SIGN.findall(text)
    if not found:
        return text, ()

    plain, ends = _joined(parts)
    signs, is_last, finals, closers = [], True, 0, 0
    for number in reversed(range(len(found))):
        before, after = parts[number : number + 2]

        # Counted from the end, so that each part is looked at once.
        is_last = is_last and not any(map(str.isalnum, after))
        finals += sum(mark in FINAL_MARKS for mark in after)
        closers += sum(map(_is_closing, after))
        signs.append(
            _Sign(
                found[number],
                before[len(before.rstrip()) :],
                after[: len(after) - len(after.lstrip())],
                1.0 if is_last and ends[number] else ends[number] / max(1, len(plain)),
                min(finals, _MOST_MARKS) if is_last else 0,
                min(closers, _MOST_MARKS) if is_last else 0,
            )
        )
    return plain, tuple(reversed(signs))


def _is_closing(mark: str) -> bool:
    return mark in "\"'" or unicodedata.category(mark) in _CLOSING


def _joined(parts: Sequence[str]) -> tuple[str, list[int]]:
    """The parts between emoji as one text, and where each part but the last ends in it."""
    made, ends = parts[0].rstrip() if len(parts) > 1 else parts[0], []
    spaced = made != parts[0]
    for number, part in enumerate(parts[1:], start=1):
        ends.append(len(made))
        bare = part.strip() if number < len(parts) - 1 else part.lstrip()
        has_space = part[:1].isspace()

        # One space where two words would touch; none at the ends, before a mark, and between
        # characters that are written without.
        if made and bare and ((spaced and has_space) or bare[0].isalnum()):
            both_wide = is_wide(made[-1]) and is_wide(bare[0])
            made += "" if both_wide and not (spaced and has_space) else " "
        made += bare
        spaced = part[-1:].isspace() if bare else spaced or has_space
    return made, ends


def _cuts(text: str) -> Offsets:
    """Where the parts of a text begin once its emoji are taken out, and how far they moved."""
    parts, offsets, begin = _SIGN.split(text), [], 0
    starts = [0, *(each.end() for each in _SIGN.finditer(text))]
    plain, _ = _joined(parts)
    for part, start in zip(parts, starts, strict=True):
        bare = part.strip()
        if bare:
            begin = plain.index(bare, begin)
            offsets.append((begin, start + part.index(bare) - begin))
            begin += len(bare)
    return offsets


def _with_signs(text: str, signs: Sequence[_Sign]) -> tuple[str, Offsets]:
    """The text with emoji put in: at the ends as in the source, else at the same share of it.

    Inside the text an emoji stands at the nearest of its ``_gaps``, at its end before as many marks
    as in the source. The space to its left is that of the source, but none stands beside a
    wide character inside the text.
    """
    bare = len(text.rstrip())
    gaps = _gaps(text[:bare]) if any(0.0 < sign.share < 1.0 for sign in signs) else []
    ends: dict[tuple[int, int], int] = {}

    placed: list[tuple[int, str]] = []
    for sign in signs:
        if not bare:
            placed.append((0, sign.text))
            continue
        if sign.share <= 0.0:
            needs_space = text[0].isalnum() and not is_wide(text[0])
            placed.append((0, sign.text + (sign.after or " " * needs_space)))
            continue

        if sign.share >= 1.0 or not gaps:
            marks = sign.finals, sign.closers
            if marks not in ends:
                ends[marks] = _before_marks(text[:bare], *marks)
            position = ends[marks]
        else:
            wanted = sign.share * len(text)
            after = bisect.bisect_left(gaps, wanted)
            nearest = gaps[max(0, after - 1) : after + 1]
            position = min(nearest, key=lambda gap: abs(gap - wanted))

        beside = text[position - 1 : position + 1]
        needs_none = len(beside) > 1 and not beside[1].isspace() and any(map(is_wide, beside))
        placed.append((position, sign.text if needs_none else sign.before + sign.text))

    made, done, offsets = "", 0, []
    # Stable, so that signs at the same position keep their order.
    for position, inserted in sorted(placed, key=lambda each: each[0]):
        made += text[done:position] + inserted
        done = position
        offsets.append((position, len(made) - position))
    return made + text[done:], [(0, 0), *offsets]


def _gaps(text: str) -> list[int]:
    """Where an emoji may stand inside a text: behind a word, and beside a wide character.

    A number keeps the counter behind it.
    """
    wide = [is_wide(character) for character in text]
    return [
        at
        for at, (before, after) in enumerate(itertools.pairwise(text), start=1)
        if not before.isspace()
        and (
            after.isspace()
            or ((wide[at - 1] or (wide[at] and not before.isdecimal())) and not is_mark(after))
        )
    ]


def _before_marks(text: str, finals: int, closers: int) -> int:
    """Where a text ends before so many final marks, and closing brackets or quotation marks.

    A mark that is repeated counts as one where the number is too small. It is the end of the text
    if that has nothing but marks.
    """
    at = len(text)
    while at:
        mark = text[at - 1]
        if mark in FINAL_MARKS and (finals or text[at : at + 1] == mark):
            finals = max(0, finals - 1)
        elif _is_closing(mark) and closers:
            closers -= 1
        elif not mark.isspace():
            break
        at -= 1
    return at or len(text)


def _word_numbers(shorter: str, longer: str, offsets: Offsets) -> list[int]:
    """For each word of a text its number in the one with emoji."""
    ends = [word.end() for word in re.finditer(r"\S+", longer)]
    starts = [moved(word.start(), offsets) for word in re.finditer(r"\S+", shorter)]
    return [bisect.bisect_right(ends, start) for start in starts] or [0]


def _recased(
    text: str,
    tokenizer: Tokenizer | None,
    seen: SeenWords | None,
    recase: bool | None,
    language: str,
) -> tuple[Edited, bool]:
    """The text in the case to read it in, and whether its translation is in upper case."""
    words = _CODES.sub(" ", text)
    is_upper = _is_upper(words)
    is_whole = is_upper or _is_title(text)
    first = _WORD.search(text)
    if tokenizer is None:
        if not (recase and is_whole):
            return Edited(text, []), False
        small = edited(
            _ANY_LETTERS,
            lambda found: found[0] if found["code"] else lower(found[0], language),
            text,
        )
        return small, is_upper
    if recase is None and tokenizer.kind == MARIAN_KIND:
        return Edited(text, []), False  # it reads text as its own files say

    def best_case(found: re.Match[str]) -> str:
        word = found[0]
        if found["code"] or not (is_whole or is_in_capitals(word)):
            return word
        small = _in_lower_case(word, tokenizer, language)
        if recase and is_whole:
            return min(small, key=cost)
        if seen is not None and seen.unseen(word):
            return word

        is_first = first is not None and first.start() == found.start()
        # The first of equals: a word that is known in upper case too stays as it is.
        words = (word, *small, *(word[0] + each[1:] for each in small))
        best = min(words, key=functools.partial(cost, is_first=is_first))
        is_unsure = seen is None and recase is None and not is_whole
        is_alone = len(word) == sum(map(str.isalpha, text))
        return word if is_unsure and _may_be_a_name(word, cost(best)[1], is_alone) else best

    def cost(word: str, *, is_first: bool = False) -> tuple[int, int, bool, int]:
        ids = tokenizer.encode(word)
        # Of tokens that are whole words, those of lower ids are more frequent.
        rank = ids[0] if is_whole and len(ids) == 1 else 0
        # The first word of a text has a capital.
        return ids.count(UNK_ID), len(ids), is_first and word[0].islower(), rank

    made = edited(_ANY_LETTERS if is_whole else _LETTERS, best_case, text)
    if recase and is_whole:
        return made, is_upper
    return made, made.text != text and is_in_capitals(words)


def _kept(text: str) -> str:
    """An expression of ``re`` that matches the codes of a text with small letters."""
    codes = (each for each in _CODES.finditer(text) if not each[0].isupper())
    kept = (_UNIT if _UNITS.match(text, each.start()) else re.escape(each[0]) for each in codes)
    return "|".join(dict.fromkeys(kept))


def _in_lower_case(word: str, tokenizer: Tokenizer, language: str) -> list[str]:
    """The word in lower case; SS of capitals may be an ß."""
    small = lower(word, language)
    if "SS" in word and has_sharp_s(tokenizer, language):
        return [small, lower(word.replace("SS", "ß"), language)]
    return [small]


def has_sharp_s(tokenizer: Tokenizer, language: str) -> bool:
    """Whether words of the source may have an ß, as far as its language is known."""
    return "ß" in tokenizer.characters and language_of_code(language) in ("", UNKNOWN, "de")


def _may_be_a_name(word: str, pieces: int, is_alone: bool) -> bool:
    """Whether a single word in capitals may be one, such as UNESCO, where the words of the training
    text are not known.
    """
    if pieces > 1:
        return len(word) < _LEAST_LONG_WORD
    return len(word) < (_LEAST_ALONE if is_alone else _LEAST_WORD)


def _grown(text: str) -> Offsets:
    """How far the characters of a text are moved by those that are several in upper case."""
    offsets, more = [], 0
    for at, character in enumerate(text, start=1):
        if len(character.upper()) > 1:
            more += len(character.upper()) - 1
            offsets.append((at, more))
    return offsets


def _is_upper(text: str) -> bool:
    words = [word for word in text.split() if sum(map(str.isalpha, word)) >= _LEAST_LETTERS]
    return len(words) >= _LEAST_WORDS and is_in_capitals(text)


def _is_title(text: str) -> bool:
    firsts = [letter[0] for word in text.split() if (letter := re.findall(r"[^\W\d_]", word))]
    longs = [word for word in text.split() if sum(map(str.isalpha, word)) >= _LONG_WORD]
    begin_upper = [not re.findall(r"[^\W\d_]", word)[0].islower() for word in longs]
    return len(firsts) >= _TITLE_WORDS and all(begin_upper) and _mostly_upper(firsts)


def _mostly_upper(letters: Sequence[str]) -> bool:
    """At least four of five: in a title short words may be in lower case, in German all nouns are
    in upper case."""
    return 5 * sum(map(str.isupper, letters)) >= 4 * len(letters)
