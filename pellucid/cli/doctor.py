"""``pellucid doctor`` and ``verify-resume``: what holds on this machine."""

import dataclasses
import json
import math
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pellucid.cli.options import NAME, json_option, parent_option, require_model, settings_option

if TYPE_CHECKING:
    from pellucid.inspection.doctor import Installation
    from pellucid.inspection.laws import LawResult


@click.command()
@click.argument("bundle", type=NAME, required=False)
@click.option(
    "--machine", is_flag=True, help="Only say what this machine has, and what that means."
)
@json_option
def doctor(bundle: str | None, machine: bool, as_json: bool) -> int:
    """Print what is installed; check the laws of the architecture on tiny models and on BUNDLE.

    Ends with exit code 1 if a law is broken.

    \b
    Examples:
      pellucid doctor
      pellucid doctor runs/en-de --json
      pellucid doctor --machine
    """
    if machine:
        if bundle is not None:
            raise click.UsageError("--machine takes no BUNDLE.")
        _print_machine(as_json=as_json)
        return 0
    if bundle is not None:
        require_model(bundle)

    from pellucid.bundle import load_bundle
    from pellucid.inspection.doctor import examine_installation
    from pellucid.inspection.laws import check_kernels, check_laws, tiny_models

    # Random weights suffice for a law, and take no download and a second each.
    models = {f"tiny {name}": model for name, model in tiny_models().items()}
    if bundle is not None:
        opened = load_bundle(bundle)
        models[f"{bundle}: {opened.model.config.summary()}"] = opened.model

    # Printed before the checks, which take seconds, and even if one of them crashes.
    installation = examine_installation()
    if not as_json:
        click.echo(_describe(installation))

    checks = {"attention": check_kernels()}
    checks |= {subject: check_laws(model, subject) for subject, model in models.items()}
    results = []
    for subject, found in checks.items():
        if not as_json:
            click.echo(f"\n{subject}")
        for result in found:
            results.append(result)
            if not as_json:
                click.echo(_line(result))

    broken = [result for result in results if not result.holds]
    if as_json:
        click.echo(_as_json(installation, results))
    elif broken:
        click.echo(f"\n{len(broken)} of {len(results)} checks do not hold on this machine")
    else:
        click.echo(f"\nall {len(results)} checks hold on this machine")
    return 1 if broken else 0


def _print_machine(*, as_json: bool) -> None:
    from pellucid.backends.machine import examine_machine

    findings = examine_machine()
    if as_json:
        click.echo(json.dumps([dataclasses.asdict(each) for each in findings], ensure_ascii=False))
        return
    for each in findings:
        click.echo(f"{each.name:18} {each.found}")
        if each.meaning:
            click.echo(f"{'':18}   {each.meaning}")


def _describe(installation: "Installation") -> str:
    lines = [f"{name:14} {each or 'missing'}" for name, each in installation.versions.items()]
    lines += [f"{'system':14} {installation.system}"]
    lines += [f"{'device':14} {device}" for device in installation.devices]
    lines += [f"{'threads':14} {count} {name}" for name, count in installation.threads.items()]
    for extra in installation.extras:
        missing = [name for name, version in extra.versions.items() if version is None]
        state = "complete" if extra.is_complete else f"missing {', '.join(missing)}"
        lines.append(f"{'extra ' + extra.name:14} {state}")
    return "\n".join(lines)


def _line(result: "LawResult") -> str:
    sign = "holds " if result.holds else "BROKEN"
    # 0 is no rounding: both ways made the same numbers.
    difference = "exactly" if result.difference == 0 else f"to {result.difference:.1e}"
    return f"  {sign}  {result.law:36} {difference:14} {result.seconds * 1000:6.0f} ms"


def _as_json(installation: "Installation", results: "list[LawResult]") -> str:
    laws = [
        {
            **dataclasses.asdict(each),
            # JSON has no infinity.
            "difference": each.difference if math.isfinite(each.difference) else None,
        }
        for each in results
    ]
    return json.dumps(
        {**dataclasses.asdict(installation), "laws": laws, "holds": all(r.holds for r in results)},
        ensure_ascii=False,
    )


@click.command("verify-resume")
@click.argument("config", type=NAME)
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
    from pellucid.training.preset_names import require_config

    require_config(config)

    from pellucid.training.presets import read_config

    run_config = read_config(config, overrides, init)
    from pellucid.training.resume_check import verify_resume as verify

    with tempfile.TemporaryDirectory(prefix="pellucid-") as folder:
        proof = verify(run_config, Path(folder), steps=steps, kills=kills, seed=seed)

    if as_json:
        click.echo(json.dumps({**dataclasses.asdict(proof), "holds": proof.holds}))
        return 0 if proof.holds else 1

    click.echo(f"{proof.steps} updates, killed {len(proof.kills)} times by SIGKILL:")
    for kill in proof.kills:
        where = "inside a save" if kill.inside_save else "between saves"
        left = "nothing" if kill.goes_on_from is None else f"step {kill.goes_on_from}"
        click.echo(f"  after update {max(0, kill.after_step)}, {where}; went on from {left}")
    for difference in proof.differences:
        click.echo(f"differs: {difference}")
    if not proof.kills:
        click.echo("the run was over before it could be killed: ask for more --steps")
    else:
        word = "exact" if proof.holds else "NOT exact"
        click.echo(f"resuming is {word} with these settings on this machine")
    return 0 if proof.holds else 1
