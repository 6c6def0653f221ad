"""The vocabulary of a Marian file, a sentencepiece model that numbers its pieces as Marian does.

Marian has a stop (0), an unknown piece (1) and the ordinary pieces; it has neither padding nor a
start, as its decoder begins with a vector of zeros. We have both, so that their rows are made up on
the way in, and left out on the way out.
"""

import dataclasses
from collections.abc import Iterator

import sentencepiece

from pellucid.core.errors import BundleError
from pellucid.core.special import BOS_ID, EOS_ID, PAD_ID, SPECIAL_COUNT, UNK_ID
from pellucid.text.tokenizers.interface import Tokenizer
from pellucid.text.tokenizers.marian import MarianTokenizer
from pellucid.text.tokenizers.protobuf import Field, read_fields, write_fields
from pellucid.text.tokenizers.sentencepiece_tokenizer import SentencePieceTokenizer
from pellucid.text.tokenizers.vocabulary import Vocabulary

NEVER = -1e4
"""The output bias of PAD and BOS, which no program generates: their probability is zero."""

_PIECE, _TRAINER = 1, 2
"""Fields of sentencepiece's ModelProto."""
_TEXT = 1
"""The field of a piece with its text."""
_MODEL_TYPE, _UNIGRAM = 3, 1
"""The field of its TrainerSpec with the kind of model, and its default."""
_IDS = {40: 1, 41: -1, 42: 0, 43: -1}
"""Fields of its TrainerSpec: the ids of the unknown piece, start, stop and padding in Marian."""


@dataclasses.dataclass(frozen=True)
class FileVocabulary:
    """The vocabulary of one side in a file, and our id for each of its own."""

    model: bytes
    """The sentencepiece model."""
    ours: tuple[int, ...]
    """By Marian's id."""


def vocabulary_for_file(tokenizer: Tokenizer, side: str) -> FileVocabulary:
    """A tokenizer as Marian reads it. Raises BundleError if sentencepiece cannot cut its text."""
    if isinstance(tokenizer, MarianTokenizer):
        processor = sentencepiece.SentencePieceProcessor()
        processor.LoadFromSerializedProto(tokenizer.model)
        pieces = [processor.id_to_piece(id_) for id_ in range(processor.get_piece_size())]
        known = range(SPECIAL_COUNT, tokenizer.vocabulary_size)
        table = dict(zip(tokenizer.tokens(known), known, strict=True))
        special = {processor.eos_id(): EOS_ID, processor.unk_id(): UNK_ID}
        ids = [special.get(id_, table.get(piece)) for id_, piece in enumerate(pieces)]
        missing = [piece for piece, id_ in zip(pieces, ids, strict=True) if id_ is None]
        if missing or len(ids) != tokenizer.vocabulary_size - 2:
            raise BundleError(
                f"the {side} vocabulary cannot be numbered by its sentencepiece model alone: it has"
                f" {tokenizer.vocabulary_size - SPECIAL_COUNT} pieces, the model"
                f" {len(pieces) - 2}; models that came from Hugging Face have such tables"
            )
        return FileVocabulary(tokenizer.model, tuple(id_ for id_ in ids if id_ is not None))

    if not isinstance(tokenizer, SentencePieceTokenizer):
        raise BundleError(
            f"the {side} tokenizer must be bpe, unigram or marian, which sentencepiece can cut, got"
            f" {tokenizer.kind}"
        )
    ordinary = range(SPECIAL_COUNT, tokenizer.vocabulary_size)
    return FileVocabulary(_renumbered(tokenizer.model), (EOS_ID, UNK_ID, *ordinary))


def is_unigram(model: bytes) -> bool:
    """Whether a sentencepiece model cuts text by the probabilities of its pieces, not by merges."""
    kinds = [
        each.value
        for field in read_fields(model)
        if field.number == _TRAINER and isinstance(field.value, bytes)
        for each in read_fields(field.value)
        if each.number == _MODEL_TYPE
    ]
    return kinds[-1:] in ([], [_UNIGRAM])


def _renumbered(model: bytes) -> bytes:
    """A sentencepiece model of ours with Marian's ids: stop, unknown, and the ordinary pieces."""
    fields = list(read_fields(model))
    pieces = [field for field in fields if field.number == _PIECE]
    order = [pieces[EOS_ID], pieces[UNK_ID], *pieces[SPECIAL_COUNT:]]
    others = [_with_ids(each) for each in fields if each.number != _PIECE]
    return write_fields([*order, *others])


def _with_ids(field: Field) -> Field:
    if field.number != _TRAINER or isinstance(field.value, int):
        return field
    kept = [each for each in read_fields(field.value) if each.number not in _IDS]
    ids = [Field(number, id_, 0) for number, id_ in _IDS.items()]
    return Field(_TRAINER, write_fields([*kept, *ids]), field.wire)


def tokenizer_of_file(model: bytes, size: int, origin: str) -> tuple[MarianTokenizer, list[int]]:
    """The tokenizer of a ``.spm`` file, and Marian's id for each of ours; PAD and BOS have -1.

    ``size`` is the number of rows that the model has for it. Raises BundleError if they differ, or
    if it is no sentencepiece model with a stop and an unknown piece.
    """
    try:
        # sentencepiece reads a damaged message as far as it goes, so it is read here as well
        pieces = [*_pieces(model)]
        processor = sentencepiece.SentencePieceProcessor()
        processor.LoadFromSerializedProto(model)
        stop, unknown = int(processor.eos_id()), int(processor.unk_id())
        known = int(processor.get_piece_size())
    except (RuntimeError, ValueError, IndexError, TypeError) as error:
        raise BundleError(
            f"{origin} is not a sentencepiece model: {error}",
            hint="name the .spm file of the model; a list of words such as vocab.yml has no rules"
            " by which text is cut",
        ) from error

    if known != size or len(pieces) != known:
        raise BundleError(f"{origin} has {known} pieces, the model has rows for {size}")
    if stop < 0 or unknown < 0 or stop == unknown:
        raise BundleError(f"{origin} has the stop {stop} and the unknown piece {unknown}")

    rest = [id_ for id_ in range(size) if id_ not in (stop, unknown)]
    rows = [-1] * SPECIAL_COUNT
    rows[UNK_ID], rows[EOS_ID] = unknown, stop
    assert rows[PAD_ID] == rows[BOS_ID] == -1
    vocabulary = Vocabulary.of(pieces[id_] for id_ in rest)
    return MarianTokenizer(model, vocabulary, origin=origin), [*rows, *rest]


def _pieces(model: bytes) -> Iterator[str]:
    for field in read_fields(model):
        if field.number == _PIECE and isinstance(field.value, bytes):
            texts = [each.value for each in read_fields(field.value) if each.number == _TEXT]
            text = texts[-1] if texts else b""
            yield text.decode() if isinstance(text, bytes) else ""
