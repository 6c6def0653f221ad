"""The tree of everything Pellucid raises on purpose.

    PellucidError ................ exit  1
    |-- ConfigError .............. exit 78   a setting is unknown, wrong or impossible
    |-- DataError ................ exit 65   the text given cannot be used as it is
    |-- InputMissingError ........ exit 66   a file is not there or cannot be read
    |-- BundleError .............. exit 65   a model folder is not what it should be
    |   |-- CorruptError ......... exit 65   bytes differ from those that were written
    |   '-- UnsafeFormatError .... exit 65   a format that could run code is refused
    |-- OutputExistsError ........ exit  1   a folder already holds something to keep
    |-- LockedError .............. exit  3   another process works on this folder
    |-- WriteError ............... exit 74   the disk did not take it
    |-- DivergedError ............ exit 75   training became NaN or infinite
    |-- MissingExtraError ........ exit  1   an optional package is not installed
    |-- UnsupportedSystemError ... exit  1   this operating system cannot do it
    |-- CancelledError ........... exit 130  somebody asked for the work to be stopped
    |-- NotFittedError ........... exit  1   an estimator is asked before it has learned
    '-- ShapeError ............... exit 70   tensors do not fit together

Each says what must hold, what was got, and (``hint``) what to do about it.
"""

import re
from collections.abc import Sequence


class PellucidError(Exception):
    """Anything Pellucid raises on purpose; ``str()`` of it is one readable sentence.

    ``hint`` says what the reader can do, ``exit_code`` what a command ends with.
    """

    exit_code = 1

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(_shortened(message))

        # Apart from the message: a command prints it on a line of its own, and a server does not
        # send it.
        self.hint = hint

    def __reduce__(self) -> "tuple[object, ...]":
        # not by the arguments of each class, which differ: message and hint are all there is
        return _rebuilt, (type(self), self.args, self.__dict__)


def _rebuilt(
    kind: type[PellucidError], args: tuple[object, ...], state: dict[str, object]
) -> PellucidError:
    """An error as it was before it went to another process."""
    error = kind.__new__(kind, *args)
    error.__dict__.update(state)
    return error


class ConfigError(PellucidError):
    """A setting is unknown, has the wrong type or cannot be combined with another."""

    exit_code = 78


class DataError(PellucidError):
    """The text given cannot be used as it is."""

    exit_code = 65


class InputMissingError(PellucidError):
    """A file is not there or cannot be read."""

    exit_code = 66


class BundleError(PellucidError):
    """A model folder is not what it should be."""

    exit_code = 65


class CorruptError(BundleError):
    """The bytes of a file differ from those that were written."""


class UnsafeFormatError(BundleError):
    """A file format that could run code when opened is refused."""


class OutputExistsError(PellucidError):
    """The output folder already holds something that would be lost."""


class LockedError(PellucidError):
    """Another process works on this folder."""

    exit_code = 3


class WriteError(PellucidError):
    """The disk did not take what was to be written; nothing older was lost."""

    exit_code = 74


class DivergedError(PellucidError):
    """Training became NaN or infinite and was stopped."""

    exit_code = 75


class MissingExtraError(PellucidError):
    """An optional package is needed for this and is not installed."""

    def __init__(self, package: str, extra: str, purpose: str, *, instead: str = "") -> None:
        # imported here: what it imports takes longer than a command takes to name a missing file
        from pellucid.core.installation import install_command

        super().__init__(
            f"{purpose} needs {package}, which is not installed",
            hint=install_command(extra) + (f", or {instead}" if instead else ""),
        )

    @classmethod
    def of_training(cls, error: ModuleNotFoundError, purpose: str) -> "MissingExtraError | None":
        """The same error for a package that computes with models; None for any other module."""
        package = _OF_TRAINING.get(error.name or "")
        return None if package is None else cls(package, "train", purpose)


class UnsupportedSystemError(PellucidError):
    """The operating system lacks what is needed for this."""

    def __init__(self, what: str) -> None:
        """``what`` takes locks that end with their process, or a fork; Windows has neither."""
        super().__init__(
            f"{what} works on Linux and macOS alone",
            hint="on Windows, install Pellucid inside WSL (wsl --install), and run it there",
        )


class CancelledError(PellucidError):
    """The work was stopped before its end because somebody asked for that."""

    exit_code = 130


class NotFittedError(PellucidError, ValueError):
    """An estimator is asked before it has learned; a ValueError, as scikit-learn's is."""


class ShapeError(PellucidError, ValueError):
    """Tensors do not fit together."""

    exit_code = 70


_OF_TRAINING = {
    "torch": "PyTorch",
    "jaxtyping": "jaxtyping",
    "sacrebleu": "sacrebleu",
    "sacremoses": "sacremoses",
}
"""The packages of the extra ``train``, by the names of their modules."""
_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
"""Control characters but the line feed; those that reverse text or end a line too."""
MOST_PROBLEMS = 20
"""The number of problems of one input that a message lists."""
_MOST_LINES = 4
_LONGEST_LIST = 1200
_LONGEST_MESSAGE = 2000
"""Characters. A message repeats names and values of files that a stranger made."""


def list_problems(problems: Sequence[str], count: int | None = None) -> str:
    """The problems of one input as the end of a sentence; of many, the first and a count.

    ``count`` is how many there are, where ``problems`` are only the first of them.
    """
    listed, length = 0, 0

    # At least one problem is listed, however long it is.
    for problem in problems[:MOST_PROBLEMS]:
        length += len(problem)
        if listed and length > _LONGEST_LIST:
            break
        listed += 1

    # What is not listed is counted, so that nobody takes the list for all.
    more = (len(problems) if count is None else count) - listed
    return "; ".join(problems[:listed]) + (f"; and {more} more" if more > 0 else "")


def _shortened(message: str) -> str:
    """The message itself; of one that is far too long, the beginning and the end.

    Characters that a terminal obeys or that reverse text are escaped, and so are line ends after
    the first few.
    """
    message = _cut(message)
    if _CONTROL.search(message):
        message = _CONTROL.sub(lambda found: repr(found[0])[1:-1], message)

    *lines, last = message.split("\n", _MOST_LINES - 1)
    return _cut("\n".join([*lines, last.replace("\n", "\\n")]))


def _cut(message: str) -> str:
    if len(message) <= _LONGEST_MESSAGE:
        return message

    # The beginning says what must hold; the end often has what was got.
    return f"{message[: _LONGEST_MESSAGE * 3 // 4]} [...] {message[-_LONGEST_MESSAGE // 5 :]}"


def place_of(error: BaseException) -> str:
    """The class of an error and the line that raised it, without its message.

    The message may contain the text of a user, which must not reach the log.
    """
    place, trace = "", error.__traceback__
    while trace is not None:
        place = f"{trace.tb_frame.f_code.co_filename.rpartition('pellucid/')[2]}:{trace.tb_lineno}"
        trace = trace.tb_next
    return f"{type(error).__name__} at {place}" if place else type(error).__name__
