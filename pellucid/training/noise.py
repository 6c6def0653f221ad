"""How large the noise in a gradient is beside the gradient itself."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class TwoBatchSizes:
    """Squared norms of two gradients of the mean loss: over few tokens, and over these and more."""

    small_square: float
    """|G_small|²"""
    small_tokens: int
    large_square: float
    """|G_large|²"""
    large_tokens: int


def true_square(seen: TwoBatchSizes) -> float:
    """The squared norm of the gradient without noise, estimated without bias.

        |G|² ≈ (B_large |G_large|² - B_small |G_small|²) / (B_large - B_small)

    EQ: none.  Source: McCandlish et al. (2018), arXiv:1812.06162, Appendix A.1.
    Symbols: B = tokens.
    """
    large, small = seen.large_tokens, seen.small_tokens
    return (large * seen.large_square - small * seen.small_square) / (large - small)


def noise_trace(seen: TwoBatchSizes) -> float:
    """The trace of the covariance of one token's gradient, estimated without bias.

        tr Σ ≈ (|G_small|² - |G_large|²) / (1 / B_small - 1 / B_large)

    EQ: none.  Source: McCandlish et al. (2018), arXiv:1812.06162, Appendix A.1.
    Symbols: B = tokens, Σ = covariance.
    """
    gap = 1.0 / seen.small_tokens - 1.0 / seen.large_tokens
    return (seen.small_square - seen.large_square) / gap


def gradient_noise_scale(trace: float, square: float) -> float | None:
    """The batch in tokens at which noise and gradient are equally large; None if none is seen.

        B_simple = tr Σ / |G|²

    EQ: none.  Source: McCandlish et al. (2018), arXiv:1812.06162, §2.2.
    Symbols: trace = tr Σ, square = |G|². Both are estimates that may come out negative by chance;
    then they say nothing.
    """
    return trace / square if trace > 0.0 and square > 0.0 else None


class NoiseMeter:
    """Sums of both estimates over updates: their ratio is steadier than any one update's."""

    def __init__(self) -> None:
        self._trace = 0.0
        self._square = 0.0

    def add(self, seen: TwoBatchSizes | None) -> None:
        """Count the estimates of one update, if it had two batch sizes."""
        if seen is not None and 0 < seen.small_tokens < seen.large_tokens:
            self._trace += noise_trace(seen)
            self._square += true_square(seen)

    def scale(self) -> float | None:
        """The noise scale over the updates since the last call; then counting starts anew."""
        scale = gradient_noise_scale(self._trace, self._square)
        self._trace, self._square = 0.0, 0.0
        return scale
