"""The fast twin of losses with several passes or a teacher, without all logits in memory."""

import dataclasses

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from pellucid.equations.fused import GradientsInForward, apply_loss, rounded_up

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
class LossTerms:
    """The terms of the loss."""

    smoothing: float
    """ε of the smoothed labels."""
    r_drop: float = 0.0
    """α: the weight of the divergence between two passes; used if there are two."""
    teacher: TeacherRows | None = None
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

    Twin of ``smoothed_cross_entropy``, ``r_drop_loss``, ``simcut_loss`` and ``distillation_loss``
    over the last linear map. The gradients are computed in the same pass, from

        ∂CE/∂z = p - q,   ∂D/∂z = T (softmax(z / T) - softmax(z′ / T)),
        ∂KL(p ‖ p′)/∂z = p ∘ (log p - log p′ - KL(p ‖ p′)),   ∂KL(p ‖ p′)/∂z′ = p′ - p

    Only the first of the two results carries a gradient; none reaches the teacher.

    EQ: 112, 113, 118, 119, 120.  Source: Liang et al. (2021); Gao et al. (2022); Hinton
    et al. (2015).
    Symbols: w, T, α, ε as in ``TeacherRows`` and ``LossTerms``; z′ᵢ the teacher's logits.
    Law: tests/laws/test_fused_views_equal_clear.py.
    """
    return apply_loss(_LossOfViews, hidden, weight, bias, labels, terms)


class _LossOfViews(GradientsInForward):
    """Computes its gradients in the forward pass, while a chunk of logits is in memory.

    Matrix products are in ``dtype``, everything else in the dtype of ``hidden``.
    """

    @staticmethod
    def forward(ctx, hidden, weight, bias, labels, terms, dtype):  # type: ignore[no-untyped-def]
        """The loss and its first term; the gradients are kept for ``backward``."""
        needs_gradient = any(ctx.needs_input_grad)
        views, row_count, _ = hidden.shape
        narrow_hidden, narrow_weight = rounded_up(hidden, dtype), weight.to(dtype)

        to_hidden = torch.empty_like(hidden) if needs_gradient else None
        to_weight = torch.zeros_like(weight) if needs_gradient else None
        to_bias = torch.zeros_like(bias) if needs_gradient and bias is not None else None

        loss = torch.zeros((), dtype=hidden.dtype, device=hidden.device)
        likelihood = torch.zeros_like(loss)
        teacher = _narrow(terms.teacher, dtype)

        # (view, row, d_model) is cut along the rows, so memory holds ``step`` rows of each view
        step = max(1, _CHUNK_ROWS // views)
        for first in range(0, row_count, step):
            rows, filled = slice(first, min(first + step, row_count)), slice(first, first + step)
            count, narrow_rows = rows.stop - first, narrow_hidden[:, filled]
            logits = _logits(narrow_rows, narrow_weight, bias, hidden.dtype)[:, :count]

            taught = None
            if teacher is not None:
                taught = _teacher_log_p(teacher, filled, hidden.dtype)[:count]

            chunk = _Chunk(functional.log_softmax(logits, dim=-1), labels[rows], terms)
            loss += chunk.loss(taught)
            likelihood += chunk.likelihood

            if to_hidden is not None and to_weight is not None:
                wide = chunk.gradient(taught)  # (view, row, vocabulary)
                # padded like the rows it is multiplied with
                narrow = _with_zeros(wide.to(dtype), narrow_rows.shape[1] - count)
                to_hidden[:, rows] = (narrow @ narrow_weight)[:, :count].to(hidden.dtype)
                to_weight += narrow.flatten(0, 1).T @ narrow_rows.flatten(0, 1)
                if to_bias is not None:
                    to_bias += wide.sum(dim=(0, 1))

        if needs_gradient:
            ctx.save_for_backward(to_hidden, to_weight, to_bias)
        ctx.mark_non_differentiable(likelihood)
        return loss, likelihood


class _Chunk:
    """The loss of some rows of log-probabilities of all passes, and its gradient."""

    def __init__(self, log_p: Tensor, labels: Tensor, terms: LossTerms) -> None:
        self._log_p = log_p  # (view, row, vocabulary)
        self._labels = labels
        self._terms = terms
        self._share = 0.0 if terms.teacher is None else terms.teacher.share

        # weights of KL(first ‖ second) and of the other direction
        self._there, self._back = 0.0, 0.0
        if log_p.shape[0] > 1:
            # α/4 for each direction, as in ``r_drop_loss``
            self._there, self._back = terms.r_drop / 4 + terms.simcut, terms.r_drop / 4

        # the passes that labels and teacher are compared with; a cut one of SimCut is not
        self._held = 1 if terms.simcut else log_p.shape[0]
        chosen = log_p[: self._held].gather(2, self._index())
        self.likelihood = -chosen.sum() / self._held

        self._soft: Tensor | None = None
        self._agreement = _Agreement(log_p) if self._there else None

    def loss(self, taught: Tensor | None) -> Tensor:
        """The chunk's part of the sum; ``taught`` are the teacher's softened log-probabilities."""
        smoothing = self._terms.smoothing
        loss = (1.0 - smoothing) * self.likelihood
        if smoothing:
            loss = loss - smoothing * self._log_p[: self._held].mean(dim=2).sum() / self._held

        loss = (1.0 - self._share) * loss
        if self._agreement is not None:
            loss = loss + self._there * self._agreement.there.sum()
            if self._back:
                loss = loss + self._back * self._agreement.back.sum()

        if taught is not None and self._terms.teacher is not None:
            # times T², so that its gradient does not shrink with T (Hinton et al., 2015, §2)
            temperature = self._terms.teacher.temperature
            divergences = taught.exp() * (taught - self._softened(temperature))
            loss = loss + self._share * temperature**2 * divergences.sum() / self._held
        return loss

    def gradient(self, taught: Tensor | None) -> Tensor:
        """The gradient with respect to the logits of each pass: (view, row, vocabulary)."""
        terms, kept = self._terms, (1.0 - self._share) / self._held
        p = self._log_p.exp() if self._agreement is None else self._agreement.p

        # p - q, where q is the smoothed label; of a pass that is not held to it nothing
        gradient = p * kept
        gradient[self._held :] = 0.0
        held = gradient[: self._held]
        if terms.smoothing:
            held -= kept * terms.smoothing / p.shape[2]
        index = self._index()
        right = torch.full_like(index, -kept * (1.0 - terms.smoothing), dtype=p.dtype)
        # at the label of each row: -(1 - ε) of the part that the labels have
        held.scatter_add_(2, index, right)

        if self._agreement is not None:
            self._agreement.add_gradient(gradient, self._there, self._back)

        if taught is not None and terms.teacher is not None:
            temperature = terms.teacher.temperature
            soft = p[: self._held] if temperature == 1.0 else self._softened(temperature).exp()
            held += self._share * temperature / self._held * (soft - taught.exp())
        return gradient

    def _index(self) -> Tensor:
        """The labels of the passes that are held to them: (held view, row, 1)."""
        return self._labels.expand(self._held, -1).unsqueeze(2)

    def _softened(self, temperature: float) -> Tensor:
        log_p = self._log_p[: self._held]
        if temperature == 1.0:
            return log_p
        if self._soft is None:
            # log p differs from the logits by a constant in each row, which softmax ignores
            self._soft = functional.log_softmax(log_p / temperature, dim=-1)
        return self._soft


class _Agreement:
    """The KL divergence between two passes for each row, ``there`` and ``back``."""

    def __init__(self, log_p: Tensor) -> None:
        self.p = log_p.exp()  # (view, row, vocabulary)
        self._ratio = log_p[0] - log_p[1]
        self.there = torch.linalg.vecdot(self.p[0], self._ratio)
        self.back = -torch.linalg.vecdot(self.p[1], self._ratio)

    def add_gradient(self, gradient: Tensor, there: float, back: float) -> None:
        """Add the gradient of there · KL(p ‖ p′) + back · KL(p′ ‖ p) in place; only once."""
        first, second = self.p
        first_factor = self._ratio - self.there.unsqueeze(1)
        gradient[0].addcmul_(first, first_factor, value=there)
        gradient[1].add_(second, alpha=there).sub_(first, alpha=there)
        if not back:
            return

        # in place: the ratio is as large as the logits of the chunk, and is not needed again
        second_factor = self._ratio.add_(self.back.unsqueeze(1)).neg_()
        gradient[1].addcmul_(second, second_factor, value=back)
        gradient[0].add_(first, alpha=back).sub_(second, alpha=back)


def _logits(hidden: Tensor, weight: Tensor, bias: Tensor | None, dtype: torch.dtype) -> Tensor:
    logits = functional.linear(hidden, weight).to(dtype)
    return logits if bias is None else logits.add_(bias)


def _narrow(teacher: TeacherRows | None, dtype: torch.dtype) -> TeacherRows | None:
    if teacher is None:
        return None
    hidden, weight = rounded_up(teacher.hidden, dtype), teacher.weight.to(dtype)
    return dataclasses.replace(teacher, hidden=hidden, weight=weight)


def _with_zeros(rows: Tensor, count: int) -> Tensor:
    """``rows``, followed by ``count`` rows of zeros."""
    return functional.pad(rows, (0, 0, 0, count)) if count else rows


def _teacher_log_p(teacher: TeacherRows, rows: slice, dtype: torch.dtype) -> Tensor:
    """The teacher's softened log-probabilities at ``rows``; (row, vocabulary)."""
    logits = _logits(teacher.hidden[rows], teacher.weight, teacher.bias, dtype)
    return functional.log_softmax(logits / teacher.temperature, dim=-1)
