"""``pellucid check`` and ``prepare``: what is done with text before a model is trained on it."""

import contextlib
import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from pellucid.cli.options import (
    NAME,
    PATH,
    FiniteRange,
    LanguagePair,
    json_option,
    require_texts,
    settings_option,
)
from pellucid.cli.streams import visible

if TYPE_CHECKING:
    from pellucid.text.check.check import Diagnosis, Finding, Kind

Verdict = Literal["good", "usable", "doubtful", "unusable"]
_VERDICTS: dict[Verdict, str] = {
    "good": "good: ready to train on",
    "usable": "usable: training on it works",
    "doubtful": "doubtful: training on it works, but it teaches nothing if the two sides do not"
    " belong together",
    "unusable": "not usable as it is",
}
WRONG_DATA = 65
"""Exit code if training on the files would fail or go wrong; the same as that of DataError."""
_WIDEST_EXAMPLE = 70


@click.command()
@click.argument("source", type=PATH)
@click.argument("target", type=PATH, required=False)
@click.option(
    "--test",
    nargs=2,
    type=PATH,
    metavar="SOURCE2 TARGET2",
    help="Test files to look for in the training files.",
)
@click.option(
    "--languages",
    type=LanguagePair(),
    help="Find pairs with a side in another language than these, such as en-de (extra detect).",
)
@click.option(
    "--fix",
    type=PATH,
    metavar="OUT",
    help="Write cleaned copies and a log of every dropped line into this new folder.",
)
@json_option
def check(
    source: Path,
    target: Path | None,
    test: tuple[Path, Path] | None,
    languages: tuple[str, str] | None,
    fix: Path | None,
    as_json: bool,
) -> int:
    """Find what is wrong with the parallel text in SOURCE and TARGET.

    A .tsv, .jsonl, .csv or .parquet file that holds both sides stands alone. Ends with exit code 65
    if training on it would fail or go wrong; other findings are for you to judge.

    \b
    Examples:
      pellucid check train.en train.de
      pellucid check train.en train.de --test test.en test.de --json
      pellucid check train.en train.de --languages en-de --fix cleaned
      pellucid check pairs.csv
    """
    require_texts(source, target, *(test or ()))

    from pellucid.core.errors import DataError
    from pellucid.core.files import refuse_to_overwrite, temporary_folder
    from pellucid.text.check.check import examine, overlapping_rows
    from pellucid.text.check.sides import write_sides
    from pellucid.text.config import require_one_side, way_out

    for side in (source, target):
        if side is not None and (way := way_out(str(side))):
            raise DataError(f"{side} is not text or a table of pairs", hint=way)
    require_one_side(*map(str, (*([source, target] if target else []), *(test or ()))))
    if fix is not None:
        refuse_to_overwrite(fix)

    with contextlib.ExitStack() as opened:
        sides = source, target or source
        if target is None:
            # Each side is read several times, as lines.
            folder = temporary_folder(Path(tempfile.gettempdir()), "pellucid-check-")
            sides = write_sides(source, opened.enter_context(folder))
        diagnosis = examine(*sides, test=test, languages=languages)
        verdict = _verdict(diagnosis)

        if as_json:
            entries = {**diagnosis.to_dict(), "verdict": verdict}
            click.echo(json.dumps(entries, ensure_ascii=False))
        else:
            click.echo(_report(diagnosis))
            click.echo(_VERDICTS[verdict] + ("" if fix else _advice(diagnosis)))

        if fix is not None:
            from pellucid.text.corpus.cleaning import DROPPED_NAME, Rules, clean_corpus
            from pellucid.text.corpus.pairs import PairFiles
            from pellucid.text.corpus.rows import RowSet

            diagnosis.refuse_misaligned()
            rules = Rules(near_duplicates=False, languages=languages)
            overlap = RowSet.union(map(overlapping_rows, sides, test or ()))
            files = PairFiles((sides[0],), (sides[1],))
            done = clean_corpus(files, fix, rules, logs=True, overlap=overlap)
            click.echo(
                f"kept {done.kept:,} pairs in {done.files.sources[0]} and {done.files.targets[0]},"
                f" dropped {done.read - done.kept:,}, see {fix / DROPPED_NAME}",
                err=True,
            )
            diagnosis = examine(*done.files.all, test=test)
            left = [
                f"{finding.count:,} {_name(kind)}"
                for kind, finding in diagnosis.findings.items()
                if finding.count
            ]
            if left:
                click.echo(f"still in the copies: {', '.join(left)}", err=True)
            for reason in diagnosis.reasons:
                click.echo(f"training would go wrong: {reason}", err=True)
    return WRONG_DATA if diagnosis.reasons else 0


def _verdict(diagnosis: "Diagnosis") -> Verdict:
    if diagnosis.reasons:
        return "unusable"
    if diagnosis.is_unrelated:
        return "doubtful"
    return "usable" if any(each.count for each in diagnosis.findings.values()) else "good"


def _advice(diagnosis: "Diagnosis") -> str:
    """Return advice about the findings, as the end of the verdict."""
    counts = {"source": diagnosis.source_lines, "target": diagnosis.target_lines}
    fewest, most = sorted(counts.values())
    if fewest < most and diagnosis.findings["empty"].rows.mask(fewest, most).all():
        longer = max(counts, key=lambda side: counts[side])
        return f"; take away the blank lines at the end of the {longer}"
    if diagnosis.source_lines != diagnosis.target_lines or diagnosis.misalignment is not None:
        return "; put the lines right first, --fix cannot know which belong together"
    from pellucid.core.texts import TO_UTF_8
    from pellucid.text.check.check import KEPT_KINDS
    from pellucid.text.check.rules import REASONS
    from pellucid.text.corpus.cleaning import is_other_encoding

    if is_other_encoding(diagnosis.findings["invalid_utf8"].count, diagnosis.source_lines):
        return f"; first {TO_UTF_8}"
    found = {kind for kind, finding in diagnosis.findings.items() if finding.count}
    kept = ", ".join(_name(kind) for kind in diagnosis.findings if kind in found & KEPT_KINDS)
    if diagnosis.is_correction:
        return "; --fix would drop the pairs of equal sides, which teach what is right already"
    if not found - KEPT_KINDS:
        return f"; --fix does not change: {kept}" if kept else ""
    dropped = (diagnosis.findings[kind].count for kind in found.intersection(REASONS))
    if any(count >= diagnosis.source_lines for count in dropped):
        return "; --fix would leave no pair"
    return "; --fix OUT writes copies without what was found" + (kept and f", except: {kept}")


def _report(diagnosis: "Diagnosis") -> str:
    from pellucid.core.texts import counted
    from pellucid.text.check.check import UNRELATED

    lines = [f"{diagnosis.source_lines:,} source lines, {diagnosis.target_lines:,} target lines"]
    found = diagnosis.misalignment
    if found is not None:
        further = counted(abs(found.slip), "line")
        side = "source" if found.slip > 0 else "target"
        lines.append(
            f"misaligned from about line {found.line:,} to {found.last_line:,}:"
            f" there the {side} is {further} behind"
        )

    for kind, finding in diagnosis.findings.items():
        if finding.count:
            lines += _paragraph(_name(kind), finding)

    if diagnosis.is_unrelated and diagnosis.source_lines == diagnosis.target_lines:
        lines.append(f"unrelated: {UNRELATED}")
    if (
        not diagnosis.reasons
        and not diagnosis.is_unrelated
        and not any(each.count for each in diagnosis.findings.values())
    ):
        lines.append("nothing found")
    if diagnosis.is_correction:
        lines.append(
            "correction: most pairs are equal and the others nearly so; if one side does not"
            " correct the other, but translates it, most pairs are not translated"
        )
    lines += [f"training would go wrong: {reason}" for reason in diagnosis.reasons]
    return "\n".join(lines)


def _name(kind: "Kind") -> str:
    return kind.replace("_", " ")


def _paragraph(name: str, finding: "Finding") -> list[str]:
    first = ", ".join(map(str, finding.first_lines))
    more = ", ..." if finding.count > len(finding.first_lines) else ""
    where = " of the test files" if finding.kind == "overlap" else ""
    sides = ""
    if finding.source_count is not None:
        sides = f" ({finding.source_count:,} source, {finding.target_count:,} target)"
    return [
        f"{name}: {finding.count:,}{sides}, line {first}{more}{where}",
        *(
            f"    {line}: {_shown(source)} | {_shown(target)}"
            for line, (source, target) in finding.examples.items()
        ),
    ]


def _shown(text: str) -> str:
    """The text with control characters escaped and cut to one short line."""
    # Cut before escaping: a line of megabytes may be what is wrong with the file.
    shown = visible(text[:200])
    if len(shown) <= _WIDEST_EXAMPLE:
        return shown
    return shown[: _WIDEST_EXAMPLE - 3] + "..."


@click.command()
@click.argument("config", type=NAME)
@settings_option("Change a setting, such as data.source=train.en; may be given many times.")
@click.option("-o", "--out", type=PATH, required=True, help="Folder to write.")
@click.option(
    "--longest",
    type=click.IntRange(1),
    default=1000,
    help="Drop pairs with more characters on a side.  [default: 1000]",
)
@click.option(
    "--keep-near-duplicates",
    is_flag=True,
    help="Keep pairs that differ from an earlier one in case, digits, spaces or punctuation only.",
)
@click.option(
    "--languages",
    type=LanguagePair(),
    help="Drop pairs with a side in another language than these, such as en-de (extra detect).",
)
@click.option(
    "--similar",
    type=FiniteRange(0.5, 1.0),
    metavar="SHARE",
    help="Drop pairs that have this share of their letters' shingles in common with an earlier one,"
    " such as 0.8.",
)
@click.option(
    "--ray",
    metavar="ADDRESS",
    help="Work on the Ray cluster at ADDRESS (auto: the one this machine is in; local: start one).",
)
@click.option("--cores", type=click.IntRange(1), help="With --ray local: cores of it.")
@json_option
def prepare(
    config: str,
    overrides: tuple[str, ...],
    out: Path,
    longest: int,
    keep_near_duplicates: bool,
    languages: tuple[str, str] | None,
    similar: float | None,
    ray: str | None,
    cores: int | None,
    as_json: bool,
) -> None:
    """Clean the text of CONFIG, a preset or a file, and tokenize it into OUT.

    Drops pairs with a blank or very long side, copies, unusual ratios of lengths, and exact and
    near duplicates, and with options other languages and similar pairs; repairs control characters.
    Then train with OUT/config.toml. Run again after a
    kill, it goes on with what is whole.

    \b
    Examples:
      pellucid prepare multi30k --set data.source=train.en --set data.target=train.de -o corpus
      pellucid prepare big.toml -o corpus --languages en-de --similar 0.8 --ray auto
      pellucid train corpus/config.toml --out runs/en-de
    """
    from pellucid.training.preset_names import require_config

    require_config(config)

    from pellucid.text.corpus.cleaning import Rules
    from pellucid.training.prepare import prepare as prepare_corpus
    from pellucid.training.presets import read_config

    if cores is not None and ray != "local":
        raise click.UsageError("--cores must go with --ray local.")
    rules = Rules(
        longest=longest,
        near_duplicates=not keep_near_duplicates,
        languages=languages,
        least_similarity=similar,
    )
    wanted = read_config(config, overrides)

    with contextlib.ExitStack() as opened:
        in_order = None
        if ray is not None:
            from pellucid.text.corpus.on_ray import ray_workers

            in_order = opened.enter_context(ray_workers(ray, cores))
        done = prepare_corpus(wanted, out, rules, in_order)

    if as_json:
        facts = {"read": done.text.read, "kept": done.text.kept, "dropped": done.text.dropped}
        click.echo(json.dumps({**facts, "tokenized": len(done.store), "config": str(done.config)}))
        return
    # without the reasons that no pair had: some are not looked for unless they are asked for
    dropped = ", ".join(
        f"{count:,} {reason.replace('_', ' ')}"
        for reason, count in done.text.dropped.items()
        if count
    )
    click.echo(
        f"kept {done.text.kept:,} of {done.text.read:,} pairs (dropped: {dropped or 'none'}),"
        f" tokenized {len(done.store):,}",
        err=True,
    )
    click.echo(str(done.config))
