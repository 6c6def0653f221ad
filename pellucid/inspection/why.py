"""Why a model predicted one word and not another: the difference of their logits, part by part.

``why`` finds the position and the two words, and returns a ``Why``: what embedding, heads,
feed-forward sublayers and biases add to the difference, the words behind each head, and how much
of the last hidden state came from the source and how much from the words before.
"""

import dataclasses
import html
import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor

from pellucid.bundle import Bundle, load_any_bundle
from pellucid.core.errors import ConfigError, DataError, PellucidError
from pellucid.core.special import BOS_ID, EOS_ID, MASK_ID, PAD_ID, SPECIAL_COUNT
from pellucid.decoding.plain_text import encode_masked
from pellucid.inspection.attribution import (
    Attributable,
    Contributions,
    LogitPart,
    contributions_of,
    kept_values,
    logit_parts,
    wanted_names,
)
from pellucid.inspection.notebook import html_table
from pellucid.inspection.sentence import (
    START_MARK,
    STOP_MARK,
    Openable,
    Opened,
    Sentence,
    open_model,
    read_sentence,
)
from pellucid.model.dropout import without_dropout
from pellucid.model.seq2seq import Seq2Seq, SequenceModel
from pellucid.model.text_models import DecoderOnly, EncoderOnly
from pellucid.model.transformer import Transformer
from pellucid.text.scripts import SPACELESS_LETTER, is_of_word
from pellucid.text.tokenizers.interface import Tokenizer

METHOD = "ALTI+ (Ferrando et al., 2022)"
"""The method that computes the shares of source and prefix."""
MASK_MARK = "[MASK]"
SPACE = "▁"
"""The sign of a space in the tokens of sentencepiece."""
SHOWN_PARTS, SHOWN_WORDS = 10, 3
"""How many parts are printed, and how many words behind each head."""


@dataclasses.dataclass(frozen=True)
class Candidate:
    """A word that could have stood at a position."""

    token: str
    id: int
    logit: float
    probability: float


@dataclasses.dataclass(frozen=True)
class Why:
    """The difference of two words' logits at one position, split into what adds to it."""

    sentence: Sentence
    position: int
    """The number of the target token, from 0; in a model of plain text, that of the token of the
    text."""
    word: Candidate
    rival: Candidate
    difference: float
    """The logit of the word less that of its rival, as the model computed them."""
    parts: tuple[LogitPart, ...]
    """In the order of computation. Their values sum to the difference, up to rounding."""
    source_contributions: tuple[float, ...]
    """How much of the last hidden state each source token is; empty without a source."""
    prefix_contributions: tuple[float, ...]
    """The same for each token that was read before; an encoder reads its whole text."""

    @property
    def total(self) -> float:
        """The sum of all parts."""
        return sum(part.value for part in self.parts)

    @property
    def source_share(self) -> float:
        """How much of the last hidden state came from the source, 0 to 1, by ``METHOD``."""
        return sum(self.source_contributions)

    @property
    def prefix_share(self) -> float:
        """How much of it came from the words before; the rest of the share."""
        return sum(self.prefix_contributions)

    @property
    def largest(self) -> tuple[LogitPart, ...]:
        """The parts by size, whatever their sign."""
        return tuple(sorted(self.parts, key=lambda part: -abs(part.value)))

    def attended_tokens(self, part: LogitPart) -> tuple[str, ...]:
        """The tokens that ``part.attended`` belongs to; none if the part is no head."""
        if not part.attended:
            return ()
        sentence = self.sentence
        return sentence.source_tokens if part.reads_source else sentence.target_input_tokens

    def words_behind(self, part: LogitPart, count: int = SHOWN_WORDS) -> list[tuple[str, float]]:
        """The tokens from which a head's part comes, the strongest first."""
        tokens = zip(self.attended_tokens(part), part.attended, strict=True)
        return sorted(tokens, key=lambda each: -abs(each[1]))[:count]

    def by_kind(self) -> dict[str, float]:
        """The parts summed over those of one kind, in the order of computation."""
        sums: dict[str, float] = {}
        for part in self.parts:
            sums[part.kind] = sums.get(part.kind, 0.0) + part.value
        return sums

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "source": self.sentence.source,
            "text": self.sentence.text,
            "position": self.position,
            "word": dataclasses.asdict(self.word),
            "rival": dataclasses.asdict(self.rival),
            "difference": self.difference,
            "total": self.total,
            "parts": [
                {
                    "name": part.name,
                    "kind": part.kind,
                    "value": part.value,
                    "attended": list(part.attended),
                }
                for part in self.parts
            ],
            "source_tokens": list(self.sentence.source_tokens),
            "target_input_tokens": list(self.sentence.target_input_tokens),
            "source_contributions": list(self.source_contributions),
            "prefix_contributions": list(self.prefix_contributions),
            "source_share": self.source_share,
            "prefix_share": self.prefix_share,
            "method": METHOD,
        }

    def _rows(self, count: int) -> list[tuple[str, str, str]]:
        shown = self.largest[:count]
        rows = [
            (
                f"{part.value:+.3f}",
                part.name,
                ", ".join(f"{token} {value:+.3f}" for token, value in self.words_behind(part)),
            )
            for part in shown
        ]

        others = self.parts[: len(self.parts) - len(shown)]
        if others:
            rest = self.total - sum(part.value for part in shown)
            rows.append((f"{rest:+.3f}", f"the other {len(others)} parts", ""))

        rows.append((f"{self.total:+.3f}", "sum of all parts", ""))
        rows.append((f"{self.difference:+.3f}", "difference of the logits", ""))
        return rows

    def _title(self) -> str:
        word, rival = self.word, self.rival
        return (
            f"position {self.position}: {word.token} (p {word.probability:.3f})"
            f" and not {rival.token} (p {rival.probability:.3f})"
        )

    def _shares(self) -> str:
        if not self.source_contributions:
            return ""
        sources = zip(self.sentence.source_tokens, self.source_contributions, strict=True)
        best = sorted(sources, key=lambda each: -each[1])[:SHOWN_WORDS]
        named = ", ".join(f"{token} {share:.0%}" for token, share in best)
        return (
            f"the last hidden state: {self.source_share:.0%} from the source ({named}),"
            f" {self.prefix_share:.0%} from the words before, by {METHOD}"
        )

    def __str__(self) -> str:
        rows = self._rows(SHOWN_PARTS)
        widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
        lines = [
            f"{value:>{widths[0]}}  {name:<{widths[1]}}  {words}".rstrip()
            for value, name, words in rows
        ]
        return "\n".join(each for each in (self._title(), "", *lines, "", self._shares())).rstrip()

    def _repr_html_(self) -> str:
        table = html_table(
            ("adds to the logit", "part", "words behind it"), self._rows(len(self.parts))
        )
        return f"<p>{html.escape(self._title())}</p>{table}<p>{html.escape(self._shares())}</p>"


def why(
    opened: "Openable | Bundle[SequenceModel]",
    source: str,
    target: str | None = None,
    *,
    position: int | None = None,
    word: str | None = None,
    rival: str | None = None,
) -> Why:
    """Split the difference of two words' logits into what each part of the model adds.

    ``word`` is a word of the translation (by default of the model's own), ``rival`` the word that
    it is compared with, by default the likeliest other one. ``position`` counts target tokens from
    0; without it the first place of ``word`` is taken, without a word the place at which ``rival``
    was most probable, and without both the place of which the model was least sure. A word of
    several tokens is compared at the first token that the two words do not share.

    A model of plain text has no target: a decoder explains a token of ``source`` from those before
    it, an encoder the token behind a ``[MASK]``.

    Sources: Elhage et al. (2021); Yin and Neubig (2022); for the shares Ferrando et al. (2022).

    Raises ConfigError for a model without a residual stream (recurrent kinds), for a word that is
    not where it should be or not in the vocabulary, PellucidError if the model gives NaN or
    infinity; otherwise as ``inspect`` does.
    """
    model, tokenizer, sentence = _read(opened, source, target)
    passed = _run(model, tokenizer, sentence)
    if not passed.logits.isfinite().all():
        raise PellucidError(
            "explaining needs a model that gives each token a probability, got NaN or infinity",
            hint="its weights may hold NaN or infinity; pellucid inspect --json shows where",
        )
    return _explain(passed, *_choose(sentence, passed.logits, tokenizer, position, word, rival))


def explain_all(opened: Opened, sentence: Sentence, count: int) -> tuple[tuple[Why, ...], ...]:
    """For each position of a target, its token against the ``count`` likeliest others.

    Nothing for a model without a residual stream.
    """
    model = opened.model
    if not isinstance(model, Transformer) or count == 0:
        return ()

    opened.before_pass()
    passed = _run(model, opened.target_tokenizer, sentence)
    explained = []
    for row, word_id in enumerate(sentence.target_ids):
        opened.before_pass()
        rivals = _likeliest_others(passed.logits[row], word_id, count)
        explained.append(tuple(_explain(passed, row, word_id, rival) for rival in rivals))
    return tuple(explained)


@dataclasses.dataclass(frozen=True)
class _Pass:
    """One pass of a model with what attribution reads of it."""

    model: Attributable
    tokenizer: Tokenizer
    sentence: Sentence
    values: Mapping[str, Tensor]
    logits: Tensor
    """(position, vocabulary), in float64."""
    contributions: Contributions | None


def _run(model: Attributable, tokenizer: Tokenizer, sentence: Sentence) -> _Pass:
    trace = wanted_names(model)
    device = next(model.parameters()).device
    with torch.no_grad(), without_dropout(model):
        if isinstance(model, Transformer):
            logits = model(*sentence.tensors(model), trace)
        else:
            logits = model(torch.tensor([sentence.target_input_ids], device=device), trace)
    values = kept_values(trace)
    logits, contributions = logits[0].double().cpu(), contributions_of(model, values)
    return _Pass(model, tokenizer, sentence, values, logits, contributions)


def _explain(passed: _Pass, row: int, word_id: int, rival_id: int) -> Why:
    logits, contributions = passed.logits[row], passed.contributions
    probabilities = logits.softmax(-1)
    word, rival = (
        Candidate(
            STOP_MARK if id_ == EOS_ID else passed.tokenizer.tokens([id_])[0],
            id_,
            float(logits[id_]),
            float(probabilities[id_]),
        )
        for id_ in (word_id, rival_id)
    )
    return Why(
        sentence=passed.sentence,
        position=row,
        word=word,
        rival=rival,
        difference=float(logits[word_id] - logits[rival_id]),
        parts=logit_parts(passed.model, passed.values, row, word_id, rival_id),
        source_contributions=tuple(contributions.source[row].tolist()) if contributions else (),
        prefix_contributions=tuple(contributions.prefix[row].tolist()) if contributions else (),
    )


def _likeliest_others(logits: Tensor, word_id: int, count: int) -> list[int]:
    others = logits.clone()
    others[[word_id, PAD_ID, BOS_ID]] = -torch.inf  # none ever generates the last two
    count = min(count, int(others.isfinite().sum()))
    return others.topk(count).indices.tolist()


def _read(
    opened: "Openable | Bundle[SequenceModel]", source: str, target: str | None
) -> tuple[Attributable, Tokenizer, Sentence]:
    """The model, the tokenizer of what it predicts, and the sentence as ids."""
    bundle = load_any_bundle(opened) if isinstance(opened, Path | str) else opened
    if isinstance(bundle, Bundle) and not isinstance(bundle.model, Seq2Seq):
        if target is not None:
            raise ConfigError(
                f"a model of kind {bundle.config.kind} reads one text and has no target"
            )
        return _read_text(bundle, source)

    inside = open_model(cast("Openable", bundle))
    if not isinstance(inside.model, Transformer):
        raise ConfigError(
            "a prediction is a sum of parts only where a residual stream leads to it, got"
            f" model.kind={inside.model.config.kind}",
            hint="saliency says for every kind which source words a prediction depends on",
        )
    return inside.model, inside.target_tokenizer, read_sentence(inside, source, target)


def _read_text(
    bundle: "Bundle[SequenceModel]", text: str
) -> tuple[Attributable, Tokenizer, Sentence]:
    model, tokenizer = bundle.model, bundle.target_tokenizer
    if isinstance(model, DecoderOnly):
        ids = tokenizer.encode(text)
        # Shifted by one: position i reads token i - 1 and predicts token i.
        read, predicted = (BOS_ID, *ids), (*ids, EOS_ID)
    elif isinstance(model, EncoderOnly):
        read = predicted = tuple(encode_masked(bundle, text))
    else:
        raise ConfigError(f"a model of kind {bundle.config.kind} predicts no words of a text")

    if model.max_length is not None and len(read) > model.max_length:
        raise DataError(
            f"a text may have {model.max_length - 1} tokens for this model, got {len(read) - 1}"
        )
    return (
        model,
        tokenizer,
        Sentence(
            source=text,
            text=text,
            source_ids=(),
            target_input_ids=read,
            target_ids=predicted,
            source_tokens=(),
            target_input_tokens=_marked(read, tokenizer, model),
            target_tokens=_marked(predicted, tokenizer, model),
        ),
    )


def _marked(ids: Sequence[int], tokenizer: Tokenizer, model: Attributable) -> tuple[str, ...]:
    start = MASK_MARK if isinstance(model, EncoderOnly) else START_MARK
    marks = {BOS_ID: start, EOS_ID: STOP_MARK}
    tokens = tokenizer.tokens(ids)
    return tuple(marks.get(id_, token) for id_, token in zip(ids, tokens, strict=True))


def _choose(
    sentence: Sentence,
    logits: Tensor,
    tokenizer: Tokenizer,
    position: int | None,
    word: str | None,
    rival: str | None,
) -> tuple[int, int, int]:
    """The position, the id of the word and that of its rival."""
    count = len(sentence.target_ids)
    if position is not None and not 0 <= position < count:
        raise ConfigError(f"position must be from 0 to {count - 1}, got {position}")

    # What the model generated; where an encoder reads a mask, the likeliest token.
    generated = list(sentence.target_ids)
    masked = [row for row, id_ in enumerate(generated) if id_ == MASK_ID]
    for row in masked:
        generated[row] = int(logits[row].argmax())

    words = None if word is None else _readings(word, generated, logits, tokenizer)
    places = [] if words is None or masked else _places(words, generated, tokenizer)
    if word in sentence.target_tokens and not places:
        # As it is shown, such as a token without its space.
        places = [sentence.target_tokens.index(word)]
        words = [[sentence.target_ids[places[0]]]] * count
    rivals = None if rival is None else _readings(rival, generated, logits, tokenizer)
    if position is None and words is not None and not masked and not places:
        raise ConfigError(
            f"{word!r} must be a word of {' '.join(sentence.target_tokens)!r}",
            hint="name one of these, or give a target in which the word stands",
        )
    if position is None:
        position = (
            places[0] if places else _find(logits, generated, masked, word, rival, words, rivals)
        )

    rival_ids = None if rivals is None else rivals[position]
    if words is not None:
        word_ids = words[position]
    else:
        # As many tokens as the rival may share with what was generated.
        word_ids = generated[position : position + len(rival_ids or [0])]
    if rival_ids is None:
        [likeliest] = _likeliest_others(logits[position], word_ids[0], 1)
        return position, word_ids[0], likeliest

    if word_ids == generated[position : position + len(word_ids)]:
        # A rival may begin as the word does and be longer: then it parts from what follows.
        word_ids = generated[position : position + max(len(word_ids), len(rival_ids))]
    pairs = zip(word_ids, rival_ids, strict=False)
    shared = next((n for n, (ours, theirs) in enumerate(pairs) if ours != theirs), None)
    if shared is None:
        raise ConfigError(
            f"the two words must differ in a token, got {' '.join(tokenizer.tokens(word_ids))}"
            f" and {' '.join(tokenizer.tokens(rival_ids))}"
        )
    row = position + shared
    if word_ids[:shared] != generated[position:row]:
        raise ConfigError(
            "the tokens that the two words share must stand in the target, got"
            f" {' '.join(tokenizer.tokens(word_ids[:shared]))} at position {position}",
            hint="give a target in which the word stands",
        )
    return row, word_ids[shared], rival_ids[shared]


def _readings(
    word: str, generated: Sequence[int], logits: Tensor, tokenizer: Tokenizer
) -> list[list[int]]:
    """The ids of a word as it would stand at each position: after a space, or without one.

    It has a space where the generated token has one. A punctuation mark may stand without one in
    the place of a word or at the end, too: there the likelier of its two first tokens is taken.
    """
    if word == STOP_MARK:
        return [[EOS_ID]] * len(generated)
    spaced = tokenizer.encode(word)
    if not spaced:
        raise ConfigError(f"a word must have a token, got {word!r}")

    glued = _glued(spaced, tokenizer)
    is_mark = _is_mark(word)
    is_split = tokenizer.tokens(spaced[:1]) == [SPACE]  # no token of its own has the space

    def reading(row: int, id_: int) -> list[int]:
        [token] = tokenizer.tokens([id_])
        if id_ >= SPECIAL_COUNT and not token.startswith(SPACE):
            return glued
        if is_mark and row > 0 and id_ != spaced[0]:
            is_likelier = bool(logits[row, glued[0]] > logits[row, spaced[0]])
            return glued if is_split or is_likelier else spaced
        return spaced

    return [reading(row, id_) for row, id_ in enumerate(generated)]


def _places(words: list[list[int]], generated: list[int], tokenizer: Tokenizer) -> list[int]:
    """The positions at which a word stands, and not a part of another word."""

    def text(end: int) -> str:
        return tokenizer.decode(generated[:end])

    def is_joined(before: str, longer: str) -> bool:
        new = longer[len(before) :][:1]
        is_within = longer.startswith(before) and is_of_word(before[-1:]) and is_of_word(new)
        return is_within and not SPACELESS_LETTER.match(new)

    return [
        row
        for row, ids in enumerate(words)
        if generated[row : row + len(ids)] == ids
        and not is_joined(text(row), text(row + len(ids)))
        and not is_joined(text(row + len(ids)), text(row + len(ids) + 1))
    ]


def _is_mark(word: str) -> bool:
    return all(unicodedata.category(letter).startswith("P") for letter in word)


def _glued(ids: Sequence[int], tokenizer: Tokenizer) -> list[int]:
    """The ids of a word where no space stands before it; those given if it has no others."""
    [first] = tokenizer.tokens(ids[:1])
    if first == SPACE:
        return list(ids[1:] or ids)
    bare = first.removeprefix(SPACE)
    known = range(SPECIAL_COUNT, tokenizer.vocabulary_size) if bare != first else ()
    found = (id_ for id_ in known if tokenizer.tokens([id_]) == [bare])
    return [next(found, ids[0]), *ids[1:]]


def _find(
    logits: Tensor,
    generated: list[int],
    masked: list[int],
    word: str | None,
    rival: str | None,
    words: list[list[int]] | None,
    rivals: list[list[int]] | None,
) -> int:
    """The position that is meant if none is given, and no word whose place is known."""
    rows = masked or list(range(len(generated)))
    probabilities = logits.softmax(-1)
    asked = words or rivals
    if asked is None:
        return min(rows, key=lambda row: float(probabilities[row, generated[row]]))

    # Where it was most probable; a rival not where it was generated itself.
    rows = [row for row in rows if generated[row] != asked[row][0] or masked] or rows
    if _is_mark(word or rival or ""):
        # A space that is a token of its own says nothing of the mark behind it.
        fewest = min(len(asked[row]) for row in rows)
        rows = [row for row in rows if len(asked[row]) == fewest]
    return max(rows, key=lambda row: float(probabilities[row, asked[row][0]]))
