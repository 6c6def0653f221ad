"""The tree of errors: each class ends a command with the code that its docstring promises."""

import pickle
import re

import pytest

from pellucid.core import errors
from pellucid.core.errors import MissingExtraError, PellucidError, UnsupportedSystemError
from pellucid.core.installation import install_command

CLASSES = [
    each
    for each in vars(errors).values()
    if isinstance(each, type) and issubclass(each, PellucidError)
]

OWN_WORDS = (MissingExtraError, UnsupportedSystemError)
"""Classes that write their own sentence and hint."""


def promised_codes() -> dict[str, int]:
    """Name and exit code of every line of the tree in the module's docstring."""
    assert errors.__doc__ is not None
    return {
        name: int(code) for name, code in re.findall(r"(\w+Error) \.+ exit +(\d+)", errors.__doc__)
    }


def test_the_tree_in_the_docstring_is_the_tree_in_the_code():
    assert {each.__name__: each.exit_code for each in CLASSES} == promised_codes()


@pytest.mark.parametrize("kind", [each for each in CLASSES if each not in OWN_WORDS])
def test_an_error_is_its_sentence_and_keeps_its_hint_apart(kind: type[PellucidError]):
    error = kind("the sky must be blue, got green", hint="wait for noon")
    assert str(error) == "the sky must be blue, got green"
    assert error.hint == "wait for noon"
    assert kind("no hint").hint == ""


def test_a_missing_package_is_told_with_the_command_that_brings_it():
    error = MissingExtraError("matplotlib", "plot", "drawing a picture")
    assert str(error) == "drawing a picture needs matplotlib, which is not installed"
    assert error.hint == install_command("plot")


class _OwnArgumentsError(PellucidError):
    """An error whose class takes other arguments than the sentence, as those of the server do."""

    def __init__(self, count: int) -> None:
        self.count = count
        super().__init__(f"{count} problems", hint="mend them")


@pytest.mark.parametrize(
    "error",
    [
        *(kind("a sentence", hint="a hint") for kind in CLASSES if kind not in OWN_WORDS),
        MissingExtraError("pyarrow", "data", "reading .parquet"),
        UnsupportedSystemError("a lock"),
        _OwnArgumentsError(2),
    ],
    ids=lambda error: type(error).__name__,
)
def test_every_error_reaches_another_process_as_it_was(error: PellucidError):
    there = pickle.loads(pickle.dumps(error))
    assert (type(there), str(there), there.hint) == (type(error), str(error), error.hint)
    assert vars(there) == vars(error)


def test_a_message_cannot_reverse_the_text_around_it_or_end_its_line():
    error = PellucidError("a\u202eb\u2066c\u2028d\x1b[2J; \u05d0\u200fe\nf")
    assert str(error) == "a\\u202eb\\u2066c\\u2028d\\x1b[2J; \u05d0\u200fe\nf"
