"""The words of the phrasebook with all their forms, read from lexicon.toml."""

import tomllib
from importlib import resources
from typing import Any, NamedTuple

from pellucid.phrasebook import inflection

_DATA: dict[str, Any] = tomllib.loads(
    resources.files(__package__).joinpath("lexicon.toml").read_text(encoding="utf-8")
)
_IRREGULAR = {name: {row[0]: row[1:] for row in rows} for name, rows in _DATA["irregular"].items()}


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
        return self.kind in ("food", "drink")

    @property
    def is_proper(self) -> bool:
        """Whether it is a name, with no article and no plural."""
        return self.kind in ("name", "city")


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
    """What begins a noun phrase: French masculine, feminine, plural; English singular, plural."""

    french: tuple[str, str, str]
    english: tuple[str, str]


class Entry(NamedTuple):
    """One entry of the lexicon, with every form it can take in a French sentence."""

    kind: str
    french: str
    english: str
    forms: tuple[str, ...]


def _irregular(table: str, word: str, regular: str) -> str:
    return str(_IRREGULAR[table].get(word, [regular])[0])


def _noun(kind: str, french: str, english: str, is_feminine: bool) -> Noun:
    plural = _irregular("plural", french, inflection.french_plural(french))
    english_plural = _irregular("plural", english, inflection.english_s(english))
    return Noun(kind, is_feminine, (french, plural), (english, english_plural))


def _nouns(kind: str) -> tuple[Noun, ...]:
    """A row that gives a form for women becomes two nouns, one after the other."""
    nouns = []
    for french, gender, english in _DATA["nouns"][kind]:
        nouns.append(_noun(kind, french, english, gender == "f"))
        if len(gender) > 1:
            nouns.append(_noun(kind, gender, english, True))
    return tuple(nouns)


def _adjective(french: str, english: str, stands_before: bool, kinds: str) -> Adjective:
    feminine = _irregular("feminine", french, inflection.french_feminine(french))
    forms = (french, feminine, inflection.french_plural(french), feminine + "s")
    liaison = _irregular("liaison", french, french)
    return Adjective(forms, liaison, english, stands_before, tuple(kinds.split()))


def _verb(french: str, english: str, traits: str, objects: str) -> Verb:
    regular = [" ".join(inflection.french_present(french)), french[:-2] + "é"]
    present, participle = _IRREGULAR["conjugation"].get(french, regular)
    head, space, rest = english.partition(" ")  # "go out": the first word is the verb
    past = _irregular("past", head, inflection.english_past(head))
    forms = (english, inflection.english_s(head) + space + rest, past + space + rest)
    takes = frozenset(traits.split())
    return Verb(french, tuple(present.split()), participle, forms, tuple(objects.split()), takes)


NOUNS = {kind: _nouns(kind) for kind in _DATA["nouns"]}
ADJECTIVES = tuple(
    _adjective(french, english, position == "before", kinds)
    for position in ("before", "after")
    for kinds, *words in _DATA["adjectives"][position]
    for french, english in words
)
VERBS, (ETRE,), MODALS = (
    tuple(
        _verb(french, english, traits, objects)
        for traits, objects, *words in rows
        for french, english in words
    )
    for rows in _DATA["verbs"].values()
)
AVOIR, ALLER = (next(verb for verb in VERBS if verb.french == name) for name in ("avoir", "aller"))
DETERMINERS = {
    name: Determiner(tuple(row[:3]), tuple(row[3:])) for name, row in _DATA["determiners"].items()
}
PLACES = {Word(french, english): kinds.split() for french, english, kinds in _DATA["places"]}
WORDS = {name: tuple(Word(*row) for row in rows) for name, rows in _DATA["words"].items()}


def lexicon_entries() -> tuple[Entry, ...]:
    """Every entry, so that one can see that the grammar uses it."""
    entries: list[Entry] = []
    for noun in (noun for nouns in NOUNS.values() for noun in nouns):
        forms = noun.french[:1] if noun.is_mass or noun.is_proper else noun.french
        entries.append(Entry(noun.kind, noun.french[0], noun.english[0], forms))

    for adjective in ADJECTIVES:
        written: tuple[str, ...] = (*adjective.french, adjective.liaison)
        entries.append(Entry("adjective", written[0], adjective.english, written))
    for verb in (*VERBS, ETRE):
        written = (verb.french, *verb.present, verb.participle)
        entries.append(Entry("verb", verb.french, verb.english[0], written))

    entries += [Entry("modal", verb.french, verb.english[0], verb.present) for verb in MODALS]
    entries += [
        Entry("determiner", row.french[0], row.english[0], row.french)
        for row in DETERMINERS.values()
    ]
    words = [*PLACES, *(word for group in WORDS.values() for word in group)]

    return (*entries, *(Entry("word", *word, forms=(word.french,)) for word in words))
