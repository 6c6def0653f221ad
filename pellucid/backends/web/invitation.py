"""The text a page opens with: a sentence that the run has shown, or words that the model knows."""

from pellucid.backends.example_program import whole_words
from pellucid.bundle import Bundle
from pellucid.core.errors import DataError, InputMissingError
from pellucid.core.run_names import BUNDLES_FOLDER
from pellucid.core.special import UNK_ID
from pellucid.decoding.plain_text import MASK
from pellucid.model.config import DecoderConfig
from pellucid.model.seq2seq import SequenceModel
from pellucid.text.tokenizers.interface import Tokenizer
from pellucid.training.journal import read_history

_MOST_CHARACTERS = 120
_MOST_TOKENS = 24
"""The limit on tokens of an example: every row of the picture is to be seen on one screen."""
_WORDS = 8


def sample_of_run(bundle: Bundle[SequenceModel]) -> str:
    """The last sentence that the run of ``bundle`` showed at a validation; empty if none will do.

    A sentence will do if it is short and the model knows every token of it. A bundle that lies in
    no run folder has no past to choose from.
    """
    if bundle.path is None or bundle.path.parent.name != BUNDLES_FOLDER:
        return ""
    try:
        validations = read_history(bundle.path.parent.parent).validations
    except InputMissingError:
        return ""
    tokenizer = _reader(bundle)
    for event in reversed(validations):
        match event.get("sample"):
            case [str(text), *_] if _will_do(text, tokenizer):
                return text
    return ""


def known_words(bundle: Bundle[SequenceModel]) -> list[str]:
    """A few words that are one token each, for a reader who does not know what the model knows."""
    return whole_words(_reader(bundle))[:_WORDS]


def _reader(bundle: Bundle[SequenceModel]) -> Tokenizer:
    """The tokenizer of the text that a page asks for."""
    is_decoder = isinstance(bundle.config, DecoderConfig)
    return bundle.target_tokenizer if is_decoder else bundle.source_tokenizer


def _will_do(text: str, tokenizer: Tokenizer) -> bool:
    if not text.strip() or len(text) > _MOST_CHARACTERS or not text.isprintable():
        return False
    try:
        ids = tokenizer.encode(text.replace(MASK, " "))
    except DataError:  # a lone surrogate, which JSON may hold
        return False
    return 0 < len(ids) <= _MOST_TOKENS and UNK_ID not in ids
