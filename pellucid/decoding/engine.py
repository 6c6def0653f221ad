"""The interface of an engine: the part of a translator that finds hypotheses.

Nothing here imports torch, as an engine may work without it.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.requests import ReadLine
from pellucid.decoding.result import Hypothesis
from pellucid.text.tokenizers.interface import Tokenizer

if TYPE_CHECKING:
    from pellucid.decoding.ensemble import Ensemble
    from pellucid.decoding.search.beam import WatchedStep
    from pellucid.model.seq2seq import Seq2Seq


class Translatable(Protocol):
    """A model with its tokenizers, such as a ``Bundle``."""

    @property
    def model(self) -> "Seq2Seq | Ensemble":
        """The model; a bundle reads it on first access."""
        ...

    @property
    def max_length(self) -> int | None:
        """The longest sequence it can number, in tokens with the stop; None is no limit."""
        ...

    @property
    def source_tokenizer(self) -> Tokenizer:
        """The tokenizer of the source."""
        ...

    @property
    def target_tokenizer(self) -> Tokenizer:
        """The tokenizer of the target."""
        ...


class SearchWatcher(Protocol):
    """Called by a search at every step; an exception that it raises ends the search."""

    @property
    def wants_steps(self) -> bool:
        """Whether ``saw_step`` is called; if not, watching costs nothing."""
        ...

    def before_step(self, length: int) -> None:
        """Called before the model reads token number ``length``, counted from 0.

        Batches that are searched in parallel call it from several threads, unless
        ``wants_steps``. Raises CancelledError to end the search.
        """
        ...

    def saw_step(self, step: "WatchedStep") -> None:
        """Called after each step if ``wants_steps``."""
        ...


class Engine(ABC):
    """Finds the hypotheses of lines; safe to call from several threads."""

    @property
    @abstractmethod
    def name(self) -> str:
        """``torch`` or ``ctranslate2``."""

    @property
    @abstractmethod
    def reason(self) -> str:
        """Why this engine was chosen, in a few words."""

    @abstractmethod
    def signature(self, settings: DecodingConfig) -> str:
        """The engine and type for ``settings``, as in a score: ``torch``, ``ctranslate2/int8``."""

    @abstractmethod
    def follow(self, bundle: Translatable) -> None:
        """Called before the model of ``bundle`` is given to a caller, who may change it.

        From then on every search uses the model in its current state.
        """

    @abstractmethod
    def search(
        self,
        lines: Sequence[ReadLine],
        bundle: Translatable,
        settings: DecodingConfig,
        watcher: SearchWatcher | None = None,
    ) -> list[list[Hypothesis]]:
        """The hypotheses of each line, best first, in the order of the lines; none is blank.

        Raises ConfigError naming everything in ``settings`` that this engine cannot do, and what
        the ``watcher`` raises.
        """
