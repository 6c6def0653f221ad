"""Glossaries: terms of the source with the terms that their translation must have.

A glossary is a TSV file whose first line names its columns:

    source  target             forms  case   domain
    dog     Hund|Hunde|Hunden  dogs          animals
    Polish  polnisch|polnische        exact

``forms`` are other forms of the source; several forms are separated by ``|``, and any one of
the target's suffices. A form that ends in ``*`` is a stem of the source: a word matches that
begins with it.
"""

import dataclasses
import functools
import hashlib
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Self

from pellucid.core.errors import MOST_PROBLEMS, DataError, InputMissingError, list_problems
from pellucid.core.files import read_plain
from pellucid.core.limits import shown
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
    """Normalized, as the tokenizers read it."""
    start: int
    end: int
    """In the text that was given."""


@dataclasses.dataclass(frozen=True)
class _Pattern:
    """A form of a source as tokens, in folded case; the last may be a stem."""

    tokens: tuple[str, ...]
    surface: tuple[str, ...]
    """The same as it was written."""
    is_stem: bool
    term: Term

    def fits(self, tokens: Sequence[_Token], folded: Sequence[str], first: int) -> bool:
        """Whether the pattern is at this token of a text."""
        end = first + len(self.tokens)
        if end > len(tokens):
            return False
        wanted = self.surface if self.term.exact else self.tokens
        own = [each.text for each in tokens[first:end]] if self.term.exact else folded[first:end]
        if not self.is_stem:
            return list(wanted) == list(own)
        return list(wanted[:-1]) == list(own[:-1]) and own[-1].startswith(wanted[-1])


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
            raise DataError(f"{path} must be UTF-8 text, is not at byte {error.start}") from None
        terms = parse_glossary(text, str(path))
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
        folded = [each.text.casefold() for each in tokens]

        found, number = [], 0
        while number < len(tokens):
            fits = [each for each in self._at(folded[number]) if each.fits(tokens, folded, number)]
            if not fits:
                number += 1
                continue

            longest = max(len(each.tokens) for each in fits)
            # A form in full comes before a stem; of several entries any target will do.
            best = [each for each in fits if len(each.tokens) == longest]
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
        """The patterns that may begin with a token."""
        found = list(self._by_first.get(first, ()))
        for length in self._stem_lengths:
            if length > len(first):
                break
            found += self._stems.get(first[:length], ())
        return found

    def _add(self, form: str, term: Term) -> None:
        is_stem = form.endswith("*")
        surface = tuple(each.text for each in _tokens(form.removesuffix("*")))
        tokens = tuple(each.casefold() for each in surface)
        pattern = _Pattern(tokens, surface, is_stem, term)
        table = self._stems if is_stem and len(tokens) == 1 else self._by_first
        table.setdefault(tokens[0], []).append(pattern)


def _phrases(match: Match) -> tuple[str, ...]:
    """The forms of a term in a translation; in lower case they may begin a sentence as well."""
    phrases = dict.fromkeys(match.targets)
    if not match.exact:
        phrases |= dict.fromkeys(each[:1].upper() + each[1:] for each in match.targets)
    return tuple(phrases)


def holds_phrase(text: str, phrases: Iterable[str]) -> bool:
    """Whether a text has one of the phrases as words of their own, in the case that is given."""
    words = [each.text for each in _tokens(text)]
    for phrase in phrases:
        wanted = [each.text for each in _tokens(phrase)]
        starts = range(len(words) - len(wanted) + 1)
        if any(words[start : start + len(wanted)] == wanted for start in starts):
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
    naming the first lines that are wrong.
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

    terms, problems = [], []
    for number, line in enumerate(lines[1:], start=2):
        if not line.strip():
            continue
        try:
            terms.append(_term(line.rstrip("\r"), columns))
        except ValueError as error:
            problems.append(f"{name}, line {number}: {error}")
            if len(problems) > MOST_PROBLEMS:
                break
    if problems:
        raise DataError(list_problems(problems))
    return terms


def _term(line: str, columns: Sequence[str]) -> Term:
    """The entry of a line. Raises ValueError."""
    cells = [each.strip() for each in line.split("\t", len(columns))]
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
            if not any(map(str.isalnum, form)):
                raise ValueError(f"a term must have a letter or a digit, got {shown(form)}")
    if any(form.endswith("*") for form in targets):
        raise ValueError("a target must be whole words: only a source can be a stem")
    if any("\0" in form or "\ufffd" in form for form in (*sources, *targets)):
        raise ValueError("a term must be text")

    exact = row.get("case", "") == "exact"
    return Term(tuple(sources), tuple(targets), exact, row.get("domain", ""))


def _forms(cell: str) -> list[str]:
    forms = (" ".join(each.split()) for each in cell.split("|", _MOST_FORMS + 1))
    return list(dict.fromkeys(form for form in forms if form))


def _tokens(text: str) -> list[_Token]:
    """Words, single characters of scripts without spaces, and single other signs."""
    normalized = normalize_with_positions(text)
    places = normalized.positions
    return [
        _Token(each[0], places[each.start()], places[each.end()])
        for each in _token_pattern().finditer(normalized.text)
    ]


@functools.cache
def _token_pattern() -> re.Pattern[str]:
    inner = rf"[\w{combining_marks()}]"
    return re.compile(rf"[{SPACELESS}]|(?:(?![{SPACELESS}]){inner})+|\S")
