"""Every construction of the grammar, said by hand."""

import pytest

from pellucid.phrasebook import rules
from pellucid.phrasebook.inflection import (
    begins_with_vowel,
    english_past,
    english_s,
    french_feminine,
    french_plural,
    french_present,
    join_english,
    join_french,
)
from pellucid.phrasebook.lexicon import (
    AVOIR,
    DETERMINERS,
    ETRE,
    PLAIN,
    Adjective,
    Determiner,
    Noun,
    Verb,
    Word,
)
from pellucid.phrasebook.rules import Clause, Phrase, Said, Subject

JE, TU, IL, NOUS, VOUS, ILS = (rules.pronoun_subject(person) for person in range(6))
ELLE, ELLES = (rules.pronoun_subject(person, is_feminine=True) for person in (2, 5))
PAS, JAMAIS, PLUS = PLAIN.words["negations"]
WHETHER = Word("", "")
WHERE = PLAIN.words["questions"][2]
THE, A, MY, THIS = (DETERMINERS[d] for d in ("definite", "indefinite", "my", "demonstrative"))


def noun(french: str) -> Noun:
    return next(n for nouns in PLAIN.nouns.values() for n in nouns if n.french[0] == french)


def adjective(french: str) -> Adjective:
    return next(a for a in PLAIN.adjectives if a.french[0] == french)


def verb(french: str) -> Verb:
    return next(v for v in (*PLAIN.verbs, *PLAIN.modals, ETRE) if v.french == french)


def preposition(french: str) -> Word:
    return next(place for place in PLAIN.places if place.french == french)


def phrase(french: str, determiner: Determiner | None = A, plural: bool = False) -> Phrase:
    return Phrase(noun(french), determiner, plural)


def said(what: Said) -> tuple[str, str]:
    return join_french(what.french), join_english(what.english)


def clause(subject: Subject, infinitive: str, *complements: Said, **changes: object):
    built = Clause(subject, verb(infinitive))._replace(**changes)
    return said(rules.say_clause(built, *complements))


def test_a_profession_has_an_article_in_english_only():
    student = noun("étudiant"), noun("étudiante")
    assert clause(JE, "être", rules.say_role(JE, *student)) == (
        "je suis étudiant",
        "i am a student",
    )
    assert clause(ELLE, "être", rules.say_role(ELLE, *student)) == (
        "elle est étudiante",
        "she is a student",
    )
    assert clause(ILS, "être", rules.say_role(ILS, *student)) == (
        "ils sont étudiants",
        "they are students",
    )


@pytest.mark.parametrize(
    ("changes", "french", "english"),
    [
        ({}, "il mange", "he eats"),
        ({"tense": "past"}, "il a mangé", "he ate"),
        ({"tense": "future"}, "il va manger", "he is going to eat"),
        ({"negation": PAS}, "il ne mange pas", "he does not eat"),
        ({"negation": JAMAIS}, "il ne mange jamais", "he never eats"),
        ({"negation": PLUS}, "il ne mange plus", "he no longer eats"),
        ({"negation": PAS, "tense": "past"}, "il n'a pas mangé", "he did not eat"),
        ({"negation": JAMAIS, "tense": "past"}, "il n'a jamais mangé", "he never ate"),
        (
            {"negation": PAS, "tense": "future"},
            "il ne va pas manger",
            "he is not going to eat",
        ),
        ({"question": WHETHER}, "est-ce qu'il mange ?", "does he eat ?"),
        ({"question": WHETHER, "tense": "past"}, "est-ce qu'il a mangé ?", "did he eat ?"),
        (
            {"question": WHETHER, "tense": "future"},
            "est-ce qu'il va manger ?",
            "is he going to eat ?",
        ),
        (
            {"question": WHETHER, "negation": PAS},
            "est-ce qu'il ne mange pas ?",
            "does he not eat ?",
        ),
        (
            {"question": WHETHER, "negation": JAMAIS},
            "est-ce qu'il ne mange jamais ?",
            "does he never eat ?",
        ),
        ({"question": WHERE}, "où est-ce qu'il mange ?", "where does he eat ?"),
        ({"modal": verb("pouvoir")}, "il peut manger", "he can eat"),
        ({"modal": verb("pouvoir"), "negation": PAS}, "il ne peut pas manger", "he cannot eat"),
        (
            {"modal": verb("pouvoir"), "negation": PAS, "question": WHETHER},
            "est-ce qu'il ne peut pas manger ?",
            "can he not eat ?",
        ),
        ({"modal": verb("devoir"), "negation": PAS}, "il ne doit pas manger", "he must not eat"),
        ({"modal": verb("vouloir")}, "il veut manger", "he wants to eat"),
        (
            {"modal": verb("vouloir"), "negation": PAS},
            "il ne veut pas manger",
            "he does not want to eat",
        ),
    ],
)
def test_verbs_are_said_so(changes: dict[str, object], french: str, english: str):
    assert clause(IL, "manger", **changes) == (french, english)


def test_only_the_third_person_singular_has_an_s():
    subjects = (JE, TU, IL, NOUS, VOUS, ILS)
    assert [clause(subject, "chercher") for subject in subjects] == [
        ("je cherche", "i look for"),
        ("tu cherches", "you look for"),
        ("il cherche", "he looks for"),
        ("nous cherchons", "we look for"),
        ("vous cherchez", "you look for"),
        ("ils cherchent", "they look for"),
    ]
    assert [clause(s, "être", question=WHETHER)[1] for s in subjects] == [
        "am i ?",
        "are you ?",
        "is he ?",
        "are we ?",
        "are you ?",
        "are they ?",
    ]
    past = [clause(s, "être", tense="past")[1] for s in subjects]
    assert past == ["i was", "you were", "he was", "we were", "you were", "they were"]


def test_a_participle_agrees_with_its_subject_after_etre_alone():
    assert [clause(s, "sortir", tense="past") for s in (IL, ELLE, ILS, ELLES)] == [
        ("il est sorti", "he went out"),
        ("elle est sortie", "she went out"),
        ("ils sont sortis", "they went out"),
        ("elles sont sorties", "they went out"),
    ]
    assert clause(ELLES, "dormir", tense="past") == ("elles ont dormi", "they slept")


def test_two_subjects_are_plural_and_feminine_only_if_both_are():
    marie, paul, anne = (phrase(name, None) for name in ("marie", "paul", "anne"))
    assert clause(rules.phrase_subject(marie, paul), "aller", tense="past") == (
        "marie et paul sont allés",
        "marie and paul went",
    )
    assert clause(rules.phrase_subject(marie, anne), "aller", tense="past")[0] == (
        "marie et anne sont allées"
    )
    assert clause(rules.phrase_subject(marie), "aller", tense="past")[0] == "marie est allée"


@pytest.mark.parametrize(
    ("built", "french", "english"),
    [
        (phrase("homme", THE), "l'homme", "the man"),
        (phrase("homme", THE, True), "les hommes", "the men"),
        (phrase("hibou", THE), "le hibou", "the owl"),
        (phrase("hibou", A), "un hibou", "an owl"),
        (phrase("hibou", THIS), "ce hibou", "this owl"),
        (phrase("œuf", THIS), "cet œuf", "this egg"),
        (phrase("île", THIS), "cette île", "this island"),
        (phrase("amie", MY), "mon amie", "my friend"),
        (phrase("amie", MY)._replace(before=adjective("grand")), "ma grande amie", "my big friend"),
        (phrase("université"), "une université", "a university"),
        (phrase("pomme", A, True), "des pommes", "apples"),
        (phrase("cheval", THIS, True), "ces chevaux", "these horses"),
        (phrase("pain"), "du pain", "bread"),
        (phrase("soupe"), "de la soupe", "soup"),
        (phrase("eau"), "de l'eau", "water"),
        (phrase("pain", THE), "le pain", "the bread"),
        (
            phrase("oiseau")._replace(before=adjective("beau"), after=adjective("noir")),
            "un bel oiseau noir",
            "a beautiful black bird",
        ),
        (
            phrase("hôtel", THE)._replace(before=adjective("vieux")),
            "le vieil hôtel",
            "the old hotel",
        ),
        (
            phrase("hibou", THE)._replace(before=adjective("vieux")),
            "le vieux hibou",
            "the old owl",
        ),
        (
            phrase("école", THE)._replace(before=adjective("nouveau")),
            "la nouvelle école",
            "the new school",
        ),
        (
            phrase("hôtel", A, True)._replace(before=adjective("beau")),
            "de beaux hôtels",
            "beautiful hotels",
        ),
        (
            phrase("fleur", A, True)._replace(after=adjective("blanc")),
            "des fleurs blanches",
            "white flowers",
        ),
        (phrase("orange")._replace(after=adjective("vert")), "une orange verte", "a green orange"),
        (phrase("orange"), "une orange", "an orange"),
        (phrase("table")._replace(before=adjective("vieux")), "une vieille table", "an old table"),
        (
            phrase("chat", THE, True)._replace(number=Word("deux", "two"), after=adjective("noir")),
            "les deux chats noirs",
            "the two black cats",
        ),
        (
            phrase("enfant", None, True)._replace(number=Word("onze", "eleven")),
            "onze enfants",
            "eleven children",
        ),
        (
            phrase("livre", THE)._replace(owner=phrase("marie", None)),
            "le livre de marie",
            "marie's book",
        ),
        (
            phrase("clé", THE, True)._replace(owner=phrase("anne", None)),
            "les clés d'anne",
            "anne's keys",
        ),
        (
            phrase("chien", THE)._replace(owner=phrase("roi", THE)),
            "le chien du roi",
            "the king's dog",
        ),
        (
            phrase("chien", THE)._replace(owner=phrase("roi", THE, True)),
            "le chien des rois",
            "the kings' dog",
        ),
        (
            phrase("chien", THE)._replace(owner=phrase("femme", THE, True)),
            "le chien des femmes",
            "the women's dog",
        ),
    ],
)
def test_noun_phrases_are_said_so(built: Phrase, french: str, english: str):
    assert said(rules.say_phrase(built)) == (french, english)


def test_what_a_negated_verb_has_none_of_is_only_de():
    def seen(of: Phrase) -> tuple[str, str]:
        thing = rules.say_phrase(rules.negated(of))
        return clause(JE, "avoir", thing, negation=PAS)

    assert seen(phrase("chien")) == ("je n'ai pas de chien", "i do not have a dog")
    assert seen(phrase("œuf", A, True)) == ("je n'ai pas d'œufs", "i do not have eggs")
    assert seen(phrase("lait")) == ("je n'ai pas de lait", "i do not have milk")
    assert seen(phrase("lait", THE)) == ("je n'ai pas le lait", "i do not have the milk")


def test_a_quality_agrees_with_its_subject():
    very = Word("très", "very")
    table = rules.phrase_subject(phrase("table", THE))
    assert clause(table, "être", rules.say_quality(table, adjective("grand"), very)) == (
        "la table est très grande",
        "the table is very big",
    )
    qualities = [clause(s, "être", rules.say_quality(s, adjective("heureux"))) for s in (IL, ELLES)]
    assert qualities == [
        ("il est heureux", "he is happy"),
        ("elles sont heureuses", "they are happy"),
    ]
    assert clause(
        ELLE, "être", rules.say_quality(ELLE, adjective("triste")), question=WHETHER, negation=PAS
    ) == ("est-ce qu'elle n'est pas triste ?", "is she not sad ?")


def test_there_is_and_there_are_is_one_form_in_french():
    there = Clause(rules.there_subject(False), AVOIR._replace(english=ETRE.english))
    there = there._replace(pronoun=Word("y", ""))
    cat = rules.say_phrase(phrase("chat"))
    cats = rules.say_phrase(phrase("chat", A, True))
    many = there._replace(subject=rules.there_subject(True))
    absent = rules.say_phrase(phrase("chat", DETERMINERS["absent"]))
    assert said(rules.say_clause(there, cat)) == ("il y a un chat", "there is a cat")
    assert said(rules.say_clause(many, cats)) == ("il y a des chats", "there are cats")
    without = there._replace(negation=Word("pas", ""))
    assert said(rules.say_clause(without, absent)) == ("il n'y a pas de chat", "there is no cat")
    asked = many._replace(question=WHETHER)
    assert said(rules.say_clause(asked, cats)) == (
        "est-ce qu'il y a des chats ?",
        "are there cats ?",
    )


def test_an_object_pronoun_stands_before_its_verb_in_french():
    me, _, _, _, them = PLAIN.words["object_pronouns"]
    assert clause(TU, "aider", pronoun=me) == ("tu m'aides", "you help me")
    assert clause(TU, "aider", pronoun=me, negation=PAS) == (
        "tu ne m'aides pas",
        "you do not help me",
    )
    assert clause(TU, "aider", pronoun=them, tense="future") == (
        "tu vas les aider",
        "you are going to help them",
    )
    assert clause(TU, "aider", pronoun=me, modal=verb("devoir")) == (
        "tu dois m'aider",
        "you must help me",
    )


def test_prepositions_contract_with_the_article():
    to, source = Word("à", "to"), Word("de", "from")
    places = [
        rules.say_place(to, phrase("bureau", THE)),
        rules.say_place(to, phrase("école", THE)),
        rules.say_place(to, phrase("gare", THE)),
        rules.say_place(to, phrase("musée", THE, True)),
        rules.say_place(source, phrase("jardin", THE)),
        rules.say_place(source, phrase("hôtel", THE)),
        rules.say_place(source, phrase("hôtel", THE, True)),
        rules.say_place(preposition("près de"), phrase("pont", THE)),
        rules.say_place(preposition("près de"), phrase("église", A)),
        rules.say_place(preposition("devant"), phrase("porte", THE)),
    ]
    assert [said(place) for place in places] == [
        ("au bureau", "to the office"),
        ("à l'école", "to the school"),
        ("à la gare", "to the station"),
        ("aux musées", "to the museums"),
        ("du jardin", "from the garden"),
        ("de l'hôtel", "from the hotel"),
        ("des hôtels", "from the hotels"),
        ("près du pont", "near the bridge"),
        ("près d'une église", "near a church"),
        ("devant la porte", "in front of the door"),
    ]


def test_i_and_that_are_shortened_before_a_vowel():
    assert clause(JE, "habiter") == ("j'habite", "i live")
    assert clause(JE, "écrire", tense="past") == ("j'ai écrit", "i wrote")
    alice = rules.phrase_subject(phrase("alice", None))
    assert clause(alice, "danser", question=WHETHER) == (
        "est-ce qu'alice danse ?",
        "does alice dance ?",
    )


def test_a_word_with_a_breathed_h_is_not_shortened_before():
    heard = {word: begins_with_vowel(word) for word in ("homme", "hibou", "huit", "œuf", "chat")}
    assert heard == {"homme": True, "hibou": False, "huit": False, "œuf": True, "chat": False}


def test_regular_endings_follow_the_rules():
    plurals = {w: french_plural(w) for w in ("chat", "gâteau", "cheval", "heureux", "mauvais")}
    assert list(plurals.values()) == ["chats", "gâteaux", "chevaux", "heureux", "mauvais"]
    feminines = [french_feminine(word) for word in ("grand", "rouge", "heureux", "fatigué")]
    assert feminines == ["grande", "rouge", "heureuse", "fatiguée"]
    assert french_present("manger")[3:] == ("mangeons", "mangez", "mangent")
    third = [english_s(word) for word in ("cat", "box", "go", "cry", "play", "watch", "have")]
    assert third == ["cats", "boxes", "goes", "cries", "plays", "watches", "has"]
    assert [english_past(word) for word in ("close", "cry", "play")] == [
        "closed",
        "cried",
        "played",
    ]


def test_a_question_is_asked_in_three_ways():
    tu = {"question": WHETHER}
    assert clause(TU, "manger", **tu, question_form="inversion") == ("manges-tu ?", "do you eat ?")
    assert clause(TU, "manger", **tu, question_form="intonation") == ("tu manges ?", "do you eat ?")
    asked = {
        "a-t-il": clause(IL, "avoir", **tu, question_form="inversion")[0],
        "va-t-elle": clause(ELLE, "aller", **tu, question_form="inversion")[0],
        "est-elle": clause(ELLE, "être", **tu, question_form="inversion")[0],
        "vendent-ils": clause(ILS, "vendre", **tu, question_form="inversion")[0],
        "as-tu mangé": clause(TU, "manger", **tu, tense="past", question_form="inversion")[0],
        "ne manges-tu pas": clause(TU, "manger", **tu, negation=PAS, question_form="inversion")[0],
        "où habites-tu": clause(TU, "habiter", question=WHERE, question_form="inversion")[0],
    }
    assert [f"{wanted} ?" for wanted in asked] == list(asked.values())


def test_after_i_and_after_nouns_the_order_stays():
    for subject, wanted in (
        (JE, "je dors ?"),
        (rules.phrase_subject(phrase("chat", THE)), "le chat dort ?"),
    ):
        said = clause(subject, "dormir", question=WHETHER, question_form="inversion")
        assert said[0] == wanted


def test_what_is_liked_in_general_has_no_article_in_english():
    def liked(of: Phrase) -> str:
        return clause(JE, "aimer", rules.say_phrase(of._replace(is_generic=True)))[1]

    assert liked(phrase("café", THE)) == "i like coffee"
    assert liked(phrase("chat", THE, True)) == "i like cats"
    assert liked(phrase("chat", THE)) == "i like the cat"
