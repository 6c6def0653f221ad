"""The content of a page from a bundle: the header, as JSON, and the bytes of the weights."""

import copy
import dataclasses
from collections.abc import Mapping
from typing import Any

from pellucid.backends.capability import WEB, shown_setting
from pellucid.backends.example_program import model_name
from pellucid.backends.forced_scores import forced_log_probs, random_lines
from pellucid.backends.web.invitation import known_words
from pellucid.backends.web.tokenizers import describe_tokenizer, normalization_rule
from pellucid.backends.web.weights import WeightsType, as_stored, pack_tensors
from pellucid.bundle import Bundle
from pellucid.core.errors import BundleError
from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.odd_lines import EMOJI, FINAL_MARKS, has_sharp_s
from pellucid.decoding.sentences import knows_single_sentences
from pellucid.decoding.suspicious import usual_of
from pellucid.model.seq2seq import Seq2Seq, SequenceModel
from pellucid.model.stored import model_tensors
from pellucid.text.abbreviations import before_numbers, before_words, starts
from pellucid.text.languages import (
    UNKNOWN,
    base_code,
    language_name,
    language_of_code,
    languages_of,
)
from pellucid.text.look_alikes import VOICED
from pellucid.text.scripts import wide_characters
from pellucid.text.splitting import ABBREVIATIONS
from pellucid.text.tokenizers.interface import Tokenizer
from pellucid.text.tokenizers.marian import has_codes

FORMAT = 1
"""The version of the header, raised when older pages can no longer be read."""

SEARCH = (
    "beam_size",
    "length_penalty",
    "length_penalty_kind",
    "patience",
    "stop_bound",
    "max_length",
    "max_length_ratio",
    "max_length_extra",
    "forced_stop",
    "min_length",
    "no_repeat_ngram",
    "max_source_tokens",
    "align_layer",
    "align_head",
    "recase",
    "copy_symbols",
)
"""The settings of a search that a page follows."""


@dataclasses.dataclass(frozen=True)
class WebContent:
    """The data of a page."""

    header: dict[str, Any]
    weights: bytes


_READS = {"encoder": "source", "decoder": "target"}
"""The use that a model of plain text makes of a text: it reads it, or goes on with it."""


def web_content(
    bundle: Bundle[SequenceModel], name: str, weights: WeightsType, example: str = ""
) -> WebContent:
    """The data of a page for ``bundle``, which is shown as ``name`` and opens with ``example``.

    Raises BundleError naming everything that a page cannot express.
    """
    config = bundle.config
    settings = DecodingConfig.of_bundle(bundle.settings, name)
    problems = WEB.model_problems(config) + [
        f"its searches have decoding.{shown_setting(each, getattr(settings, each))}"
        for each in WEB.lacking(settings)
    ]
    # by these numbers a page looks up attention
    counts = (
        ("align_layer", len(getattr(config, "cross_attentions", ()))),
        ("align_head", getattr(config, "heads", 1)),
    )
    problems += [
        f"its decoding.{each} must be below {count}, got {number}"
        for each, count in counts
        if config.translates and (number := getattr(settings, each)) is not None and number >= count
    ]
    if problems:
        raise BundleError(f"a page cannot express this model: {'; '.join(problems)}")

    packed = pack_tensors(model_tensors(bundle.model), weights)
    source, target = bundle.source_tokenizer, bundle.target_tokenizer
    # a page may have another name than the model's folder, which tells its languages first
    codes = languages_of(bundle.settings, model_name(bundle))
    if UNKNOWN in codes:
        codes = languages_of(bundle.settings, name)
    search = {each: getattr(settings, each) for each in SEARCH}
    words = None
    if bundle.seen_words is not None:
        rule = normalization_rule()  # by which they are normalized
        words = {
            "words": sorted(bundle.seen_words.words),
            "signs": "".join(sorted(bundle.seen_words.signs)),
            "normalization": rule,
        }
    header = {
        "format": FORMAT,
        "name": name,
        "config": config.model_dump(mode="json"),
        "max_length": bundle.max_length,
        "languages": [{"code": code, "name": language_name(code)} for code in codes],
        "weights": weights,
        "tensors": packed.entries,
        # one tokenizer for both sides stands in the file once
        "source_tokenizer": None if source is target else describe_tokenizer(source),
        "target_tokenizer": describe_tokenizer(target),
        # JSON has no infinity; beyond any number of hypotheses the two are the same
        "decoding": {**search, "patience": min(settings.patience, 1e9)},
        "source_reads": "pairs" if config.translates else _READS[config.kind],
        "example": example,
        "words": known_words(bundle),
        "usual_warnings": sorted(usual_of(bundle.manifest)),
        "unsure_below": bundle.unsure_below,
        "longest_source": bundle.longest_source,
        "seen_words": words,
        "characters": character_facts(),
        "odd_lines": _odd_lines(source, codes),
        "sentences": {
            "splits": knows_single_sentences(bundle.manifest),
            "has_codes": has_codes(source),
            **sentence_ends(codes[0]),
        },
        "cross_attentions": list(getattr(config, "cross_attentions", ())),
        "check": _check(bundle, weights),
    }
    return WebContent(header, packed.content)


def character_facts() -> Mapping[str, str]:
    """Patterns and classes of characters for ``oddLine``, which are the same for all models."""
    return {
        "emoji": EMOJI,
        "wide": wide_characters(),
        "final_marks": FINAL_MARKS,
        "voiced": VOICED,
    }


def sentence_ends(language: str) -> Mapping[str, Any]:
    """The words of a language behind which no sentence ends, and those that begin one."""
    base = base_code(language)
    known = {word.removesuffix(".") for word in ABBREVIATIONS.get(base, set())}
    return {
        "titles": " ".join(sorted(before_words(base) | known)),
        "numbered": " ".join(sorted({word.lower() for word in before_numbers(base)})),
        "starts": " ".join(sorted(starts(base) or starts("en"))),
        "ordinals": base == "de",
    }


def _odd_lines(source: Tokenizer, codes: tuple[str, str]) -> Mapping[str, Any]:
    """The answers of the source's tokenizer and of the languages that ``oddLine`` needs."""
    return {
        "look_alikes": source.look_alikes.signs,
        "has_sharp_s": has_sharp_s(source, codes[0]),
        "languages": [language_of_code(code) for code in codes],
    }


_TOLERANCE = 1e-3
"""The largest difference of a log-probability, relative to the largest one."""


def _check(bundle: Bundle[SequenceModel], weights: WeightsType) -> Mapping[str, Any]:
    """A line of ids and what the model says of it, to which a page holds itself as it opens.

    The log-probabilities are those of the weights as the page stores them.
    """
    model = bundle.model
    if weights != "float32":
        model = copy.deepcopy(model)
        for tensor in model_tensors(model).values():
            tensor.data.copy_(as_stored(tensor, weights))

    sizes = bundle.source_tokenizer.vocabulary_size, bundle.target_tokenizer.vocabulary_size
    if isinstance(bundle.model, Seq2Seq):
        # the ids that both have, in case they differ
        known = bundle.model.source_vocabulary_size, bundle.model.target_vocabulary_size
        sizes = min(sizes[0], known[0]), min(sizes[1], known[1])
    source, target = (ids.tolist() for ids in random_lines(sizes, bundle.max_length)[1])
    return {
        "source": source,
        "target": target,
        "log_probabilities": forced_log_probs(model, source, target).tolist(),
        "tolerance": _TOLERANCE,
    }
