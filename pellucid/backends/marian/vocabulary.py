"""Converts between Marian's numbering of a vocabulary and ours, which differ in the special ids."""

import dataclasses
from collections.abc import Collection, Mapping
from typing import Any

from pellucid.backends.marian.settings import MarianSettings
from pellucid.core.errors import DataError
from pellucid.core.special import BOS_ID, EOS_ID, PAD_ID, SPECIAL_COUNT, UNK_ID
from pellucid.text.normalization import check_text
from pellucid.text.tokenizers.interface import Tokenizer
from pellucid.text.tokenizers.marian import MarianTokenizer
from pellucid.text.tokenizers.sentencepiece_tokenizer import SentencePieceTokenizer
from pellucid.text.tokenizers.vocabulary import Vocabulary

PAD_PIECE, UNK_PIECE, START_PIECE, STOP_PIECE = "<pad>", "<unk>", "<s>", "</s>"
"""The pieces of the special ids in MarianTokenizer and sentencepiece."""
_OTHER_START_PIECE = "<start>"
"""The start piece if ``<s>`` is an ordinary piece, as in the vocabularies of OPUS-MT tc-big."""
_START_PIECES = (START_PIECE, _OTHER_START_PIECE)

NORMALIZATION_KEY = "pellucid_normalization"
"""The entry of tokenizer_config.json with the normalization of each side, which the
MarianTokenizer of transformers ignores; only an export of a tokenizer that normalizes has it."""

SubwordTokenizer = SentencePieceTokenizer | MarianTokenizer


@dataclasses.dataclass(frozen=True)
class MarianIds:
    """A vocabulary in Marian's numbering; each tuple is indexed by Marian id."""

    pieces: tuple[str, ...]
    inputs: tuple[int, ...]
    """Our id whose embedding each Marian id gets."""
    outputs: tuple[int, ...]
    """Our id whose output row each Marian id gets."""
    pad: int
    start: int
    stop: int


def number_for_marian(
    source: SubwordTokenizer, target: SubwordTokenizer, *, start_is_pad: bool
) -> tuple[MarianIds, MarianIds]:
    """The numbering of both vocabularies in an exported model.

    A shared vocabulary that was imported from Marian returns to Marian's order: stop, unk, the
    pieces, and last a pad that is also the start. This requires that start and pad still have
    equal rows (``start_is_pad``), which fine-tuning changes. Other vocabularies keep our ids.
    """
    source_pieces, target_pieces = (_ordinary_pieces(each) for each in (source, target))
    was_marian = all(isinstance(each, MarianTokenizer) for each in (source, target))
    if was_marian and source_pieces == target_pieces and start_is_pad:
        ids = _in_marian_order(target_pieces)
        return ids, ids
    return _in_our_order(source_pieces), _in_our_order(target_pieces)


def _ordinary_pieces(tokenizer: SubwordTokenizer) -> tuple[str, ...]:
    return tuple(tokenizer.tokens(range(SPECIAL_COUNT, tokenizer.vocabulary_size)))


def _in_marian_order(pieces: tuple[str, ...]) -> MarianIds:
    # Our ids begin with pad, unk, start and stop; the pieces follow in their own order.
    ordinary = range(SPECIAL_COUNT, SPECIAL_COUNT + len(pieces))
    pad = len(pieces) + 2  # after the stop, unk and the pieces
    return MarianIds(
        pieces=(STOP_PIECE, UNK_PIECE, *pieces, PAD_PIECE),
        # The last id is pad and start in one. As an input only the decoder's start is ever read,
        # because padding is masked; as an output it is the pad.
        inputs=(EOS_ID, UNK_ID, *ordinary, BOS_ID),
        outputs=(EOS_ID, UNK_ID, *ordinary, PAD_ID),
        pad=pad,
        start=pad,
        stop=0,
    )


def _in_our_order(pieces: tuple[str, ...]) -> MarianIds:
    # Our ids are Marian's too, so inputs and outputs map each id to itself.
    ids = tuple(range(SPECIAL_COUNT + len(pieces)))
    return MarianIds(
        pieces=(*special_pieces(pieces), *pieces),
        inputs=ids,
        outputs=ids,
        pad=PAD_ID,
        start=BOS_ID,
        stop=EOS_ID,
    )


def special_pieces(ordinary: Collection[str]) -> tuple[str, str, str, str]:
    """The pieces of the special ids in their order, given the ``ordinary`` pieces."""
    start = _OTHER_START_PIECE if START_PIECE in ordinary else START_PIECE
    return PAD_PIECE, UNK_PIECE, start, STOP_PIECE


def piece_problems(side: str, ordinary: Collection[str]) -> list[str]:
    """A problem for each ordinary piece of a side that is spelled like a special one."""
    taken = sorted(set(special_pieces(ordinary)) & set(ordinary))
    return [f"the {side} vocabulary has an ordinary piece {each!r}" for each in taken]


def vocabulary_problems(tokenizers: Mapping[str, Tokenizer]) -> list[str]:
    """Why Marian cannot express these tokenizers, which are given by side."""
    problems = []
    for side, tokenizer in tokenizers.items():
        if not isinstance(tokenizer, SubwordTokenizer):
            problems.append(
                f"the {side} tokenizer must be bpe, unigram or marian, which sentencepiece can"
                f" cut, got {tokenizer.kind}"
            )
            continue
        problems += piece_problems(side, _ordinary_pieces(tokenizer))
    return problems


@dataclasses.dataclass(frozen=True)
class ImportedIds:
    """A vocabulary in our numbering; ``rows`` is indexed by our id."""

    vocabulary: Vocabulary
    rows: tuple[int, ...]
    """The Marian id of each of our ids, which is its row in Marian's matrices."""
    start_is_copy: bool
    """Whether BOS has the row of another id, because Marian uses that id as the start too."""

    def to_marian(self, ids: list[int]) -> list[int]:
        """Our ids converted to Marian's."""
        return [self.rows[id_] for id_ in ids]


def number_for_us(
    table: Any, name: str, settings: MarianSettings, *, target: bool
) -> tuple[ImportedIds | None, list[str]]:
    """Our numbering of the pieces in ``vocab.json``; None, and every problem, if it has any.

    ``name`` is the file name for messages. On the target side ``settings`` gives Marian's special
    ids; on the source side its tokenizer looks them up by name.
    """
    size = settings.target_size if target else settings.vocab_size
    problems = _table_problems(table, name, size)
    if problems:
        return None, problems

    # Checked above: every id from 0 on occurs once.
    pieces = {id_: piece for piece, id_ in table.items()}
    pad = settings.pad_token_id if target else table[PAD_PIECE]
    stop = settings.eos_token_id if target else table[STOP_PIECE]
    unk = table[UNK_PIECE]

    # The start is an id of the target. The encoder never reads one, but our source vocabulary has
    # an id for it: that of a start piece with the same number, or else a copy of the pad.
    start = settings.decoder_start_token_id
    if not target and (start >= size or pieces[start] not in _START_PIECES):
        start = pad

    if len({pad, unk, stop}) < 3:
        return None, [f"pad, unk and stop must differ in {name}, are {pad}, {unk} and {stop}"]

    start_is_copy = pieces[start] not in _START_PIECES
    # A start that copies another id's row leaves that id where it is.
    taken = {pad, unk, stop} if start_is_copy else {pad, unk, stop, start}
    rest = [id_ for id_ in range(size) if id_ not in taken]

    vocabulary = Vocabulary.of(pieces[id_] for id_ in rest)
    return ImportedIds(vocabulary, (pad, unk, start, stop, *rest), start_is_copy), []


def _table_problems(table: Any, name: str, size: int) -> list[str]:
    if not isinstance(table, dict) or not all(type(id_) is int for id_ in table.values()):
        return [f"{name} must give an id to each piece"]
    try:
        check_text("".join(table))  # JSON can escape half of a character
    except DataError as error:
        return [f"{name} holds what is no text: {error}"]
    problems = [
        f"{name} has no {piece}"
        for piece in (PAD_PIECE, UNK_PIECE, STOP_PIECE)
        if piece not in table
    ]
    if len(table) != size or sorted(table.values()) != list(range(size)):
        problems.append(
            f"{name} must number its pieces from 0 to {size - 1}, as config.json says; it has"
            f" {len(table)} pieces, {len(set(table.values()))} different ids"
        )
    return problems
