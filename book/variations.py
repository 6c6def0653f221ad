"""Table 3 of the paper, small: what changes if one thing of the Transformer changes.

Each row is a run on the phrasebook, on one thread. The base runs with several seeds: their spread
says which differences are too small to mean anything.
"""

import dataclasses
import math
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path

from pellucid.bundle import load_bundle
from pellucid.training.journal import number, read_history
from pellucid.training.presets import read_config
from pellucid.training.train import train

SEEDS = (1, 2, 3)
"""Of the base; every other row has the first."""
BASE = (
    "phrasebook.pairs=4000",
    "phrasebook.held_out=300",
    "phrasebook.style=plain",
    "tokenizer.vocabulary_size=1000",
    "model.encoder_layers=2",
    "model.decoder_layers=2",
    "model.d_model=64",
    "model.d_ff=256",
    "model.heads=4",
    "model.dropout=0.1",
    "model.norm=post",
    "model.positions=sinusoidal",
    "training.batch_tokens=800",
    "training.max_steps=1000",
    "training.optimizer=adam",
    "training.learning_rate=3e-3",
    "training.warmup_steps=100",
    "training.schedule=inverse_root",
    "training.label_smoothing=0.1",
    "training.average_decay=0",
    "training.validate_every=1000",
    "training.save_every=1000",
    "training.best_by=bleu",
    "training.precision=fp32",
    "training.threads=1",
)
"""The paper's base model with an eighth of its width and a third of its blocks."""


@dataclasses.dataclass(frozen=True)
class Row:
    """A variation of the base, here and in Table 3 of the paper."""

    letter: str
    """The group of rows in the paper."""
    here: str
    """What is changed, against four heads of 16 columns, two blocks and so on."""
    there: str
    """The paper's row that it stands for."""
    settings: tuple[str, ...]
    perplexity: float
    """In the paper: per subword, on newstest2013."""
    bleu: float
    reason: str
    """What explains the paper's difference from its base, in a sentence."""


PAPER_BASE = 4.92, 25.8
"""Perplexity and BLEU of the base model in the paper's Table 3."""
ROWS = (
    Row("A", "1 head of 64", "1 head of 512", ("model.heads=1",), 5.29, 24.9,
        "One head has one distribution for each word, and a mean where two words are needed."),
    Row("A", "2 heads of 32", "4 heads of 128", ("model.heads=2",), 5.00, 25.5,
        "Half as many heads, each with room to spare."),
    Row("A", "8 heads of 8", "16 heads of 32", ("model.heads=8",), 4.91, 25.8,
        "Twice as many heads, each still wide enough to tell words apart."),
    Row("A", "16 heads of 4", "32 heads of 16", ("model.heads=16",), 5.01, 25.4,
        "A score of few products tells fewer words apart."),
    Row("B", "keys of 4", "keys of 16", ("model.d_k=4",), 5.16, 25.1,
        "The scores are a table of lower rank."),
    Row("B", "keys of 8", "keys of 32", ("model.d_k=8",), 5.01, 25.4,
        "The scores are a table of lower rank."),
    Row("C", "1 block", "2 blocks", ("model.encoder_layers=1", "model.decoder_layers=1"), 6.11,
        23.7, "A block can use what the blocks before it have found."),
    Row("C", "3 blocks", "8 blocks", ("model.encoder_layers=3", "model.decoder_layers=3"), 4.88,
        25.5, "More of the same helps a little."),
    Row("C", "rows of 32", "rows of 256", ("model.d_model=32",), 5.75, 24.5,
        "Everything is half as wide: embeddings, heads, the residual stream."),
    Row("C", "rows of 128", "rows of 1024", ("model.d_model=128",), 4.66, 26.0,
        "Everything is twice as wide."),
    Row("C", "128 hidden units", "1024 hidden units", ("model.d_ff=128",), 5.12, 25.4,
        "Half of what is stored in the feed-forward networks."),
    Row("C", "512 hidden units", "4096 hidden units", ("model.d_ff=512",), 4.75, 26.2,
        "Twice as much stored in the feed-forward networks."),
    Row("D", "no dropout", "no dropout", ("model.dropout=0",), 5.77, 24.6,
        "With few updates nothing is learned by heart yet; with 100,000 it is."),
    Row("D", "dropout 0.2", "dropout 0.2", ("model.dropout=0.2",), 4.95, 25.5,
        "More noise than so small a model needs."),
    Row("D", "no label smoothing", "no label smoothing", ("training.label_smoothing=0",), 4.67,
        25.3, "A model that may be sure has the better perplexity."),
    Row("D", "label smoothing 0.2", "label smoothing 0.2", ("training.label_smoothing=0.2",), 5.47,
        25.7, "A model that is taught doubt has the worse perplexity."),
    Row("E", "learned positions", "learned positions", ("model.positions=learned",), 4.92, 25.7,
        "Sentences of the lengths that it has seen need no formula."),
    Row("big", "rows of 128, 512 hidden, 8 heads", "big",
        ("model.d_model=128", "model.d_ff=512", "model.heads=8", "model.dropout=0.3"), 4.33, 26.4,
        "The paper trained its big model three times as long; here it has the same updates."),
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Measured:
    """One run on the held-out sentences."""

    here: str
    seed: int
    parameters: int
    perplexity: float
    """Per subword, without label smoothing."""
    bleu: float
    seconds: float
    """Of the processor."""


def measure(
    folder: Path, done: Callable[[Measured], None], base: Sequence[str] = BASE
) -> list[Measured]:
    """Run every row in a folder of its own below ``folder``; a finished one is not run again."""
    runs: list[tuple[str, tuple[str, ...], int]] = [("base", (), seed) for seed in SEEDS]
    runs += [(row.here, row.settings, SEEDS[0]) for row in ROWS]
    found = []
    for number_, (name, settings, seed) in enumerate(runs):
        run = folder / f"{number_:02}"
        config = read_config("demo", [*base, *settings, f"training.seed={seed}"])
        if not run.exists() or read_history(run).end is None:
            train(config, run, resume=run.exists())
        found.append(_measured(run, name, seed))
        done(found[-1])
    return found


def _measured(run: Path, name: str, seed: int) -> Measured:
    last = read_history(run).validations[-1]
    loss, bleu, seconds = (number(last, key) for key in ("loss", "bleu", "cpu_seconds"))
    assert loss is not None
    assert bleu is not None
    assert seconds is not None
    count = load_bundle(run).parameter_count
    return Measured(name, seed, count, round(math.exp(loss), 3), round(bleu, 1), round(seconds, 1))


def table_of(found: Sequence[Measured]) -> str:
    """The table in Markdown: each row here and in the paper, and a sentence about both."""
    base = [each for each in found if each.here == "base"]
    mean = statistics.mean(each.bleu for each in base)
    spread = max(each.bleu for each in base) - min(each.bleu for each in base)
    perplexity = statistics.mean(each.perplexity for each in base)
    by_name = {each.here: each for each in found}
    lines = [
        "| | here | in the paper | parameters | perplexity here | there | BLEU here | there | |",
        "|---|---|---|---|---|---|---|---|---|",
        f"| | base, mean of {len(base)} seeds | base | {base[0].parameters:,} | {perplexity:.2f}"
        f" | {PAPER_BASE[0]:.2f} | {mean:.1f} | {PAPER_BASE[1]:.1f} |"
        f" From the best seed to the worst: {spread:.1f} BLEU. |",
    ]
    for row in ROWS:
        one = by_name[row.here]
        lines.append(
            f"| {row.letter} | {row.here} | {row.there} | {one.parameters:,}"
            f" | {one.perplexity:.2f} | {row.perplexity:.2f} | {one.bleu:.1f} | {row.bleu:.1f}"
            f" | {verdict(one.bleu - mean, row.bleu - PAPER_BASE[1], spread)} {row.reason} |"
        )
    return "\n".join(lines)


def verdict(here: float, there: float, spread: float) -> str:
    """How far a row is from the base in BLEU, here and in the paper, and whether they agree."""
    both = f"{here:+.1f} here, {there:+.1f} there"
    if abs(here) <= spread:
        return f"{both}: within the spread of the seeds."
    if there == 0:
        return f"{both}: only here it counts."
    return f"{both}: {'as' if here * there > 0 else 'unlike'} in the paper."
