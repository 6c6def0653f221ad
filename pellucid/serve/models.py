"""The models that are served: how they are named, loaded and described to clients.

Nothing here imports torch: with the engine CTranslate2 a server needs it only for the requests that
need the model itself, and ``LoadedModel.open`` reads it for the first of them.
"""

import dataclasses
import itertools
import time
from collections.abc import Sequence
from pathlib import Path

from pellucid.backends import ComputeType, EngineName
from pellucid.backends.hub import folder_of
from pellucid.backends.load import load_parts
from pellucid.bundle import Bundle, StoredModel
from pellucid.core.installation import has_torch
from pellucid.decoding.cache import TranslationCache
from pellucid.decoding.config import DecodingConfig, length_limits
from pellucid.decoding.engine import SearchWatcher
from pellucid.decoding.requests import Request
from pellucid.decoding.result import Translation
from pellucid.decoding.sentences import knows_single_sentences
from pellucid.decoding.suspicious import usual_of
from pellucid.decoding.translator import Translator
from pellucid.documents.protected import literals_in
from pellucid.serve.schema import ModelEntry
from pellucid.text.glossary import Glossary
from pellucid.text.languages import languages_of


@dataclasses.dataclass(frozen=True)
class ModelPlace:
    """A bundle or run folder to serve, and its name."""

    name: str
    path: Path
    languages: tuple[str, str] | None = None
    """Source and target, if they were given."""
    engine: EngineName = "auto"
    compute_type: ComputeType | None = None
    """None is int8 for the kernels, float32 for other engines."""
    glossaries: tuple[tuple[str, Path], ...] = ()
    """Names and files of the terms that requests may ask for."""


class LoadedModel:
    """A model that is served: tokenizes text, translates sentences with equal search settings.

    With the engine CTranslate2 only the converted copy is in memory at first. The bundle's own file
    stays open, so whatever happens to its folder, ``open`` reads the model that was loaded.
    """

    def __init__(self, place: ModelPlace, translator: Translator, bundle: Bundle) -> None:
        self.place = place
        self.translator = translator
        self.bundle = bundle
        self.settings = translator.settings
        self.splits = knows_single_sentences(bundle.manifest)
        """Whether texts are split into sentences; otherwise into lines."""
        self.glossaries = {name: Glossary.read(path) for name, path in place.glossaries}
        self.loaded_at = time.time()
        """When the glossaries were read, in seconds since 1970."""
        languages = place.languages or languages_of(bundle.settings, place.name)
        # Documents are translated by the translator itself, which must know them too.
        translator.source_language, translator.target_language = languages
        self.source_language, self.target_language = languages

    @property
    def is_open(self) -> bool:
        """Whether the model itself is in memory, and torch with it."""
        held = self.bundle.held
        return not isinstance(held, StoredModel) or held.is_read

    def open(self) -> None:
        """Import torch and read the model: seconds, the first time. Safe to call from any thread.

        Raises as ``StoredModel.read`` does, and what importing torch raises.
        """
        # What opens a model to look at it takes as long to import as torch.
        import pellucid.inspection.report.content
        import pellucid.inspection.report.views  # noqa: F401

        self.bundle.model  # noqa: B018  # read on first access

    def needs_open(self, settings: DecodingConfig) -> bool:
        """Whether translating with these settings needs the model itself, beside the engine."""
        # An alignment comes from the attention of the model, whichever engine has searched.
        reads_attention = (
            settings.align or settings.replace_unknown or settings.coverage_penalty != 0
        )
        return reads_attention or self.translator.engine.signature(settings).startswith("torch")

    def source_limit(self, limits_tokens: int) -> int:
        """The most tokens of a sentence that are read, without the stop."""
        return min(limits_tokens, self.translator.source_limit)

    def target_limit(self, limits_tokens: int) -> int:
        """The most tokens of a translation, without the stop."""
        most = self.bundle.max_length
        return limits_tokens if most is None else min(limits_tokens, most - 1)

    def bounded_lengths(self, max_length: int | None, limits_tokens: int) -> dict[str, int | None]:
        """The length settings of a search, within the limits and the positions of the model."""
        most = self.target_limit(limits_tokens)
        return {
            "max_length": None if max_length is None else min(max_length, most),
            "max_length_extra": min(self.settings.max_length_extra, most),
        }

    def within(
        self, settings: DecodingConfig, token_count: int, limits_tokens: int
    ) -> DecodingConfig:
        """The settings for a sentence whose translation may have ``limits_tokens`` at most.

        They are the given ones wherever those allow no more for ``token_count`` of the source.
        """
        # A code of the target language may come before the tokens that were counted.
        [longest] = length_limits([token_count + 1], settings, self.bundle.max_length)
        if longest <= limits_tokens:
            return settings
        return settings.model_copy(update={"max_length": limits_tokens})

    def source_ids(self, texts: list[str]) -> list[list[int]]:
        """The ids of each sentence, without the stop."""
        return self.bundle.source_tokenizer.encode_batch(texts)

    def translate(
        self,
        texts: list[str | Request],
        settings: DecodingConfig,
        watcher: SearchWatcher | None = None,
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
            parameter_count=bundle.parameter_count,
            source_vocabulary_size=bundle.source_tokenizer.vocabulary_size,
            target_vocabulary_size=bundle.target_tokenizer.vocabulary_size,
            max_source_tokens=self.source_limit(max_source_tokens),
            beam_size=self.settings.beam_size,
            engine=self.translator.engine.name,
            glossaries=list(self.glossaries),
        )


def open_model(place: ModelPlace, cache: TranslationCache | None = None) -> LoadedModel:
    """Read a bundle, whose translations are remembered in ``cache``.

    Raises what ``pellucid.load`` raises.
    """
    bundle, settings, engine = load_parts(place.path, place.engine, compute_type=place.compute_type)
    translator = Translator(
        # Texts of clients are nothing for a log: their answers have the warnings.
        bundle,
        settings,
        engine,
        usual_warnings=usual_of(bundle.manifest),
        logs_warnings=False,
        literals_in=literals_in,
    )

    if cache is not None:
        translator = translator.with_cache(cache)

    model = LoadedModel(place, translator, bundle)
    # The first pass is slow, as kernels are chosen and memory is allocated: not for a client. Not
    # with the model's own settings, which may need a beam or a longer translation.
    model.translate(["a"], DecodingConfig(beam_size=1, max_length=1))
    if has_torch() and model.needs_open(model.settings):
        model.open()
    return model


def name_places(given: Sequence[tuple[str, str]]) -> list[tuple[str, Path]]:
    """Names and paths; the name that stands for an empty one is the folder's.

    Of equal names the later ones get a number. A path may be ``hf://ORG/NAME``, which is fetched
    once and whose revision stays while the server runs; raises as ``fetch`` does.
    """
    found: list[tuple[str, Path]] = []
    taken: set[str] = set()
    for name, place in given:
        path = folder_of(place)
        stem = name or path.resolve().name or "model"
        # A bundle of a run is RUN/bundles/STEP: the run's name is more telling than the step.
        if not name and path.resolve().parent.name == "bundles":
            stem = path.resolve().parent.parent.name

        unique = next(
            each
            for each in itertools.chain([stem], (f"{stem}-{n}" for n in itertools.count(2)))
            if each not in taken
        )
        taken.add(unique)
        found.append((unique, path))

    return found
