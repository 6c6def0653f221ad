"""Pretrained word vectors: read from a skip-gram bundle or a file, and copied into a new model."""

import logging
from pathlib import Path

import torch
from torch import Tensor

from pellucid.bundle import Bundle, load_any_bundle
from pellucid.core.errors import BundleError, ConfigError
from pellucid.core.special import SPECIAL_COUNT
from pellucid.model.seq2seq import SequenceModel
from pellucid.model.skipgram import SkipGram
from pellucid.text.tokenizers.interface import Tokenizer
from pellucid.text.vectors import WordVectors, read_vectors

_SQUARABLE = 1e15
"""Float32 can hold a sum of squares of numbers up to here."""

_log = logging.getLogger("pellucid")


def load_vectors(path: Path) -> WordVectors:
    """The vectors of a skip-gram bundle or run folder, or of a file in word2vec's text format.

    Raises InputMissingError, DataError, and BundleError for a bundle of another kind.
    """
    return bundle_vectors(load_any_bundle(path)) if path.is_dir() else read_vectors(path)


def bundle_vectors(bundle: Bundle[SequenceModel]) -> WordVectors:
    """The vectors of all tokens but the special ones. Raises BundleError for other models."""
    if not isinstance(bundle.model, SkipGram):
        kind = bundle.model.config.kind
        raise BundleError(
            f"{bundle.path} holds a model of kind {kind}; word vectors are those of a skipgram"
        )
    size = bundle.target_tokenizer.vocabulary_size
    words = bundle.target_tokenizer.tokens(range(SPECIAL_COUNT, size))
    return WordVectors(tuple(words), bundle.model.w_in[SPECIAL_COUNT:].detach().cpu().numpy())


def start_from_vectors(
    model: SequenceModel, tokenizers: tuple[Tokenizer, Tokenizer], path: Path
) -> None:
    """Initialize the embeddings of ``model`` with the vectors in ``path``, token by token.

    All vectors are scaled by one factor to the standard deviation of new embeddings, d_model^-0.5.
    Raises ConfigError if the sizes differ or no token has a vector, and as ``load_vectors``.
    """
    vectors = load_vectors(path)
    if vectors.matrix.shape[1] != model.config.d_model:
        raise ConfigError(
            f"model.pretrained_vectors must have the size d_model={model.config.d_model},"
            f" got {vectors.matrix.shape[1]} in {path}"
        )

    place = {word: index for index, word in enumerate(vectors.words)}
    rows = as_embeddings(torch.from_numpy(vectors.matrix))

    # A token without a vector keeps its random row.
    for name, tokenizer in zip(("source", "target"), tokenizers, strict=True):
        weight = embedding_of(model, name)
        tokens = tokenizer.tokens(range(tokenizer.vocabulary_size))
        known = [index for index, token in enumerate(tokens) if token in place]
        if not known:
            raise ConfigError(f"no {name} token has a vector in {path}")

        # In place: the embedding may be the output matrix too, and optimizers hold it.
        with torch.no_grad():
            weight[known] = rows[[place[tokens[index]] for index in known]].to(weight)
        _log.info("%d of %d %s tokens begin with a vector", len(known), len(tokens), name)


def as_embeddings(rows: Tensor) -> Tensor:
    """Vectors (word, size) scaled to the standard deviation of new embeddings, size^-0.5."""
    largest = max(float(rows.max()), -float(rows.min())) if len(rows) else 0.0
    if largest > _SQUARABLE:
        rows = rows / largest
    # Vectors that are all equal have no deviation.
    scaled: Tensor = rows * (rows.shape[1] ** -0.5 / rows.std().clamp(min=1e-12))
    return scaled


def embedding_of(model: SequenceModel, side: str) -> Tensor:
    """The embedding matrix of the side ``source`` or ``target``, which may be the same."""
    if isinstance(model, SkipGram):
        return model.w_in

    # Models of plain text have a single embedding for both sides.
    embedding = getattr(model, f"{side}_embedding", None) or getattr(model, "embedding")  # noqa: B009
    weight: Tensor = embedding.weight
    return weight
