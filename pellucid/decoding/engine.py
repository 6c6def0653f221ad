"""What an engine is: the part of a translator that finds hypotheses."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.protocols import Translatable
from pellucid.decoding.requests import ReadLine
from pellucid.decoding.result import Hypothesis
from pellucid.decoding.watch import SearchWatcher


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
