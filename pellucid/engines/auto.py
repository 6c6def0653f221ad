"""The engine that chooses the faster one of two, call by call."""

import logging
from collections.abc import Sequence

from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.engine import Engine, SearchWatcher, Translatable
from pellucid.decoding.requests import ReadLine
from pellucid.decoding.result import Hypothesis
from pellucid.decoding.torch_engine import TorchEngine
from pellucid.engines.ctranslate2_engine import Ctranslate2Engine

_log = logging.getLogger("pellucid.engines")


class AutoEngine(Engine):
    """CTranslate2 for the calls that it supports, PyTorch for all others; logs each reason once."""

    def __init__(self, fast: Ctranslate2Engine) -> None:
        self._fast = fast
        self._told: set[str] = set()

    @property
    def name(self) -> str:
        """The faster engine, which serves every call that it supports."""
        return self._fast.name

    @property
    def reason(self) -> str:
        """Why the faster engine was chosen, and how it computes."""
        return self._fast.reason

    def signature(self, settings: DecodingConfig) -> str:
        """The signature of the engine that would serve such a call."""
        able = not self._fast.refusals(settings) and not self._fast.is_changed()
        return self._fast.signature(settings) if able else TorchEngine().signature(settings)

    def follow(self, bundle: Translatable) -> None:
        """From now on each search first checks whether the model was changed."""
        self._fast.follow(bundle)

    def search(
        self,
        lines: Sequence[ReadLine],
        bundle: Translatable,
        settings: DecodingConfig,
        watcher: SearchWatcher | None = None,
    ) -> list[list[Hypothesis]]:
        """Search with the faster engine that supports the call, and with the model as it is."""
        faults = self._fast.refusals(settings, lines, watcher)
        if faults:
            reason = f"ctranslate2 cannot do {'; '.join(faults)}"
        elif self._fast.is_changed():
            reason = "the model was changed after it was converted for ctranslate2"
        else:
            return self._fast.find(lines, settings, watcher)

        if reason not in self._told:
            self._told.add(reason)
            _log.info("engine torch: %s", reason)
        return TorchEngine(reason).search(lines, bundle, settings, watcher)
