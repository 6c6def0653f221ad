"""Draws what people say first to each other: greetings, introductions, short questions, answers.

The words are those of the everyday lexicon. Most sentences are still those of ``drawing``.
"""

from pellucid.phrasebook import rules
from pellucid.phrasebook.drawing import Draw, Drawing
from pellucid.phrasebook.lexicon import ALLER, AVOIR, ETRE, EVERYDAY, PHRASES, Verb, Word
from pellucid.phrasebook.rules import Phrase, Said, Subject

_LIVING = EVERYDAY.nouns["person"] + EVERYDAY.nouns["animal"]
_THINGS = ("animal", "text", "thing", "fruit", "furniture", "place", "spot", "opening")
_NAMED = (
    ("je m'appelle", "je ne m'appelle pas", "my name"),
    ("tu t'appelles", "tu ne t'appelles pas", "your name"),
    ("il s'appelle", "il ne s'appelle pas", "his name"),
    ("elle s'appelle", "elle ne s'appelle pas", "her name"),
    ("vous vous appelez", "vous ne vous appelez pas", "your name"),
    ("mon nom est", "mon nom n'est pas", "my name"),
)
_ASKED_NAMES = (
    ("comment t'appelles-tu", "your name"),
    ("comment tu t'appelles", "your name"),
    ("tu t'appelles comment", "your name"),
    ("comment vous appelez-vous", "your name"),
    ("comment s'appelle-t-il", "his name"),
    ("comment s'appelle-t-elle", "her name"),
    ("quel est ton nom", "your name"),
    ("quel est votre nom", "your name"),
)


_DO: tuple[str, ...] = ("fais", "fais", "fait", "faisons", "faites", "font")
_PLAIN_VERBS = tuple(
    verb
    for verb in EVERYDAY.verbs
    if "finite" not in verb.takes
    and len({each.english for each in EVERYDAY.verbs if each.french == verb.french}) == 1
)
"""Verbs whose infinitive alone has one translation."""
_COMMANDED = tuple(
    verb
    for verb in EVERYDAY.verbs
    if not verb.takes & {"present", "finite", "generic"} and verb.french not in ("avoir", "aimer")
)
"""Verbs with a usual imperative, which is a form of the present."""
(_NOT, *_) = EVERYDAY.words["negations"]
_ADDRESS_SHARE, _CLAUSE_SHARE, _EXCLAIMED_SHARE = 0.5, 0.25, 0.55


class Everyday:
    """Draws sentences with the numbers that ``draw`` gives."""

    def __init__(self, draw: Draw) -> None:
        self._draw, self._of = draw, Drawing(EVERYDAY, draw)

    def sentence(self) -> Said:
        """A sentence of any kind; its last word is its mark if that is no full stop."""
        kind = self._draw()
        if kind < 0.08:
            return self._greeting()

        if kind < 0.12:
            return self._phrase("remarks", "")
        if kind < 0.15:
            return self._phrase("questions", "?")
        if kind < 0.20:
            return self._name()
        if kind < 0.30:
            return self._short_question()
        if kind < 0.36:
            return self._this()
        if kind < 0.39:
            return self._weather()
        if kind < 0.41:
            return self._with_aside(self._health())
        if kind < 0.46:
            return self._fragment()
        if kind < 0.50:
            return self._with_aside(self._command())
        return self._with_aside(self._of.sentence())

    def _greeting(self) -> Said:
        """ "Bonjour Marie !", "merci, monsieur", "oui, je suis étudiant"."""
        is_answer = self._draw() < 0.3
        word = self._of.pick(PHRASES["answers" if is_answer else "greetings"])
        french, english = [word.french], [word.english]

        if self._draw() < _ADDRESS_SHARE:
            comma = "," if is_answer or self._draw() < 0.3 else ""
            whom = self._addressed(only_aside=is_answer and self._draw() < 0.5)
            french = [french[0] + comma, whom.french]
            english = [english[0] + comma, whom.english]
        if self._draw() < (2 if is_answer else 1) * _CLAUSE_SHARE:
            clause = self._clause()
            french = [*french[:-1], french[-1] + ",", *clause.french]
            english = [*english[:-1], english[-1] + ",", *clause.english]
        elif self._draw() < _EXCLAIMED_SHARE:
            french, english = [*french, "!"], [*english, "!"]
        return Said(french, english)

    def _clause(self) -> Said:
        """A clause that may follow a greeting."""
        choice = self._draw()
        if choice < 0.2:
            word = self._of.pick(PHRASES["questions"])
            return Said([word.french, "?"], [word.english, "?"])
        if choice < 0.4:
            return self._name()
        if choice < 0.55:
            return self._short_question()
        return self._of.sentence()

    def _addressed(self, *, only_aside: bool = False) -> Word:
        if only_aside:
            return self._of.pick(PHRASES["asides"])
        if self._draw() < 0.5:
            return self._of.pick(PHRASES["addressed"])
        phrase = rules.say_phrase(self._of.draw_phrase(EVERYDAY.nouns["name"]))
        return Word(phrase.french[0], phrase.english[0])

    def _phrase(self, name: str, mark: str) -> Said:
        word = self._of.pick(PHRASES[name])
        if not mark and self._draw() < 0.3:
            mark = "!"
        said = Said([word.french], [word.english])
        return self._with_aside(Said([*said.french, mark], [*said.english, mark]))

    def _with_aside(self, said: Said) -> Said:
        """Now and then with "please" or a name behind it: "un café, s'il vous plaît"."""
        if self._draw() > 0.06:
            return said
        aside = self._addressed(only_aside=self._draw() < 0.6)
        french, english = (
            _with_comma([word for word in words if word], behind)
            for words, behind in zip(said, aside, strict=True)
        )
        return Said(french, english)

    def _name(self) -> Said:
        name = rules.say_phrase(self._of.draw_phrase(EVERYDAY.nouns["name"]))

        choice = self._draw()
        if choice < 0.3:
            asked, whose = self._of.pick(_ASKED_NAMES)
            return Said([asked, "?"], ["what", "is", whose, "?"])
        if choice < 0.4:
            owner = rules.say_phrase(self._of.draw_known(_LIVING)._replace(is_plural=False))
            of = [*owner.english[:-1], f"{owner.english[-1]}'s", "name"]
            if self._draw() < 0.5:
                return Said(["comment", "s'appelle", *owner.french, "?"], ["what", "is", *of, "?"])
            return Said([*owner.french, "s'appelle", *name.french], [*of, "is", *name.english])
        if choice < 0.5:
            french, english = self._of.pick((("je suis", "i am"), ("c'est", "it is")))
            return Said([french, *name.french], [english, *name.english])

        yes, no, whose = self._of.pick(_NAMED)
        if self._draw() < 0.15:
            return Said([no, *name.french], [whose, "is", "not", *name.english])
        return Said([yes, *name.french], [whose, "is", *name.english])

    def _subject(self, *, is_living: bool = False) -> tuple[Subject, bool]:
        """The person or thing that is asked about, and whether it is a pronoun."""
        if self._draw() < 0.6:
            person = int(self._draw() * 6)
            return rules.pronoun_subject(person, is_feminine=self._draw() < 0.5), True
        things = ("animal",) if is_living else _THINGS
        kinds = self._of.pick((*things, "person", "name", "profession"))
        return rules.phrase_subject(self._of.draw_known(EVERYDAY.nouns[kinds])), False

    def _asked(self, word: str, verb: Verb, english: list[str], *, is_living: bool = False) -> Said:
        """A question word, a verb and its subject behind it: "où est la gare ?"."""
        subject, is_pronoun = self._subject(is_living=is_living)
        form = verb.present[subject.person]
        be = [
            *english[:1],
            rules.BE_PRESENT[subject.person],
            *subject.said.english,
            *english[1:],
            "?",
        ]

        if not is_pronoun:
            return Said([word, form, *subject.said.french, "?"], be)

        pronoun = subject.said.french[0]
        if self._draw() < 0.25:  # "où tu es ?", "tu es où ?"
            plain = [pronoun, form]
            end = self._draw() < 0.5
            return Said([*([] if end else [word]), *plain, *([word] if end else []), "?"], be)
        return Said([word, rules.inverted(form, pronoun), "?"], be)

    def _short_question(self) -> Said:
        """Where, who, how, how old, how much, what."""
        choice = self._draw()
        if choice < 0.28:
            return self._asked("où", ETRE, ["where"])
        if choice < 0.36:
            return self._asked("qui", ETRE, ["who"], is_living=True)
        if choice < 0.48:
            return self._asked("comment", ALLER, ["how"], is_living=True)
        if choice < 0.58:
            return self._asked("quel âge", AVOIR, ["how old"])
        if choice < 0.66:
            return self._price()
        if choice < 0.74:
            return self._who_does()
        return self._what()

    def _price(self) -> Said:
        kind = self._of.pick(("fruit", "food", "drink", "thing", "text"))
        phrase = self._of.draw_known(EVERYDAY.nouns[kind])
        what = rules.say_phrase(phrase)
        verb = "coûtent" if phrase.is_plural else "coûte"
        do = "do" if phrase.is_plural else "does"
        return Said(
            ["combien", verb, *what.french, "?"], ["how much", do, *what.english, "cost", "?"]
        )

    def _who_does(self) -> Said:
        """A question for the subject: "qui veut manger ?"."""
        verb = self._of.pick(EVERYDAY.verbs)
        clause = rules.Clause(Subject(Said(["qui"], ["who"]), 2, False, False), verb)
        said = rules.say_clause(clause, *self._of.complements(clause))
        return Said([*said.french, "?"], [*said.english, "?"])

    def _what(self) -> Said:
        """A question for what somebody does, or for the object."""
        subject = rules.pronoun_subject(int(self._draw() * 6), is_feminine=self._draw() < 0.5)
        pronoun, person = subject.said.french[0], subject.person

        eaten = tuple(
            verb for verb in EVERYDAY.verbs if verb.objects and "person" not in verb.objects
        )

        if self._draw() < 0.4:
            forms, english = _DO, [rules.BE_PRESENT[person], *subject.said.english, "doing"]
        else:
            verb = self._of.pick(eaten)
            forms = verb.present
            english = rules.say_clause(rules.Clause(subject, verb, question=Word("", ""))).english[
                :-1
            ]

        form = self._of.pick(("est-ce que", "que", "quoi"))
        if form == "quoi":
            french = [pronoun, forms[person], "quoi"]
        elif form == "que" and person:
            french = ["que", rules.inverted(forms[person], pronoun)]
        else:
            french = ["qu'est-ce", "que", pronoun, forms[person]]
        return Said([*french, "?"], ["what", *english, "?"])

    def _this(self) -> Said:
        """ "C'est un chat", "ce n'est pas cher", "c'est ton livre ?"."""

        is_plural = False
        if self._draw() < 0.45:
            judgment = self._of.pick(PHRASES["judgments"])
            degree = self._of.pick(EVERYDAY.words["degrees"]) if self._draw() < 0.25 else None
            what = Said([judgment.french], [judgment.english])
            if degree:
                what = Said([degree.french, *what.french], [degree.english, *what.english])
        else:
            kind = self._of.pick((*_THINGS, "person", "profession"))
            phrase = self._of.draw_phrase(EVERYDAY.nouns[kind])
            what, is_plural = rules.say_phrase(phrase), phrase.is_plural
            if self._draw() < 0.12:
                here = ["here", "are" if is_plural else "is"]
                return Said(["voici", *what.french], [*here, *what.english])

        it = ["they", "are"] if is_plural else ["it", "is"]
        choice = self._draw()
        if choice < 0.2:
            verb = ["ce", "ne", "sont" if is_plural else "est", "pas"]
            return Said([*verb, *what.french], [*it, "not", *what.english])

        verb = ["ce sont" if is_plural else "c'est"]
        if choice < 0.35:
            asked = ["est-ce", "que"] if self._draw() < 0.5 else []
            return Said([*asked, *verb, *what.french, "?"], [it[1], it[0], *what.english, "?"])
        return Said([*verb, *what.french], [*it, *what.english])

    def _command(self) -> Said:
        """ "Viens ici !", "ne mange pas la pomme", "aidez-moi"."""
        verb = self._of.pick(_COMMANDED)
        person = self._of.pick((1, 4))
        form = verb.present[person]
        if person == 1 and form[-2:] in ("es", "as"):
            form = form[:-1]  # "mange", "va"
        clause = rules.Clause(rules.pronoun_subject(person), verb)

        if self._draw() < 0.25:
            clause = clause._replace(negation=_NOT)
            french, english = ["ne", form, "pas"], ["do", "not", verb.english[0]]
        elif "person" in verb.objects and self._draw() < 0.5:
            me = self._of.pick((Word("moi", "me"), Word("nous", "us")))
            return self._exclaimed(Said([f"{form}-{me.french}"], [verb.english[0], me.english]))
        else:
            french, english = [form], [verb.english[0]]

        for complement in self._of.complements(clause):
            french += complement.french
            english += complement.english
        if self._draw() < 0.2:
            here = self._of.pick((Word("ici", "here"), Word("maintenant", "now")))
            french, english = [*french, here.french], [*english, here.english]
        return self._exclaimed(Said(french, english))

    def _exclaimed(self, said: Said) -> Said:
        if self._draw() < 0.5:
            return said
        return Said([*said.french, "!"], [*said.english, "!"])

    def _weather(self) -> Said:
        """The weather and the time of day."""
        if self._draw() < 0.4:
            hour = self._of.number(EVERYDAY.words["hours"], most=12)
            french, english = [hour.french, "heures"], [hour.english, "o'clock"]
            if self._draw() < 0.15:
                return Said(["est-ce", "que", "il est", *french, "?"], ["is it", *english, "?"])
            return Said(["il est", *french], ["it is", *english])
        word = self._of.pick(PHRASES["weather"])
        verb, _, rest = word.french.partition(" ")
        be, _, quality = word.english.partition(" ")
        place = self._of.draw_place(ETRE) if self._draw() < 0.25 else Said([], [])
        french, english = [rest, *place.french], [quality, *place.english]

        choice = self._draw()
        if choice < 0.2:
            return Said(["il", "ne", verb, "pas", *french], ["it", be, "not", *english])
        if choice < 0.35:
            asked = ["est-ce", "que"] if self._draw() < 0.5 else []
            return Said([*asked, "il", verb, *french, "?"], [be, "it", *english, "?"])
        return Said(["il", verb, *french], ["it", be, *english])

    def _health(self) -> Said:
        subject, _ = self._subject(is_living=True)
        verb = ALLER.present[subject.person]
        how = self._of.pick(
            (Word("bien", "fine"), Word("très bien", "very well"), Word("mal", "unwell"))
        )
        return Said(
            [*subject.said.french, verb, how.french],
            [*subject.said.english, rules.BE_PRESENT[subject.person], how.english],
        )

    def _fragment(self) -> Said:
        """Less than a sentence: a phrase, a word."""
        choice = self._draw()
        if choice < 0.35:
            kind = self._of.pick((*_THINGS, "person", "profession", "food", "drink"))
            return rules.say_phrase(self._of.draw_phrase(EVERYDAY.nouns[kind]))

        if choice < 0.6:
            kind = self._of.pick((*_THINGS, "person", "profession", "food", "drink", "art"))
            return rules.say_phrase(Phrase(self._of.pick(EVERYDAY.nouns[kind])))
        if choice < 0.75:
            adjective = self._of.pick(EVERYDAY.adjectives)
            return Said([adjective.french[0]], [adjective.english])
        if choice < 0.85:
            number = self._of.number(EVERYDAY.words["numbers"])
            return Said([number.french], [number.english])
        if choice < 0.93:
            verb = self._of.pick(_PLAIN_VERBS)
            return Said([verb.french], [verb.english[0]])
        return self._of.draw_place(ETRE)


def _with_comma(words: list[str], behind: str) -> list[str]:
    """The words, a comma and ``behind``, before the mark if there is one."""
    *words, mark = words if words[-1] in ("?", "!") else [*words, ""]
    return [*words[:-1], f"{words[-1]},", behind, mark]
