"""Word vectors from neighbors alone (Word2Vec), under the same trainer as everything else."""

from collections.abc import Iterable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from pellucid.core.special import EOS_ID, PAD_ID
from pellucid.equations.fused import fused_linear_cross_entropy
from pellucid.equations.fused_word2vec import (
    fused_negative_sampling_loss,
    near_in_blocks,
    window_blocks,
)
from pellucid.equations.word2vec import keep_probability, noise_distribution
from pellucid.model.config import SkipGramConfig
from pellucid.model.seq2seq import LossSums, SequenceModel

_SHARED_NOISE = 64
"""Noise words of a set."""
_SHARING_WORDS = 128
"""About how many centers share a set: their products with it are matrices. With one set for a whole
batch, each of its words would move as far as many of its own, and neighbors would be others
(benchmarks/results/skipgram_speed.md)."""


class SkipGram(SequenceModel):
    """W_in, whose rows are the word vectors, and W_out, which predicts the neighbors.

    EQ: 17.  Source: Agarwal, §2.2; Mikolov et al. (2013b).

    With ``negatives`` > 0 the model learns to tell each pair from noise. In training some hundred
    words share a set of noise words, which are weighted, so that the expected loss is the loss with
    as many drawn for each pair; in evaluation that expectation is computed, over the whole
    vocabulary.
    """

    config: SkipGramConfig

    def __init__(self, config: SkipGramConfig, vocabulary_size: int) -> None:
        super().__init__(config, vocabulary_size, vocabulary_size)
        self.w_in = nn.Parameter(torch.empty(vocabulary_size, config.d_model))
        self.w_out = nn.Parameter(torch.empty(vocabulary_size, config.d_model))
        self.counts = nn.Parameter(torch.ones(vocabulary_size), requires_grad=False)
        """How often each word occurs in the training text; not trained."""
        self.row_gradients = False
        """Whether gradients are sparse tensors of the rows that a batch looks up, and no other."""
        self._ladder: tuple[Tensor, Tensor] | None = None

    def count(self, blocks: Iterable[Int[Tensor, " _"]]) -> None:
        """Count how often each word occurs in the training text, given in blocks of ids."""
        # float32 counts exactly up to 2²⁴ only, and a corpus has more words
        counts = torch.zeros(self.source_vocabulary_size, dtype=torch.int64)
        for ids in blocks:
            counts += torch.bincount(ids, minlength=self.source_vocabulary_size)
        self.counts.data = counts.to(self.counts)

    def loss(
        self,
        source: Int[Tensor, "sentence length"],  # noqa: ARG002  # every model is asked so
        target_input: Int[Tensor, "sentence length"],  # noqa: ARG002
        labels: Int[Tensor, "sentence length"],
        smoothing: float,
        non_padding: Int[Tensor, " real"] | None = None,  # noqa: ARG002
    ) -> LossSums:
        """The negative log-likelihood of the neighbors, summed over (center, context), in nats."""
        # EOS is no word: it is nobody's neighbor
        is_word = (labels != EOS_ID) & (labels != PAD_ID)
        if self.training and self.config.subsample > 0:
            is_word &= self._is_kept(labels)

        # The words that stay move together: they and the sentence of each, between words of none.
        sentence, position = is_word.nonzero(as_tuple=True)
        window = self.config.window
        sets = max(1, round(len(sentence) / _SHARING_WORDS)) if self.training else 1
        blocks, height = window_blocks(len(sentence), window, sets)
        inside = slice(window, window + len(sentence))
        words = labels.new_full(((blocks + 1) * height,), PAD_ID)
        words[inside] = labels[sentence, position]
        sentence_of = torch.full_like(words, -1)
        sentence_of[inside] = sentence

        near = near_in_blocks(sentence_of, height, window)
        pair_count = int(near.sum())

        if self.config.negatives:
            loss = self.noise_contrast(words, near, *self._noise(sets))
            return LossSums(loss, loss.detach(), pair_count)

        block, center, context = near.nonzero(as_tuple=True)
        centers, contexts = words[block * height + center + window], words[block * height + context]
        loss, likelihood = fused_linear_cross_entropy(
            self.w_in[centers], self.w_out, None, contexts, smoothing
        )
        return LossSums(loss, likelihood, pair_count)

    def noise_contrast(
        self,
        words: Int[Tensor, " padded"],
        near: Bool[Tensor, "block center context"],
        noise: Int[Tensor, " noise"],
        weights: Float[Tensor, " drawn"],
    ) -> Float[Tensor, ""]:
        """``negative_sampling_loss`` over all pairs, each against its set of noise, weighted."""
        blocks, height, _ = near.shape
        window = self.config.window
        centers = self._look_up(words[window : window + blocks * height], self.w_in)
        others = self._look_up(torch.cat([words, noise]), self.w_out)
        return fused_negative_sampling_loss(centers, others, near, weights)

    def _look_up(
        self, ids: Int[Tensor, " word"], table: Float[Tensor, "vocabulary size"]
    ) -> Float[Tensor, "word size"]:
        return functional.embedding(ids, table, sparse=self.row_gradients)

    def _noise(self, sets: int = 1) -> tuple[Int[Tensor, " noise"], Float[Tensor, " drawn"]]:
        """Noise words, set after set, and how much each of one counts: as ``negatives`` words."""
        wanted = self.config.negatives
        if not self.training:
            chances = noise_distribution(self.counts.detach())
            return torch.arange(len(chances), device=chances.device), wanted * chances

        # Inverse transform sampling. The sums are made again where the counts have changed.
        counts = self.counts.detach()
        if self._ladder is None or not torch.equal(self._ladder[0], counts):
            # in float64: many small chances are summed
            ladder = noise_distribution(counts).cpu().double().cumsum(0)
            self._ladder = counts.clone(), ladder
        ladder = self._ladder[1]

        draws = self.dropout_source.uniform(torch.Size([sets * _SHARED_NOISE])).double()
        drawn = torch.searchsorted(ladder, draws * ladder[-1]).clamp(max=len(ladder) - 1)
        weights = self.counts.new_full((_SHARED_NOISE,), wanted / _SHARED_NOISE)
        return drawn.to(self.counts.device), weights

    def _is_kept(self, ids: Int[Tensor, "sentence length"]) -> Bool[Tensor, "sentence length"]:
        """Whether each word stays as frequent ones are thinned out, before neighbors are taken."""
        # a word of the validation text may have no count
        kept_share = keep_probability(self.counts.clamp(min=1.0), self.config.subsample)
        draws = self.dropout_source.uniform(ids.shape).to(ids.device)
        return draws < kept_share[ids]
