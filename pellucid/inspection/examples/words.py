"""Worked examples with words: tokens, decoder inputs, tables of training and decoding."""

import math
from collections.abc import Callable, Sequence

import torch

from pellucid.core.special import SPECIAL_COUNT, START_ID, STOP_ID
from pellucid.equations.embedding import shift_right
from pellucid.equations.losses import sequence_log_prob
from pellucid.equations.transformer import beam, greedy, logits
from pellucid.equations.weights import EmbeddingWeights, Settings, Transformer
from pellucid.equations.word2vec import skipgram_pairs
from pellucid.inspection.examples.page import Example, Table, table
from pellucid.text.tokenizers.vocabulary import Vocabulary
from pellucid.text.tokenizers.word_tokenizers import (
    split_characters,
    split_punctuation,
    split_rules,
    split_words,
)
from pellucid.text.tokenizers.wordpiece import longest_match

START, STOP = "<start>", "<stop>"


# --- From text to ids


def tokenization() -> Example:
    """Agarwal's sentence, split at spaces, at marks, by a rule and into characters."""
    text = "Isn't this project amazing?"
    splits: tuple[tuple[str, Callable[[str], list[str]]], ...] = (
        ("spaces (EQ-04)", split_words),
        ("spaces and marks (EQ-05)", split_punctuation),
        ("rule for n't (EQ-06)", split_rules),
    )
    rows = [(label, len(split(text)), " | ".join(split(text))) for label, split in splits]
    characters = [
        ("with spaces", len(split_characters(text)), len(set(split_characters(text)))),
        ("without", len(split_characters(text, keep_spaces=False)), len(set(text) - {" "})),
    ]

    return Example(
        "tokenization",
        "Agarwal, §2.1",
        "EQ-01, EQ-04, EQ-05, EQ-06, EQ-08",
        f"A text is split into tokens before anything else. The sentence is: {text}",
        ("tokenize : text → list of tokens",),
        (
            table("Words, by the first three rules:", rows, ("split at", "count", "tokens")),
            table(
                "Characters; the text does not say whether spaces count:",
                characters,
                ("", "tokens", "different"),
            ),
        ),
    )


def subwords() -> Example:
    """``tokenization`` in two pieces, and a word that no piece fits."""
    letters = [chr(code) for code in range(ord("a"), ord("z") + 1)]
    vocabulary = Vocabulary.of(["token", "ization", *letters])
    rows = [
        (word, " | ".join(_pieces(word, vocabulary, continuation="")))
        for word in ("tokenization", "token", "zqx")
    ]

    return Example(
        "subwords",
        "Agarwal, §2.1",
        "EQ-09",
        "Rare words should be decomposed into meaningful pieces, and frequent words stay whole."
        " If all characters are in the vocabulary, every word can be spelled.",
        ("longest known piece first, again and again",),
        (table("Vocabulary: token, ization and the letters a to z.", rows, ("word", "pieces")),),
    )


def bert_tokenizer() -> Example:
    """Agarwal's BERT example: right for a toy vocabulary, impossible for BERT's (ER-07)."""
    text = "This is not nonsense."
    known = ["this", "is", "not", "non", "##sense", "."]
    rows = []
    for label, tokens in (("as printed", known), ("and nonsense", [*known, "nonsense"])):
        vocabulary = Vocabulary.of(tokens)
        words = split_punctuation(text.lower())
        pieces = [piece for word in words for piece in _pieces(word, vocabulary)]
        rows.append((label, " | ".join(pieces)))

    return Example(
        "bert-tokenizer",
        "Agarwal, §2.1, an example of bert-base-uncased",
        "EQ-10, ER-07",
        f"The tokenizer of BERT turns “{text}” into this | is | not | non | ##sense | .",
        ("lower case; longest known piece first; ## marks a piece that continues", "a word"),
        (table("The same text with two vocabularies:", rows, ("vocabulary", "pieces")),),
        note="The printed pieces need a vocabulary without nonsense. BERT's vocabulary has the"
        " word nonsense and has no ##sense, so that BERT gives the second line.",
    )


def vocabulary() -> Example:
    """A restricted vocabulary: the frequent tokens keep their ids, all others become UNK."""
    corpus = ["a", "dog", "sees", "a", "cat", "and", "a", "dog"]
    built = Vocabulary.build([corpus], SPECIAL_COUNT + 2)
    text = ["a", "dog", "sees", "a", "bird"]
    ids = built.encode(text)

    return Example(
        "vocabulary",
        "Agarwal, §2.1, Def. 2.2; the sentences are ours",
        "EQ-02, EQ-03, EQ-07, EQ-12",
        "The vocabulary is the set of all tokens in use. It can be restricted to the most frequent"
        f" ones: all others are UNK. The corpus is: {' '.join(corpus)}",
        ("id(t) = its number in the table, or id(UNK) if t is not in the table",),
        (
            table(
                "The two most frequent tokens after the four special ones:",
                [(token, built.encode([token])[0]) for token in built.tokens[SPECIAL_COUNT:]],
                ("token", "id"),
            ),
            table(
                "A sentence, encoded and decoded:",
                [
                    ("words", *text),
                    ("ids", *map(str, ids)),
                    ("decoded", *built.decode(ids)),
                ],
            ),
        ),
    )


def skip_gram() -> Example:
    """The pairs of center and context of five words."""
    words = ["the", "quick", "brown", "fox", "jumps"]
    pairs = skipgram_pairs(words, window=2)
    rows = [
        (center, ", ".join(context for word, context in pairs if word == center))
        for center in words
    ]

    return Example(
        "skip-gram",
        "Agarwal, §2.2 and Figure 1, after McCormick (2016); the window is ours",
        "EQ-17",
        "Word2Vec trains a network of one hidden layer to predict the words around a word.",
        ("(wₜ, wₜ₊ⱼ),   0 < |j| ≤ 2",),
        (
            table(
                f"A window of 2 makes {len(pairs)} pairs of five words:",
                rows,
                ("center", "contexts"),
            ),
        ),
    )


def _pieces(word: str, vocabulary: Vocabulary, continuation: str = "##") -> list[str]:
    longest = max(map(len, vocabulary.tokens))
    return longest_match(word, vocabulary, longest, continuation)


# --- What the decoder reads, in training and in use


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
            _shifted("As Pellucid trains it:", [*words, STOP]),
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
    """What the decoder reads, by ``shift_right``, in words."""
    known = Vocabulary.of([word for word in dict.fromkeys(labels) if word != STOP])
    ids = [STOP_ID if word == STOP else known.encode([word])[0] for word in labels]
    shifted = shift_right(torch.tensor(ids), START_ID)
    return [START if id_ == START_ID else known.decode([id_])[0] for id_ in shifted.tolist()]


def teacher_forcing() -> Example:
    """The training table of the Transformers report, as printed and as it must be (ER-39)."""
    source, labels = "I live in Paris", ["Je", "vis", "à", "Paris", STOP]
    read = _shift(labels)
    printed = [
        ("I", START, "𝓛(pred1, Je)"),
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


def inference() -> Example:
    """The decoding table of the Transformers report, as printed and as it must be (ER-39)."""
    source, printed = "I live in Paris", [("I", START, "pred1"), ("live", "pred1", "pred2")]
    prefix, right = [START], []
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
    final = ["i", "am", "a", "good", "student", STOP]

    def without_mask(read: Sequence[str]) -> list[str]:
        """Every row sees all that is read: “he” in the second row makes the first say “i”."""
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
    while STOP not in words:
        read = [START, *words]
        words = predict(read)
        rows.append((len(rows) + 1, " ".join(read), " ".join(words)))
    return rows


def beam_search() -> Example:
    """A model of two words in which greedy search misses the likeliest sentence."""
    names = ("A", "B")
    a, b = SPECIAL_COUNT, SPECIAL_COUNT + 1
    model = _table_model(
        {START_ID: {a: 0.6, b: 0.4}, a: {a: 0.3, b: 0.3, STOP_ID: 0.4},
         b: {a: 0.05, b: 0.05, STOP_ID: 0.9}}
    )  # fmt: skip
    source = torch.tensor([[STOP_ID]])

    def sentence(ids: Sequence[int]) -> str:
        return " ".join(STOP if id_ == STOP_ID else names[id_ - SPECIAL_COUNT] for id_ in ids)

    [by_greedy] = greedy(model, source, 2).tolist()
    found = [("greedy", sentence(by_greedy), _probability(model, by_greedy))]
    for width in (1, 2, 3):
        words, _ = beam(model, source, width, 0.0, 2)
        found.append((f"beam of {width}", sentence(words), _probability(model, words)))

    every: list[tuple[int, ...]] = [(STOP_ID,), (a, STOP_ID), (b, STOP_ID)]
    every += [(one, other, STOP_ID) for one in (a, b) for other in (a, b)]
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
    the learned vector of position 2 forbids everything but STOP.
    """
    size = SPECIAL_COUNT + 2
    never = -1e4  # exp of it is 0; two of them are still finite
    log_probs = torch.full((size, size), never, dtype=torch.float64)
    for last, following in after.items():
        for word, probability in following.items():
            log_probs[last, word] = math.log(probability)
    positions = torch.zeros(3, size, dtype=torch.float64)
    positions[2] = 3 * never
    positions[2, STOP_ID] = 0.0
    embedding = EmbeddingWeights(log_probs, positions={"table": positions})
    settings = Settings(positions="learned", scale_embeddings=False)
    identity = torch.eye(size, dtype=torch.float64)
    return Transformer(settings, embedding, embedding, (), (), None, None, identity)


def _probability(model: Transformer, labels: Sequence[int]) -> float:
    """P(sentence) by teacher forcing."""
    ids = torch.tensor([labels])
    z = logits(model, torch.tensor([[STOP_ID]]), shift_right(ids, START_ID))
    return sequence_log_prob(z, ids).exp().item()
