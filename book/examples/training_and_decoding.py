"""Worked examples of training and decoding: what the decoder reads, losses, searches."""

import math
from collections.abc import Callable, Sequence

import torch

from book.examples.page import Cell, Example, Table, matrix, table
from pellucid.core.special import BOS_ID, EOS_ID, SPECIAL_COUNT
from pellucid.equations.embedding import (
    shift_right,
)
from pellucid.equations.losses import (
    cross_entropy,
    distribution_cross_entropy,
    entropy,
    kl_divergence,
    negative_log_likelihood,
    sequence_log_prob,
    smooth_labels,
)
from pellucid.equations.schedules import transformer_learning_rate
from pellucid.equations.transformer import beam, greedy, logits
from pellucid.equations.weights import (
    EmbeddingWeights,
    Settings,
    Transformer,
)
from pellucid.text.tokenizers.vocabulary import Vocabulary

BOS, EOS = "<start>", "<stop>"


# --- Training


def right_shift() -> Example:
    """The decoder input of ``i am a student``, without and with a stop token."""
    words = ["i", "am", "a", "student"]
    return Example(
        "right-shift",
        "Single Page, Training Phase and Concrete Example; Agarwal, §5.2",
        "EQ-106, EQ-116, ER-09, ER-45, ER-46",
        "The decoder reads the target shifted right by one, behind a start symbol, and row i must"
        " predict word i. Single Page trains “je suis étudiant” → “i am a student”.",
        ("input = (start, y₁, …, yₙ₋₁),   labels = (y₁, …, yₙ)",),
        (
            _shifted("As printed, without a stop token:", words),
            _shifted("As Pellucid trains it:", [*words, EOS]),
        ),
        note="Without a stop token among the labels a model never learns to end (ER-45). Agarwal"
        " states yᵢ = y′ᵢ₋₁ for i > 2; it must be i ≥ 2, or the second row has no word (ER-09).",
    )


def _shifted(title: str, words: Sequence[str]) -> Table:
    return table(
        title,
        [tuple(_shift(words)), tuple(words)],
        [f"row {n}" for n in range(len(words))],
        labels=("input", "label"),
    )


def _shift(labels: Sequence[str]) -> list[str]:
    """The input of the decoder, by ``shift_right``, in words."""
    # A small vocabulary of these words, because ``shift_right`` takes ids.
    known = Vocabulary.of([word for word in dict.fromkeys(labels) if word != EOS])
    ids = [EOS_ID if word == EOS else known.encode([word])[0] for word in labels]
    shifted = shift_right(torch.tensor(ids), BOS_ID)
    return [BOS if id_ == BOS_ID else known.decode([id_])[0] for id_ in shifted.tolist()]


def teacher_forcing() -> Example:
    """The training table of the Transformers report, as printed and as it must be (ER-39)."""
    source, labels = "I live in Paris", ["Je", "vis", "à", "Paris", EOS]
    # the start, then all labels but the last (EQ-106)
    read = _shift(labels)
    printed = [
        ("I", BOS, "𝓛(pred1, Je)"),
        ("live", "Je", "𝓛(pred2, vis)"),
        ("in", "vis", "…"),
    ]
    right = [
        (source, " ".join(read[: row + 1]), f"𝓛(pred{row + 1}, {label})")
        for row, label in enumerate(labels)
    ]
    columns = ("encoder input", "decoder input", "loss")

    return Example(
        "teacher-forcing",
        "Transformers report, §1.7",
        "EQ-121, EQ-122, ER-39",
        "In training the decoder reads the true words, not its own predictions. The table of"
        " “I live in Paris” feeds one source word and one target word in each row.",
        ("row t:  p(yₜ | y₁, …, yₜ₋₁, source),   loss = Σₜ 𝓛(predₜ, yₜ)",),
        (
            table("As printed:", printed, columns),
            table("What the model computes, all rows at once under the mask:", right, columns),
        ),
        note="The encoder reads the whole sentence for every row, or “I” alone would have to give"
        " “Je”, and both sentences would need the same length. The decoder reads the whole prefix."
        " The last label is the stop token. The report ends its table with dots; the words"
        " “à Paris” are ours.",
    )


def cross_entropy_example() -> Example:
    """The loss of a sentence of two words, and one smoothed label."""
    probabilities = matrix((0.5, 0.3, 0.2), (0.25, 0.25, 0.5))
    labels = torch.tensor([0, 1])
    # log p are logits of p: log Σ exp(log p) = log 1 = 0
    losses = negative_log_likelihood(probabilities.log(), labels)

    [prediction] = matrix((0.1, 0.7, 0.1, 0.1))
    label = torch.tensor(1)
    # with and without smoothing, so that the entropy of the target shows: 0 without
    targets: list[tuple[Cell, ...]] = []
    for smoothing in (0.0, 0.1):
        target = smooth_labels(label, 4, smoothing, torch.float64)
        targets.append(
            (
                f"{smoothing:g}",
                " ".join(f"{each:.3f}" for each in target.tolist()),
                distribution_cross_entropy(target, prediction.log()).item(),
                entropy(target).item(),
                kl_divergence(target, prediction.log()).item(),
            )
        )
    return Example(
        "cross-entropy",
        "Single Page, Training Phase; Lee, Before Transformers; the numbers are ours",
        "EQ-117, EQ-118, EQ-119, EQ-120, ER-47, ER-48, ER-73",
        "The loss of a sentence is the sum of the cross-entropies of its words. Label smoothing"
        " mixes the true word with the uniform distribution; KL divergence may take the place of"
        " cross-entropy.",
        (
            "L = -Σₜ log p(yₜ),   q = (1 - ε) y + ε / |𝒱|",
            "cross-entropy(q, p) = -Σ q log p = entropy(q) + KL(q ‖ p)",
        ),
        (
            table(
                "The model gives the right words .5 and .25:",
                [
                    ("word 0", losses[0].item()),
                    ("word 1", losses[1].item()),
                    ("sum", cross_entropy(probabilities.log(), labels).item()),
                    ("mean", cross_entropy(probabilities.log(), labels, "mean").item()),
                    ("exp(-sum) = P(sentence)", losses.sum().neg().exp().item()),
                ],
                digits=6,
            ),
            table(
                "V = 4, label 1, predicted (.1, .7, .1, .1):",
                targets,
                ("ε", "target q", "cross-entropy", "entropy", "KL"),
                digits=6,
            ),
        ),
        note="Both losses have the same gradient, as the entropy of the target is constant. With"
        " ε = .1 the label keeps 1 - ε + ε/|𝒱| = .925.",
    )


def learning_rate() -> Example:
    """The paper's schedule for d_model = 512 and 4,000 steps of warm-up."""
    steps = (1, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 100_000)
    rows = [(step, transformer_learning_rate(step, 512, 4_000)) for step in steps]
    return Example(
        "learning-rate",
        "the paper, §5.3, eq. (3); none of the five texts has it",
        "no EQ number",
        "The rate rises in a straight line for 4,000 steps and then falls with the root of the"
        " step.",
        ("rate = d_model^(-1/2) · min(step^(-1/2), step · warmup^(-3/2))",),
        (
            table("d_model = 512, warm-up 4,000:", rows, ("step", "rate"), digits=2),
            table(
                "The peak, (d_model · warmup)^(-1/2), and four times as many steps later:",
                [
                    ("peak", transformer_learning_rate(4_000, 512, 4_000)),
                    ("half", transformer_learning_rate(16_000, 512, 4_000)),
                ],
                digits=2,
            ),
        ),
    )


# --- Decoding


def inference() -> Example:
    """The decoding table of the Transformers report, as printed and as it must be (ER-39)."""
    source, printed = "I live in Paris", [("I", BOS, "pred1"), ("live", "pred1", "pred2")]
    prefix, right = [BOS], []
    for step in range(1, 5):
        right.append((source, " ".join(prefix), f"pred{step}"))
        prefix.append(f"pred{step}")

    columns = ("encoder input", "decoder input", "decoder output")
    return Example(
        "inference",
        "Transformers report, §1.8",
        "EQ-123, EQ-129, ER-39",
        "In use the decoder reads its own predictions in place of the true words.",
        ("predₜ = argmaxᵥ p(v | pred₁, …, predₜ₋₁, source)",),
        (
            table("As printed:", [*printed, ("in", "pred2", "…")], columns),
            table("What the model computes:", right, columns),
        ),
        note="As in training, the encoder reads the whole sentence and the decoder the whole"
        " prefix. A decoder may be fed one token at a time if it keeps the keys and values of the"
        " others (the KV cache, EQ-130): the numbers are the same.",
    )


def re_predicting() -> Example:
    """Single Page's decoding loop, in which an earlier word changes (ER-37)."""
    final = ["i", "am", "a", "good", "student", EOS]

    def without_mask(read: Sequence[str]) -> list[str]:
        """Every row sees all that is read: “he” in the second row makes the first say “i”."""
        # a decoder made up to do what the text tells: the first word changes once the second is
        # there
        return ["he"] if len(read) == 1 else final[: len(read)]

    def with_mask(read: Sequence[str]) -> list[str]:
        """Each row as when it was the last one: what comes later cannot change it."""
        return [without_mask(read[: row + 1])[-1] for row in range(len(read))]

    return Example(
        "re-predicting",
        "Single Page, Inference Phase and Concrete Example",
        "EQ-84, EQ-124, ER-36, ER-37",
        "To get word k, the k - 1 words predicted so far are fed to the decoder, and all k words"
        " are predicted again. For “je suis étudiant” the first word is “he” at first, and “i” in"
        " the second step; a valid translation is “i am a good student ×”.",
        ("w⁽ᵏ⁾ = argmax decoder(start, w⁽ᵏ⁻¹⁾),   one word longer than w⁽ᵏ⁻¹⁾",),
        (
            table(
                "Without a mask, as the text tells it:",
                _predict_again(without_mask),
                ("step", "decoder input", "prediction"),
            ),
            table(
                "The same decoder with its mask:",
                _predict_again(with_mask),
                ("step", "decoder input", "prediction"),
            ),
        ),
        note="Under the mask row 1 depends on the start symbol and the source only: it can never"
        " change from “he” to “i”, and predicting again is greedy search. Without the mask it is"
        " another function than the one that was trained.",
    )


def _predict_again(predict: Callable[[Sequence[str]], list[str]]) -> list[tuple[int, str, str]]:
    """The steps of the loop until it predicts the stop token."""
    words: list[str] = []
    rows: list[tuple[int, str, str]] = []
    while EOS not in words:
        read = [BOS, *words]
        words = predict(read)
        rows.append((len(rows) + 1, " ".join(read), " ".join(words)))
    return rows


def beam_search() -> Example:
    """A model of two words in which greedy search misses the likeliest sentence."""
    names = ("A", "B")
    a, b = SPECIAL_COUNT, SPECIAL_COUNT + 1
    model = _table_model(
        {BOS_ID: {a: 0.6, b: 0.4}, a: {a: 0.3, b: 0.3, EOS_ID: 0.4},
         b: {a: 0.05, b: 0.05, EOS_ID: 0.9}}
    )  # fmt: skip
    # An empty source: the model has no blocks that could read one.
    source = torch.tensor([[EOS_ID]])

    def sentence(ids: Sequence[int]) -> str:
        return " ".join(EOS if id_ == EOS_ID else names[id_ - SPECIAL_COUNT] for id_ in ids)

    [by_greedy] = greedy(model, source, 2).tolist()
    # P of a whole sentence is the product of its words, stop included
    found = [("greedy", sentence(by_greedy), _probability(model, by_greedy))]
    for width in (1, 2, 3):
        # α = 0: by the probability itself, without a reward for length
        words, _ = beam(model, source, width, 0.0, 2)
        found.append((f"beam of {width}", sentence(words), _probability(model, words)))

    every: list[tuple[int, ...]] = [(EOS_ID,), (a, EOS_ID), (b, EOS_ID)]
    every += [(one, other, EOS_ID) for one in (a, b) for other in (a, b)]
    # seven sentences in all, so the best one is known without a search
    ranked = sorted(
        ((sentence(ids), _probability(model, ids)) for ids in every), key=lambda r: -r[1]
    )
    return Example(
        "beam-search",
        "Lee, Before Transformers; the model is ours",
        "EQ-117, EQ-125, EQ-126, EQ-127, ER-74",
        "Greedy decoding takes the likeliest word at each step and is not guaranteed to find the"
        " likeliest sentence. Beam search follows several prefixes at once.",
        ("P(E | F) = Πₜ P(eₜ | e₀, …, eₜ₋₁, F)",),
        (
            table(
                "The model; after two words it stops:",
                [("nothing", 0.6, 0.4, 0.0), ("A", 0.3, 0.3, 0.4), ("B", 0.05, 0.05, 0.9)],
                ("after", "A", "B", "stop"),
                digits=2,
            ),
            table("All sentences:", ranked, ("sentence", "probability"), digits=3),
            table("What is found:", found, ("search", "sentence", "probability"), digits=3),
        ),
        note="A is the likelier first word and leads to .24; with two beams B is kept and leads to"
        " .36. A beam search picks the best of what it explored, which need not be the best"
        " of all.",
    )


def _table_model(after: dict[int, dict[int, float]]) -> Transformer:
    """A Transformer without blocks that looks up p(next word | last word), and stops after two.

    Row i of its embedding holds the logarithms for what follows word i, W^S is the identity, and
    the learned vector of position 2 forbids everything but EOS.
    """
    size = SPECIAL_COUNT + 2
    never = -1e4  # exp of it is 0; two of them are still finite
    log_probs = torch.full((size, size), never, dtype=torch.float64)
    for last, following in after.items():
        for word, probability in following.items():
            log_probs[last, word] = math.log(probability)
    positions = torch.zeros(3, size, dtype=torch.float64)
    positions[2] = 3 * never
    positions[2, EOS_ID] = 0.0
    embedding = EmbeddingWeights(log_probs, positions={"table": positions})
    settings = Settings(positions="learned", scale_embeddings=False)
    identity = torch.eye(size, dtype=torch.float64)
    return Transformer(settings, embedding, embedding, (), (), None, None, identity)


def _probability(model: Transformer, labels: Sequence[int]) -> float:
    """P(sentence) by teacher forcing."""
    ids = torch.tensor([labels])
    z = logits(model, torch.tensor([[EOS_ID]]), shift_right(ids, BOS_ID))
    return sequence_log_prob(z, ids).exp().item()
