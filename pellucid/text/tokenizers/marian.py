"""The tokenizer of an imported Marian model: pieces by sentencepiece, ids by a table of its own.

Such a tokenizer is never trained here; it is imported with its model.
"""

import functools
import hashlib
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Literal, final

import sentencepiece

from pellucid.core.errors import BundleError, CorruptError
from pellucid.core.files import LARGEST_TABLE, read_plain, write_file
from pellucid.core.special import UNK_ID
from pellucid.text.languages import leading_code
from pellucid.text.normalization import Normalization, check_text
from pellucid.text.tokenizers.interface import SILENT_IDS, Tokenizer
from pellucid.text.tokenizers.vocabulary import Vocabulary, VocabularyFile, VocabularyTokenizer

MARIAN_KIND: Literal["marian"] = "marian"

_SPACE_MARK = "\u2581"
_CODE = re.compile(r">>[^<>\s]+<<")
"""The code of a target language in front of a text, which multilingual models of OPUS-MT need."""


@final
class MarianTokenizer(VocabularyTokenizer):
    """A sentencepiece model with a separate table from pieces to ids.

    Where the table has codes of languages, a text may begin with one such as ``>>fra<<``, which is
    one token. Text that the sentencepiece model normalizes is not restored; pieces that are not in
    the table are unknown.
    ``normalization`` is "nfc" only for what was exported from a bundle that had it: OPUS-MT models
    have their rules in the sentencepiece model.
    Differs: the MarianTokenizer of transformers reads a literal ``</s>`` as the end of the
    sentence; here text never gives a special id. With a table without codes it reads the
    ``>>Ja<<`` that a text begins with as an unknown token; here, as in Marian itself, it is text.

    Raises BundleError if ``model`` is not a sentencepiece model; ``origin`` is its name in the
    message.
    """

    def __init__(
        self,
        model: bytes,
        vocabulary: Vocabulary,
        normalization: Normalization = "none",
        origin: str = "the model",
    ) -> None:
        super().__init__(VocabularyFile(MARIAN_KIND, {}, vocabulary, normalization))
        self._model = model
        self._processor = sentencepiece.SentencePieceProcessor()
        try:
            # sentencepiece raises four kinds of exceptions, depending on which bytes are wrong.
            self._processor.LoadFromSerializedProto(model)
            self._processor.encode("a", out_type=str)  # a model may load and still not encode
        except (RuntimeError, ValueError, IndexError, TypeError) as error:
            raise BundleError(f"{origin} is not a sentencepiece model: {error}") from error

    @property
    def kind(self) -> Literal["marian"]:
        """``marian``."""
        return MARIAN_KIND

    @property
    def model(self) -> bytes:
        """The sentencepiece model, as sentencepiece writes it."""
        return self._model

    @functools.cached_property
    def codes(self) -> tuple[str, ...]:
        """The codes of target languages in the table, such as ``>>fra<<``, in order; a model for
        one language has none."""
        return tuple(sorted(each for each in self._vocabulary.tokens if _CODE.fullmatch(each)))

    @property
    def fingerprint(self) -> str:
        """SHA-256 over the table and the model, in hexadecimal."""
        # Both decide the ids: the model cuts, the table numbers.
        digest = hashlib.sha256(self._file.content)
        digest.update(self._model)
        return digest.hexdigest()

    def split(self, text: str) -> list[str]:
        """The pieces of ``text``; U+2581 marks a space."""
        # sentencepiece would cut the language code into pieces.
        found = _CODE.match(text) if self.codes else None
        code = found[0] if found else ""

        pieces: list[str] = self._processor.encode(text[len(code) :], out_type=str)
        return [code, *pieces] if code else pieces

    def decode(self, ids: Iterable[int]) -> str:
        """The text of ``ids``, without PAD, BOS and EOS; UNK gives ``[UNK]``.

        Raises DataError if an id is outside the vocabulary.
        """
        return self._join(
            self._vocabulary.decode(id_ for id_ in map(int, ids) if id_ not in SILENT_IDS)
        )

    def normalize(self, text: str) -> str:
        """The text as its pieces give it back. Raises DataError for a lone surrogate."""
        check_text(text)
        return self._join(self.split(self.read(text)))

    def save(self, folder: Path, name: str) -> None:
        """Write ``NAME.vocab.json`` and ``NAME.marian.spm`` (as sentencepiece writes it)."""
        self._file.write(folder, name)
        write_file(_model_path(folder, name), self._model)

    def _join(self, pieces: list[str]) -> str:
        # Pieces that sentencepiece does not know, such as language codes, keep their marks of
        # spaces.
        text: str = self._processor.decode_pieces(pieces)
        return text.replace(_SPACE_MARK, " ").strip()


def has_codes(tokenizer: Tokenizer) -> bool:
    """Whether a text may begin with the code of the language to translate into, as far as the
    vocabulary tells."""
    if isinstance(tokenizer, MarianTokenizer):
        return bool(tokenizer.codes)
    return any(">>" in token for token in tokenizer.tokens(range(tokenizer.vocabulary_size)))


def own_code(text: str, tokenizer: Tokenizer) -> str:
    """The code of the language to translate into, with which a text begins; else empty."""
    code = leading_code(text)
    return code if code and reads_code(tokenizer, code) else ""


def reads_code(tokenizer: Tokenizer, code: str) -> bool:
    """Whether a tokenizer may have learned codes such as ``code`` at the beginning of texts.

    Only a Marian model lists its codes. Subwords learned from text with codes contain their marks,
    as these begin every line; letters and words say nothing.
    """
    if isinstance(tokenizer, MarianTokenizer):
        return bool(tokenizer.codes)
    ids = tokenizer.encode(code)
    if UNK_ID in ids:
        return False
    if tokenizer.kind not in ("bpe", "unigram"):
        return True
    return any(">>" in token for token in tokenizer.tokens(ids))


def load_marian(folder: Path, name: str, file: VocabularyFile) -> MarianTokenizer:
    """Read what ``MarianTokenizer.save`` wrote; ``file`` is its ``NAME.vocab.json``.

    Raises BundleError if the model is missing or invalid, CorruptError if the file has options.
    """
    if file.options:
        raise CorruptError(f"{name}.vocab.json should have no options, has {sorted(file.options)}")
    path = _model_path(folder, name)
    try:
        model = read_plain(path, LARGEST_TABLE)
    except OSError as error:
        raise BundleError(f"cannot read {path}: {error.strerror}") from error
    return MarianTokenizer(model, file.vocabulary, file.normalization, origin=str(path))


def _model_path(folder: Path, name: str) -> Path:
    return folder / f"{name}.marian.spm"
