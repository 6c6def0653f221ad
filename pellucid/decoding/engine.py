"""What an engine is: the part of a translator that finds hypotheses.

Nothing here needs torch, as an engine need not.
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
        """What translates; a bundle reads it when it is first asked for."""
        ...

    @property
    def max_length(self) -> int | None:
        """The longest sequence it can number, in tokens with the stop; None is no limit."""
        ...

    @property
    def source_tokenizer(self) -> Tokenizer:
        """Cuts what it reads."""
        ...

    @property
    def target_tokenizer(self) -> Tokenizer:
        """Joins what it writes."""
        ...


class SearchWatcher(Protocol):
    """Handed to a search, it is called at every step; whatever it raises ends the search."""

    @property
    def wants_steps(self) -> bool:
        """Whether ``saw_step`` is to be called; if not, watching costs nothing."""
        ...

    def before_step(self, length: int) -> None:
        """Called before the model reads token number ``length``, counted from 0.

        Batches that are searched side by side call it each from a thread of its own, unless
        ``wants_steps``. Raises CancelledError to end the search.
        """
        ...

    def saw_step(self, step: "WatchedStep") -> None:
        """Called after each step if ``wants_steps``."""
        ...


class Engine(ABC):
    """Finds the hypotheses of lines that were read; any number of threads may ask it."""

    @property
    @abstractmethod
    def name(self) -> str:
        """``torch`` or ``ctranslate2``."""

    @property
    @abstractmethod
    def reason(self) -> str:
        """Why it is this one that answers, in a few words."""

    @abstractmethod
    def signature(self, settings: DecodingConfig) -> str:
        """Who answers a call with ``settings``, for a score: ``torch``, ``ctranslate2/int8``."""

    @abstractmethod
    def follow(self, bundle: Translatable) -> None:
        """Called before the model of ``bundle`` is given to a caller, who may change it.

        From then on a search answers from the model as it is.
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
