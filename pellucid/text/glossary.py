"""Glossaries: terms of the source with the terms that their translation must have.

A glossary is a TSV file whose first line names its columns:

    source  target             forms  case   domain
    dog     Hund|Hunde|Hunden  dogs          animals
    Polish  polnisch|polnische        exact

``forms`` are other forms of the source; several forms are separated by ``|``, and any one of
the target's suffices. A form that ends in ``*`` is a stem of the source: a word matches that
begins with it.

Terms and texts are compared in one spelling: a glossary is typed with ' and -, and a document has
’ and – for them.
"""

import dataclasses
import functools
import hashlib
import html
import logging
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Self

from pellucid.core.errors import MOST_PROBLEMS, DataError, InputMissingError, list_problems
from pellucid.core.files import read_plain
from pellucid.core.limits import shown
from pellucid.core.near_names import did_you_mean
from pellucid.core.texts import TO_UTF_8, words_in
from pellucid.text.look_alikes import DOUBLE, SINGLE
from pellucid.text.normalization import normalize_with_positions
from pellucid.text.scripts import SPACELESS, combining_marks

LARGEST_GLOSSARY = 1 << 24
"""Bytes of a file."""
MOST_ENTRIES = 100_000
_MOST_FORMS = 64
"""The limit on forms on one side of an entry."""
_LONGEST_TERM = 200
"""Characters."""
_COLUMNS = ("source", "target", "forms", "case", "domain")
_CASES = ("", "any", "exact")
_BETWEEN_FORMS = re.compile(r"[/;(／；（，、]|,(?=\s)")
_log = logging.getLogger("pellucid")
MARKS = "\u27e6", "\u27e7"
"""The marks before and after the translation of a marked term: white square brackets, which
ordinary text does not have."""


@dataclasses.dataclass(frozen=True)
class Term:
    """An entry of a glossary."""

    sources: tuple[str, ...]
    """The term and its other forms; one that ends in ``*`` is a stem."""
    targets: tuple[str, ...]
    """The translations of the term, of which one must appear."""
    exact: bool = False
    """Whether case counts on both sides."""
    domain: str = ""


@dataclasses.dataclass(frozen=True)
class Match:
    """A term in a text."""

    start: int
    end: int
    targets: tuple[str, ...]
    exact: bool


@dataclasses.dataclass(frozen=True)
class _Token:
    text: str
    """In the one spelling that terms and texts are compared in."""
    start: int
    end: int
    """In the text that was given."""
    continues: bool = False
    """Whether it is one word with the token before it: ``Hawaiʻi`` has three tokens."""


@dataclasses.dataclass(frozen=True)
class _Pattern:
    """A form of a source as tokens; the last may be a stem."""

    words: tuple[str, ...]
    keys: tuple[str, ...]
    is_stem: bool
    term: Term

    def fits(self, tokens: Sequence[_Token], keys: Sequence[str], first: int) -> bool:
        """Whether the pattern is at this token of a text, whose tokens have these keys."""
        end = first + len(self.words)
        if end > len(tokens) or tokens[first].continues:
            return False

        # The keys first: many entries may begin with one word, and keys are fast to compare.
        last = len(self.keys) - 1
        if self.keys[:last] != tuple(keys[first : end - 1]):
            return False
        if not _begins(keys[end - 1], self.keys[last], whole=not self.is_stem):
            return False
        if not self.is_stem and end < len(tokens) and tokens[end].continues:
            return False

        pairs = zip(self.words, (each.text for each in tokens[first:end]), strict=True)
        matches = _begins if self.term.exact else _is_read_as
        return all(
            matches(own, wanted, whole=at < last or not self.is_stem)
            for at, (wanted, own) in enumerate(pairs)
        )


class Glossary:
    """Terms, found in texts by their first words."""

    def __init__(self, terms: Iterable[Term]) -> None:
        self.terms = tuple(terms)
        self._by_first: dict[str, list[_Pattern]] = {}
        self._stems: dict[str, list[_Pattern]] = {}
        for term in self.terms:
            for form in term.sources:
                self._add(form, term)
        self._stem_lengths = sorted({len(stem) for stem in self._stems})

    @classmethod
    def read(cls, path: Path, domains: Sequence[str] = ()) -> Self:
        """Read a file; with ``domains`` only entries of these, and those without a domain.

        Raises InputMissingError, and DataError naming the lines that are wrong.
        """
        try:
            content = read_plain(path, LARGEST_GLOSSARY)
        except OSError as error:
            raise InputMissingError(f"cannot read {path}: {error.strerror}") from error
        try:
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise DataError(
                f"{path} must be UTF-8 text, is not at byte {error.start}", hint=TO_UTF_8
            ) from None
        terms = parse_glossary(text, str(path))
        if not terms:
            _log.warning("%s has no entries", path)

        own = {term.domain for term in terms}
        for domain in domains:
            if terms and domain not in own:
                meant = did_you_mean(domain, own, "; {}")
                _log.warning("%s has no entries of the domain %s%s", path, shown(domain), meant)
        return cls(term for term in terms if not domains or term.domain in ("", *domains))

    def __len__(self) -> int:
        return len(self.terms)

    @property
    def fingerprint(self) -> str:
        """SHA-256 of all entries, in hexadecimal."""
        return hashlib.sha256(repr(self.terms).encode()).hexdigest()

    def matches(self, text: str) -> list[Match]:
        """The terms of a text from left to right: the longest at each word, none inside another."""
        tokens = _tokens(text)
        keys = [_key(each.text) for each in tokens]

        found, number = [], 0
        while number < len(tokens):
            fits = [each for each in self._at(keys[number]) if each.fits(tokens, keys, number)]
            if not fits:
                number += 1
                continue

            longest = max(len(each.words) for each in fits)
            # A form in full comes before a stem; of several entries any target will do.
            best = [each for each in fits if len(each.words) == longest]
            best = [each for each in best if not each.is_stem] or best
            targets = dict.fromkeys(target for each in best for target in each.term.targets)
            last = tokens[number + longest - 1]
            found.append(
                Match(
                    tokens[number].start,
                    last.end,
                    tuple(targets),
                    all(each.term.exact for each in best),
                )
            )
            number += longest
        return found

    def required(self, text: str) -> tuple[tuple[str, ...], ...]:
        """For each term of a text, once, the phrases of which its translation must have one.

        A phrase that begins in lower case may begin a sentence too, unless case counts.
        """
        return tuple(dict.fromkeys(map(_phrases, self.matches(text))))

    def marked(self, text: str, is_wanted: Callable[[Sequence[str]], bool] | None = None) -> str:
        """The text with the first form of its translation behind each term, between marks.

        ``is_wanted`` chooses terms by all the forms that their translation may have.
        """
        made, done = "", 0
        for match in self.matches(text):
            if is_wanted is None or is_wanted(_phrases(match)):
                made += text[done : match.end] + f" {MARKS[0]}{match.targets[0]}{MARKS[1]}"
                done = match.end
        return made + text[done:]

    def _at(self, first: str) -> list[_Pattern]:
        """The patterns that may begin with a token of this key."""
        found = list(self._by_first.get(first, ()))
        for length in self._stem_lengths:
            if length > len(first):
                break
            found += self._stems.get(first[:length], ())
        return found

    def _add(self, form: str, term: Term) -> None:
        is_stem = form.endswith("*")
        words = tuple(each.text for each in _tokens(form.removesuffix("*")))
        if not words:
            return  # of letters without a shape, such as the fillers of Korean
        keys = tuple(map(_key, words))
        table = self._stems if is_stem and len(words) == 1 else self._by_first
        table.setdefault(keys[0], []).append(_Pattern(words, keys, is_stem, term))


def _phrases(match: Match) -> tuple[str, ...]:
    """The forms of a term in a translation; in lower case they may begin a sentence as well."""
    phrases = dict.fromkeys(match.targets)
    if not match.exact:
        # In title case: a letter such as ა of Georgian has a capital that begins no sentence.
        phrases |= dict.fromkeys(each[:1].title() + each[1:] for each in match.targets)
    return tuple(phrases)


def holds_phrase(text: str, phrases: Iterable[str]) -> bool:
    """Whether a text has one of the phrases as words of their own, in the case that is given.

    A phrase that begins with I has the capital of Turkish too, İ.
    """
    tokens = _tokens(text)
    words = [each.text for each in tokens]
    bounds = [not each.continues for each in tokens] + [True]

    def is_at(start: int, wanted: list[str]) -> bool:
        end = start + len(wanted)
        if not (bounds[start] and bounds[end]) or words[start + 1 : end] != wanted[1:]:
            return False
        first = words[start]
        return wanted[0] in (first, "I" + first[1:] if first.startswith("İ") else first)

    for phrase in phrases:
        wanted = [each.text for each in _tokens(phrase)]
        if wanted and any(is_at(at, wanted) for at in range(len(words) - len(wanted) + 1)):
            return True
    return False


def count_present(
    glossary: Glossary, sources: Iterable[str], texts: Iterable[str]
) -> tuple[int, int]:
    """How many terms of the sources are in their translations, and how many there are."""
    held = [
        holds_phrase(text, phrases)
        for source, text in zip(sources, texts, strict=True)
        for phrases in glossary.required(source)
    ]
    return sum(held), len(held)


def parse_glossary(text: str, name: str) -> list[Term]:
    """The entries of a glossary's text; ``name`` is the name of its file in messages.

    Raises DataError for a missing header, an unknown column or value, or an entry that is too long,
    naming the first lines that are wrong. Warns of signs that other glossaries have between forms.
    """
    lines = text.split("\n", MOST_ENTRIES + 2)
    if len(lines) > MOST_ENTRIES + 1 and lines[MOST_ENTRIES + 1].strip():
        raise DataError(f"{name} must have at most {MOST_ENTRIES:,} entries")

    columns = [each.strip().lower() for each in lines[0].rstrip("\r").split("\t")]
    unknown = [shown(each) for each in columns if each not in _COLUMNS]
    if unknown or not {"source", "target"} <= set(columns) or len(set(columns)) < len(columns):
        raise DataError(
            f"{name} must begin with a line that names its columns, source and target and perhaps"
            f" forms, case and domain, with tabs between; got {shown(lines[0])}",
            hint="for example: printf 'source\\ttarget\\ndog\\tHund\\n' > terms.tsv",
        )

    terms: list[Term] = []
    problems: list[str] = []
    literal: list[str] = []
    for number, line in enumerate(lines[1:], start=2):
        if not line.strip():
            continue
        try:
            terms.append(_term(line.rstrip("\r"), columns))
        except ValueError as error:
            problems.append(f"{name}, line {number}: {error}")
            if len(problems) > MOST_PROBLEMS:
                break
        else:
            literal += [f"line {number}, {shown(form)}" for form in _literal_forms(terms[-1])]
    if problems:
        raise DataError(list_problems(problems))
    if literal:
        more = f", and {len(literal) - 1:,} more" if len(literal) > 1 else ""
        _log.warning(
            "%s: %s%s: is searched for and required as it stands; between several forms write |,"
            " and leave out remarks",
            *(name, literal[0], more),
        )
    return terms


def _literal_forms(term: Term) -> list[str]:
    """The forms with a sign for another form or a remark, ``Hund / Hunde`` or ``Hund (m)``, which
    the other side of the entry does not have."""
    sides = term.sources, term.targets
    signs = [set(_BETWEEN_FORMS.findall(" ".join(side))) for side in sides]
    odd = signs[0] ^ signs[1]
    forms = (*sides[0], *sides[1])
    return [form for form in forms if odd.intersection(_BETWEEN_FORMS.findall(form))]


def _term(line: str, columns: Sequence[str]) -> Term:
    """The entry of a line. Raises ValueError."""
    cells = [_unquoted(each.strip()) for each in line.split("\t", len(columns))]
    if len(cells) > len(columns):
        raise ValueError(f"must have {len(columns)} columns, has more")
    row = dict(zip(columns, cells, strict=False))

    if row.get("case", "") not in _CASES:
        raise ValueError(f"case must be any or exact, got {shown(row['case'])}")
    sources = [*_forms(row.get("source", "")), *_forms(row.get("forms", ""))]
    targets = _forms(row.get("target", ""))
    for side, forms in (("source", sources), ("target", targets)):
        if not forms:
            raise ValueError(f"{side} must hold a word")
        if len(forms) > _MOST_FORMS:
            raise ValueError(f"{side} must have at most {_MOST_FORMS} forms, has {len(forms):,}")
        for form in forms:
            if len(form) > _LONGEST_TERM:
                raise ValueError(f"a term must have at most {_LONGEST_TERM} characters")
            if not any(map(str.isalnum, _decoded(form)[0])):
                raise ValueError(f"a term must have a letter or a digit, got {shown(form)}")
    if any(form.endswith("*") for form in targets):
        raise ValueError("a target must be whole words: only a source can be a stem")
    if any("\0" in form or "\ufffd" in form for form in (*sources, *targets)):
        raise ValueError("a term must be text")

    exact = row.get("case", "") == "exact"
    return Term(tuple(sources), tuple(targets), exact, row.get("domain", ""))


def _unquoted(cell: str) -> str:
    """A cell without the quotation marks that spreadsheets write around one with such a mark."""
    if len(cell) < 2 or not cell[0] == cell[-1] == '"':
        return cell
    return cell[1:-1].replace('""', '"').strip()


def _forms(cell: str) -> list[str]:
    forms = (" ".join(each.split()) for each in cell.split("|", _MOST_FORMS + 1))
    return list(dict.fromkeys(form for form in forms if form))


_LETTERS = frozenset("ʼʻʹ")
"""The apostrophes that Unicode counts among the letters: they are within words alone."""
_HYPHENS = "\u05be\u058a\ufe63"
_DASH = re.compile(r"(?<=\S)[\u2012\u2013\u2212](?=\S)")
"""A dash that stands for a hyphen, with no space on either side."""
_JOINERS = "\u200c\u200d"
"""Joiners, which are between the letters of a word."""
_DIRECTIONS = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
"""Direction marks, as in a class of ``re``: a spreadsheet has them around words of Hebrew."""
_READ_AS = dict.fromkeys(
    (
        *map(ord, _JOINERS),
        *(0x0640, *range(0x064B, 0x0653), 0x0670),
        *(*range(0x0591, 0x05BE), 0x05BF, 0x05C1, 0x05C2, 0x05C4, 0x05C5, 0x05C7),
    )
) | str.maketrans("يكşţŞŢёЁ₀₁₂₃₄₅₆₇₈₉", "یکșțȘȚеЕ0123456789")
"""Joiners, the vowel signs of Arabic and Hebrew, the stroke that stretches a word, and the dots of
ё, all of which most texts leave out; letters of Persian and Romanian that older keyboards lack; and
the digits of formulas."""
_TONOS = str.maketrans("άέήίόύώΐΰΆΈΉΊΌΎΏ", "αεηιουωϊϋΑΕΗΙΟΥΩ")
"""The accents of Greek, which no word in capitals has."""
_ENTITY = re.compile(r"&(?:[A-Za-z][A-Za-z0-9]{1,31}|#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6});")


@functools.cache
def _plain_signs() -> dict[int, str]:
    """The characters that a keyboard has, for others that are read as the same."""
    # Full-width letters and signs, and half-width ones of Japanese.
    wide = [*range(0xFF01, 0xFF5F), *range(0xFF61, 0xFFA0)]
    signs = {code: unicodedata.normalize("NFKC", chr(code)) for code in wide}
    for characters, sign in ((SINGLE, "'"), (DOUBLE, '"'), (_HYPHENS, "-")):
        signs |= {ord(each): sign for each in characters}
    return signs | {0xFF40: "'"}


def _tokens(text: str) -> list[_Token]:
    """Words, single characters of scripts without spaces, and single other signs."""
    decoded, given = _decoded(text)
    plain = _DASH.sub("-", decoded.translate(_plain_signs()))
    normalized = normalize_with_positions(plain)

    found: list[_Token] = []
    behind = -1
    """The place behind an apostrophe that is a letter: a word there is part of the one before."""
    for each in _token_pattern().finditer(normalized.text):
        start, end = (normalized.positions[at] for at in each.span())
        is_letter = decoded[start] in _LETTERS
        touches = bool(found) and found[-1].end == given[start]
        word = each[0].translate(_READ_AS) or each[0]
        found.append(
            _Token(word, given[start], given[end], touches and (is_letter or start == behind))
        )
        if is_letter:
            behind = end
    return found


def _decoded(text: str) -> tuple[str, Sequence[int]]:
    """The text with characters for HTML's names of them, and where each is in the given one."""
    if "&" not in text:
        return text, range(len(text) + 1)

    parts, places, end = [], [], 0
    for found in _ENTITY.finditer(text):
        character = html.unescape(found[0])
        if len(character) > 1 and character.endswith(";"):
            continue  # no name of HTML, or only the beginning of it is one
        parts += [text[end : found.start()], character]
        places += [*range(end, found.start()), *[found.start()] * len(character)]
        end = found.end()
    return "".join(parts) + text[end:], [*places, *range(end, len(text) + 1)]


@functools.cache
def _token_pattern() -> re.Pattern[str]:
    letter = rf"(?![{SPACELESS}])[\w{combining_marks()}]"
    joiners = f"[{_JOINERS}]*"
    # C# and C++ are not the word C, nor is Notepad++ the word Notepad.
    named = r"(?<!\w)[A-Za-z](?:\+{1,2}|\#)(?![^\W\d_])|[A-Za-z]+\+\+(?![^\W\d_])"
    number = r"\d+(?:[.,]\d+)+"  # $5 is not in $5.00
    return re.compile(
        rf"{named}|{number}|[{SPACELESS}]{joiners}|(?:{letter}{joiners})+|[^\s{_DIRECTIONS}]"
    )


def _begins(own: str, wanted: str, *, whole: bool) -> bool:
    return own == wanted if whole else own.startswith(wanted)


_OTHER_WITH_SS = words_in(
    "masse massen busse bussen flosse flossen russe russen trosse trossen müssen"
)
"""Words of German, in lower case, that are others with ß: Masse and Maße, Busse and Buße. In all
others ß and ss are spellings of Germany and Switzerland (Straße, Strasse) or of before and after
1996 (Ausschuß, Ausschuss)."""
_OTHER_STEMS_WITH_SS = words_in("mass buss floss russ tross pass bass fass nass ross hass")
"""Stems with which other words begin if their ß is ss: Maß and Massage, Paß and Passagier."""


def _folded(word: str) -> str:
    """The word without its case. ``casefold`` makes ss of ß, which is another word: Maße, Masse."""
    if word.isascii():
        return word.lower()
    folded = "ß".join(part.casefold() for part in re.split("[ßẞ]", word.replace("İ", "i")))
    return folded.replace("i\u0307", "i")


def _key(word: str) -> str:
    """A text that is equal for all words that may be read as one another."""
    return _folded(word).replace("ß", "ss").replace("ı", "i").translate(_TONOS)


def _is_read_as(own: str, wanted: str, *, whole: bool) -> bool:
    """Whether a word of a text is the wanted one, or begins with it, in any case.

    In capitals ß is SS, I is a capital of ı too, as Turkish and Azerbaijani have it, and Greek has
    no accents.
    """
    is_loud = own.isupper() or wanted.isupper()
    is_other = _key(own) in _OTHER_WITH_SS
    is_other = is_other or (not whole and _key(wanted) in _OTHER_STEMS_WITH_SS)
    has_spellings = is_loud or not is_other
    if is_loud and len(own) > 1:  # the letter Η is the article, and ή is the word "or"
        own, wanted = own.translate(_TONOS), wanted.translate(_TONOS)
    return any(
        _begins(mine, theirs, whole=whole)
        for mine in _readings(own, has_spellings=has_spellings)
        for theirs in _readings(wanted, has_spellings=has_spellings)
    )


def _readings(word: str, *, has_spellings: bool) -> set[str]:
    """A word without its case: as most languages read its capitals, as Turkish does, and with ss
    for ß if the two are spellings of one word.
    """
    readings = {_folded(word)}
    if "I" in word:
        readings.add(_folded(word.replace("I", "ı")))
    return {each.replace("ß", "ss") for each in readings} if has_spellings else readings
