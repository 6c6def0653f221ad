"""A translator with the interface of scikit-learn's estimators."""

import functools
import json
import numbers
import os
import shutil
import tempfile
import weakref
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final, Self

from pellucid.backends import EngineName
from pellucid.backends.load import load
from pellucid.core.config import overrides_of
from pellucid.core.errors import ConfigError, DataError, NotFittedError, list_problems
from pellucid.core.files import write_file
from pellucid.core.limits import shown
from pellucid.core.texts import texts_among
from pellucid.decoding.translator import Translator
from pellucid.evaluation.metrics import accepted, bleu, check_lines
from pellucid.evaluation.scoring import scoring_of
from pellucid.text.normalization import check_text
from pellucid.training.automatic import DEFAULT_MINUTES, train_files
from pellucid.training.presets import read_config
from pellucid.training.train import train


class _TemporaryFolder:
    """A new folder that is removed with the last estimator that shares it, or when the program
    ends; never by a fork."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="pellucid-"))
        weakref.finalize(self, _remove, self.path, os.getpid())

    def __deepcopy__(self, _memo: object) -> Self:
        return self

    def __reduce__(self) -> tuple[type[None], tuple[()]]:
        """Pickled as None: another process reads the folder, and does not remove it."""
        return type(None), ()


def _remove(folder: Path, maker: int) -> None:
    if os.getpid() == maker:
        shutil.rmtree(folder, ignore_errors=True)


class _Unchanged:
    """The default of parameters that were not given; None is a value."""


_UNCHANGED: Final = _Unchanged()


class Seq2SeqTranslator:
    """Learns to translate from pairs of lines; scikit-learn's interface, without scikit-learn.

    translator = pellucid.Seq2SeqTranslator(minutes=5).fit(X, y)
    translator.predict(["le chat dort"]), translator.score(X_test, y_test)

    Settings are chosen by the text, ``minutes`` and the speed of the machine, as ``pellucid train
    SOURCE TARGET`` does, unless ``preset`` names a preset or a TOML file. ``minutes`` limits
    training and validation: by default 30, or the limit of the preset. ``overrides`` are those of
    ``pellucid train --set``. ``folder`` becomes the run folder, which every command reads; by
    default the run is in a temporary folder, which is removed with the estimator and its copies.
    ``engine`` is that of ``pellucid.load``. Nothing is checked before ``fit``, which sets
    ``folder_``, the run folder, and ``translator_``. A copy, or an estimator that was pickled,
    loads its model from ``folder_``.
    """

    folder_: Path

    def __init__(
        self,
        preset: str | None = None,
        overrides: Sequence[str] = (),
        folder: Path | str | None = None,
        engine: EngineName = "auto",
        minutes: float | None = None,
    ) -> None:
        self.preset = preset
        self.overrides = overrides
        self.folder = folder
        self.engine = engine
        self.minutes = minutes

    def __repr__(self) -> str:
        # Only what was given, as scikit-learn's estimators show it.
        default = Seq2SeqTranslator().get_params()
        given = [
            f"{name}={value!r}"
            for name, value in self.get_params().items()
            if repr(value) != repr(default[name])  # arrays have no single ``==``
        ]
        return f"Seq2SeqTranslator({', '.join(given)})"

    def fit(self, X: Iterable[str], y: Iterable[str]) -> Self:  # noqa: N803  # scikit-learn's name
        """Train on the pairs of ``X`` and ``y``; text for validation can be named by overrides.

        Raises DataError naming every entry that is not one line, ConfigError for arguments of a
        wrong type, OutputExistsError if ``folder`` is not empty, and as ``read_config`` and
        ``train`` do.
        """
        self._check()
        sources, targets = _lines(X, "X"), _lines(y, "y")
        check_lines({"X": sources, "y": targets})
        with tempfile.TemporaryDirectory(prefix="pellucid-") as text:
            names = {"source": sources, "target": targets}
            for name, lines in names.items():
                content = "".join(f"{line}\n" for line in lines)
                write_file(Path(text, name), content.encode())
            temporary = _TemporaryFolder() if not self.folder else None
            folder = temporary.path if temporary else Path(self.folder or "")
            self._train(Path(text, "source"), Path(text, "target"), folder)

        self.translator_ = load(folder, self.engine)
        self.folder_, self._temporary = folder, temporary
        return self

    @functools.cached_property
    def translator_(self) -> Translator:
        """The trained model. Raises NotFittedError before ``fit``, and as ``pellucid.load``."""
        if not hasattr(self, "folder_"):
            raise NotFittedError("this Seq2SeqTranslator has learned nothing yet", hint="call fit")
        return load(self.folder_, self.engine)

    def __getstate__(self) -> dict[str, Any]:
        return {name: each for name, each in vars(self).items() if name != "translator_"}

    def predict(self, X: Iterable[str]) -> list[str]:  # noqa: N803
        """The translation of each line. Raises NotFittedError before ``fit``."""
        translator = self.translator_  # before X is read
        return [each.text for each in translator.translate(_lines(X, "X"))]

    def score(self, X: Iterable[str], y: Iterable[str]) -> float:  # noqa: N803
        """BLEU of ``predict(X)`` against ``y`` in percent: cased, detokenized sacreBLEU.

        Its tokenizer is that of the script of ``y``, as in ``pellucid evaluate``.
        Raises NotFittedError before ``fit``, DataError if the counts differ.
        """
        references = _lines(y, "y")
        translations = self.predict(X)
        check_lines({"lines of X": translations, "lines of y": references})
        tokenize = scoring_of(accepted(references)).tokenize
        return bleu(translations, references, tokenize).score

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002  # nothing is nested
        """The arguments of the constructor, as they were given."""
        names = ("preset", "overrides", "folder", "engine", "minutes")
        return {name: getattr(self, name) for name in names}

    def set_params(
        self,
        *,
        preset: str | _Unchanged | None = _UNCHANGED,
        overrides: Sequence[str] | _Unchanged = _UNCHANGED,
        folder: Path | str | _Unchanged | None = _UNCHANGED,
        engine: EngineName | _Unchanged = _UNCHANGED,
        minutes: float | _Unchanged | None = _UNCHANGED,
    ) -> Self:
        """Change some arguments; a trained model stays until the next ``fit``."""
        given = {
            "preset": preset,
            "overrides": overrides,
            "folder": folder,
            "engine": engine,
            "minutes": minutes,
        }

        for name, value in given.items():
            if not isinstance(value, _Unchanged):
                setattr(self, name, value)
        return self

    def _train(self, source: Path, target: Path, folder: Path) -> None:
        if self.preset is None:
            minutes = DEFAULT_MINUTES if self.minutes is None else self.minutes
            train_files(source, target, out=folder, minutes=minutes, overrides=self.overrides)
            return

        named = [
            f"data.{side}={json.dumps(str(path))}"
            for side, path in (("source", source), ("target", target))
        ]
        if self.minutes is not None:
            named.append(f"training.max_minutes={float(self.minutes)}")
        # the user's overrides come last, and so win over the files and minutes here
        train(read_config(self.preset, [*named, *self.overrides]), folder)

    def _check(self) -> None:
        """Raise ConfigError for arguments of a wrong type."""
        if self.minutes is not None and not isinstance(self.minutes, numbers.Real):
            raise ConfigError(f"minutes must be a number, got {shown(self.minutes)}")
        overrides_of(self.overrides)


def _lines(texts: Iterable[str], name: str) -> list[str]:
    """``texts`` as lines of a file. Raises DataError naming every entry that is not one line."""
    lines = list(texts_among(texts, name))
    problems = [
        f"{name}[{number}] must be one line of text, got {line!r:.60}"
        for number, line in enumerate(lines)
        if not isinstance(line, str) or "\n" in line
    ]
    if problems:
        raise DataError(list_problems(problems))
    for line in lines:
        check_text(line)
    return lines
