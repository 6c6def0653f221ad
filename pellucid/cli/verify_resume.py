"""``pellucid verify-resume``: checks that a killed and resumed run equals an unbroken one."""

import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pellucid.cli.options import json_option, parent_option, settings_option

if TYPE_CHECKING:
    from pellucid.training.resume_check import ResumeProof


@click.command("verify-resume")
@click.argument("config")
@settings_option("Change one setting of the config; may be given many times.")
@parent_option("Fine-tune this bundle or run, as train --init does.")
@click.option("--steps", default=40, show_default=True, type=click.IntRange(min=8), help="Updates.")
@click.option(
    "--kills", default=4, show_default=True, type=click.IntRange(min=1), help="How often to kill."
)
@click.option("--seed", default=0, show_default=True, help="From it come the moments of the kills.")
@json_option
def verify_resume(
    config: str,
    overrides: tuple[str, ...],
    init: Path | None,
    steps: int,
    kills: int,
    seed: int,
    as_json: bool,
) -> int:
    """Train by CONFIG twice in a temporary folder, once killed again and again; compare the two.

    Every loss, rate and gradient norm, the parameters, the optimizer, the averages and every
    generator must be the same to the last bit. Ends with exit code 1 if one is not.

    \b
    Examples:
      pellucid verify-resume demo
      pellucid verify-resume my.toml --steps 100 --kills 10
    """
    import tempfile

    from pellucid.training.presets import read_config
    from pellucid.training.resume_check import verify_resume as verify

    run_config = read_config(config, overrides, init)
    # Both runs and their checkpoints are removed, whatever the result.
    with tempfile.TemporaryDirectory(prefix="pellucid-") as folder:
        proof = verify(run_config, Path(folder), steps=steps, kills=kills, seed=seed)

    if as_json:
        click.echo(json.dumps({**dataclasses.asdict(proof), "holds": proof.holds}))
    else:
        click.echo(_describe(proof))
    return 0 if proof.holds else 1


def _describe(proof: "ResumeProof") -> str:
    lines = [f"{proof.steps} updates, killed {len(proof.kills)} times by SIGKILL:"]
    for kill in proof.kills:
        # A kill in the middle of a write is the case that a checkpoint must survive.
        where = "inside a save" if kill.inside_save else "between saves"
        left = "nothing" if kill.goes_on_from is None else f"step {kill.goes_on_from}"
        lines.append(f"  after update {max(0, kill.after_step)}, {where}; went on from {left}")
    lines += ["", f"{'':16} {'same':5} in the unbroken and in the killed run"]
    lines += [
        f"{each.what:16} {'yes' if each.is_same else 'NO':5} {each.detail}"
        for each in proof.comparisons
    ]
    if not proof.kills:
        lines += ["", "the run was over before it could be killed: ask for more --steps"]
    elif proof.holds:
        lines += ["", "resuming is exact with these settings on this machine"]
    else:
        lines += ["", "resuming is NOT exact with these settings on this machine"]

    return "\n".join(lines)
