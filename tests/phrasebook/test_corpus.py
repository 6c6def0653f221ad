"""What holds for every list of pairs."""

import os
import re
import subprocess
import sys
from collections import Counter
from itertools import pairwise
from typing import NamedTuple

import pytest

from pellucid.core.errors import ConfigError
from pellucid.phrasebook.corpus import FAMOUS_PAIR, Pair, generate, new_pairs, split
from pellucid.phrasebook.inflection import begins_with_vowel
from pellucid.phrasebook.lexicon import AVOIR, DETERMINERS, ETRE, PLAIN

MANY = 60_000


class Entry(NamedTuple):
    """One entry of the lexicon, with every form it can take in a French sentence."""

    kind: str
    french: str
    english: str
    forms: tuple[str, ...]


def lexicon_entries() -> list[Entry]:
    entries = []
    for noun in (noun for nouns in PLAIN.nouns.values() for noun in nouns):
        forms = noun.french[:1] if noun.is_mass or noun.is_proper else noun.french
        entries.append(Entry(noun.kind, noun.french[0], noun.english[0], forms))
    for adjective in PLAIN.adjectives:
        written: tuple[str, ...] = (*adjective.french, adjective.liaison)
        entries.append(Entry("adjective", written[0], adjective.english, written))
    for verb in (*PLAIN.verbs, ETRE):
        written = (verb.french, *verb.present, verb.participle)
        entries.append(Entry("verb", verb.french, verb.english[0], written))
    for verb in PLAIN.modals:
        entries.append(Entry("modal", verb.french, verb.english[0], verb.present))
    for row in DETERMINERS.values():
        entries.append(Entry("determiner", row.french[0], row.english[0], row.french))
    for word in (*PLAIN.places, *(word for group in PLAIN.words.values() for word in group)):
        entries.append(Entry("word", *word, forms=(word.french,)))
    return entries


@pytest.fixture(scope="module")
def pairs() -> list[Pair]:
    return generate(MANY, seed=11)


def french_words(sentence: str) -> list[str]:
    """Its words with every shortened one apart: "j'ai" is "j'" and "ai"."""
    return re.sub(r"(\b(?:[cdjlmnt]|qu))'", r"\1' ", sentence).split()


def test_no_french_sentence_has_two_translations(pairs: list[Pair]):
    assert len(pairs) == len(set(pairs)) == len({pair.source for pair in pairs}) == MANY


def test_the_two_sides_often_differ_in_their_number_of_words(pairs: list[Pair]):
    differences = [len(pair.source.split()) - len(pair.target.split()) for pair in pairs]
    assert sum(difference < 0 for difference in differences) > MANY / 10
    assert sum(difference > 0 for difference in differences) > MANY / 10


def test_nearly_all_sentences_have_three_to_twelve_words(pairs: list[Pair]):
    lengths = [len(pair.source.split()) for pair in pairs]
    assert sum(3 <= length <= 12 for length in lengths) > 0.95 * MANY
    assert max(lengths) < 30


def test_sentences_are_lower_case_and_single_spaced_and_only_questions_have_a_mark(
    pairs: list[Pair],
):
    for source, target in pairs:
        for side in (source, target):
            assert side == side.lower() == " ".join(side.split())
            assert re.fullmatch(r"[a-zà-ÿœ' -]+( \?)?", side), side
        assert source.endswith(" ?") == target.endswith(" ?") == ("est-ce" in source)


def test_every_entry_of_the_lexicon_is_met_often_and_every_form_is_met(pairs: list[Pair]):
    met = Counter(word for source, _ in pairs for word in french_words(source))
    shortened = {"je": "j'", "le": "l'"}
    for entry in lexicon_entries():
        firsts = {form.split()[0] for form in entry.forms}
        assert all(met[form] for form in firsts), entry
        assert sum(met[form] + met[shortened.get(form, "")] for form in firsts) > MANY / 500, entry


def test_no_two_content_words_are_written_alike():
    """Then "marché" (market, walked) could not be told from the word alone."""
    content = [entry for entry in lexicon_entries() if entry.kind not in ("word", "determiner")]
    written = Counter(form for entry in content for form in set(entry.forms))
    assert [form for form, count in written.items() if count > 1] == []


def test_no_two_content_words_are_synonyms():
    """Apart from the forms of one noun for a man and a woman."""
    english: dict[str, list[str]] = {}
    for entry in lexicon_entries():
        if entry.kind not in ("word", "determiner"):
            english.setdefault(entry.english, []).append(entry.kind)
    shared = [kinds for kinds in english.values() if len(kinds) > 1]
    assert shared
    assert all(kinds in (["profession"] * 2, ["person"] * 2) for kinds in shared)


def test_nothing_is_left_unshortened_or_uncontracted(pairs: list[Pair]):
    before_vowel = {"le", "la", "je", "me", "te", "ne", "de", "que", "ma", "ta", "ce"}
    for source, _ in pairs[:20_000]:
        words = source.split()
        for word, following in pairwise(words):
            assert not (word in before_vowel and begins_with_vowel(following)), source
            assert (word, following) not in {("à", "le"), ("à", "les"), ("de", "le")}, source
            assert (word, following) != ("de", "les"), source
    assert not any(re.search(r"[dl]'(hibou|huit|onze|[^aeiouhéêîœôà])", s) for s, _ in pairs)


def test_an_is_said_before_vowels_and_only_there(pairs: list[Pair]):
    for _, target in pairs[:20_000]:
        for article, following in re.findall(r"\b(an?) (\w+)", target):
            is_an = following[0] in "aeio"
            assert (article == "an") == is_an, target


def test_adjectives_agree_with_the_noun_beside_them(pairs: list[Pair]):
    nouns = {
        form: (noun.is_feminine, is_plural == 1)
        for group in PLAIN.nouns.values()
        for noun in group
        for is_plural, form in enumerate(noun.french)
    }
    before = {f: a for a in PLAIN.adjectives for f in (*a.french, a.liaison) if a.stands_before}
    after = {form: a for a in PLAIN.adjectives for form in a.french if not a.stands_before}
    seen = 0
    for source, _ in pairs[:20_000]:
        words = french_words(source)
        for first, second in pairwise(words):
            if first in before and second in nouns:
                is_feminine, is_plural = nouns[second]
                allowed = before[first].form(is_feminine, is_plural)
                if begins_with_vowel(second) and not is_feminine and not is_plural:
                    allowed = before[first].liaison
                assert first == allowed, source
                seen += 1
            if first in nouns and second in after:
                assert second == after[second].form(*nouns[first]), source
                seen += 1
    assert seen > 600


def test_participles_agree_after_etre_and_stay_alone_after_avoir(pairs: list[Pair]):
    with_etre = {verb.participle for verb in PLAIN.verbs if "être" in verb.takes}
    endings = {"il": "", "elle": "e", "ils": "s", "elles": "es"}
    seen = Counter()
    for source, _ in pairs[:20_000]:
        found = re.search(r"\b(ils?|elles?) (?:n')?(?:est|sont)(?: pas| jamais)? (\w+)", source)
        if found and (stem := re.sub(r"(?<=[éiu])e?s?$", "", found[2])) in with_etre:
            assert found[2] == stem + endings[found[1]], source
            seen[found[1]] += 1
    assert min(seen[pronoun] for pronoun in endings) > 6
    with_avoir = {verb.participle for verb in PLAIN.verbs if "être" not in verb.takes}
    agreed = {participle + ending for participle in with_avoir for ending in ("e", "es")}
    auxiliaries = set(AVOIR.present)
    for source, _ in pairs[:20_000]:
        words = french_words(source)
        for first, second in pairwise(words):
            assert not (first in auxiliaries and second in agreed), source
    assert not with_etre & with_avoir


def test_a_seed_always_gives_the_same_pairs_in_any_process():
    """Hashes of strings differ from process to process; nothing may hang on them."""
    code = (
        "import hashlib; from pellucid.phrasebook import split;"
        "print(hashlib.sha256(repr(split(300, 20, 7)).encode()).hexdigest())"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hash_seed in ("0", "1", "2")
    }
    assert len(digests) == 1
    assert generate(50, seed=3) == generate(50, seed=3) != generate(50, seed=4)


def test_a_shorter_list_is_the_beginning_of_a_longer_one():
    assert generate(100, seed=5)[:10] == generate(10, seed=5)
    assert generate(0, seed=5) == []


@pytest.mark.parametrize(
    ("train_count", "held_out_count"),
    [(10_000, 800), pytest.param(40_000, 1_500, marks=pytest.mark.nightly)],
)
def test_no_sentence_stands_in_two_parts_on_either_side(train_count: int, held_out_count: int):
    splits = split(train_count, held_out_count, seed=1)
    assert [len(part) for part in splits] == [train_count, held_out_count, held_out_count]
    for side in (0, 1):
        train, valid, test = ({pair[side] for pair in part} for part in splits)
        assert not train & valid
        assert not train & test
        assert not valid & test
    assert all(len(set(part)) == len(part) for part in splits)


@pytest.mark.parametrize("scale", [1, pytest.param(4, marks=pytest.mark.nightly)])
def test_a_pair_never_changes_sides_with_the_seed_or_the_sizes(scale: int):
    sizes = (1, 5_000 * scale), (2, 1_250 * scale)
    learned = {p for s, n in sizes for p in split(n, 10, seed=s).train}
    sizes = (3, 10), (4, 225 * scale)
    held_out = {p for s, n in sizes for part in split(10, n, s)[1:] for p in part}
    assert not learned & held_out


@pytest.mark.parametrize(("train_count", "held_out_count"), [(0, 1), (10, 1), (20_000, 500)])
def test_the_famous_pair_is_held_out_whatever_the_sizes(train_count: int, held_out_count: int):
    splits = split(train_count, held_out_count, seed=9)
    assert splits.test[0] == FAMOUS_PAIR == ("je suis étudiant", "i am a student")
    assert [len(part) for part in splits] == [train_count, held_out_count, held_out_count]
    elsewhere = [*splits.train, *splits.valid]
    assert "i am a student" not in {pair.target for pair in elsewhere}
    assert "je suis étudiant" not in {pair.source for pair in elsewhere}
    assert splits.test.count(FAMOUS_PAIR) == 1


def test_the_grammar_itself_says_the_famous_pair_and_its_neighbors(pairs: list[Pair]):
    known = dict(pairs)
    assert known["je suis étudiant"] == "i am a student"
    assert known["tu es étudiant"] == "you are a student"
    assert known["je suis étudiante"] == "i am a student"


def test_without_held_out_pairs_the_famous_one_is_nowhere():
    splits = split(1_000, 0, seed=0)
    assert (len(splits.train), splits.valid, splits.test) == (1_000, [], [])
    assert "i am a student" not in {pair.target for pair in splits.train}


def test_negative_numbers_are_refused():
    with pytest.raises(ConfigError, match=r"^count must not be negative, got -1$"):
        generate(-1, seed=0)
    with pytest.raises(ConfigError, match=r"^seed must not be negative, got -2$"):
        generate(1, seed=-2)
    with pytest.raises(ConfigError, match=r"^held_out_count must not be negative, got -3$"):
        split(1, -3, seed=0)


def test_a_grammar_that_has_no_more_pairs_says_so():
    drawn = new_pairs(lambda: FAMOUS_PAIR)
    assert next(drawn) == FAMOUS_PAIR
    with pytest.raises(ConfigError) as caught:
        next(drawn)
    assert str(caught.value) == "the phrasebook gave no new pair in 100000 draws, after 1 of them"
    assert caught.value.hint == "ask for fewer pairs"


def test_a_negated_verb_has_no_indefinite_object(pairs: list[Pair]):
    """ "pas un chat" would be "not one cat"."""
    denied = [source for source, _ in pairs if re.search(r" (pas|jamais|plus) ", source)]
    assert not any(re.search(r" (pas|jamais|plus) (un|une) ", source) for source in denied)
    assert sum(re.search(r" pas (de |d')", source) is not None for source in denied) > 300


def test_every_preposition_has_its_own_translation(pairs: list[Pair]):
    said = {
        "to": "à la gare",
        "at": "à la gare",
        "from": "de la gare",
        "near": "près de la gare",
        "in": "dans la gare",
        "in front of": "devant la gare",
        "behind": "derrière la gare",
    }
    seen = Counter()
    for source, target in pairs:
        found = re.search(r"\b(in front of|\w+) the station\b", target)
        if found and found[1] in said:
            assert said[found[1]] in source, source
            seen[found[1]] += 1
    assert set(seen) == set(said)
