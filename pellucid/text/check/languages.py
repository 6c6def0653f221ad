"""Whether texts are named as being in the languages that a model translates."""

from pellucid.text.detection import are_alike
from pellucid.text.languages import UNKNOWN, languages_of

Languages = tuple[str, str]
"""The source's and the target's, by codes such as ``en``; ``und`` if it is unknown."""


def languages_of_files(source: str, target: str) -> Languages:
    """The languages that the names of two files tell, as ``test.en`` and ``test.de`` do."""
    return languages_of({"data": {"source": source, "target": target}}, "")


def languages_problem(model: Languages, given: Languages, names: tuple[str, str]) -> str | None:
    """A sentence if the texts called ``names`` are in other languages than ``model`` translates.

    ``given`` are the languages of the texts. None if nothing is known against them.
    """
    others = [
        f"{name} is in {ours}"
        for name, ours, theirs in zip(names, given, model, strict=True)
        if UNKNOWN not in (ours, theirs) and not are_alike(ours, theirs)
    ]
    if not others:
        return None
    exchanged = ": are source and target exchanged?" if given == model[::-1] else ""
    return (
        f"the model translates {model[0]} into {model[1]}, but, going by names,"
        f" {' and '.join(others)}{exchanged}"
    )
