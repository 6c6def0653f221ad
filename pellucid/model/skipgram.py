"""Word vectors from neighbors alone (Word2Vec), under the same trainer as everything else."""

from collections.abc import Iterable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from pellucid.core.special import EOS_ID, PAD_ID
from pellucid.equations.fused import fused_linear_cross_entropy
from pellucid.equations.word2vec import keep_probability, noise_distribution
from pellucid.model.config import SkipGramConfig
from pellucid.model.seq2seq import LossSums, SequenceModel

_SHARED_NOISE = 256
"""Noise words drawn for a whole batch, so that one product scores them with all its words."""
_ROWS = 4096
"""Centers scored with the noise at a time, which bounds the memory of an evaluation."""


class SkipGram(SequenceModel):
    """W_in, whose rows are the word vectors, and W_out, which predicts the neighbors.

    EQ: 17.  Source: Agarwal, §2.2; Mikolov et al. (2013b).

    With ``negatives`` > 0 the model learns to tell each pair from noise. In training the noise
    words are drawn once for a batch and weighted, so that the expected loss is the loss with as
    many drawn for each pair; in evaluation that expectation is computed, over the whole vocabulary.
    """

    config: SkipGramConfig

    def __init__(self, config: SkipGramConfig, vocabulary_size: int) -> None:
        super().__init__(config, vocabulary_size, vocabulary_size)
        self.w_in = nn.Parameter(torch.empty(vocabulary_size, config.d_model))
        self.w_out = nn.Parameter(torch.empty(vocabulary_size, config.d_model))
        self.counts = nn.Parameter(torch.ones(vocabulary_size), requires_grad=False)
        """How often each word occurs in the training text; not trained."""

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
        ids = labels.masked_fill(labels == EOS_ID, PAD_ID)
        if self.training and self.config.subsample > 0:
            ids = self._thin_out(ids)

        # (sentence, center, context)
        near = _neighbors(ids, self.config.window)
        pair_count = int(near.sum())

        if self.config.negatives:
            noise, weights = self._noise()
            loss = self.noise_contrast(ids, near, noise, weights)
            return LossSums(loss, loss.detach(), pair_count)

        sentence, center, context = near.nonzero(as_tuple=True)
        loss, likelihood = fused_linear_cross_entropy(
            self.w_in[ids[sentence, center]], self.w_out, None, ids[sentence, context], smoothing
        )
        return LossSums(loss, likelihood, pair_count)

    def noise_contrast(
        self,
        ids: Int[Tensor, "sentence length"],
        near: Bool[Tensor, "sentence length length"],
        noise: Int[Tensor, " drawn"],
        weights: Float[Tensor, " drawn"],
    ) -> Float[Tensor, ""]:
        """``negative_sampling_loss`` over all pairs, each against all ``noise``, weighted."""
        # One look-up for neighbors and noise: each one's gradient is as large as the vocabulary.
        vectors = functional.embedding(ids, self.w_in)  # (sentence, length, size)
        looked_up = functional.embedding(torch.cat([ids.flatten(), noise]), self.w_out)
        contexts, against = torch.split(looked_up, [ids.numel(), len(noise)])
        contexts = contexts.view_as(vectors)

        agreement = vectors @ contexts.transpose(1, 2)  # (sentence, center, context)
        # softplus(-x) = -log σ(x), without overflow
        loss = functional.softplus(-agreement[near]).sum()

        # the noise counts once for each pair, so once for each neighbor of a center
        neighbor_counts = near.sum(dim=2)
        is_center = neighbor_counts > 0
        all_centers = torch.split(vectors[is_center], _ROWS)
        all_counts = torch.split(neighbor_counts[is_center], _ROWS)
        for centers, counts in zip(all_centers, all_counts, strict=True):
            repulsion = functional.softplus(centers @ against.transpose(0, 1))  # (center, drawn)
            loss = loss + counts.to(loss.dtype) @ (repulsion @ weights.to(loss.dtype))
        return loss

    def _noise(self) -> tuple[Int[Tensor, " drawn"], Float[Tensor, " drawn"]]:
        """Noise words and how much each counts; together as much as ``negatives`` words."""
        wanted = self.config.negatives
        chances = noise_distribution(self.counts.detach())
        if not self.training:
            return torch.arange(len(chances), device=chances.device), wanted * chances

        # inverse transform sampling, in float64: many small chances are summed
        ladder = chances.cpu().double().cumsum(0)
        draws = self.dropout_source.uniform(torch.Size([_SHARED_NOISE])).double()
        drawn = torch.searchsorted(ladder, draws * ladder[-1]).clamp(max=len(ladder) - 1)
        return drawn.to(chances.device), torch.full_like(chances[drawn], wanted / _SHARED_NOISE)

    def _thin_out(self, ids: Int[Tensor, "sentence length"]) -> Int[Tensor, "sentence length"]:
        """Leave out frequent words before neighbors are taken; those that stay move together."""
        # a word of the validation text may have no count
        kept_share = keep_probability(self.counts.clamp(min=1.0), self.config.subsample)
        draws = self.dropout_source.uniform(ids.shape).to(ids.device)
        is_kept = (draws < kept_share[ids]) & (ids != PAD_ID)

        # stable: words that stay keep their order, and the gaps move to the end (as in word2vec.c)
        order = torch.argsort((~is_kept).int(), dim=1, stable=True)
        return ids.masked_fill(~is_kept, PAD_ID).gather(1, order)


def _neighbors(
    ids: Int[Tensor, "sentence length"], window: int
) -> Bool[Tensor, "sentence length length"]:
    """Return a mask of the words at most ``window`` apart: the pairs of ``skipgram_pairs``."""
    positions = torch.arange(ids.shape[1], device=ids.device)
    distance = (positions[:, None] - positions).abs()
    is_word = ids != PAD_ID
    return ((distance > 0) & (distance <= window)) & is_word[:, :, None] & is_word[:, None, :]
