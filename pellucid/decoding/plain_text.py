"""Filling masks with an encoder-only model, and continuing text with a decoder-only model."""

import dataclasses

import torch

from pellucid.bundle import Bundle
from pellucid.core.errors import BundleError, ConfigError, DataError
from pellucid.core.special import EOS_ID, MASK_ID, SPECIAL_COUNT
from pellucid.core.texts import check_texts
from pellucid.decoding.config import DecodingConfig, continuation_problems
from pellucid.decoding.search.candidates import Constraints
from pellucid.decoding.search.search import inference, search
from pellucid.decoding.spelling import spell_banned
from pellucid.decoding.suspicious import source_warnings
from pellucid.decoding.warnings import TranslationWarning
from pellucid.model.seq2seq import SequenceModel
from pellucid.model.text_models import DecoderOnly, EncoderOnly

MASK = "[MASK]"
"""How a masked word is written in a text."""


@dataclasses.dataclass(frozen=True)
class Filled:
    """A text with its masks filled."""

    text: str
    """With the likeliest token in every mask."""
    candidates: tuple[tuple[tuple[str, float], ...], ...]
    """For each mask the likeliest tokens with their probabilities."""


def fill_masks(bundle: Bundle[SequenceModel], text: str, count: int = 5) -> Filled:
    """Predict the token of each ``[MASK]`` of ``text``, all of them at once.

    Each mask is one token. Probabilities are over the ordinary tokens of the vocabulary.

    EQ: 137.  Raises BundleError for a bundle of another kind, DataError for a text without a
    mask or longer than the model can number, ConfigError for a count below 1.
    """
    model = bundle.model
    if not isinstance(model, EncoderOnly):
        raise BundleError(
            f"{bundle.path} holds a model of kind {model.config.kind}; masks are filled by an"
            " encoder"
        )
    if count < 1:
        raise ConfigError(f"count must be at least 1, got {count}")
    check_texts([text], 1)

    if MASK not in text:
        raise DataError(f"there is no {MASK} in {text!r}", hint=f'for example "a {MASK} runs"')

    ids = encode_masked(bundle, text)
    if model.max_length is not None and len(ids) > model.max_length:
        raise DataError(
            f"a text may have {model.max_length - 1} tokens for this model, got {len(ids) - 1}"
        )

    # special tokens are cut off before the softmax: a mask stands for an ordinary token
    device = next(model.parameters()).device
    with inference(model):
        logits = model(torch.tensor([ids], device=device))[0, :, SPECIAL_COUNT:]
    probabilities = logits.double().softmax(dim=-1)

    candidates = []
    for position in [index for index, id_ in enumerate(ids) if id_ == MASK_ID]:
        ordered, tokens = probabilities[position].sort(descending=True, stable=True)
        best = (tokens[:count] + SPECIAL_COUNT).tolist()
        # after the pass, so each mask was predicted with all others still masked
        ids[position] = best[0]
        words = bundle.target_tokenizer.tokens(best)
        candidates.append(tuple(zip(words, ordered[:count].tolist(), strict=True)))

    return Filled(bundle.target_tokenizer.decode(ids[:-1]), tuple(candidates))


def encode_masked(bundle: Bundle[SequenceModel], text: str) -> list[int]:
    """Ids with MASK between the parts and EOS at the end."""
    ids: list[int] = []
    for index, part in enumerate(text.split(MASK)):
        if index:
            ids.append(MASK_ID)
        if part.strip():
            ids += bundle.target_tokenizer.encode(part.strip())
    return [*ids, EOS_ID]


def continue_text(
    bundle: Bundle[SequenceModel], prompt: str, settings: DecodingConfig, new_tokens: int
) -> list[str]:
    """``prompt`` with continuations of at most ``new_tokens`` tokens, the likeliest first.

    The searches are those of a translator; the prompt is a forced prefix. ``min_length`` counts new
    tokens alone, at most ``new_tokens``, and ``banned`` phrases are not continued.

    EQ: 123, 138.  Raises BundleError for a bundle of another kind, DataError for what is not
    text, ConfigError if the model cannot number so many tokens, or for settings of a translation.
    """
    model = bundle.model
    if not isinstance(model, DecoderOnly):
        raise BundleError(
            f"{bundle.path} holds a model of kind {model.config.kind}; a text is continued by a"
            " decoder"
        )
    problems = continuation_problems(settings)
    if problems:
        raise ConfigError("; ".join(problems))
    check_texts([prompt], 1)

    prefix = tuple(bundle.target_tokenizer.encode(prompt))
    # the lengths of a search count the prompt too
    least = min(settings.min_length, new_tokens)
    lengths = {
        "max_length": len(prefix) + new_tokens,
        "min_length": len(prefix) + least if least else 0,
    }
    wanted = settings.changed(lengths)
    banned = spell_banned(settings.banned, bundle.target_tokenizer)
    device = next(model.parameters()).device
    # the model reads no source; the search takes the size of the batch and the device from it
    source = torch.tensor([[*prefix, EOS_ID]], device=device)
    with inference(model):
        [found] = search(model, source, wanted, Constraints(banned, prefixes=(prefix,)))
    return [bundle.target_tokenizer.decode(hypothesis.ids) for hypothesis in found]


def text_warnings(bundle: Bundle[SequenceModel], text: str) -> list[TranslationWarning]:
    """Warnings of a text to be filled or continued, such as of words that the model cannot read."""
    plain = text.replace(MASK, " ")
    ids = bundle.target_tokenizer.encode(plain)
    return source_warnings(plain, ids, len(ids), bundle.target_tokenizer)
