"""The cost of a layer: multiplications, sequential steps, the way between two words, memory.

A multiplication stands for itself and the addition that follows it; what softmaxes, norms and
activations compute is left out, as in the paper. n is the length and d the width of the rows.
"""

from pellucid.core.errors import ConfigError


def self_attention_operations(queries: int, keys: int, d_model: int) -> int:
    """The multiplications of attention itself: scores, and weighted values.

        n · n · d for Q Kᵀ, and n · n · d for A V:   2 n² d

    EQ: none.  Source: Vaswani et al. (2017), §4, Table 1, "Self-Attention": O(n² · d).
    Symbols: queries = n, keys = n, or in cross-attention another length; d_model = d, over all
    heads together: h heads of d/h columns multiply as much as one of d.
    """
    return 2 * queries * keys * d_model


def projection_operations(queries: int, keys: int, d_model: int) -> int:
    """The multiplications of the four matrices around attention.

        n d² for each of W^Q, W^K, W^V and W^O:   4 n d²

    EQ: none.  Source: derived; Table 1 of Vaswani et al. (2017) leaves them out.
    Symbols: queries = rows that W^Q and W^O multiply, keys = rows of W^K and W^V, d_model = d.
    """
    return 2 * (queries + keys) * d_model**2


def restricted_attention_operations(length: int, d_model: int, window: int) -> int:
    """The multiplications of attention in which each word attends to r words only.

        2 r n d

    EQ: none.  Source: Vaswani et al. (2017), §4, Table 1, "Self-Attention (restricted)".
    Symbols: length = n, d_model = d, window = r; at most n words can be attended to.
    """
    return 2 * length * min(window, length) * d_model


def recurrence_operations(length: int, d_model: int, gates: int) -> int:
    """The multiplications of a recurrent layer: two matrices for each gate and word.

        2 g n d²

    EQ: none.  Source: Vaswani et al. (2017), §4, Table 1, "Recurrent": O(n · d²).
    Symbols: length = n, d_model = d, gates = g: 1 of an Elman network, 3 of a GRU, 4 of an LSTM.
    """
    return 2 * gates * length * d_model**2


def convolution_operations(length: int, d_model: int, kernel: int) -> int:
    """The multiplications of a convolution from d to d channels that keeps the length.

        k n d²

    EQ: none.  Source: Vaswani et al. (2017), §4, Table 1, "Convolutional": O(k · n · d²).
    Symbols: length = n, d_model = d, kernel = k; zeros beyond the ends are multiplied, too.
    """
    return kernel * length * d_model**2


def feed_forward_operations(length: int, d_model: int, d_ff: int) -> int:
    """The multiplications of the position-wise network.

        2 n d d_ff

    EQ: none.  Source: derived from Vaswani et al. (2017), §3.3, eq. (2).
    Symbols: length = n, d_model = d, d_ff = d_ff.
    """
    return 2 * length * d_model * d_ff


def crossing_length(d_model: int, gates: int) -> int:
    """The length from which on attention itself multiplies more than a recurrent layer.

        2 n² d = 2 g n d²   ⇔   n = g d

    EQ: none.  Source: Vaswani et al. (2017), §4: "faster ... when n is smaller than d".
    Symbols: d_model = d, gates = g; g = 1 gives the paper's n = d.
    """
    return gates * d_model


def sequential_steps(layer: str, length: int) -> int:
    """How many products have to wait for one another; the others can be computed at once.

        1 for attention and convolution,   n for recurrence

    EQ: none.  Source: Vaswani et al. (2017), §4, Table 1, "Sequential Operations".
    Symbols: layer = one of ``LAYERS``, length = n.
    Raises: ConfigError for another layer.
    """
    _require_known(layer)
    return length if layer == "recurrence" else 1


def path_length(layer: str, length: int, reach: int = 0) -> int:
    """How many layers, or steps of a recurrence, lie between the two words furthest apart.

        attention 1,   recurrence n - 1,   otherwise ⌈(n - 1) / s⌉,   dilated ⌈log_k n⌉

    EQ: none.  Source: Vaswani et al. (2017), §4, Table 1, "Maximum Path Length".
    Symbols: layer = one of ``LAYERS``, length = n, reach = k, the kernel, or r, the window; s =
    ⌊k/2⌋ or ⌊r/2⌋, the words that a layer sees to either side; the k of ``dilated convolution``
    grows as k, k², k³, so that l layers see kˡ words.
    Raises: ConfigError for another layer, or if a layer that needs a reach sees no neighbor.
    """
    _require_known(layer)
    if layer == "self-attention":
        return min(1, length - 1)
    if layer == "recurrence":
        return length - 1
    if reach < 2:
        raise ConfigError(f"{layer} must see at least 2 words in a layer, got reach={reach}")
    if layer == "dilated convolution":
        layers = 0
        while reach**layers < length:
            layers += 1
        return layers
    return -(-(length - 1) // (reach // 2))


LAYERS = (
    "self-attention",
    "recurrence",
    "convolution",
    "dilated convolution",
    "restricted attention",
)
"""The rows of Table 1; a convolution is either contiguous or dilated."""


def cached_numbers(layers: int, source: int, target: int, width: int) -> int:
    """The numbers that a decoder keeps for one sentence: keys and values of every layer.

        2 · N · (m + t) · d

    EQ: none.  Source: derived; ``cached_attention`` says why they can be kept (EQ-130).
    Symbols: layers = N, source = m words, target = t words so far, width = h dₖ = h dᵥ = d.
    Times the bytes of a number: what a hypothesis of a beam takes.
    """
    return 2 * layers * (source + target) * width


def token_operations(
    layers: int, source: int, target: int, d_model: int, d_ff: int, vocabulary: int
) -> int:
    """The multiplications of one step of a decoder with a cache: the newest word alone.

        N (6 d² + 2 (t + m) d + 2 d d_ff) + d |𝒱|

    EQ: none.  Source: derived: 4 d² for the projections of self-attention and 2 d² for the query
    and the output of cross-attention, whose keys and values are kept from the first step on.
    Symbols: layers = N, source = m, target = t with the newest word, d_model = d, d_ff = d_ff,
    vocabulary = |𝒱|.
    """
    own = projection_operations(1, 1, d_model) + self_attention_operations(1, target, d_model)
    crossed = projection_operations(1, 0, d_model) + self_attention_operations(1, source, d_model)
    network = feed_forward_operations(1, d_model, d_ff)
    return layers * (own + crossed + network) + d_model * vocabulary


def _require_known(layer: str) -> None:
    if layer not in LAYERS:
        raise ConfigError(f"layer must be one of {', '.join(LAYERS)}, got {layer!r}")
