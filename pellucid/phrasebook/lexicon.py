"""The words of the phrasebook with all their forms, read from lexicon.toml and everyday.toml.

``PLAIN`` has the words of the first file, ``EVERYDAY`` those of both.
"""

import tomllib
from importlib import resources
from typing import Any, NamedTuple

from pellucid.phrasebook import inflection


def _read(name: str) -> dict[str, Any]:
    text = resources.files(__package__).joinpath(name).read_text(encoding="utf-8")
    return tomllib.loads(text)


_DATA, _EVERYDAY = _read("lexicon.toml"), _read("everyday.toml")
_IRREGULAR = {
    name: {row[0]: row[1:] for row in [*rows, *_EVERYDAY["irregular"].get(name, [])]}
    for name, rows in _DATA["irregular"].items()
}


_PROPER = ("name", "city", "country")
"""Kinds of noun with no article and no plural."""


class Word(NamedTuple):
    """Something that never changes: a preposition, an adverb, a number."""

    french: str
    english: str


class Noun(NamedTuple):
    """A noun of one gender; its forms are (singular, plural)."""

    kind: str
    is_feminine: bool
    french: tuple[str, str]
    english: tuple[str, str]

    @property
    def is_mass(self) -> bool:
        """Whether it cannot be counted: "du pain" is "bread"."""
        return self.kind in ("food", "drink", "art")

    @property
    def is_proper(self) -> bool:
        """Whether it is a name, with no article and no plural."""
        return self.kind in _PROPER


class Adjective(NamedTuple):
    """An adjective; its French forms are masculine, feminine, and both again in the plural."""

    french: tuple[str, str, str, str]
    liaison: str
    english: str
    stands_before: bool
    kinds: tuple[str, ...]

    def form(self, is_feminine: bool, is_plural: bool) -> str:
        """The French form that agrees."""
        return self.french[2 * is_plural + is_feminine]


class Verb(NamedTuple):
    """A verb; ``english`` is base, third person, past; ``takes`` is explained in the TOML."""

    french: str
    present: tuple[str, ...]
    participle: str
    english: tuple[str, str, str]
    objects: tuple[str, ...]
    takes: frozenset[str]


class Determiner(NamedTuple):
    """The first word of a noun phrase: French masculine, feminine, plural; English singular,
    plural."""

    french: tuple[str, str, str]
    english: tuple[str, str]


def _irregular(table: str, word: str, regular: str) -> str:
    return str(_IRREGULAR[table].get(word, [regular])[0])


def _noun(kind: str, french: str, english: str, is_feminine: bool) -> Noun:
    plural = _irregular("plural", french, inflection.french_plural(french))
    english_plural = _irregular("plural", english, inflection.english_s(english))
    return Noun(kind, is_feminine, (french, plural), (english, english_plural))


def _nouns(kind: str, rows: list[list[str]]) -> tuple[Noun, ...]:
    """A row that gives a form for women becomes two nouns, one after the other."""
    nouns = []
    for french, gender, english in rows:
        nouns.append(_noun(kind, french, english, gender == "f"))
        if len(gender) > 1:
            nouns.append(_noun(kind, gender, english, True))
    return tuple(nouns)


def _adjectives(tables: dict[str, Any]) -> tuple[Adjective, ...]:
    return tuple(
        _adjective(french, english, position == "before", kinds)
        for position in ("before", "after")
        for kinds, *words in tables[position]
        for french, english in words
    )


def _adjective(french: str, english: str, stands_before: bool, kinds: str) -> Adjective:
    feminine = _irregular("feminine", french, inflection.french_feminine(french))
    forms = (french, feminine, inflection.french_plural(french), feminine + "s")
    liaison = _irregular("liaison", french, french)
    return Adjective(forms, liaison, english, stands_before, tuple(kinds.split()))


def _verbs(rows: list[Any]) -> tuple[Verb, ...]:
    return tuple(
        _verb(french, english, traits, objects)
        for traits, objects, *words in rows
        for french, english in words
    )


def _verb(french: str, english: str, traits: str, objects: str) -> Verb:
    regular = [" ".join(inflection.french_present(french)), french[:-2] + "é"]
    present, participle = _IRREGULAR["conjugation"].get(french, regular)
    head, space, rest = english.partition(" ")  # "go out": the first word is the verb
    past = _irregular("past", head, inflection.english_past(head))
    forms = (english, inflection.english_s(head) + space + rest, past + space + rest)
    takes = frozenset(traits.split())
    return Verb(french, tuple(present.split()), participle, forms, tuple(objects.split()), takes)


class Lexicon(NamedTuple):
    """The words that sentences are made of."""

    nouns: dict[str, tuple[Noun, ...]]
    """By kind."""
    adjectives: tuple[Adjective, ...]
    verbs: tuple[Verb, ...]
    modals: tuple[Verb, ...]
    places: dict[Word, list[str]]
    """Prepositions, with the kinds of noun that may follow."""
    words: dict[str, tuple[Word, ...]]
    """Words that never change: numbers, times, degrees, questions."""
    is_everyday: bool
    """Whether names have capital letters, numbers may be in digits, and questions have all their
    forms."""


def _lexicon(*files: dict[str, Any]) -> Lexicon:
    """The words of these files; a later one may replace verbs of those before."""
    nouns: dict[str, tuple[Noun, ...]] = {}
    words: dict[str, tuple[Word, ...]] = {}
    verbs: tuple[Verb, ...] = ()
    for file in files:
        for kind, rows in file["nouns"].items():
            nouns[kind] = nouns.get(kind, ()) + _nouns(kind, rows)
        for name, rows in file["words"].items():
            words[name] = words.get(name, ()) + tuple(Word(*row) for row in rows)
        replaced = file["verbs"].get("replaced", ())
        verbs = tuple(verb for verb in verbs if verb.french not in replaced)
        verbs += _verbs(file["verbs"]["lexical"])

    is_everyday = len(files) > 1
    if is_everyday:
        nouns = {
            kind: tuple(map(_capitalized, each)) if kind in _PROPER else each
            for kind, each in nouns.items()
        }
    return Lexicon(
        nouns=nouns,
        adjectives=tuple(each for file in files for each in _adjectives(file["adjectives"])),
        verbs=verbs,
        modals=tuple(each for file in files for each in _verbs(file["verbs"]["modal"])),
        places={Word(row[0], row[1]): row[2].split() for row in _DATA["places"]},
        words=words,
        is_everyday=is_everyday,
    )


def _capitalized(noun: Noun) -> Noun:
    (french, _), (english, _) = noun.french, noun.english
    return noun._replace(french=(french.capitalize(),) * 2, english=(english.capitalize(),) * 2)


PLAIN = _lexicon(_DATA)
EVERYDAY = _lexicon(_DATA, _EVERYDAY)
"""With the words of what people say first to each other."""

(ETRE,) = _verbs(_DATA["verbs"]["copula"])
AVOIR, ALLER = (
    next(verb for verb in PLAIN.verbs if verb.french == name) for name in ("avoir", "aller")
)
DETERMINERS = {
    name: Determiner(tuple(row[:3]), tuple(row[3:])) for name, row in _DATA["determiners"].items()
}
PHRASES = {name: tuple(Word(*row) for row in rows) for name, rows in _EVERYDAY["phrases"].items()}
"""Phrases that are used as a whole: greetings, answers."""
ENGLISH_CAPITALS = frozenset(_EVERYDAY["capitals"])
"""English words that are written with a capital letter anywhere, besides names."""
