"""Regular endings of French and English words, elision and contraction.

Only rules are here; irregular forms are in lexicon.toml under ``irregular``.
"""

from collections.abc import Iterable

_VOWELS = frozenset("aeiouyhàâéèêëîïôûœ")
# "le hibou", "de huit", "de onze": they begin with a vowel sound, but there is no elision.
_UNELIDED = frozenset({"hibou", "hiboux", "huit", "onze"})
_ELIDED = frozenset({"le", "la", "je", "me", "te", "ne", "de", "que"})
_LIAISON = {"ma": "mon", "ta": "ton", "ce": "cet"}
_CONTRACTED = {"à le": "au", "à les": "aux", "de le": "du", "de les": "des"}
_PRESENT_ENDINGS = ("e", "es", "e", "ons", "ez", "ent")


def begins_with_vowel(french: str) -> bool:
    """Whether the word before is elided: "l'île", "l'homme", but "le hibou"."""
    return french[0].lower() in _VOWELS and french not in _UNELIDED


def join_french(words: Iterable[str]) -> str:
    """Join words into a line, with elision (l', qu'), "mon amie", "cet œuf", au, du, aux, des."""
    # From the end, because a contraction decides what the word before it meets.
    joined: list[str] = []  # from the last word to the first
    for word in reversed([word for word in words if word]):
        following = joined[-1] if joined else "."
        if f"{word} {following}" in _CONTRACTED:
            joined[-1] = _CONTRACTED[f"{word} {following}"]
        elif word in _ELIDED and begins_with_vowel(following):
            joined[-1] = f"{word[:-1]}'{following}"
        elif word in _LIAISON and begins_with_vowel(following):
            joined.append(_LIAISON[word])
        else:
            joined.append(word)
    return " ".join(reversed(joined))


def join_english(words: Iterable[str]) -> str:
    """Join words into a line without empty ones, with "an" before a vowel ("a university")."""
    said = [word for word in words if word]
    for place, following in enumerate(said[1:]):
        if said[place] == "a" and following[0] in "aeiou" and not following.startswith("uni"):
            said[place] = "an"
    return " ".join(said)


def french_plural(word: str) -> str:
    """The plural of a noun or a masculine adjective: chats, gâteaux, chevaux, heureux."""
    if word[-1] in "sxz":
        return word
    if word.endswith("al"):
        return word[:-1] + "ux"
    return word + ("x" if word.endswith("eau") else "s")


def french_feminine(adjective: str) -> str:
    """The feminine form of a masculine adjective: grande, rouge, heureuse."""
    if adjective.endswith("e"):
        return adjective
    return adjective[:-1] + "se" if adjective.endswith("eux") else adjective + "e"


def french_present(infinitive: str) -> tuple[str, ...]:
    """The present tense of a verb in -er, six forms; "nous mangeons" keeps the soft g."""
    # Before o and a an g alone would be spoken hard.
    stem = infinitive[:-2]
    soft = stem + "e" if stem.endswith("g") else stem
    return tuple((soft if end[0] == "o" else stem) + end for end in _PRESENT_ENDINGS)


def english_s(word: str) -> str:
    """The plural of a noun, the third person of a verb: cats, boxes, goes, cries."""
    if word == "have":
        return "has"

    # "cries", but "plays".
    if word.endswith("y") and word[-2] not in "aeiou":
        return word[:-1] + "ies"
    return word + ("es" if word.endswith(("s", "x", "ch", "sh", "o")) else "s")


def english_past(verb: str) -> str:
    """The past tense of a regular verb: closed, cried, looked."""
    if verb.endswith("y") and verb[-2] not in "aeiou":
        return verb[:-1] + "ied"
    return verb + ("d" if verb.endswith("e") else "ed")
