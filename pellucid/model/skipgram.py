"""Word vectors from neighbors alone (Word2Vec), under the same trainer as everything else."""

import dataclasses
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

_SHARED_NOISE = 38
"""Noise words that the centers of a block share. Beside the 26 words of its window they make 64, of
which products are fast. With fewer of them, neighbors would be others, and with as many for more
centers (benchmarks/results/skipgram_speed.md)."""
_ROWS = 512
"""Centers scored with the whole vocabulary at a time, which bounds the memory of an evaluation."""


class SkipGram(SequenceModel):
    """W_in, whose rows are the word vectors, and W_out, which predicts the neighbors.

    EQ: 17.  Source: Agarwal, §2.2; Mikolov et al. (2013b).

    With ``negatives`` > 0 the model learns to tell each pair from noise. In training some words in
    a row share a few noise words, which are weighted, so that the expected loss is the loss with as
    many drawn for each pair; in evaluation that expectation is computed, over the whole vocabulary.
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
        self._chances: _Chances | None = None

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
        blocks, height = window_blocks(len(sentence), window)
        inside = slice(window, window + len(sentence))
        words = labels.new_full(((blocks + 1) * height,), PAD_ID)
        words[inside] = labels[sentence, position]
        sentence_of = torch.full_like(words, -1)
        sentence_of[inside] = sentence

        near = near_in_blocks(sentence_of, height, window)
        pair_count = int(near.sum())

        if self.config.negatives and self.training:
            noise = self._drawn_noise(blocks)
            loss = self.noise_contrast(words, near, noise, self.config.negatives / _SHARED_NOISE)
            return LossSums(loss, loss.detach(), pair_count)

        block, center, context = near.nonzero(as_tuple=True)
        centers, contexts = words[block * height + center + window], words[block * height + context]
        if self.config.negatives:
            loss = self._expected_contrast(centers, contexts)
            return LossSums(loss, loss.detach(), pair_count)

        loss, likelihood = fused_linear_cross_entropy(
            self.w_in[centers], self.w_out, None, contexts, smoothing
        )
        return LossSums(loss, likelihood, pair_count)

    def noise_contrast(
        self,
        words: Int[Tensor, " padded"],
        near: Bool[Tensor, "block center context"],
        noise: Int[Tensor, "block noise"],
        weight: float,
    ) -> Float[Tensor, ""]:
        """``negative_sampling_loss`` over all pairs, each against its block's noise, weighted."""
        blocks, height, width = near.shape
        window = self.config.window
        center = words[window : window + blocks * height].view(blocks, height)
        others = torch.cat([words.unfold(0, width, height), noise], dim=1)
        return fused_negative_sampling_loss(
            center, others, near, weight, self.w_in, self.w_out, row_gradients=self.row_gradients
        )

    def _expected_contrast(
        self, centers: Int[Tensor, " pair"], contexts: Int[Tensor, " pair"]
    ) -> Float[Tensor, ""]:
        """``negative_sampling_loss`` of all pairs, its mean over all noise that can be drawn."""
        agreement = (self.w_in[centers] * self.w_out[contexts]).sum(dim=1)
        loss = functional.softplus(-agreement).sum()

        # a center's noise does not depend on the neighbor
        center, pair_count = torch.unique(centers, return_counts=True)
        expected_count = self.config.negatives * noise_distribution(self.counts)
        for ids, counts in zip(center.split(_ROWS), pair_count.split(_ROWS), strict=True):
            repulsion = functional.softplus(self.w_in[ids] @ self.w_out.T) @ expected_count
            loss = loss + (repulsion * counts).sum()
        return loss

    def _drawn_noise(self, blocks: int) -> Int[Tensor, "block noise"]:
        """Noise words for each block, drawn from the noise distribution."""
        # inverse transform sampling
        ladder = self._known_chances().ladder
        draws = self.dropout_source.uniform(torch.Size((blocks, _SHARED_NOISE))).double()
        drawn = torch.searchsorted(ladder, draws * ladder[-1]).clamp(max=len(ladder) - 1)
        return drawn.to(self.counts.device)

    def _is_kept(self, ids: Int[Tensor, "sentence length"]) -> Bool[Tensor, "sentence length"]:
        """Whether each word stays as frequent ones are thinned out, before neighbors are taken."""
        draws = self.dropout_source.uniform(ids.shape).to(ids.device)
        return draws < self._known_chances().kept[ids]

    def _known_chances(self) -> "_Chances":
        """The chances of the words, computed again where the counts have changed."""
        counts = self.counts.detach()
        if self._chances is None or not torch.equal(self._chances.counts, counts):
            self._chances = _Chances(
                counts.clone(),
                # in float64: many small chances are summed
                noise_distribution(counts).cpu().double().cumsum(0),
                # a word of the validation text may have no count
                keep_probability(counts.clamp(min=1.0), self.config.subsample),
            )
        return self._chances


@dataclasses.dataclass(frozen=True)
class _Chances:
    """The chances of words, computed from their counts."""

    counts: Float[Tensor, " vocabulary"]
    ladder: Float[Tensor, " vocabulary"]
    """The chances of noise words, summed up to each."""
    kept: Float[Tensor, " vocabulary"]
    """The chance that an occurrence stays."""
