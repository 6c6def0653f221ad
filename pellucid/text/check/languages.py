"""Whether texts are named as being in the languages that a model translates."""

from collections.abc import Mapping, Sequence
from typing import Any

from pellucid.text.detection import are_alike
from pellucid.text.languages import UNKNOWN, languages_of

Languages = tuple[str, str]
"""The source's and the target's, by codes such as ``en``; ``und`` if it is unknown."""


def languages_of_files(source: str, target: str) -> Languages:
    """The languages that the names of two files tell, as ``test.en`` and ``test.de`` do."""
    return languages_of({"data": {"source": source, "target": target}}, "")


def pairs_of(settings: Mapping[str, Any]) -> list[Languages]:
    """The languages that the names of all training files tell, for both directions if the model
    learns both."""
    data = settings.get("data", {})
    sources, targets = (
        [each] if isinstance(each, str) else each or []
        for each in (data.get("source"), data.get("target"))
    )
    pairs = [languages_of_files(*files) for files in zip(sources, targets, strict=False)]
    if data.get("both_directions"):
        pairs += [(target, source) for source, target in pairs]
    return pairs


def languages_problem(
    model: Languages, given: Languages, names: tuple[str, str], learned: Sequence[Languages] = ()
) -> str | None:
    """A sentence if the texts called ``names`` are in other languages than ``model`` translates.

    ``given`` are the languages of the texts, ``learned`` other pairs that the model translates.
    None if nothing is known against them.
    """
    if any(not any(_are_others(given, pair)) for pair in learned):
        return None
    others = [
        f"{name} is in {language}"
        for name, language, is_other in zip(names, given, _are_others(given, model), strict=True)
        if is_other
    ]
    if not others:
        return None
    exchanged = ": are source and target exchanged?" if given == model[::-1] else ""
    return (
        f"the model translates {model[0]} into {model[1]}, but, going by names,"
        f" {' and '.join(others)}{exchanged}"
    )


def _are_others(given: Languages, known: Languages) -> list[bool]:
    """Whether each of two languages is surely another one."""
    return [
        UNKNOWN not in (ours, theirs) and not are_alike(ours, theirs)
        for ours, theirs in zip(given, known, strict=True)
    ]
