"""Draws random sentences; the probabilities are chosen so that every word occurs often."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from pellucid.phrasebook import rules
from pellucid.phrasebook.lexicon import (
    AVOIR,
    DETERMINERS,
    ETRE,
    PLAIN,
    Determiner,
    Lexicon,
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
_NOT, _NEVER, _NO_LONGER = PLAIN.words["negations"]
_WHY, _WHEN, _WHERE = PLAIN.words["questions"]
_YES_OR_NO = Word("", "")
_AT, _TO, _IN, _FROM = Word("à", "at"), Word("à", "to"), Word("à", "in"), Word("de", "from")
_COUNTRY = {_IN: Word("en", "in"), _TO: Word("en", "to")}
"""Prepositions before a country, all of which are feminine here."""
_PRESENT_ONLY = frozenset({"present", "finite"})
_THERE = Word("y", "")
_PLACE_ROLES = frozenset({"goal", "source", "home"})
FEEL = AVOIR._replace(english=ETRE.english)  # "j'ai faim" is "i am hungry"
_THINGS = ("fruit", "food", "drink", "text", "opening", "thing", "furniture", "place", "spot")
_INVENTED_SHARE = 0.05
_CONSONANTS, _VOWELS = "bcdfgjklmnprstvxz", "aeiou"


class Drawing:
    """Draws sentences of the words of ``lexicon``, with the numbers that ``draw`` gives."""

    def __init__(self, lexicon: Lexicon, draw: Draw) -> None:
        self._lexicon, self._draw = lexicon, draw
        self._words, self._nouns = lexicon.words, lexicon.nouns
        nouns = lexicon.nouns

        def of_kinds(kinds: Sequence[str]) -> tuple[Noun, ...]:
            return tuple(noun for kind in kinds for noun in nouns[kind])

        self.people = of_kinds(("person", "profession", "name"))
        self._living = self.people + nouns["animal"]
        self.owned = of_kinds(("animal", *_THINGS[3:7]))
        self._objects = {verb: of_kinds(verb.objects) for verb in lexicon.verbs}
        self._sites = {place: of_kinds(kinds) for place, kinds in lexicon.places.items()}
        # What people type first is shorter than what a grammar can say.
        self._extra_share = 0.12 if lexicon.is_everyday else 0.25
        self._pronoun_share, self._plain_share = (0.6, 0.93) if lexicon.is_everyday else (0.55, 0.9)
        self._things = (*_THINGS, "abstract") if lexicon.is_everyday else _THINGS
        self._before, self._after = (
            {
                kind: tuple(
                    adjective
                    for adjective in lexicon.adjectives
                    if kind in adjective.kinds and adjective.stands_before is stands_before
                )
                for kind in nouns
            }
            for stands_before in (True, False)
        )

    def sentence(self) -> Said:
        """A sentence of any kind that the grammar has."""
        # One number decides between the kinds, so that each has exactly its share.
        kind = self._draw()
        if kind < 0.06:
            return self._draw_existence()
        if kind < 0.12:
            return self._draw_feeling()
        if kind < 0.35:
            return self._draw_state()
        return self._draw_action()

    def pick(self, items: Sequence[_T]) -> _T:
        """One of the items, all equally likely."""
        return items[int(self._draw() * len(items))]

    def _draw_existence(self) -> Said:
        """There is something: "il y a un chat dans le jardin"."""
        # "il y a" introduces something, so that it is never "the" or "my".
        phrase = self.draw_phrase(self.owned)._replace(determiner=_INDEFINITE, owner=None)
        negation = None

        if phrase.number:
            phrase = phrase._replace(determiner=None)
        elif self._draw() < 0.25:
            # "il n'y a pas de bus" does not show the number: the English is "no bus".
            shows_number = len(set(phrase.noun.french)) > 1
            phrase = phrase._replace(
                determiner=_ABSENT, is_plural=phrase.is_plural and shows_number
            )
            negation = Word(_NOT.french, "")  # the English determiner is "no"

        subject = rules.there_subject(phrase.is_plural)
        clause = Clause(subject, FEEL, pronoun=_THERE, negation=negation)

        if self._draw() < 0.2:
            clause = clause._replace(question=_YES_OR_NO)
        place = [self.draw_place(ETRE)] if self._draw() < 0.6 else []
        return rules.say_clause(clause, rules.say_phrase(phrase), *place)

    def _draw_feeling(self) -> Said:
        """Hunger and age, which are things that one has in French."""
        clause = Clause(self._draw_subject(self.people), FEEL, self._draw_tense())
        if self._draw() < 0.6:
            clause = self._draw_question(self._draw_negation(clause), (_WHY, _WHEN))
            return rules.say_clause(clause, rules.say_word(self.pick(self._words["feelings"])))

        age = self.number(self._words["ages"])
        years = Said([age.french, "ans"], [age.english, "years old"])
        return rules.say_clause(self._draw_question(clause, ()), years)

    def _draw_state(self) -> Said:
        """A profession, a place or a quality of the subject, with the verb "to be"."""
        choice = self._draw()
        kind = self.pick(("person", "person", "animal", *self._things))

        if choice < 0.3:
            subject = self._draw_subject(self._nouns["person"] + self._nouns["name"])
        elif choice < 0.45:
            subject = self._draw_subject(self._living)
        elif kind == "person":
            subject = self._draw_subject(self.people)
        else:
            subject = rules.phrase_subject(self.draw_known(self._nouns[kind]))

        clause = self._draw_negation(Clause(subject, ETRE, self._draw_tense()))
        if choice < 0.3:
            # Professions come in pairs, the form for men and the form for women.
            index = 2 * int(self._draw() * len(self._nouns["profession"]) / 2)
            complement = rules.say_role(subject, *self._nouns["profession"][index : index + 2])
        elif choice < 0.45:
            complement = self.draw_place(ETRE)
        else:
            adjective = self.pick(self._before[kind] + self._after[kind])
            degree = self.pick(self._words["degrees"]) if self._draw() < 0.3 else None
            complement = rules.say_quality(subject, adjective, degree)

        return rules.say_clause(self._draw_question(clause, (_WHY,)), complement)

    def _draw_action(self) -> Said:
        """Somebody does something: a verb with its objects, recipients, places and times."""
        verb = self.pick(self._lexicon.verbs)
        doers = self._living if "animals" in verb.takes else self.people
        clause = Clause(self._draw_subject(doers), verb, self._draw_tense())
        if verb.takes & _PRESENT_ONLY:
            clause = clause._replace(tense="present")

        # Modals have present forms only.
        if clause.tense == "present" and "finite" not in verb.takes and self._draw() < 0.2:
            clause = clause._replace(modal=self.pick(self._lexicon.modals))
        clause = self._draw_question(self._draw_negation(clause), (_WHY, _WHEN, _WHERE))

        if "person" in verb.objects and clause.tense != "past" and self._draw() < 0.4:
            clause = self._draw_pronoun(clause)

        complements = self.complements(clause)

        # A question for the time does not name the time.
        if clause.question is not _WHEN and self._draw() < self._extra_share:
            complements.append(self._draw_time(clause.tense))

        return rules.say_clause(clause, *complements)

    def complements(self, clause: Clause) -> list[Said]:
        """The complements that the verb needs: an object, a recipient, a place; a place may come
        anyway."""
        verb = clause.verb
        complements: list[Said] = []

        # An object pronoun takes the place of the object.
        if verb.objects and not clause.pronoun:
            phrase = self.draw_phrase(self._objects[verb])
            if "generic" in verb.takes and phrase.determiner is _DEFINITE:
                phrase = phrase._replace(is_generic=True)
            phrase = rules.negated(phrase) if clause.negation else phrase
            complements.append(rules.say_phrase(phrase))
        if "language" in verb.takes:
            complements.append(self._language())
        if "recipient" in verb.takes:
            recipient = self.draw_phrase(self.people, is_plain=True)
            complements.append(rules.say_place(_TO, recipient))
        elif clause.question is not _WHERE and (
            verb.takes & _PLACE_ROLES
            or ("finite" not in verb.takes and self._draw() < self._extra_share)
        ):
            complements.append(self.draw_place(verb))
        return complements

    def _draw_tense(self) -> str:
        return self.pick(("present", "present", "past", "future"))

    def _draw_subject(self, nouns: Sequence[Noun]) -> Subject:
        choice = self._draw()
        if choice < self._pronoun_share:
            return rules.pronoun_subject(int(self._draw() * 6), is_feminine=self._draw() < 0.5)
        phrase = self.draw_phrase(nouns, is_plain=choice < self._plain_share)
        if choice < self._pronoun_share + 0.06:
            second = self.draw_known(nouns)

            # "the cat and the cat" is no sentence of a phrasebook.
            if second.noun is not phrase.noun:
                return rules.phrase_subject(phrase, second)
        return rules.phrase_subject(phrase)

    def draw_known(self, nouns: Sequence[Noun]) -> Phrase:
        """A plain phrase that is never indefinite, for things that are already known."""
        phrase = self.draw_phrase(nouns, is_plain=True)
        is_vague = phrase.determiner is _INDEFINITE
        return phrase._replace(determiner=_DEFINITE) if is_vague else phrase

    def draw_phrase(self, nouns: Sequence[Noun], *, is_plain: bool = False) -> Phrase:
        """A plain phrase has no adjective, number or owner."""
        noun = self.pick(nouns)
        if noun.is_proper:
            return Phrase(self._perhaps_invented(noun))

        # Bread and water have no plural.
        is_plural = not noun.is_mass and self._draw() < 0.35
        phrase = Phrase(noun, self._draw_determiner(), is_plural)
        if is_plain:
            return phrase

        if is_plural and self._draw() < 0.4:
            is_bare = phrase.determiner is _INDEFINITE
            number = self.number(self._words["numbers"])
            phrase = phrase._replace(
                number=number, determiner=None if is_bare else phrase.determiner
            )

        choice = self._draw()
        if choice < 0.2 and self._before[noun.kind]:
            phrase = phrase._replace(before=self.pick(self._before[noun.kind]))

        # The ranges overlap: one noun in twenty has an adjective on both sides.
        if 0.15 < choice < 0.35 and self._after[noun.kind]:
            phrase = phrase._replace(after=self.pick(self._after[noun.kind]))
        if choice > 0.85 and phrase.determiner is _DEFINITE:
            phrase = phrase._replace(owner=self.draw_known(self.people))

        return phrase

    def _draw_determiner(self) -> Determiner:
        choice = self._draw()
        if choice < 0.4:
            return _DEFINITE
        if choice < 0.7:
            return _INDEFINITE
        return self.pick(_POSSESSIVES) if choice < 0.9 else _DEMONSTRATIVE

    def _draw_pronoun(self, clause: Clause) -> Clause:
        """Give the verb an object pronoun, unless it would refer to the subject."""
        index = int(self._draw() * len(self._words["object_pronouns"]))

        # "i see me" would be reflexive, which French says otherwise.
        same_persons = ((0, 3), (1, 4), (0, 3), (1, 4), ())[index]
        if clause.subject.person in same_persons:
            return clause
        return clause._replace(pronoun=self._words["object_pronouns"][index])

    def draw_place(self, verb: Verb) -> Said:
        """A place; with some verbs the place where to or where from."""
        preposition = self.pick((*self._lexicon.places, _AT, _IN))
        if "goal" in verb.takes:
            preposition = _TO
        elif "source" in verb.takes:
            preposition = _FROM
        if preposition is _IN or (preposition in (_TO, _FROM) and self._draw() < 0.2):
            if self._lexicon.is_everyday and self._draw() < 0.4:
                country = Phrase(self.pick(self._nouns["country"]))
                return rules.say_place(_COUNTRY.get(preposition, preposition), country)
            return rules.say_place(preposition, Phrase(self.pick(self._nouns["city"])))

        # A preposition with sites of its own: one sits on a chair and walks to a garden.
        sites = self._sites.get(preposition) or self._nouns["place"] + self._nouns["spot"]
        return rules.say_place(preposition, self.draw_known(sites))

    def _draw_time(self, tense: str) -> Said:
        choice = self._draw()
        if choice < 0.7:
            return rules.say_word(self.pick(self._words[f"{tense}_times"]))
        if choice < 0.85:
            hour = self.number(self._words["hours"], most=12)
            return Said(["à", hour.french, "heures"], ["at", hour.english, "o'clock"])
        number = self.number(self._words["numbers"])
        return Said(["pendant", number.french, "jours"], ["for", number.english, "days"])

    def _draw_negation(self, clause: Clause) -> Clause:
        """Not, never, no longer."""
        choice = self._draw()
        if choice < 0.17:
            return clause._replace(negation=_NOT)
        if choice < 0.22:
            return clause._replace(negation=_NEVER)
        if choice < 0.28 and clause.tense == "present":
            return clause._replace(negation=_NO_LONGER)
        return clause

    def _draw_question(self, clause: Clause, words: tuple[Word, ...]) -> Clause:
        choice = self._draw()
        if choice < 0.14:
            clause = clause._replace(question=_YES_OR_NO)
        elif choice < 0.2 and words:
            clause = clause._replace(question=self.pick(words))
        if clause.question is None or not self._lexicon.is_everyday:
            return clause

        form: rules.QuestionForm = self.pick(("est-ce que", "inversion", "intonation"))
        return clause._replace(question_form=form)

    def _language(self) -> Said:
        """ "Je parle un peu français", "j'apprends le français"."""
        language = self.pick(self._nouns["language"])
        article = ["le"] if self._draw() < 0.5 else []
        french, english = [*article, language.french[0]], [language.english[0]]
        degree = self._draw()
        if degree < 0.15:
            return Said(["un", "peu", *french], ["a", "little", *english])
        if degree < 0.3:
            return Said(["bien", *french], [*english, "well"])
        return Said(french, english)

    def number(self, words: Sequence[Word], *, most: int = 99) -> Word:
        """One of these numbers; among everyday words sometimes digits, from 2 to ``most``."""
        if self._lexicon.is_everyday and self._draw() < 0.4:
            digits = str(2 + int(self._draw() * (most - 1)))
            return Word(digits, digits)
        return self.pick(words)

    def _perhaps_invented(self, noun: Noun) -> Noun:
        """The name, or now and then one that nobody has, so that names are learned to be copied."""
        if noun.kind != "name" or not self._lexicon.is_everyday or self._draw() > _INVENTED_SHARE:
            return noun
        letters = []
        for _ in range(2):
            letters += [self.pick(_CONSONANTS), self.pick(_VOWELS)]
            letters += [self.pick(_CONSONANTS)] if self._draw() < 0.3 else []
        name = "".join(letters).capitalize()
        return noun._replace(french=(name, name), english=(name, name))
