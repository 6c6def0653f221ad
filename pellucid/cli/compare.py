"""``pellucid compare``: compares two models on a test set, with tests of significance."""

import functools
import itertools
import json
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pellucid.cli.evaluate import (
    language_option,
    metric_option,
    named_language,
    other_languages,
    tokenize_option,
)
from pellucid.cli.options import (
    NAME,
    PATH,
    Choices,
    engine_options,
    json_option,
    open_translator,
    require_texts,
    single_search_options,
)
from pellucid.core.texts import counted
from pellucid.evaluation.metrics import COMPARED_BY, METRICS

if TYPE_CHECKING:
    from pellucid.evaluation.compare import Contest

_log = logging.getLogger("pellucid")
_FEW = 20
"""Lines. Of one line every sample is that line, so that the interval has no width."""


@click.command()
@click.argument("a", type=NAME)
@click.argument("b", type=NAME)
@click.argument("source", type=PATH)
@click.argument("reference", type=PATH)
@single_search_options
@engine_options
@language_option
@tokenize_option
@metric_option(
    COMPARED_BY,
    "Compare by this metric; may be given several times.  [default: bleu and chrf]",
)
@click.option(
    "--samples",
    type=click.IntRange(1),
    default=1000,
    show_default=True,
    help="Test sets drawn for each test of significance.",
)
@click.option(
    "--most-changed",
    type=click.IntRange(0),
    default=5,
    show_default=True,
    help="How many of the sentences that changed most are shown.",
)
@json_option
def compare(
    a: str,
    b: str,
    source: Path,
    reference: Path,
    search: Choices,
    engine: Choices,
    language: str | None,
    tokenize: Any,
    metrics: tuple[Any, ...],
    samples: int,
    most_changed: int,
    as_json: bool,
) -> None:
    """Translate SOURCE with the models A and B and compare both with REFERENCE.

    A and B are bundles or run folders; A is the baseline.

    \b
    Example:
      pellucid compare runs/old runs/new test.en test.de --beam-size 5 --json
    """
    require_texts(source, reference)

    from pellucid.backends import is_hub_address
    from pellucid.backends.load import is_marian_folder
    from pellucid.bundle import find_bundle
    from pellucid.decoding.warnings import WarningLog
    from pellucid.evaluation.compare import DEFAULT_METRICS
    from pellucid.evaluation.compare import compare as compare_lines
    from pellucid.evaluation.evaluate import check_pairs, other_form_problem, warn_of_pairing
    from pellucid.evaluation.scoring import scoring_of
    from pellucid.text.config import require_one_side
    from pellucid.text.corpus.lines import read_lines
    from pellucid.text.languages import base_code

    require_one_side(str(source), str(reference))
    sources, references = read_lines(source), read_lines(reference)
    check_pairs(sources, references)

    warn_of_pairing(sources, references)
    alternatives = [[line] for line in references]
    for bundle in (a, b):
        if not is_hub_address(bundle) and not is_marian_folder(Path(bundle)):
            find_bundle(Path(bundle))

    # A generator: the second model is opened only after the first has translated.
    translators = (
        open_translator(bundle, search, engine=engine, figures=False) for bundle in (a, b)
    )
    first = next(translators)
    language = (
        language or named_language(str(source), str(reference)) or base_code(first.target_language)
    )
    # Before anything is translated: a tokenizer may need an extra that is missing.
    scoring = scoring_of(alternatives, language, tokenize)
    outputs = []
    problems: dict[str, None] = {}  # of both models, each once
    for name, translator in zip((a, b), itertools.chain([first], translators), strict=True):
        problems[other_form_problem(translator, alternatives)] = None
        problems[other_languages(translator, str(source), str(reference)) or ""] = None
        # ``best_alone``: a list of n best would take time and change nothing. Lines are not split,
        # so that line n stays with reference n.
        found = translator.without_log().translate(
            sources, translator.settings.best_alone(), split=False
        )
        log = WarningLog(functools.partial(_log.warning, "%s, %s", name))
        for number, each in enumerate(found, start=1):
            log.look(number, each)
        log.end()
        outputs.append([each.text for each in found])
    baseline, system = outputs
    if len(sources) < _FEW:
        problems[f"a test of significance says little about {counted(len(sources), 'line')}"] = None
    for problem in filter(None, problems):
        _log.warning("%s", problem)

    contest = compare_lines(
        baseline,
        system,
        references,
        metrics=metrics or DEFAULT_METRICS,
        language=language,
        tokenize=scoring.tokenize,
        samples=samples,
        most_changed=most_changed,
    )

    if as_json:
        click.echo(json.dumps(contest.to_dict(), ensure_ascii=False))
    else:
        click.echo(_report(contest, sources))


def _report(contest: "Contest", sources: list[str]) -> str:
    lines = []
    width = 1 + max(map(len, contest.bootstrap))
    for name, bootstrap in contest.bootstrap.items():
        assert bootstrap.interval is not None
        # Of the difference B - A: if it does not contain 0, the two differ at the level of 5%.
        low, high = bootstrap.interval
        shown, signed = METRICS[name].format, f"+{METRICS[name].format}"
        lines.append(
            f"{name:{width}} A {bootstrap.baseline:{shown}}  B {bootstrap.system:{shown}}"
            f"  B - A {bootstrap.difference:{signed}} (95%: {low:{signed}} to {high:{signed}})"
            # Two tests, because they rest on different assumptions.
            f"  p {bootstrap.p_value:.4f} (bootstrap)"
            f", {contest.randomization[name].p_value:.4f} (randomization)"
        )

    one, other = contest.length_ratios
    lines.append(f"words per reference word: A {one:.3f}, B {other:.3f}")
    lines.append(f"{contest.changed_count:,} of {len(sources):,} translations differ")
    for change in contest.most_changed:
        lines += [
            f"line {change.line}, chrF {change.difference:+.1f}",
            f"    source     {sources[change.line - 1]}",
            f"    reference  {change.reference}",
            f"    A          {change.baseline}",
            f"    B          {change.system}",
        ]
    return "\n".join(lines)
