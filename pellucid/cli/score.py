"""``pellucid score``: the probability that a model gives translations."""

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pellucid.cli.options import (
    Choices,
    ensemble_option,
    json_lines_option,
    length_penalty_option,
    open_translator,
)
from pellucid.cli.translate import figures

if TYPE_CHECKING:
    from pellucid.decoding.result import Translation

_LINES_AT_A_TIME = 1024


@click.command()
@click.argument("bundle")
@click.argument("source")
@click.argument("target")
@length_penalty_option
@ensemble_option
@json_lines_option
def score(
    bundle: str,
    source: str,
    target: str,
    search: Choices,
    others: tuple[str, ...],
    as_json: bool,
) -> None:
    """Print the probability that BUNDLE gives each line of TARGET as a translation of SOURCE's.

    Each pair gives a line: summed log-probability in nats, score, perplexity, with tabs
    between. The perplexity of the whole text stands in the last line of stderr.

    \b
    Example:
      pellucid score runs/en-de test.en test.de > scores.tsv
    """
    from pellucid.evaluation.metrics import check_lines
    from pellucid.text.corpus.lines import read_lines

    sources, targets = read_lines(Path(source)), read_lines(Path(target))
    check_lines({"source lines": sources, "target lines": targets})
    # Only torch gives probabilities of given words.
    translator = open_translator(bundle, search, engine={"engine": "torch"}, others=others)
    log_probs: list[float] = []
    token_count = 0

    # In portions, so that the first lines of a large file are printed early.
    for first in range(0, len(sources), _LINES_AT_A_TIME):
        chunk = slice(first, first + _LINES_AT_A_TIME)
        found = translator.score(sources[chunk], targets[chunk], first + 1)
        for number, scored in enumerate(found, first):
            log_probs.append(math.fsum(scored.token_log_probs))  # fsum: no rounding over long texts
            token_count += len(scored.token_log_probs)
            click.echo(_line(number, scored, log_probs[-1], as_json=as_json))

    # Of the whole text, so that long sentences weigh more than short ones.
    total = math.fsum(log_probs)
    summary = {
        "sentences": len(sources),
        "tokens": token_count,
        "log_prob": total,
        "perplexity": math.exp(min(-total / token_count, 709.0)),  # exp(710) is beyond a double
    }
    if as_json:
        click.echo(json.dumps({"corpus": summary}))
    else:
        click.echo(
            f"{len(sources):,} sentences, {token_count:,} tokens with the stops,"
            f" perplexity {summary['perplexity']:.4f}",
            err=True,
        )


def _line(number: int, scored: "Translation", log_prob: float, *, as_json: bool) -> str:
    if not as_json:
        return f"{log_prob:.6f}\t{scored.score:.6f}\t{scored.perplexity:.4f}"
    entry = {"id": number, "source": scored.source, "target": scored.text, **figures(scored)}
    # Here the target was given and stands under its own name.
    del entry["translation"]
    entry |= {"log_prob": log_prob, "perplexity": scored.perplexity}
    return json.dumps(entry, ensure_ascii=False)
