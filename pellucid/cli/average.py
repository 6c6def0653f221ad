"""``pellucid average``: several models averaged into one."""

import math
from pathlib import Path

import click


@click.command()
@click.argument("models", nargs=-1, required=True, metavar="MODEL MODEL...")
@click.option(
    "-o",
    "--out",
    required=True,
    type=click.Path(path_type=Path),
    help="New folder to write the bundle to.",
)
@click.option(
    "--weight",
    "weights",
    type=click.FloatRange(0),
    multiple=True,
    help="How much a model counts; once for each model, in their order.  [default: all the same]",
)
@click.pass_obj
def average(
    obj: dict[str, bool], models: tuple[str, ...], out: Path, weights: tuple[float, ...]
) -> None:
    """Average the parameters of several models into one, as large and as fast as each of them.

    MODEL is a bundle or a run folder, whose best bundle is taken. The models must be of one run, or
    fine-tuned from the same bundle (pellucid train --init). Models with different initializations
    can translate together instead (pellucid translate --with).

    \b
    Examples:
      pellucid average runs/student1 runs/student2 --out runs/average
      pellucid average runs/de/bundles/step-* --out runs/mean
      pellucid average runs/news runs/tuned --weight 1 --weight 3 --out runs/between
    """
    from pellucid.bundle import open_any_bundle
    from pellucid.training.merging import save_average

    if len(models) < 2:
        raise click.UsageError(
            "an average needs at least two models: name the bundles of a run one by one, such as"
            " runs/de/bundles/step-*."
        )
    if weights and len(weights) != len(models):
        raise click.UsageError(
            f"--weight must be given for each of the {len(models)} models, or not at all; got"
            f" {len(weights)}."
        )
    if weights and not 0 < sum(weights) < math.inf:  # NaN is in no range
        raise click.UsageError("the weights must be finite, and not all 0.")

    bundle = save_average(out, [open_any_bundle(each) for each in models], weights or None)
    if not obj["quiet"]:
        advice = "; score it with pellucid evaluate" if bundle.config.translates else ""
        click.echo(
            f"the average of {len(models)} models, {bundle.parameter_count:,} parameters{advice}",
            err=True,
        )
    # stdout holds the path alone, for scripts.
    click.echo(str(out))
