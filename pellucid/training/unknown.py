"""Warnings about text that a vocabulary cannot express: unknown words, codes of languages, and
sentences that are taken for words.

A model that is fine-tuned on another script than its own learns ``[UNK] [UNK]`` without any error,
and one for several languages learns from lines that lack their code which language to leave open.
One whose tokens are words learns Chinese sentences by heart, each as a word.
"""

import logging
from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

from pellucid.core.errors import DataError
from pellucid.core.limits import shown
from pellucid.core.special import SPECIAL_COUNT, UNK_ID
from pellucid.text.corpus.rows import IdRows
from pellucid.text.corpus.store import TokenStore
from pellucid.text.languages import code_problem
from pellucid.text.scripts import length_of_no_words
from pellucid.text.tokenizers.interface import Tokenizer
from pellucid.text.tokenizers.marian import MarianTokenizer
from pellucid.text.tokenizers.tokenizer import unknown_parts

_MOST = 1 / 3
"""The largest share of unknown tokens on a side; a text with more is not of the vocabulary's
language or script."""
_WARNED_FROM = 0.01
"""Words that a vocabulary of words lacks are a few in a thousand of every text."""
_COUNTED_ROWS = 20_000
"""Rows, spread evenly over a corpus, whose tokens are counted."""
_READ_PAIRS = 20_000
"""Pairs from the beginning of a corpus that are searched for examples and codes."""
_EXAMPLES = 3

_log = logging.getLogger("pellucid")


def judge_text(
    store: TokenStore,
    pairs: Iterable[tuple[str, str]],
    tokenizers: tuple[Tokenizer, Tokenizer],
    what: str,
    *,
    given: bool,
) -> None:
    """Warn of unknown tokens, wrong codes of languages and sentences without spaces that are taken
    for words in the pairs of ``store``.

    ``pairs`` are their texts, of which the first are read; ``what`` names them in messages, such as
    ``training``. ``given`` says whether the tokenizers come from another model.

    Raises DataError if more than a third of a side's tokens are unknown.
    """
    read: list[tuple[str, str]] | None = None
    for side, name in enumerate(("source", "target")):
        tokenizer = tokenizers[side]
        share = unknown_share(store.target if side else store.source)
        if share < _WARNED_FROM:
            continue
        read = _first(pairs) if read is None else read
        examples = ", ".join(shown(each) for each in _examples((p[side] for p in read), tokenizer))
        if share > _MOST:
            raise DataError(
                f"a vocabulary must know the text to learn from, and {share:.0%} of the tokens of"
                f" the {what} {name} are unknown ([UNK]): {examples}",
                hint=_way_out(tokenizer, what, given=given),
            )
        _log.warning(
            "%.1f%% of the tokens of the %s %s are unknown ([UNK]), and nothing is learned of them:"
            " %s",
            100 * share,
            what,
            name,
            examples,
        )

    if not given:
        _judge_words(store, tokenizers, what)
    if isinstance(tokenizers[0], MarianTokenizer):
        _judge_codes(_first(pairs) if read is None else read, tokenizers[0], what)


def unknown_share(rows: IdRows) -> float:
    """The share of ``[UNK]`` among the tokens of these rows, or of 20,000 spread over them."""
    ids = _some_ids(rows)
    return float(np.count_nonzero(ids == UNK_ID)) / max(1, len(ids))


def _some_ids(rows: IdRows) -> npt.NDArray[np.int64]:
    """The ids of these rows, or of 20,000 spread over them."""
    count = min(len(rows), _COUNTED_ROWS)
    ids, _ = rows.gather(np.arange(count) * len(rows) // max(1, count))
    return ids


def _judge_words(store: TokenStore, tokenizers: tuple[Tokenizer, Tokenizer], what: str) -> None:
    """Warn of a side in a script without spaces between words that is split at spaces."""
    warned = set()
    for rows, tokenizer, name in zip(
        (store.source, store.target), tokenizers, ("source", "target"), strict=True
    ):
        if tokenizer.kind not in ("word", "punctuation", "rules"):
            continue
        ids = _some_ids(rows)
        mean = length_of_no_words(tokenizer.tokens(ids[ids >= SPECIAL_COUNT].tolist()))
        # Text alone has the same on both sides.
        if mean is not None and mean not in warned:
            warned.add(mean)
            _log.warning(
                "the %s %s is in a script without spaces between words, and tokenizer.kind=%s takes"
                " %.0f characters for a word on average, so that whole sentences are learned by"
                " heart: choose tokenizer.kind=bpe, unigram or character",
                what,
                name,
                tokenizer.kind,
                mean,
            )


def _first(pairs: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    return [pair for pair, _ in zip(pairs, range(_READ_PAIRS), strict=False)]


def _examples(texts: Iterator[str], tokenizer: Tokenizer) -> list[str]:
    found: dict[str, None] = {}
    for text in texts:
        found |= dict.fromkeys(unknown_parts(text, tokenizer))
        if len(found) >= _EXAMPLES:
            break
    return list(found)[:_EXAMPLES]


def _way_out(tokenizer: Tokenizer, what: str, *, given: bool) -> str:
    if isinstance(tokenizer, MarianTokenizer) or given:
        return (
            "the vocabulary of the model that is begun with does not fit: begin with a model for"
            " these languages, or train a new one without --init"
        )
    if what == "validation":  # the training text was judged before, and is known
        return (
            "name validation text in the languages of the training text, and in its case; or choose"
            " tokenizer.kind=bpe, which spells all text"
        )
    return "raise tokenizer.vocabulary_size, or choose tokenizer.kind=bpe, which spells all text"


def _judge_codes(pairs: list[tuple[str, str]], tokenizer: MarianTokenizer, what: str) -> None:
    """Warn of source lines whose code of the target language is missing, unknown or misplaced."""
    problems = [
        (number, problem)
        for number, (source, _) in enumerate(pairs, start=1)
        if source.strip() and (problem := code_problem(source, tokenizer.codes)) is not None
    ]

    if problems:
        number, problem = problems[0]
        _log.warning(
            "%d of the first %d %s source lines, first line %d: %s",
            len(problems),
            len(pairs),
            what,
            number,
            problem,
        )
