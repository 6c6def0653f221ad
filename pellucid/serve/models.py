"""The models that are served: how they are named, loaded and described to clients."""

import dataclasses
import itertools
from collections.abc import Callable
from pathlib import Path

from pellucid.bundle import Bundle
from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.engine import SearchWatcher
from pellucid.decoding.result import Translation
from pellucid.decoding.translator import Translator
from pellucid.engines.load import load_parts
from pellucid.engines.names import ComputeType, EngineName
from pellucid.serve.schema import ModelEntry
from pellucid.text.languages import languages_of


@dataclasses.dataclass(frozen=True)
class ModelPlace:
    """A bundle or run folder to serve, and its name."""

    name: str
    path: Path
    languages: tuple[str, str] | None = None
    """Source and target, if they were given."""
    engine: EngineName = "auto"
    compute_type: ComputeType = "float32"


class LoadedModel:
    """A model in memory: tokenizes text, and translates sentences with equal search settings."""

    def __init__(self, place: ModelPlace, translator: Translator, bundle: Bundle) -> None:
        self.place = place
        self.translator = translator
        self.bundle = bundle
        self.settings = translator.settings
        languages = place.languages or languages_of(bundle.settings, place.name)
        self.source_language, self.target_language = languages

    @property
    def has_attention(self) -> bool:
        """Whether target tokens can be aligned with source tokens."""
        return self.bundle.config.kind != "rnn"

    def source_limit(self, limits_tokens: int) -> int:
        """The most tokens of a sentence that are read, without the stop."""
        most = self.bundle.max_length
        limit = min(self.settings.max_source_tokens, limits_tokens)
        return limit if most is None else min(limit, most - 1)

    def target_limit(self, limits_tokens: int) -> int:
        """The most tokens of a translation, without the stop."""
        most = self.bundle.max_length
        return limits_tokens if most is None else min(limits_tokens, most - 1)

    def source_ids(self, texts: list[str]) -> list[list[int]]:
        """The ids of each sentence, without the stop."""
        return self.bundle.source_tokenizer.encode_batch(texts)

    def source_tokens(self, ids: list[int]) -> list[str]:
        """The tokens of ids, as text for people."""
        return self.bundle.source_tokenizer.tokens(ids)

    def translate(
        self, texts: list[str], settings: DecodingConfig, watcher: SearchWatcher | None = None
    ) -> list[Translation]:
        """One translation for each sentence. Raises what the watcher raises."""
        return self.translator.translate(texts, settings, split=False, watcher=watcher)

    def entry(self, max_source_tokens: int) -> ModelEntry:
        """The description of this model in ``GET /v1/models``."""
        bundle = self.bundle
        return ModelEntry(
            name=self.place.name,
            source_language=self.source_language,
            target_language=self.target_language,
            kind=bundle.settings.get("model", {}).get("kind", "transformer"),
            parameter_count=sum(parameter.numel() for parameter in bundle.model.parameters()),
            source_vocabulary_size=bundle.source_tokenizer.vocabulary_size,
            target_vocabulary_size=bundle.target_tokenizer.vocabulary_size,
            max_source_tokens=self.source_limit(max_source_tokens),
            beam_size=self.settings.beam_size,
            engine=self.translator.engine.name,
        )


Open = Callable[[ModelPlace], LoadedModel]


def open_model(place: ModelPlace) -> LoadedModel:
    """Read a bundle. Raises what ``pellucid.load`` raises."""
    bundle, settings, engine = load_parts(place.path, place.engine, compute_type=place.compute_type)
    model = LoadedModel(place, Translator(bundle, settings, engine), bundle)
    bundle.model  # noqa: B018  # loads the weights now: the first inspection must not wait
    # The first pass is slow, as kernels are chosen and memory is allocated: not for a client.
    model.translate(["a"], model.settings.having(beam_size=1, max_length=1))
    return model


def name_places(specifications: list[str]) -> list[tuple[str, Path]]:
    """Names and paths from ``NAME=PATH`` or ``PATH``; the default name is the folder's.

    Of equal names the later ones get a number.
    """
    found: list[tuple[str, Path]] = []
    taken: set[str] = set()
    for specification in specifications:
        name, separator, rest = specification.partition("=")
        path = Path(rest if separator else specification)
        stem = name if separator else (path.resolve().name or "model")
        # A bundle of a run is RUN/bundles/STEP: the run's name says more than the step.
        if not separator and path.resolve().parent.name == "bundles":
            stem = path.resolve().parent.parent.name

        unique = next(
            each
            for each in itertools.chain([stem], (f"{stem}-{n}" for n in itertools.count(2)))
            if each not in taken
        )
        taken.add(unique)
        found.append((unique, path))

    return found
