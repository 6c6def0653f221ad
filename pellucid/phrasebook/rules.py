"""The rules of the grammar: each builds the same phrase or clause in French and in English."""

from typing import Literal, NamedTuple

from pellucid.phrasebook import inflection
from pellucid.phrasebook.lexicon import (
    ALLER,
    AVOIR,
    DETERMINERS,
    ETRE,
    Adjective,
    Determiner,
    Noun,
    Verb,
    Word,
)

_FRENCH_PRONOUNS = ("je", "tu", "il", "nous", "vous", "ils")
_ENGLISH_PRONOUNS = ("i", "you", "he", "we", "you", "they")
_INVERTED = frozenset({"tu", "il", "elle", "nous", "vous", "ils", "elles"})
BE_PRESENT = ("am", "are", "is", "are", "are", "are")
_BE_PAST = ("was", "were", "was", "were", "were", "were")


QuestionForm = Literal["est-ce que", "inversion", "intonation"]
"""How French asks: "est-ce que tu manges ?", "manges-tu ?", "tu manges ?"."""


class Said(NamedTuple):
    """The words of a phrase or clause in both languages."""

    french: list[str]
    english: list[str]


class Subject(NamedTuple):
    """The subject of a clause, with what verbs and adjectives agree with.

    ``person`` counts je, tu, il, nous, vous, ils from zero.
    """

    said: Said
    person: int
    is_feminine: bool
    is_plural: bool


class Phrase(NamedTuple):
    """A noun with what belongs to it: "les deux chats noirs", "marie's book"."""

    noun: Noun
    determiner: Determiner | None = None
    is_plural: bool = False
    number: Word | None = None
    before: Adjective | None = None
    after: Adjective | None = None
    owner: "Phrase | None" = None
    is_generic: bool = False
    """Whether all of the kind are meant: "j'aime le pain" is "i like bread"."""


class Clause(NamedTuple):
    """A subject and a verb, without what follows; ``question`` is Word("", "") for yes or no.

    ``tense`` is present, past (passé composé, simple past) or future (futur proche, going to).
    """

    subject: Subject
    verb: Verb
    tense: str = "present"
    negation: Word | None = None
    modal: Verb | None = None
    pronoun: Word | None = None
    question: Word | None = None
    question_form: QuestionForm = "est-ce que"


def pronoun_subject(person: int, is_feminine: bool = False) -> Subject:
    """I, you, he or she, we, you, they."""
    french, english = _FRENCH_PRONOUNS[person], _ENGLISH_PRONOUNS[person]
    if is_feminine:
        # "il" and "ils" alike: "elle", "elles".
        french = french.replace("il", "elle")
        english = english.replace("he", "she") if person == 2 else english
    return Subject(Said([french], [english]), person, is_feminine, person >= 3)


def phrase_subject(phrase: Phrase, second: Phrase | None = None) -> Subject:
    """One phrase, or two with "and" between; two are feminine only if both are."""
    said = say_phrase(phrase)
    is_feminine, is_plural = phrase.noun.is_feminine, phrase.is_plural
    if second:
        french, english = say_phrase(second)
        said = Said([*said.french, "et", *french], [*said.english, "and", *english])
        is_feminine, is_plural = is_feminine and second.noun.is_feminine, True
    return Subject(said, 5 if is_plural else 2, is_feminine, is_plural)


def there_subject(is_plural: bool) -> Subject:
    """The subject of "il y a", where y is a pronoun; only the English verb follows the number."""
    return Subject(Said(["il"], ["there"]), 2, False, is_plural)


def say_phrase(phrase: Phrase) -> Said:
    """A noun phrase with agreement and word order: "un bel oiseau noir", "a fine black bird"."""
    noun, is_plural, determiner = phrase.noun, phrase.is_plural, phrase.determiner

    # Built outwards from the noun: adjectives, number, owner, determiner.
    french, english = [noun.french[is_plural]], [noun.english[is_plural]]
    if phrase.after:
        french.append(phrase.after.form(noun.is_feminine, is_plural))
        english.insert(0, phrase.after.english)
    if phrase.before:
        # "un bel oiseau" and "un nouvel ami", but "de beaux oiseaux".
        has_liaison = inflection.begins_with_vowel(french[0]) and not is_plural
        form = phrase.before.form(noun.is_feminine, is_plural)
        is_special = has_liaison and not noun.is_feminine
        french.insert(0, phrase.before.liaison if is_special else form)
        english.insert(0, phrase.before.english)
    if phrase.number:
        french.insert(0, phrase.number.french)
        english.insert(0, phrase.number.english)

    if phrase.owner:
        owner = say_phrase(phrase.owner)

        # "the cats' garden", but "the children's garden".
        takes_s = not (phrase.owner.is_plural and owner.english[-1].endswith("s"))
        possessor = owner.english[-1] + ("'s" if takes_s else "'")
        french += ["de", *owner.french]
        english = [*owner.english[:-1], possessor, *english]
    elif determiner and not (
        (noun.is_mass and determiner.english[0] == "a")
        or (phrase.is_generic and (noun.is_mass or is_plural) and not phrase.number)
    ):
        english.insert(0, determiner.english[is_plural])

    if determiner:
        french = [*_french_determiner(phrase, determiner), *french]

    return Said(french, english)


def _french_determiner(phrase: Phrase, determiner: Determiner) -> list[str]:
    """ "du pain", and "de grands chats" where "des chats" would do without the adjective."""
    if determiner is DETERMINERS["indefinite"]:
        if phrase.noun.is_mass:
            return ["de", "la" if phrase.noun.is_feminine else "le"]
        if phrase.is_plural and phrase.before:
            return ["de"]
    return [determiner.french[2 if phrase.is_plural else phrase.noun.is_feminine]]


def negated(phrase: Phrase) -> Phrase:
    """The phrase as the object of a negated verb: "pas de chat" for "un chat"."""
    is_indefinite = phrase.determiner is DETERMINERS["indefinite"]
    return phrase._replace(determiner=DETERMINERS["negated"]) if is_indefinite else phrase


def say_place(preposition: Word, phrase: Phrase) -> Said:
    """A preposition and its phrase: "dans le jardin", "à marie"."""
    french, english = say_phrase(phrase)
    return Said([*preposition.french.split(), *french], [preposition.english, *english])


def say_quality(subject: Subject, adjective: Adjective, degree: Word | None = None) -> Said:
    """A quality that agrees with the subject: "très grande"."""
    french, english = ([degree.french], [degree.english]) if degree else ([], [])
    form = adjective.form(subject.is_feminine, subject.is_plural)
    return Said([*french, form], [*english, adjective.english])


def say_role(subject: Subject, man: Noun, woman: Noun) -> Said:
    """A profession; only English has an article: "étudiant", "a student"."""
    noun = woman if subject.is_feminine else man
    article = [] if subject.is_plural else ["a"]
    return Said([noun.french[subject.is_plural]], [*article, noun.english[subject.is_plural]])


def say_word(word: Word) -> Said:
    """A word that never changes: "demain"."""
    return Said([word.french], [word.english])


def say_clause(clause: Clause, *complements: Said) -> Said:
    """A clause with what follows its verb, in the same order on both sides."""
    french, english = _french_clause(clause), _english_clause(clause)
    for complement in complements:
        french += complement.french
        english += complement.english
    if clause.question is None:
        return Said(french, english)
    asked = ["est-ce", "que"] if clause.question_form == "est-ce que" else []
    return Said([clause.question.french, *asked, *french, "?"], [*english, "?"])


def _french_clause(clause: Clause) -> list[str]:
    subject, verb = clause.subject, clause.verb
    is_inverted = clause.question is not None and clause.question_form == "inversion"
    # "suis-je" is rare, and after a noun the pronoun would come as well: "Marie est-elle là ?"
    is_inverted = is_inverted and subject.said.french[0] in _INVERTED
    pronoun = [clause.pronoun.french] if clause.pronoun else []
    takes_etre = "être" in verb.takes
    rest = [*pronoun, verb.french]  # a pronoun stands before the verb whose object it is

    if clause.modal:
        finite = [clause.modal.present[subject.person]]
    elif clause.tense == "future":
        finite = [ALLER.present[subject.person]]
    elif clause.tense == "past":
        finite = [(ETRE if takes_etre else AVOIR).present[subject.person]]
        # With être the participle agrees with the subject, with avoir it does not.
        agreed = verb.participle + "e" * subject.is_feminine + "s" * subject.is_plural
        rest = [agreed if takes_etre else verb.participle]
    else:
        finite, rest = [*pronoun, verb.present[subject.person]], []

    if is_inverted:
        finite[-1] = inverted(finite[-1], subject.said.french[0])
    if clause.negation:
        # Around the conjugated verb alone: "je n'ai pas mangé".
        finite = ["ne", *finite, clause.negation.french]

    return [*finite, *rest] if is_inverted else [*subject.said.french, *finite, *rest]


def inverted(verb: str, pronoun: str) -> str:
    """ "manges-tu", and "mange-t-il" between two vowels."""
    between = "-t-" if verb[-1] in "ae" and pronoun[0] in "ie" else "-"
    return f"{verb}{between}{pronoun}"


def _english_clause(clause: Clause) -> list[str]:
    auxiliary, main = _english_verb(clause)
    subject = clause.subject.said.english
    negation = clause.negation.english if clause.negation else ""
    pronoun = clause.pronoun.english if clause.pronoun else ""
    if clause.question:
        return [clause.question.english, auxiliary, *subject, negation, main, pronoun]
    if (auxiliary, negation) == ("can", "not"):
        auxiliary, negation = "cannot", ""
    return [*subject, auxiliary, negation, main, pronoun]


def _english_verb(clause: Clause) -> tuple[str, str]:
    """The auxiliary, which comes before the subject in a question, and the rest of the verb."""
    person, is_past = clause.subject.person, clause.tense == "past"

    # "there are": the number of what there is decides, though the person is the third.
    be = (_BE_PAST if is_past else BE_PRESENT)[5 if clause.subject.is_plural else person]
    base, third, past = clause.verb.english
    if base == "would like":
        return "would", "like"
    if clause.modal:
        helper, helper_third, _ = clause.modal.english
        if helper == "would like":
            return "would", f"like to {base}"

        # Modal verbs have no "s", no "to" and no "do".
        if helper in ("can", "must"):
            return helper, base

        # "want to", "have to": verbs like any other, which need "do" in questions.
        base, third = f"{helper} to {base}", f"{helper_third} to {base}"
    elif clause.tense == "future":
        return be, f"going to {base}"
    elif base == "be":
        return be, ""

    # "do" is needed in questions and with "not", but not with "never".
    if clause.question is None and (clause.negation is None or clause.negation.english != "not"):
        return "", past if is_past else third if person == 2 else base

    return "did" if is_past else "does" if person == 2 else "do", base
