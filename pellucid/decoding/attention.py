"""Cross-attention of finished translations: alignment, coverage, unknown words replaced."""

import bisect
import dataclasses
import re
from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from pellucid.core.errors import ConfigError
from pellucid.core.special import UNK_ID
from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.engine import token_batches
from pellucid.decoding.requests import ReadLine, Translatable
from pellucid.decoding.result import Hypothesis, Translation
from pellucid.decoding.search.search import inference, pad_sources, pad_targets
from pellucid.equations.search import coverage_penalty
from pellucid.model.ensemble import Ensemble
from pellucid.model.seq2seq import Seq2Seq
from pellucid.model.trace import Trace
from pellucid.text.normalization import normalize_with_positions
from pellucid.text.scripts import is_of_word
from pellucid.text.tokenizers.interface import Tokenizer
from pellucid.text.tokenizers.vocabulary import SPECIAL_TOKENS

_BATCH_TOKENS = 2048
"""Target tokens read at a time: their logits are held at once."""

_NO_CHARACTER = "\ufffd"
"""The decoded text of a byte that is no character by itself."""

AttentionWeights = Float[Tensor, "target source"]
"""The attention weights of one sentence pair, both stops included; each row sums to one."""


def cross_attention(
    model: Seq2Seq | Ensemble,
    pairs: Sequence[tuple[Sequence[int], Sequence[int]]],
    layer: int | None,
    head: int | None,
) -> list[AttentionWeights]:
    """The cross-attention (EQ-89) of each (source, target), ids without stops, by forced decoding.

    ``layer`` None is the last but one, or the only one: Garg et al. (2019), §4, find
    that it aligns best. ``head`` None is the mean of all. An ensemble gives the mean of its models.

    Raises ConfigError if there is no such layer or head, or no attention at all.
    """
    return _attention(model, pairs, lambda member: [_weights_name(member, layer)], head)


def _attention(
    model: Seq2Seq | Ensemble,
    pairs: Sequence[tuple[Sequence[int], Sequence[int]]],
    names_of: Callable[[Seq2Seq], list[str]],
    head: int | None,
) -> list[AttentionWeights]:
    """The mean of the weights with these names, in one pass for each batch."""
    members = model.members if isinstance(model, Ensemble) else (model,)
    names = [names_of(member) for member in members]

    found: dict[int, AttentionWeights] = {}
    lengths = [max(len(source), len(target)) for source, target in pairs]
    for batch in token_batches(lengths, _BATCH_TOKENS):
        source = pad_sources([pairs[index][0] for index in batch], model)
        # the row of attention that predicts token t reads token t - 1, the first one BOS
        target_input = pad_targets([pairs[index][1] for index in batch], source)

        # (sentence, target, source), the mean of all models
        mean = torch.stack(
            [
                _traced(each, source, target_input, own, head)
                for each, own in zip(members, names, strict=True)
            ]
        ).mean(dim=0)
        for row, index in enumerate(batch):
            ours, theirs = pairs[index]
            # without padding; the row and the column of the stops are kept
            found[index] = mean[row, : len(theirs) + 1, : len(ours) + 1].cpu()

    return [found[index] for index in range(len(pairs))]


def mean_attention(
    model: Seq2Seq | Ensemble, pairs: Sequence[tuple[Sequence[int], Sequence[int]]]
) -> list[AttentionWeights]:
    """The mean of the cross-attention of the upper half of the layers, as ``cross_attention``.

    One layer alone may align one token late, and which one does depends on the model; the mean of
    several is right more often (``benchmarks/documents.py``).
    """
    return _attention(model, pairs, _names_of_upper_half, None)


def _traced(
    model: Seq2Seq, source: Tensor, target_input: Tensor, names: list[str], head: int | None
) -> Float[Tensor, "sentence target source"]:
    trace = Trace(*names)
    model(source, target_input, trace)
    layers = torch.stack([_of_head(trace.values[name], head) for name in names])
    return layers.mean(dim=0)


def _of_head(
    weights: Float[Tensor, "sentence head target source"], head: int | None
) -> Float[Tensor, "sentence target source"]:
    if head is None:
        return weights.mean(dim=1).double()
    if head >= weights.shape[1]:
        raise ConfigError(
            f"align_head must be below {weights.shape[1]}, the heads of this model, got {head}"
        )
    return weights[:, head].double()


def _names_of_upper_half(model: Seq2Seq) -> list[str]:
    count = len(model.config.cross_attentions)
    # a model without attention is refused by the name of its layer 0
    return [_weights_name(model, layer) for layer in range(count // 2, max(1, count))]


def _weights_name(model: Seq2Seq, layer: int | None) -> str:
    attentions = model.config.cross_attentions
    count = len(attentions)
    if not attentions:
        raise ConfigError(
            "aligning, coverage_penalty and replace_unknown need a model with attention;"
            f" this one is an {model.config.kind} without it"
        )

    if layer is not None and layer >= count:
        raise ConfigError(
            f"align_layer must be 0 for this model, which attends once, got {layer}"
            if count == 1
            else f"align_layer must be below {count}, the decoder layers of this model, got {layer}"
        )
    number = max(0, count - 2) if layer is None else layer
    return f"{attentions[number]}.weights"


Links = tuple[tuple[int, int], ...]
"""(source, target) by number, from 0, in order of the target."""


def align_tokens(weights: AttentionWeights) -> Links:
    """The source token with the most attention from each target token, without both stops.

    Source: Bahdanau et al. (2015), §5.2.1; Marian's ``--alignment 1`` allows the stop.
    Of equal weights the first wins.
    """
    inner = weights[:-1, :-1]
    if not inner.numel():
        return ()
    return tuple((source, target) for target, source in enumerate(inner.argmax(dim=1).tolist()))


def align_words(links: Links, source_words: Sequence[int], target_words: Sequence[int]) -> Links:
    """The links between the words that tokens belong to, each once, in order of the target.

    A token with a negative number belongs to no word.
    """
    found = {
        (source_words[source], target_words[target])
        for source, target in links
        if source_words[source] >= 0
    }
    return tuple(sorted(found, key=lambda link: (link[1], link[0])))


def words_of_tokens(ids: Sequence[int], tokenizer: Tokenizer) -> list[int]:
    """For each token the number of the word it belongs to, as white space separates them.

    Each token is decoded behind the one before it, so it works with every tokenizer. A token that
    shows nothing by itself, such as a lone space, belongs to the word that it begins.
    """
    words: list[int | None] = []
    start = first = 0  # the token that is decoded from, and the number of its first word
    last = 0
    for position, token in enumerate(ids):
        alone = tokenizer.decode([token])
        if not alone.strip():
            words.append(None)
            continue

        count = len(tokenizer.decode(ids[start : position + 1]).split())
        last = first + count - 1
        words.append(last)
        # A byte shows its character only behind those before it, so all of them stay.
        if _NO_CHARACTER not in alone:
            start, first = position, last - len(alone.split()) + 1

    # from the end: a space takes the number of the next token, a final one that of the last word
    found = []
    for word in reversed(words):
        last = last if word is None else word
        found.append(last)
    return found[::-1]


def words_of_text(text: str, ids: Sequence[int], tokenizer: Tokenizer) -> list[int]:
    """For each token of ``text`` the number of its word there, as white space separates them."""
    words = words_of_tokens(ids, tokenizer)
    if tokenizer.normalization == "none":
        return words
    given = given_words(text)
    return [given[min(word, len(given) - 1)] for word in words]


def given_words(text: str) -> list[int]:
    """For each word of the normalized text its number in ``text``, as white space separates them.

    They differ only where a word of ``text`` is all of what normalization removes.
    """
    normalized = normalize_with_positions(text)
    ends = [word.end() for word in re.finditer(r"\S+", text)]
    starts = [word.start() for word in re.finditer(r"\S+", normalized.text)]
    return [bisect.bisect_right(ends, normalized.positions[start]) for start in starts] or [0]


def replace_unknown(
    text: str, ids: Sequence[int], links: Links, words: Sequence[str], source_words: Sequence[int]
) -> str:
    """``text`` with each unknown token replaced by its aligned source word.

    Source: Luong et al. (2015), "Addressing the rare word problem", §3.3, by attention as in Jean
    et al. (2015). Punctuation around a word is not copied.
    """
    unknown = [position for position, token in enumerate(ids) if token == UNK_ID]
    parts = text.split(SPECIAL_TOKENS[UNK_ID])
    if len(parts) != len(unknown) + 1:
        return text  # the model spelled the mark itself: which is which is lost

    source_of = {target: source for source, target in links}
    found = [words[source_words[source_of[position]]] for position in unknown]
    return "".join(part + bare for part, bare in zip(parts, [*map(_bare, found), ""], strict=True))


def _bare(word: str) -> str:
    """The word without punctuation around it, unless it is all punctuation."""
    letters = [index for index, character in enumerate(word) if is_of_word(character)]
    return word[letters[0] : letters[-1] + 1] if letters else word


def attention_of_lines(
    lines: Sequence[ReadLine],
    found: Sequence[Sequence[Hypothesis]],
    bundle: Translatable,
    settings: DecodingConfig,
) -> list[list[AttentionWeights]]:
    """The weights of each hypothesis of each line."""
    pairs = [
        (line.source_ids, hypothesis.ids)
        for line, hypotheses in zip(lines, found, strict=True)
        for hypothesis in hypotheses
    ]
    with inference(bundle.model):
        flat = iter(cross_attention(bundle.model, pairs, settings.align_layer, settings.align_head))
    return [[next(flat) for _ in hypotheses] for hypotheses in found]


def rank_by_coverage(
    lines: Sequence[ReadLine],
    found: Sequence[Sequence[Hypothesis]],
    bundle: Translatable,
    settings: DecodingConfig,
) -> list[list[Hypothesis]]:
    """Add the coverage penalty of the source, without its stop, to each score; best first."""
    attention = attention_of_lines(lines, found, bundle, settings)

    ranked = []
    for hypotheses, of_sentence in zip(found, attention, strict=True):
        scored = []
        for hypothesis, weights in zip(hypotheses, of_sentence, strict=True):
            penalty = float(coverage_penalty(weights[:, :-1], settings.coverage_penalty))
            scored.append(dataclasses.replace(hypothesis, score=hypothesis.score + penalty))
        ranked.append(sorted(scored, key=lambda hypothesis: -hypothesis.score))

    return ranked


def align_lines(
    translations: Sequence[Sequence[Translation]],
    lines: Sequence[ReadLine],
    found: Sequence[Sequence[Hypothesis]],
    bundle: Translatable,
    settings: DecodingConfig,
) -> list[list[Translation]]:
    """The translations of each line with their alignment, and source words for unknown ones.

    Without ``align`` only hypotheses with an unknown token are attended to.
    """

    def is_wanted(hypothesis: Hypothesis) -> bool:
        return settings.align or UNK_ID in hypothesis.ids

    wanted = [list(filter(is_wanted, hypotheses)) for hypotheses in found]
    attention = attention_of_lines(lines, wanted, bundle, settings)

    aligned = []
    for line, own, hypotheses, weights in zip(lines, translations, found, attention, strict=True):
        source_words = _source_words(line, bundle) if weights else []
        left = iter(weights)
        aligned.append(
            [
                _aligned(each, line, hypothesis, next(left), source_words, bundle, settings)
                if is_wanted(hypothesis)
                else each
                for each, hypothesis in zip(own, hypotheses, strict=True)
            ]
        )
    return aligned


def _source_words(line: ReadLine, bundle: Translatable) -> list[int]:
    """For each token of the source the number of its word in the line as it was given."""
    words = words_of_tokens(line.source_ids, bundle.source_tokenizer)
    # the code of a language is no word of the line: its number is negative
    added = len(line.request.read.split()) - len(line.request.source.split())
    words = [word - added for word in words]
    if bundle.source_tokenizer.normalization == "none":
        return words
    given = given_words(line.request.source)
    return [word if word < 0 else given[min(word, len(given) - 1)] for word in words]


def _aligned(
    translation: Translation,
    line: ReadLine,
    hypothesis: Hypothesis,
    weights: AttentionWeights,
    source_words: Sequence[int],
    bundle: Translatable,
    settings: DecodingConfig,
) -> Translation:
    links = align_tokens(weights)

    if settings.align:
        target_words = words_of_tokens(hypothesis.ids, bundle.target_tokenizer)
        translation = dataclasses.replace(
            translation,
            alignment=links,
            word_alignment=align_words(links, source_words, target_words),
        )

    if settings.replace_unknown and UNK_ID in hypothesis.ids:
        words = line.request.source.split()
        # the tokenizer normalizes text, so it may count more words than the line has
        source_words = [max(0, min(word, len(words) - 1)) for word in source_words]
        text = replace_unknown(translation.text, hypothesis.ids, links, words, source_words)
        translation = dataclasses.replace(translation, text=text)
    return translation
