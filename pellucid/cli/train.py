"""``pellucid train``: from a config and two text files to a model."""

import logging
import shlex
from pathlib import Path

import click

from pellucid.cli.kernels import keep_few_kernels


@click.command()
@click.argument("config")
@click.option(
    "--set",
    "overrides",
    multiple=True,
    metavar="SECTION.KEY=VALUE",
    help="Change one setting of the config; may be given many times.",
)
@click.option(
    "-o", "--out", type=click.Path(path_type=Path), help="Run folder.  [default: runs/CONFIG]"
)
@click.option(
    "--init",
    type=click.Path(path_type=Path),
    metavar="BUNDLE",
    help="Begin with this bundle or run: fine-tune it.",
)
@click.option(
    "--tensorboard", is_flag=True, help="Write event files for TensorBoard into the run folder."
)
@click.option("--resume", is_flag=True, help="Go on with the run in --out.")
@click.option("--dry-run", is_flag=True, help="Try everything once, forecast, leave nothing.")
def train(
    config: str,
    overrides: tuple[str, ...],
    out: Path | None,
    init: Path | None,
    tensorboard: bool,
    resume: bool,
    dry_run: bool,
) -> int:
    """Train a model by CONFIG, a .toml file or the name of a preset.

    Ctrl-C and SIGTERM save before they end it; --resume goes on from there.

    Under torchrun, its processes share the batches of every update.

    \b
    Examples:
      pellucid train demo --set training.max_steps=100 --out runs/try
      pellucid train tiny --set data.source=train.en --set data.target=train.de \\
          --set data.valid_source=valid.en --set data.valid_target=valid.de --out runs/en-de
      pellucid train demo --out runs/try --resume
      pellucid train paper-base --set data.source=train.en --set data.target=train.de --dry-run
      pellucid train finetune --init runs/en-de --set data.source=my.en \\
          --set data.target=my.de --out runs/mine
    """
    keep_few_kernels()
    from pellucid.cli.display import Display
    from pellucid.cli.rehearsal import show_rehearsal
    from pellucid.cli.signals import EXIT_CODES, StopRequests
    from pellucid.core.world import world_of_environment
    from pellucid.training.presets import read_config
    from pellucid.training.train import train as train_model

    quiet, world = click.get_current_context().obj["quiet"], world_of_environment()
    if dry_run and resume:
        raise click.UsageError("--dry-run begins anew; leave --resume out")
    if tensorboard:
        overrides = (*overrides, "training.tensorboard=true")
    run_config = read_config(config, overrides, init)
    folder = out or Path("runs") / Path(config).stem
    if dry_run and not world.is_alone:
        raise click.UsageError("--dry-run is for one process, not for torchrun.")
    if dry_run:
        return show_rehearsal(run_config, folder, quiet=quiet)
    if not world.is_first:
        logging.getLogger("pellucid").setLevel(logging.ERROR)  # the first one has said it
    stop = StopRequests(heeds_second=world.is_alone)
    with Display(quiet=quiet or not world.is_first) as display:
        result = train_model(
            run_config, folder, resume=resume, listener=display.hear, should_stop=stop
        )
    if result.reason in EXIT_CODES:
        if world.is_first:
            again = _how_to_go_on(config, overrides, init, folder, is_alone=world.is_alone)
            click.echo(f"saved; go on with: {again}", err=True)
        return EXIT_CODES[result.reason]
    if world.is_first:
        click.echo(str(folder))
    return 0


def _how_to_go_on(
    config: str, overrides: tuple[str, ...], init: Path | None, folder: Path, *, is_alone: bool
) -> str:
    """The command that resumes what was stopped."""
    changes = [part for override in overrides for part in ("--set", override)]
    if init is not None:
        changes += ["--init", str(init)]
    again = ["pellucid", "train", config, *changes, "--out", str(folder), "--resume"]
    return ("" if is_alone else "torchrun ... -m ") + shlex.join(again)
