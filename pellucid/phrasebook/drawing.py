"""Draws random sentences; the probabilities are chosen so that every word occurs often."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from pellucid.phrasebook import rules
from pellucid.phrasebook.lexicon import (
    ADJECTIVES,
    AVOIR,
    DETERMINERS,
    ETRE,
    MODALS,
    NOUNS,
    PLACES,
    VERBS,
    WORDS,
    Determiner,
    Noun,
    Verb,
    Word,
)
from pellucid.phrasebook.rules import Clause, Phrase, Said, Subject

Draw = Callable[[], float]
"""The next random number in [0, 1)."""

_T = TypeVar("_T")

_DEFINITE, _INDEFINITE = DETERMINERS["definite"], DETERMINERS["indefinite"]
_DEMONSTRATIVE, _ABSENT = DETERMINERS["demonstrative"], DETERMINERS["absent"]
_POSSESSIVES = tuple(DETERMINERS[name] for name in ("my", "your", "our", "your_plural", "their"))
_NOT, _NEVER, _NO_LONGER = WORDS["negations"]
_WHY, _WHEN, _WHERE = WORDS["questions"]
_YES_OR_NO = Word("", "")
_AT, _TO, _IN, _FROM = Word("à", "at"), Word("à", "to"), Word("à", "in"), Word("de", "from")
_THERE = Word("y", "")
_PLACE_ROLES = frozenset({"goal", "source", "home"})
_FEEL = AVOIR._replace(english=ETRE.english)  # "j'ai faim" is "i am hungry"
_PEOPLE = NOUNS["person"] + NOUNS["profession"] + NOUNS["name"]
_LIVING = _PEOPLE + NOUNS["animal"]
_THINGS = ("fruit", "food", "drink", "text", "opening", "thing", "furniture", "place", "spot")
_OWNED = tuple(noun for kind in ("animal", *_THINGS[3:7]) for noun in NOUNS[kind])
_OBJECTS = {verb: tuple(n for kind in verb.objects for n in NOUNS[kind]) for verb in VERBS}
_SITES = {place: tuple(n for k in kinds for n in NOUNS[k]) for place, kinds in PLACES.items()}
_BEFORE, _AFTER = (
    {k: tuple(a for a in ADJECTIVES if k in a.kinds and a.stands_before is b) for k in NOUNS}
    for b in (True, False)
)


def draw_sentence(draw: Draw) -> Said:
    """A sentence of any kind that the grammar has."""
    # One number decides between the kinds, so that each has exactly its share.
    kind = draw()
    if kind < 0.06:
        return _draw_existence(draw)
    if kind < 0.12:
        return _draw_feeling(draw)
    if kind < 0.35:
        return _draw_state(draw)
    return _draw_action(draw)


def _pick(draw: Draw, items: Sequence[_T]) -> _T:
    return items[int(draw() * len(items))]


def _draw_existence(draw: Draw) -> Said:
    """There is something: "il y a un chat dans le jardin"."""
    # "il y a" introduces something, so that it is never "the" or "my".
    phrase = _draw_phrase(draw, _OWNED)._replace(determiner=_INDEFINITE, owner=None)
    clause = Clause(rules.there_subject(phrase.is_plural), _FEEL, pronoun=_THERE)

    if phrase.number:
        phrase = phrase._replace(determiner=None)
    elif draw() < 0.25:
        phrase = phrase._replace(determiner=_ABSENT)
        clause = clause._replace(negation=Word(_NOT.french, ""))  # the English determiner is "no"

    if draw() < 0.2:
        clause = clause._replace(question=_YES_OR_NO)
    place = [_draw_place(draw, ETRE)] if draw() < 0.6 else []
    return rules.say_clause(clause, rules.say_phrase(phrase), *place)


def _draw_feeling(draw: Draw) -> Said:
    """Hunger and age, which are things that one has in French."""
    clause = Clause(_draw_subject(draw, _PEOPLE), _FEEL, _draw_tense(draw))
    if draw() < 0.6:
        clause = _draw_question(draw, _draw_negation(draw, clause), (_WHY, _WHEN))
        return rules.say_clause(clause, rules.say_word(_pick(draw, WORDS["feelings"])))

    age = _pick(draw, WORDS["ages"])
    years = Said([age.french, "ans"], [age.english, "years old"])
    return rules.say_clause(_draw_question(draw, clause, ()), years)


def _draw_state(draw: Draw) -> Said:
    """A profession, a place or a quality of the subject, with the verb "to be"."""
    choice = draw()
    kind = _pick(draw, ("person", "person", "animal", *_THINGS))

    if choice < 0.3:
        subject = _draw_subject(draw, NOUNS["person"] + NOUNS["name"])
    elif choice < 0.45:
        subject = _draw_subject(draw, _LIVING)
    elif kind == "person":
        subject = _draw_subject(draw, _PEOPLE)
    else:
        subject = rules.phrase_subject(_draw_known(draw, NOUNS[kind]))

    clause = _draw_negation(draw, Clause(subject, ETRE, _draw_tense(draw)))
    if choice < 0.3:
        # Professions come in pairs, the form for men and the form for women.
        index = 2 * int(draw() * len(NOUNS["profession"]) / 2)
        complement = rules.say_role(subject, *NOUNS["profession"][index : index + 2])
    elif choice < 0.45:
        complement = _draw_place(draw, ETRE)
    else:
        adjective = _pick(draw, _BEFORE[kind] + _AFTER[kind])
        degree = _pick(draw, WORDS["degrees"]) if draw() < 0.3 else None
        complement = rules.say_quality(subject, adjective, degree)

    return rules.say_clause(_draw_question(draw, clause, (_WHY,)), complement)


def _draw_action(draw: Draw) -> Said:
    """Somebody does something: a verb with its objects, recipients, places and times."""
    verb = _pick(draw, VERBS)
    clause = Clause(_draw_doer(draw, verb), verb, _draw_tense(draw))

    # Modals have present forms only.
    if clause.tense == "present" and draw() < 0.2:
        clause = clause._replace(modal=_pick(draw, MODALS))
    clause = _draw_question(draw, _draw_negation(draw, clause), (_WHY, _WHEN, _WHERE))

    if "person" in verb.objects and clause.tense != "past" and draw() < 0.4:
        clause = _draw_pronoun(draw, clause)

    complements: list[Said] = []

    # An object pronoun takes the place of the object.
    if verb.objects and not clause.pronoun:
        phrase = _draw_phrase(draw, _OBJECTS[verb])
        phrase = rules.negated(phrase) if clause.negation else phrase
        complements.append(rules.say_phrase(phrase))
    if "recipient" in verb.takes:
        recipient = _draw_phrase(draw, _PEOPLE, is_plain=True)
        complements.append(rules.say_place(_TO, recipient))
    elif clause.question is not _WHERE and (verb.takes & _PLACE_ROLES or draw() < 0.25):
        complements.append(_draw_place(draw, verb))

    # A question for the time does not name the time.
    if clause.question is not _WHEN and draw() < 0.25:
        complements.append(_draw_time(draw, clause.tense))

    return rules.say_clause(clause, *complements)


def _draw_tense(draw: Draw) -> str:
    return _pick(draw, ("present", "present", "past", "future"))


def _draw_doer(draw: Draw, verb: Verb) -> Subject:
    return _draw_subject(draw, _LIVING if "animals" in verb.takes else _PEOPLE)


def _draw_subject(draw: Draw, nouns: Sequence[Noun]) -> Subject:
    choice = draw()
    if choice < 0.55:
        return rules.pronoun_subject(int(draw() * 6), is_feminine=draw() < 0.5)
    phrase = _draw_phrase(draw, nouns, is_plain=choice < 0.9)
    if choice < 0.61:
        second = _draw_known(draw, nouns)

        # "the cat and the cat" is no sentence of a phrasebook.
        if second.noun is not phrase.noun:
            return rules.phrase_subject(phrase, second)
    return rules.phrase_subject(phrase)


def _draw_known(draw: Draw, nouns: Sequence[Noun]) -> Phrase:
    """A plain phrase that is never indefinite, for things that are already known."""
    phrase = _draw_phrase(draw, nouns, is_plain=True)
    is_vague = phrase.determiner is _INDEFINITE
    return phrase._replace(determiner=_DEFINITE) if is_vague else phrase


def _draw_phrase(draw: Draw, nouns: Sequence[Noun], *, is_plain: bool = False) -> Phrase:
    """A plain phrase has no adjective, number or owner."""
    noun = _pick(draw, nouns)
    if noun.is_proper:
        return Phrase(noun)

    # Bread and water have no plural.
    is_plural = not noun.is_mass and draw() < 0.35
    phrase = Phrase(noun, _draw_determiner(draw), is_plural)
    if is_plain:
        return phrase

    if is_plural and draw() < 0.4:
        is_bare = phrase.determiner is _INDEFINITE
        number = _pick(draw, WORDS["numbers"])
        phrase = phrase._replace(number=number, determiner=None if is_bare else phrase.determiner)

    choice = draw()
    if choice < 0.2 and _BEFORE[noun.kind]:
        phrase = phrase._replace(before=_pick(draw, _BEFORE[noun.kind]))

    # The ranges overlap: one noun in twenty has an adjective on both sides.
    if 0.15 < choice < 0.35 and _AFTER[noun.kind]:
        phrase = phrase._replace(after=_pick(draw, _AFTER[noun.kind]))
    if choice > 0.85 and phrase.determiner is _DEFINITE:
        phrase = phrase._replace(owner=_draw_known(draw, _PEOPLE))

    return phrase


def _draw_determiner(draw: Draw) -> Determiner:
    choice = draw()
    if choice < 0.4:
        return _DEFINITE
    if choice < 0.7:
        return _INDEFINITE
    return _pick(draw, _POSSESSIVES) if choice < 0.9 else _DEMONSTRATIVE


def _draw_pronoun(draw: Draw, clause: Clause) -> Clause:
    """Give the verb an object pronoun, unless it would refer to the subject."""
    index = int(draw() * len(WORDS["object_pronouns"]))

    # "i see me" would be reflexive, which French says otherwise.
    same_persons = ((0, 3), (1, 4), (0, 3), (1, 4), ())[index]
    if clause.subject.person in same_persons:
        return clause
    return clause._replace(pronoun=WORDS["object_pronouns"][index])


def _draw_place(draw: Draw, verb: Verb) -> Said:
    """A place; with some verbs the place where to or where from."""
    preposition = _pick(draw, (*PLACES, _AT, _IN))
    if "goal" in verb.takes:
        preposition = _TO
    elif "source" in verb.takes:
        preposition = _FROM
    if preposition is _IN or (preposition in (_TO, _FROM) and draw() < 0.2):
        return rules.say_place(preposition, Phrase(_pick(draw, NOUNS["city"])))

    # A preposition with sites of its own: one sits on a chair and walks to a garden.
    sites = _SITES.get(preposition) or NOUNS["place"] + NOUNS["spot"]
    return rules.say_place(preposition, _draw_known(draw, sites))


def _draw_time(draw: Draw, tense: str) -> Said:
    choice = draw()
    if choice < 0.7:
        return rules.say_word(_pick(draw, WORDS[f"{tense}_times"]))
    number = _pick(draw, WORDS["numbers"])
    if choice < 0.85:
        return Said(["à", number.french, "heures"], ["at", number.english, "o'clock"])
    return Said(["pendant", number.french, "jours"], ["for", number.english, "days"])


def _draw_negation(draw: Draw, clause: Clause) -> Clause:
    """Not, never, no longer."""
    choice = draw()
    if choice < 0.17:
        return clause._replace(negation=_NOT)
    if choice < 0.22:
        return clause._replace(negation=_NEVER)
    if choice < 0.28 and clause.tense == "present":
        return clause._replace(negation=_NO_LONGER)
    return clause


def _draw_question(draw: Draw, clause: Clause, words: tuple[Word, ...]) -> Clause:
    choice = draw()
    if choice < 0.14:
        return clause._replace(question=_YES_OR_NO)
    return clause._replace(question=_pick(draw, words)) if choice < 0.2 and words else clause
