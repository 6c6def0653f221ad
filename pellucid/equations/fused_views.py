"""The fast twin of losses with several passes or a teacher, without all logits in memory."""

import dataclasses

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from pellucid.equations.fused import (
    GradientsInForward,
    apply_loss,
    log_normalizers,
    rounded_up,
)

_CHUNK_ROWS = 1024
"""Rows of logits held at once, for all passes together, as in ``fused``."""


@dataclasses.dataclass(frozen=True)
class TeacherRows:
    """The predictions of a teacher model at the same positions, and their weight in the loss."""

    hidden: Float[Tensor, "row teacher_size"]
    weight: Float[Tensor, "vocabulary teacher_size"]
    bias: Float[Tensor, " vocabulary"] | None
    share: float
    """w: the part of the loss that comes from the teacher."""
    temperature: float
    """T: both distributions are softened by it."""


@dataclasses.dataclass(frozen=True)
class TopKRows:
    """The likeliest tokens of a teacher at the same positions, and their weight in the loss."""

    logits: Float[Tensor, "row k"]
    tokens: Int[Tensor, "row k"]
    """The ids of these tokens; no id comes twice in a row."""
    share: float
    """w, as in ``TeacherRows``."""
    temperature: float
    """T, as in ``TeacherRows``."""


@dataclasses.dataclass(frozen=True)
class LossTerms:
    """The terms of the loss."""

    smoothing: float
    """ε of the smoothed labels."""
    r_drop: float = 0.0
    """α of R-Drop or of a cipher: the weight of the divergence between two passes; used if there
    are two."""
    teacher: TeacherRows | TopKRows | None = None
    simcut: float = 0.0
    """α of SimCut, used if there are two passes: the weight of KL(first ‖ second). Then the first
    pass alone is held to the labels and to the teacher."""


def fused_linear_loss_of_views(
    hidden: Float[Tensor, "view row d_model"],
    weight: Float[Tensor, "vocabulary d_model"],
    bias: Float[Tensor, " vocabulary"] | None,
    labels: Int[Tensor, " row"],
    terms: LossTerms,
) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
    """Summed loss of one or two passes, and their mean plain cross-entropy, chunk by chunk.

        L = Σᵢ mean over passes of [(1 - w) CE(qᵢ, pᵢ) + w D(zᵢ, z′ᵢ)] + α/4 Σᵢ J(pᵢ, p′ᵢ)

    With SimCut the mean is over the first pass alone, and the divergence is α Σᵢ KL(pᵢ ‖ p′ᵢ).

    Twin of ``smoothed_cross_entropy``, ``r_drop_loss``, ``cipher_loss``, ``simcut_loss``,
    ``distillation_loss`` and ``top_k_distillation_loss`` over the last linear map. The gradients
    are computed in the same pass, from

        ∂CE/∂z = p - q,   ∂D/∂z = T (softmax(z / T) - softmax(z′ / T)),
        ∂KL(p ‖ p′)/∂z = p ∘ (log p - log p′ - KL(p ‖ p′)),   ∂KL(p ‖ p′)/∂z′ = p′ - p

    Only the first of the two results carries a gradient; none reaches the teacher.

    EQ: 112, 113, 118, 119, 120.  Source: Liang et al. (2021); Gao et al. (2022); Hinton
    et al. (2015); Tan et al. (2019) for the tokens of ``TopKRows``.
    Symbols: w, T, α, ε as in ``TeacherRows`` and ``LossTerms``; z′ᵢ the teacher's logits.
    Law: tests/laws/test_fused_views_equal_clear.py.
    """
    return apply_loss(_LossOfViews, hidden, weight, bias, labels, terms)


class _LossOfViews(GradientsInForward):
    """Computes its gradients in the forward pass, while a chunk of probabilities is in memory.

    Matrix products and probabilities are in ``dtype``, everything else in the dtype of ``hidden``.
    """

    @staticmethod
    def forward(ctx, hidden, weight, bias, labels, terms, dtype):  # type: ignore[no-untyped-def]
        """The loss and its first term; the gradients are kept for ``backward``."""
        needs_gradient = any(ctx.needs_input_grad)
        views, row_count, _ = hidden.shape
        narrow_hidden, narrow_weight = rounded_up(hidden, dtype), weight.to(dtype)
        label_loss = _LabelLoss(hidden, weight, bias, labels, terms)

        to_hidden = torch.empty_like(hidden) if needs_gradient else None
        to_weight = torch.zeros_like(weight) if needs_gradient else None
        to_bias = torch.zeros_like(bias) if needs_gradient and bias is not None else None

        loss = torch.zeros((), dtype=hidden.dtype, device=hidden.device)
        teacher = terms.teacher
        if isinstance(teacher, TeacherRows):
            teacher = _narrow(teacher, hidden.dtype, dtype)

        # (view, row, d_model) is cut along the rows, so memory holds ``step`` rows of each view
        step = max(1, _CHUNK_ROWS // views)
        for first in range(0, row_count, step):
            # ``rows`` ends with the data, ``filled`` with the rows of zeros that round it up
            rows, filled = slice(first, min(first + step, row_count)), slice(first, first + step)
            # all passes together as one matrix: products of several small ones are slower
            narrow_rows = narrow_hidden[:, filled].flatten(0, 1)
            logits = _logits(narrow_rows, narrow_weight, bias).view(views, -1, len(weight))
            chunk = _Chunk(logits, labels[rows], terms, hidden.dtype)

            label_loss.add(rows, chunk)
            loss += chunk.disagreement()
            if isinstance(teacher, TeacherRows):
                taught = _logits(teacher.hidden[filled], teacher.weight, teacher.bias)
                loss += chunk.learned_from(taught)
            elif teacher is not None:
                loss += chunk.learned_from_top(teacher.logits[rows], teacher.tokens[rows])

            if to_hidden is not None and to_weight is not None:
                gradient = chunk.gradient().flatten(0, 1)  # (view · filled, vocabulary)
                to_rows = (gradient @ narrow_weight).view(views, -1, weight.shape[1])
                to_hidden[:, rows] = to_rows[:, : chunk.count].to(hidden.dtype)
                to_weight += gradient.T @ narrow_rows
                if to_bias is not None:
                    to_bias += gradient.sum(dim=0, dtype=to_bias.dtype)

        if to_hidden is not None and to_weight is not None:
            label_loss.subtract_labels(to_hidden, to_weight, to_bias)
            ctx.save_for_backward(to_hidden, to_weight, to_bias)
        ctx.mark_non_differentiable(label_loss.likelihood)
        return loss + label_loss.loss(), label_loss.likelihood


class _LabelLoss:
    """The part of the loss that compares with the labels, the mean over the passes held to them.

    As in ``fused_linear_cross_entropy`` its gradient is the softmax, which ``_Chunk`` has, less
    what the labels and the smoothing say, which is linear: no one-hot matrix is made.
    """

    def __init__(
        self, hidden: Tensor, weight: Tensor, bias: Tensor | None, labels: Tensor, terms: LossTerms
    ) -> None:
        self._held = _held(terms, len(hidden))
        self._share = _label_share(terms)
        self._smoothing = terms.smoothing
        self._hidden, self._weight, self._labels = hidden[: self._held], weight, labels

        # the uniform part of the smoothing needs only the mean logit, which is linear in these
        self._mean_weight = weight.mean(dim=0)
        self._mean_bias = bias.mean() if bias is not None else 0.0
        self.likelihood = torch.zeros((), dtype=hidden.dtype, device=hidden.device)
        self._uniform = torch.zeros_like(self.likelihood)

    def add(self, rows: slice, chunk: "_Chunk") -> None:
        """Add a chunk's cross-entropy to the sums."""
        normalizers = chunk.normalizers[: self._held]  # (held view, row)
        means = self._hidden[:, rows] @ self._mean_weight + self._mean_bias
        self.likelihood += (normalizers - chunk.label_logits[: self._held]).sum() / self._held
        self._uniform += (normalizers - means).sum() / self._held

    def loss(self) -> Tensor:
        """(1 - ε) CE against the label + ε CE against the uniform distribution, with its weight."""
        mixed = (1.0 - self._smoothing) * self.likelihood + self._smoothing * self._uniform
        return self._share * mixed

    def subtract_labels(self, to_hidden: Tensor, to_weight: Tensor, to_bias: Tensor | None) -> None:
        """Subtract what labels and smoothing say from the gradients of the softmax, in place."""
        share, words = self._share / self._held, len(self._weight)
        kept, spread = share * (1.0 - self._smoothing), share * self._smoothing
        to_hidden[: self._held] -= kept * self._weight[self._labels] + spread * self._mean_weight

        # in one pass over all rows
        labels = self._labels.repeat(self._held)
        to_weight.index_add_(0, labels, self._hidden.flatten(0, 1), alpha=-kept)
        to_weight -= spread / words * self._hidden.sum(dim=(0, 1))
        if to_bias is not None:
            to_bias.index_add_(0, labels, torch.ones_like(labels, dtype=to_bias.dtype), alpha=-kept)
            to_bias -= spread / words * len(labels)


class _Chunk:
    """Some rows of all passes: their part of the loss, and its gradient with respect to the logits.

    Rows beyond ``count`` are those of zeros that round a product up. Their probabilities are zero,
    so that nothing of them reaches a gradient.
    """

    def __init__(
        self, logits: Tensor, labels: Tensor, terms: LossTerms, dtype: torch.dtype
    ) -> None:
        self._logits = logits  # (view, filled, vocabulary)
        self._columns = labels.unsqueeze(1)
        self._terms = terms
        self._dtype = dtype
        self._held = _held(terms, len(logits))

        self.count = len(labels)
        self._p = self._probabilities(logits)
        self.label_logits = self._at_labels(logits)  # (view, row)
        self.normalizers = self._log_normalizers(logits, self._p)  # (view, row)

        # weights of the forward divergence KL(first ‖ second) and of the reverse one
        self._forward, self._reverse = 0.0, 0.0
        if len(logits) > 1:
            # α/4 for each direction, as in ``r_drop_loss``
            self._forward, self._reverse = terms.r_drop / 4 + terms.simcut, terms.r_drop / 4

        # what the loss needs, and the gradient needs again
        self._difference: Tensor | None = None  # z - z′ of the two passes
        self._mean_differences: Tensor | None = None
        self._softened: Tensor | None = None  # softmax(z / T) of the passes held to the teacher
        self._wanted: Tensor | None = None  # the teacher's probabilities, of all tokens or of these
        self._tokens: Tensor | None = None

    def disagreement(self) -> Tensor | float:
        """The weighted KL divergences of two passes, summed over the rows; 0 if they have none.

        log p - log p′ = (z - z′) - (a - a′), where a is log Σ exp(z) of the row.
        """
        if not self._forward:
            return 0.0

        self._difference = self._logits[0] - self._logits[1]  # (filled, vocabulary)
        self._mean_differences = self._dot(self._p, self._difference)  # (view, filled)
        shift = self.normalizers[0] - self.normalizers[1]  # (row)
        forward, reverse = (self._mean_differences[:, : self.count] - shift).unbind()
        # KL(p′ ‖ p) is Σ p′ (log p′ - log p), with both signs turned
        return self._forward * forward.sum() - self._reverse * reverse.sum()

    def learned_from(self, taught: Tensor) -> Tensor:
        """The weighted divergence from a teacher whose logits are ``taught`` (filled, vocabulary).

        KL(softmax(z′ / T) ‖ softmax(z / T)), made as in ``disagreement``.
        """
        terms = self._terms.teacher
        assert terms is not None
        logits, normalizers = self._soften(terms.temperature)
        taught = taught.unsqueeze(0)
        taught = taught if terms.temperature == 1.0 else taught / terms.temperature
        self._wanted = self._probabilities(taught)

        shift = self._log_normalizers(taught, self._wanted) - normalizers
        divergences = self._dot(self._wanted, taught - logits)[:, : self.count] - shift
        # times T², so that its gradient does not shrink with T (Hinton et al., 2015, §2)
        return terms.share * terms.temperature**2 * divergences.sum() / self._held

    def learned_from_top(self, taught: Tensor, tokens: Tensor) -> Tensor:
        """The weighted divergence from a teacher whose likeliest ``tokens`` (row, k) are known.

        ``taught`` are their logits. Σ q (log q - z / T) + a over these tokens alone, where a is the
        student's log Σ exp(z / T): no row as long as the vocabulary is made for the teacher.
        """
        terms = self._terms.teacher
        assert terms is not None
        logits, normalizers = self._soften(terms.temperature)
        log_wanted = (taught.to(self._dtype) / terms.temperature).log_softmax(dim=-1)
        self._wanted, self._tokens = log_wanted.exp(), tokens.expand(self._held, -1, -1)

        own = logits[:, : self.count].gather(2, self._tokens).to(self._dtype)  # (held, row, k)
        divergences = (self._wanted * (log_wanted - own)).sum(dim=-1) + normalizers
        return terms.share * terms.temperature**2 * divergences.sum() / self._held

    def _soften(self, temperature: float) -> tuple[Tensor, Tensor]:
        """z / T of the passes held to the teacher, and log Σ exp(z / T) of their real rows."""
        logits, normalizers = self._logits[: self._held], self.normalizers[: self._held]
        self._softened = self._p[: self._held]

        # at temperature 1 the student's probabilities are there already
        if temperature != 1.0:
            logits = logits / temperature
            self._softened = self._probabilities(logits)
            normalizers = self._log_normalizers(logits, self._softened)
        return logits, normalizers

    def gradient(self) -> Tensor:
        """The gradient with respect to the logits (view, filled, vocabulary), without the labels.

        It has softmax(z) of the cross-entropy; ``_LabelLoss.subtract_labels`` adds the rest.
        """
        share = _label_share(self._terms) / self._held
        gradient = self._p * share if self._difference is None else self._of_both_passes(share)

        teacher = self._terms.teacher
        if teacher is None or self._softened is None or self._wanted is None:
            return gradient

        weight = teacher.share * teacher.temperature / self._held
        held = gradient[: self._held].add_(self._softened, alpha=weight)
        if self._tokens is None:
            held.sub_(self._wanted, alpha=weight)
        else:
            wanted = (-weight * self._wanted).to(held.dtype).expand(self._held, -1, -1)
            held[:, : self.count].scatter_add_(2, self._tokens, wanted)
        return gradient

    def _of_both_passes(self, share: float) -> Tensor:
        """The softmax of the passes that are held to the labels, and the divergences' gradients.

        With d = z - z′, and the weights f and r of the forward and the reverse divergence, that is
        p ∘ (share + f (d - Σ p d)) + r (p - p′) for the first pass, and
        p′ ∘ (share - r (d - Σ p′ d)) + f (p′ - p) for the second.
        """
        assert self._difference is not None
        assert self._mean_differences is not None
        gradient = torch.empty_like(self._p)
        first, second = self._p
        shares = share, share if self._held > 1 else 0.0

        for view, (own, other, as_left, as_right) in enumerate(
            (
                (first, second, self._forward, self._reverse),
                (second, first, -self._reverse, self._forward),
            )
        ):
            # the divergence whose left argument the pass is, and the one whose right argument
            factors = shares[view] + as_right - as_left * self._mean_differences[view]
            part = torch.mul(own, factors.to(own.dtype).unsqueeze(1), out=gradient[view])
            if as_left:
                part.addcmul_(own, self._difference, value=as_left)
            if as_right:
                part.sub_(other, alpha=as_right)
        return gradient

    def _probabilities(self, logits: Tensor) -> Tensor:
        p = logits.softmax(dim=-1)
        p[:, self.count :] = 0.0
        return p

    def _at_labels(self, logits: Tensor) -> Tensor:
        columns = self._columns.expand(len(logits), -1, -1)
        return logits[:, : self.count].gather(2, columns).squeeze(2).to(self._dtype)

    def _log_normalizers(self, logits: Tensor, p: Tensor) -> Tensor:
        """log Σ exp(z) of each real row: (view, row)."""
        real = zip(logits[:, : self.count], p[:, : self.count], strict=True)
        return torch.stack(
            [log_normalizers(own, probable, self._columns, self._dtype) for own, probable in real]
        )

    def _dot(self, p: Tensor, values: Tensor) -> Tensor:
        """Σ p · values of each row, summed in the wide dtype; (view, filled)."""
        return (p * values).sum(dim=-1, dtype=self._dtype)


def _held(terms: LossTerms, views: int) -> int:
    """How many passes are compared with labels and teacher: a cut one of SimCut is not."""
    return 1 if terms.simcut else views


def _label_share(terms: LossTerms) -> float:
    """The part of the loss that the labels have beside a teacher."""
    return 1.0 if terms.teacher is None else 1.0 - terms.teacher.share


def _logits(hidden: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    logits = functional.linear(hidden, weight)
    return logits if bias is None else logits.add_(bias)


def _narrow(teacher: TeacherRows, wide: torch.dtype, dtype: torch.dtype) -> TeacherRows:
    # autocast may have left its hidden states narrow, and they need the same rows of zeros
    hidden, weight = rounded_up(teacher.hidden.to(wide), dtype), teacher.weight.to(dtype)
    return dataclasses.replace(teacher, hidden=hidden, weight=weight)
