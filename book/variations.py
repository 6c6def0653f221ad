"""Table 3 of the paper, small: what changes if one thing of the Transformer changes.

Each row is two runs on the phrasebook, on one thread, the base five. How far runs that differ in
their seed alone lie apart says which differences are too small to mean anything.
"""

import dataclasses
import json
import math
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

import torch

from pellucid.bundle import load_bundle
from pellucid.core.run_names import CONFIG_FILE
from pellucid.training.config import RunConfig
from pellucid.training.journal import number, read_history
from pellucid.training.presets import read_config
from pellucid.training.train import train

STORED = Path(__file__).parent / "measured" / "variations.json"
"""The runs that the page shows."""
SEEDS = (1, 2, 3, 4, 5)
"""Of the base; every other row has the first two."""
BASE = (
    "phrasebook.pairs=4000",
    "phrasebook.held_out=200",
    "phrasebook.style=plain",
    "tokenizer.kind=word",
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
    "training.max_steps=300",
    "training.optimizer=muon",
    "training.learning_rate=6e-3",
    "training.warmup_steps=60",
    "training.schedule=linear",
    "training.label_smoothing=0.1",
    "training.average_decay=0",
    "training.validate_every=300",
    "training.save_every=300",
    "training.best_by=bleu",
    "training.precision=fp32",
    "training.threads=1",
)
"""The paper's base model with an eighth of its width and a third of its blocks, but words
for tokens, and Muon with a linear schedule: after 300 updates 65.5 BLEU where Adam has 17.1."""


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
    seen: str
    """What was seen, in a sentence."""


PAPER_BASE = 4.92, 25.8
"""Perplexity and BLEU of the base model in the paper's Table 3."""
ROWS = (
    Row("A", "1 head of 64", "1 head of 512", ("model.heads=1",), 5.29, 24.9,
        "One wide head is no worse here, where the paper lost almost a point."),
    Row("A", "2 heads of 32", "4 heads of 128", ("model.heads=2",), 5.00, 25.5,
        "As good as four here, a little worse in the paper."),
    Row("A", "8 heads of 8", "16 heads of 32", ("model.heads=8",), 4.91, 25.8,
        "Worse, BLEU at the edge of what counts: eight columns hardly tell words apart, where the "
        "paper's 32 were enough."),
    Row("A", "16 heads of 4", "32 heads of 16", ("model.heads=16",), 5.01, 25.4,
        "The worst of the heads: a score of four products tells few words apart."),
    Row("B", "keys of 4", "keys of 16", ("model.d_k=4",), 5.16, 25.1,
        "Narrow keys alone, beside values as wide as before: the scores are a table of lower "
        "rank."),
    Row("B", "keys of 8", "keys of 32", ("model.d_k=8",), 5.01, 25.4,
        "Twice as wide as in the row above: about half of that loss is left, here and in the "
        "paper."),
    Row("C", "1 block", "2 blocks",
        ("model.encoder_layers=1", "model.decoder_layers=1"),
        6.11, 23.7,
        "Shallower is worse in both columns, here and there."),
    Row("C", "3 blocks", "8 blocks",
        ("model.encoder_layers=3", "model.decoder_layers=3"),
        4.88, 25.5,
        "A deeper post-norm stack learns more slowly, and here it has few updates; in the paper "
        "only BLEU fell, and the perplexity was better."),
    Row("C", "rows of 32", "rows of 256", ("model.d_model=32",), 5.75, 24.5,
        "By far the worst: everything is half as wide, the columns of a head, too."),
    Row("C", "rows of 128", "rows of 1024", ("model.d_model=128",), 4.66, 26.0,
        "By far the best, with 2.7 times the parameters."),
    Row("C", "128 hidden units", "1024 hidden units", ("model.d_ff=128",), 5.12, 25.4,
        "Fewer hidden units are worse in both columns, here and there."),
    Row("C", "512 hidden units", "4096 hidden units", ("model.d_ff=512",), 4.75, 26.2,
        "Better in both columns, at the edge of what counts."),
    Row("D", "no dropout", "no dropout", ("model.dropout=0",), 5.77, 24.6,
        "Six passes over the text are too few to learn it by heart, so dropout only slows down; "
        "the paper's model had time for that."),
    Row("D", "dropout 0.2", "dropout 0.2", ("model.dropout=0.2",), 4.95, 25.5,
        "The noise slows down a narrow model so much that it has not caught up after 300 "
        "updates."),
    Row("D", "no label smoothing", "no label smoothing",
        ("training.label_smoothing=0",),
        4.67, 25.3,
        "No difference that counts; the paper's perplexity gained and its BLEU lost."),
    Row("D", "label smoothing 0.2", "label smoothing 0.2",
        ("training.label_smoothing=0.2",),
        5.47, 25.7,
        "The perplexity is worse, as in the paper, since a model is taught more doubt; BLEU "
        "does not tell."),
    Row("E", "learned positions", "learned positions", ("model.positions=learned",), 4.92, 25.7,
        "No difference that counts, as the paper found."),
    Row("big", "rows of 128, 512 hidden, 8 heads", "big",
        ("model.d_model=128", "model.d_ff=512", "model.heads=8", "model.dropout=0.3"),
        4.33, 26.4,
        "Wider, but with dropout 0.3 and no more updates than the others; the paper trained its "
        "big model three times as long."),
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Measured:
    """One run on the held-out sentences."""

    here: str
    seed: int
    parameters: int
    perplexity: float
    """Per word, without label smoothing."""
    bleu: float


def measure(
    folder: Path, done: Callable[[Measured], None], base: Sequence[str] = BASE
) -> list[Measured]:
    """Run every row in a folder of its own below ``folder``; a finished one is not run again."""
    runs: list[tuple[str, tuple[str, ...], int]] = [("base", (), seed) for seed in SEEDS]
    # Every row once before any row twice: what is stopped early is a whole table already.
    runs += [(row.here, row.settings, seed) for seed in SEEDS[:2] for row in ROWS]
    found = []
    for number_, (name, settings, seed) in enumerate(runs):
        run = folder / f"{number_:02}"
        config = read_config("demo", [*base, *settings, f"training.seed={seed}"])
        finish(config, run)
        found.append(_measured(run, name, seed))
        done(found[-1])
    return found


def finish(config: RunConfig, run: Path) -> None:
    """Train a run to its end, unless it has reached it.

    Raises ConfigError for a run of other settings.
    """
    saved = run / CONFIG_FILE
    is_ours = saved.exists() and read_config(str(saved)) == config
    if not is_ours or read_history(run).end is None:
        train(config, run, resume=run.exists())


def _measured(run: Path, name: str, seed: int) -> Measured:
    last = read_history(run).validations[-1]
    loss, bleu = number(last, "loss"), number(last, "bleu")
    assert loss is not None
    assert bleu is not None
    count = load_bundle(run).parameter_count
    return Measured(name, seed, count, round(math.exp(loss), 4), round(bleu, 2))


def store(found: Sequence[Measured], path: Path = STORED) -> None:
    """Write the runs as JSON."""
    rows = [dataclasses.asdict(each) for each in found]
    path.write_text(json.dumps({"torch": torch.__version__, "rows": rows}, indent=1) + "\n")


def stored(path: Path = STORED) -> list[Measured]:
    """The runs that ``store`` wrote."""
    return [Measured(**row) for row in json.loads(path.read_text("utf-8"))["rows"]]


def noise_of(runs: Sequence[Sequence[float]], count: int) -> float:
    """The smallest difference from the base that says something: two standard errors.

    ``runs`` are the values of the runs of each row, the base first, and ``count`` is how many a row
    has. The variance within the rows is pooled over them: runs of the base alone hardly tell it.
    """
    squares = (statistics.pvariance(row) * len(row) for row in runs)
    variance = sum(squares) / sum(len(row) - 1 for row in runs)
    return 2 * math.sqrt(variance * (1 / count + 1 / len(runs[0])))


Outcome = Literal["as in the paper", "unlike the paper", "within noise", "only here"]
"""How a difference from the base compares with the paper's."""


def outcome(here: float, there: float, noise: float) -> Outcome:
    """How a row's difference from the base, here, compares with that of the paper.

    The paper names no noise: the sign of a difference counts, if it is not zero.
    """
    if abs(here) <= noise:
        return "within noise"
    if there == 0:
        return "only here"
    return "as in the paper" if here * there > 0 else "unlike the paper"


def table_of(found: Sequence[Measured]) -> str:
    """The table in Markdown: each row here and in the paper, and a sentence about both."""
    by_name = _by_name(found)
    base = by_name["base"]
    perplexity, bleu = _means(base)
    smallest = [
        f"{noise_of([[each.bleu for each in row] for row in by_name.values()], count):.1f}"
        for count in sorted({len(by_name[row.here]) for row in ROWS}, reverse=True)
    ]
    lines = [
        "| | here | in the paper | runs | parameters | perplexity here | there | BLEU here | there"
        " | |",
        "|---|---|---|---|---|---|---|---|---|---|",
        f"| | base | base | {len(base)} | {base[0].parameters:,} | {perplexity:.3f}"
        f" | {PAPER_BASE[0]:.2f} | {bleu:.1f} | {PAPER_BASE[1]:.1f} | The best run has"
        f" {max(each.bleu for each in base):.1f} BLEU, the worst"
        f" {min(each.bleu for each in base):.1f}; a difference counts from"
        f" {' or, for one run, '.join(smallest)} on. |",
    ]
    outcomes = compared(found)
    for row in ROWS:
        mine = by_name[row.here]
        perplexity_here, bleu_here = _means(mine)
        change = f"{bleu_here - bleu:+.1f} BLEU here, {row.bleu - PAPER_BASE[1]:+.1f} there"
        of_bleu, of_perplexity = outcomes[row.here]
        lines.append(
            f"| {row.letter} | {row.here} | {row.there} | {len(mine)} | {mine[0].parameters:,}"
            f" | {perplexity_here:.3f} | {row.perplexity:.2f} | {bleu_here:.1f} | {row.bleu:.1f}"
            f" | {change}: {of_bleu}; perplexity {of_perplexity}. {row.seen} |"
        )
    return "\n".join(lines)


def compared(found: Sequence[Measured]) -> dict[str, tuple[Outcome, Outcome]]:
    """The outcomes of each row: of BLEU, and of the perplexity's logarithm."""
    by_name = _by_name(found)
    bleus = [[each.bleu for each in row] for row in by_name.values()]
    losses = [[math.log(each.perplexity) for each in row] for row in by_name.values()]

    def mean(row: Row, values: Sequence[Sequence[float]]) -> float:
        return statistics.fmean(values[[*by_name].index(row.here)])

    found_outcomes = {}
    for row in ROWS:
        count = len(by_name[row.here])
        of_bleu = outcome(
            mean(row, bleus) - statistics.fmean(bleus[0]),
            row.bleu - PAPER_BASE[1],
            noise_of(bleus, count),
        )
        of_perplexity = outcome(
            mean(row, losses) - statistics.fmean(losses[0]),
            math.log(row.perplexity / PAPER_BASE[0]),
            noise_of(losses, count),
        )
        found_outcomes[row.here] = of_bleu, of_perplexity
    return found_outcomes


def _by_name(found: Sequence[Measured]) -> dict[str, list[Measured]]:
    """The runs of each row; the base is the first."""
    by_name: dict[str, list[Measured]] = {}
    for each in found:
        by_name.setdefault(each.here, []).append(each)
    return by_name


def _means(runs: Sequence[Measured]) -> tuple[float, float]:
    """Perplexity and BLEU of runs that differ in their seed alone."""
    return (
        statistics.fmean(each.perplexity for each in runs),
        statistics.fmean(each.bleu for each in runs),
    )
