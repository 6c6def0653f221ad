"""The likeliest next tokens after a prefix, each with its best translation."""

import dataclasses
from collections.abc import Sequence

import torch

from pellucid.core.errors import ConfigError, DataError
from pellucid.core.special import BOS_ID, PAD_ID, UNK_ID
from pellucid.decoding.config import DecodingConfig, length_limits
from pellucid.decoding.engine import SearchWatcher
from pellucid.decoding.odd_lines import OddLine
from pellucid.decoding.requests import ReadLine, Translatable, read_requests
from pellucid.decoding.result import Alternative
from pellucid.decoding.search.search import inference, pad_sources, search_lines, searched_model
from pellucid.decoding.spelling import pieces_of
from pellucid.decoding.writing import write_translations
from pellucid.text.tokenizers.interface import Tokenizer
from pellucid.text.tokenizers.vocabulary import SPECIAL_TOKENS


def find_alternatives(
    bundle: Translatable,
    settings: DecodingConfig,
    odd: OddLine,
    prefix_tokens: Sequence[str],
    count: int,
    watcher: SearchWatcher | None = None,
) -> list[Alternative]:
    """The ``count`` likeliest tokens after a prefix, and the best translation with each.

    The prefix is of what the search wrote: of the line ``odd`` without emoji, or in lower case.
    Fewer are given where the vocabulary holds no more. Raises DataError for an unknown token, a
    prefix that leaves no room for another token or a source without a word, ConfigError for a
    count below 1, and what the watcher raises.
    """
    if count < 1:
        raise ConfigError(f"count must be at least 1, got {count}")
    [line] = read_requests([odd.plain], bundle, settings)
    if line.is_blank:
        raise DataError("alternatives need a source that holds a word, got none")
    most = longest_prefix(bundle, settings, len(line.source_ids))
    if len(prefix_tokens) > most:
        raise DataError(
            f"the prefix must have at most {most} tokens for this source, got {len(prefix_tokens)}"
        )

    prefix = _ids_of(prefix_tokens, bundle.target_tokenizer)
    with inference(bundle.model):
        likely = _next_tokens(bundle, line, prefix, count, settings)
        # each token becomes a forced prefix: one batch finds the best translation of all
        lines = [dataclasses.replace(line, prefix_ids=(*prefix, token)) for token, _ in likely]
        # each token gets its best translation, which sampling or reranking would not give; a search
        # that predicts all positions again would not keep it
        wanted = settings.changed({"n_best": 1, "sampling": None, "mbr": False, "repredict": False})
        if line.required_ids:
            wanted = wanted.requiring()
        found = search_lines(lines, bundle, wanted, watcher)
        written = [odd.restored(each) for each in write_translations(lines, found, bundle, wanted)]

    tokens = bundle.target_tokenizer.tokens([token for token, _ in likely])
    return [
        Alternative(token, probability, translation)
        for token, (_, probability), translation in zip(tokens, likely, written, strict=True)
    ]


def longest_prefix(bundle: Translatable, settings: DecodingConfig, source_length: int) -> int:
    """The most tokens of a prefix after which a translation has room for one more.

    ``source_length`` counts the tokens that are read, without the stop. Raises as
    ``length_limits`` does.
    """
    [limit] = length_limits([source_length], settings, bundle.model.max_length)
    return limit - 1


def _next_tokens(
    bundle: Translatable,
    line: ReadLine,
    prefix: Sequence[int],
    count: int,
    settings: DecodingConfig,
) -> list[tuple[int, float]]:
    """The likeliest ids after the prefix, PAD and BOS left out, with their probabilities."""
    source = pad_sources([line.source_ids], bundle.model)
    target_input = source.new_tensor([[BOS_ID, *prefix]])
    # (sentence, position, vocabulary): the last position predicts the token after the prefix
    model = searched_model(bundle.model, settings)
    logits = model.forward(source, target_input)[0, -1]
    probabilities = logits.double().softmax(dim=-1)
    probabilities[[PAD_ID, BOS_ID]] = -torch.inf
    # stable, so that equal probabilities keep the order of the vocabulary
    ordered, ids = probabilities.sort(descending=True, stable=True)
    pairs = zip(ids.tolist(), ordered.tolist(), strict=True)
    return [(token, share) for token, share in pairs if share > 0.0][:count]


def _ids_of(tokens: Sequence[str], tokenizer: Tokenizer) -> tuple[int, ...]:
    """The ids of pieces as a translation shows them, unknown words among them.

    Raises DataError for one that the vocabulary does not hold.
    """
    ids = {SPECIAL_TOKENS[UNK_ID]: UNK_ID, **pieces_of(tokenizer)}
    for token in tokens:
        if token not in ids:
            raise DataError(f"the vocabulary must hold each token of the prefix, got {token!r}")
    return tuple(ids[token] for token in tokens)
