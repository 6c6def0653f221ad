"""Lines as people type them: in another case, without the stop, mistyped, with stray spaces.

``noisy_pair`` changes a training pair as a ``NoiseConfig`` asks for. The functions that it is made
of also make the copies of a test text that ``pellucid evaluate --robustness`` scores.
"""

import random
import re

from pellucid.text.config import NoiseConfig
from pellucid.text.glossary import Glossary, holds_phrase
from pellucid.text.letter_case import lower, upper
from pellucid.text.scripts import is_of_word

_STOPS = (".", "。", "।")
_WORD = re.compile(r"[^\W\d_]{4,}")
"""Words in which a typing error leaves something to recognize."""
_WORDS_PER_TYPO = 12
_BESIDE = {
    "q": "wa", "w": "qes", "e": "wrd", "r": "etf", "t": "ryg", "y": "tuh", "u": "yij",
    "i": "uok", "o": "ipl", "p": "ol", "a": "qsz", "s": "awdx", "d": "sefc", "f": "drgv",
    "g": "fthb", "h": "gyjn", "j": "hukm", "k": "jil", "l": "kop", "z": "asx", "x": "zsdc",
    "c": "xdfv", "v": "cfgb", "b": "vghn", "n": "bhjm", "m": "njk",
}  # fmt: skip
"""The keys beside each key of a QWERTY keyboard."""
_SPACE_SHARE = 0.25
_EMOJI_RANGES = ((0x1F600, 0x1F64F), (0x1F680, 0x1F6C5), (0x1F40A, 0x1F43E), (0x1F330, 0x1F37C))
"""Faces and gestures, vehicles, animals, food: all in Unicode since 2015."""
EMOJI = (
    *(chr(code) for first, last in _EMOJI_RANGES for code in range(first, last + 1)),
    "\u2764\ufe0f",  # a red heart: a sign that is an emoji by its variation selector
    "\U0001f44d\U0001f3fd",  # a thumb with the tone of a skin
    "\U0001f1e9\U0001f1ea",  # a flag: two letters
    "\U0001f468\u200d\U0001f469\u200d\U0001f467",  # a family: three, joined
)
"""Emoji to add to lines."""


class Draws:
    """Random numbers that depend on a seed alone.

    Only ``random.Random.random`` is used, whose numbers are the same in every version of Python.
    """

    def __init__(self, seed: int) -> None:
        self.fraction = random.Random(seed).random  # noqa: S311  # nothing secret is drawn
        """The next number, at least 0 and below 1."""

    def below(self, count: int) -> int:
        """A whole number from 0 to ``count - 1``."""
        return int(self.fraction() * count)


def is_noisy(config: NoiseConfig, seed: int) -> bool:
    """Whether ``noisy_pair`` may change a pair with this seed."""
    draws = Draws(seed)
    cases = config.upper + config.title + config.lower
    shares = cases, config.no_stop, config.typos, config.spaces, config.emoji, config.terms
    return any(draws.fraction() < share for share in shares)


def noisy_pair(
    source: str, target: str, config: NoiseConfig, seed: int, glossary: Glossary | None = None
) -> tuple[str, str]:
    """Both sides of a pair, changed with the probabilities of ``config``.

    Without a ``glossary`` no term is marked.
    """
    draws = Draws(seed)
    # All six are drawn at once, so that no change depends on whether an earlier one was made, and
    # in the order of ``is_noisy``.
    case, stop, typos, spaces, emoji, terms = (draws.fraction() for _ in range(6))

    if case < config.upper:
        source, target = source.upper(), target.upper()
    elif case < config.upper + config.title:
        source = title_case(source)
    elif case < config.upper + config.title + config.lower:
        source = lower(source)

    if stop < config.no_stop:
        bare = without_stop(source), without_stop(target)
        # Only where both have a stop: else the model would learn to drop or to add one.
        if bare[0] != source and bare[1] != target and all(bare):
            source, target = bare
    if typos < config.typos:
        source = with_typos(source, draws)
    if terms < config.terms and glossary is not None:
        # Those that the target has: a mark is a promise.
        source = glossary.marked(source, lambda phrases: holds_phrase(target, phrases))
    if spaces < config.spaces:
        source = with_spaces(source, draws)

    if emoji < config.emoji:
        sign = EMOJI[draws.below(len(EMOJI))]
        if draws.below(2):
            source, target = f"{source} {sign}", f"{target} {sign}"
        else:
            source, target = f"{sign} {source}", f"{sign} {target}"
    return source, target


def title_case(text: str, language: str = "") -> str:
    """The first letter of each word in upper case, the others as they are."""
    return re.sub(r"(?<!\S)(\W*)(\w)", lambda found: found[1] + upper(found[2], language), text)


def without_stop(text: str) -> str:
    """The text without its final stop; an ellipsis stays."""
    bare = text.rstrip()
    if not bare.endswith(_STOPS) or bare.endswith(".."):
        return text
    return bare[:-1].rstrip()


def with_typos(text: str, draws: Draws) -> str:
    """The text with typing errors: one for each twelve words, at least one.

    Each is in another word of four letters and more, after its first letter, and of four kinds with
    equal probability: two letters are swapped, one is dropped, one is doubled, or one is replaced
    by a key beside it on a QWERTY keyboard. The kinds are those of Belinkov and Bisk (2018),
    arXiv:1711.02173, §3.2 (swap, key), and of OpusTrainer's modifier Typos.
    """
    words = list(_WORD.finditer(text))
    wanted = max(1, round(len(text.split()) / _WORDS_PER_TYPO))
    chosen: list[re.Match[str]] = []
    while words and len(chosen) < wanted:
        chosen.append(words.pop(draws.below(len(words))))

    # From the end, so that the positions of those before stay right.
    for word in sorted(chosen, key=lambda each: -each.start()):
        text = text[: word.start()] + _mistyped(word[0], draws) + text[word.end() :]
    return text


def _mistyped(word: str, draws: Draws) -> str:
    place = 1 + draws.below(len(word) - 2)  # not the first letter, and one follows
    letter = word[place]
    match draws.below(4):
        case 0:
            return word[:place] + word[place + 1] + letter + word[place + 2 :]
        case 1:
            return word[:place] + word[place + 1 :]
        case 2:
            return word[:place] + letter + word[place:]
        case _:
            keys = _BESIDE.get(letter.lower(), letter.lower())
            key = keys[draws.below(len(keys))]
            return word[:place] + (key.upper() if letter.isupper() else key) + word[place + 1 :]


def with_spaces(text: str, draws: Draws) -> str:
    """The text with stray spaces: between words, at both ends, before the final mark.

    Each place gets one with probability 1/4, and at least one place does.
    """
    *words, last = text.split(" ")
    made = "".join(word + ("  " if draws.fraction() < _SPACE_SHARE else " ") for word in words)
    if len(last) > 1 and not is_of_word(last[-1]) and draws.fraction() < _SPACE_SHARE:
        last = f"{last[:-1]} {last[-1]}"

    made += last
    if draws.fraction() < _SPACE_SHARE:
        made = f" {made}"
    if draws.fraction() < _SPACE_SHARE or made == text:
        made = f"{made} "
    return made
