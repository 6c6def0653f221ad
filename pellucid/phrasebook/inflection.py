"""How words change: the regular endings of French and English, and sounds that meet.

Only rules stand here; whatever they do not give is in lexicon.toml under ``irregular``.
"""

from collections.abc import Iterable

_VOWELS = frozenset("aeiouyhàâéèêëîïôûœ")
# "le hibou", "de huit", "de onze": they begin like a vowel and are not treated like one.
_UNELIDED = frozenset({"hibou", "hiboux", "huit", "onze"})
_ELIDED = frozenset({"le", "la", "je", "me", "te", "ne", "de", "que"})
_LIAISON = {"ma": "mon", "ta": "ton", "ce": "cet"}
_CONTRACTED = {"à le": "au", "à les": "aux", "de le": "du", "de les": "des"}
_PRESENT_ENDINGS = ("e", "es", "e", "ons", "ez", "ent")


def begins_with_vowel(french: str) -> bool:
    """Whether the word before is shortened: "l'île", "l'homme", but "le hibou"."""
    return french[0] in _VOWELS and french not in _UNELIDED


def join_french(words: Iterable[str]) -> str:
    """One line from words, with elision (l', qu'), "mon amie", "cet œuf", and au, du, aux, des."""
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
    """One line from words, empty ones left out, with "an" before a vowel ("a university")."""
    said = [word for word in words if word]
    for place, following in enumerate(said[1:]):
        if said[place] == "a" and following[0] in "aeiou" and not following.startswith("uni"):
            said[place] = "an"
    return " ".join(said)


def french_plural(word: str) -> str:
    """A noun's or a masculine adjective's: chats, gâteaux, chevaux, heureux."""
    if word[-1] in "sxz":
        return word
    if word.endswith("al"):
        return word[:-1] + "ux"
    return word + ("x" if word.endswith("eau") else "s")


def french_feminine(adjective: str) -> str:
    """Of a masculine adjective: grande, rouge, heureuse."""
    if adjective.endswith("e"):
        return adjective
    return adjective[:-1] + "se" if adjective.endswith("eux") else adjective + "e"


def french_present(infinitive: str) -> tuple[str, ...]:
    """The six forms of a verb in -er; "nous mangeons" keeps its sound."""
    stem = infinitive[:-2]
    soft = stem + "e" if stem.endswith("g") else stem
    return tuple((soft if end[0] == "o" else stem) + end for end in _PRESENT_ENDINGS)


def english_s(word: str) -> str:
    """The plural of a noun, the third person of a verb: cats, boxes, goes, cries."""
    if word == "have":
        return "has"
    if word.endswith("y") and word[-2] not in "aeiou":
        return word[:-1] + "ies"
    return word + ("es" if word.endswith(("s", "x", "ch", "sh", "o")) else "s")


def english_past(verb: str) -> str:
    """Of a regular verb: closed, cried, looked."""
    if verb.endswith("y") and verb[-2] not in "aeiou":
        return verb[:-1] + "ied"
    return verb + ("d" if verb.endswith("e") else "ed")
