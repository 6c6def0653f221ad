"""All commands of SCAN and what they mean (Lake and Baroni, 2018), by its grammar.

The corpora hold a part of them; the hard splits need them all:

    command:  phrase | phrase and phrase | phrase after phrase
    phrase:   move | move twice | move thrice
    move:     verb | verb side | verb opposite side | verb around side
    verb:     walk | look | run | jump | turn, which is never without a side
    side:     left | right
"""

from collections.abc import Iterator

_VERBS = {"walk": ["I_WALK"], "look": ["I_LOOK"], "run": ["I_RUN"], "jump": ["I_JUMP"], "turn": []}
_SIDES = {"left": "I_TURN_LEFT", "right": "I_TURN_RIGHT"}
_TIMES = {"twice": 2, "thrice": 3}
_LONGEST_LEARNED = 22
"""The actions of the longest commands that the split by length trains on; the others test."""
_SHARE_OF_THE_WORD = 10
"""``jump`` by itself is every tenth line that the split by a new word trains on."""


def commands() -> dict[str, str]:
    """All 20,910 commands, each with its actions, as the corpus writes both."""
    phrases = dict(_phrases())
    found = {phrase: " ".join(actions) for phrase, actions in phrases.items()}
    for first, of_first in phrases.items():
        for second, of_second in phrases.items():
            found[f"{first} and {second}"] = " ".join(of_first + of_second)
            found[f"{first} after {second}"] = " ".join(of_second + of_first)
    return found


def by_length() -> tuple[list[str], list[str]]:
    """The commands to learn, of at most 22 actions, and those that test, of 24 to 48."""
    learned = [
        command
        for command, actions in commands().items()
        if len(actions.split()) <= _LONGEST_LEARNED
    ]
    known = set(learned)
    return learned, [command for command in commands() if command not in known]


def by_new_word() -> tuple[list[str], list[str]]:
    """The commands to learn, of which ``jump`` alone has that word, and all others that have it."""
    others = [command for command in commands() if "jump" not in command.split()]
    alone = ["jump"] * (len(others) // (_SHARE_OF_THE_WORD - 1))
    tested = [command for command in commands() if "jump" in command.split()]
    tested.remove("jump")
    return others + alone, tested


def _phrases() -> Iterator[tuple[str, list[str]]]:
    for move, actions in _moves():
        yield move, actions
        for word, times in _TIMES.items():
            yield f"{move} {word}", actions * times


def _moves() -> Iterator[tuple[str, list[str]]]:
    for verb, action in _VERBS.items():
        if action:
            yield verb, action
        for side, turn in _SIDES.items():
            yield f"{verb} {side}", [turn, *action]
            yield f"{verb} opposite {side}", [turn, turn, *action]
            yield f"{verb} around {side}", [turn, *action] * 4
