"""``pellucid prepare``: clean and tokenize a corpus for training runs, here or on Ray."""

import contextlib
import json
from pathlib import Path

import click

from pellucid.cli.options import LanguagePair, json_option, settings_option


@click.command()
@click.argument("config")
@settings_option("Change a setting, such as data.source=train.en; may be given many times.")
@click.option(
    "-o", "--out", type=click.Path(path_type=Path), required=True, help="Folder to write."
)
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
    type=click.FloatRange(0.5, 1.0),
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
    dropped = ", ".join(
        f"{count:,} {reason.replace('_', ' ')}" for reason, count in done.text.dropped.items()
    )
    click.echo(
        f"kept {done.text.kept:,} of {done.text.read:,} pairs (dropped: {dropped}),"
        f" tokenized {len(done.store):,}",
        err=True,
    )
    click.echo(str(done.config))
